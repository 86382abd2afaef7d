//! What each subcommand does.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use burn::{backend::Flex, tensor::backend::AutodiffBackend};
use command_line::{Failure, note, say, write_new};
use datasets::text::TokenizerSpec;
use experiment_kit::{
    compare, on_device,
    request::{self as kit_request, CompareRequest, TrainRequest},
    run::{self as kit_run, Start},
};
use fused_ops::FusedOps;
use plotting::{Align, Table};
use training::{
    device::DeviceChoice, interrupt::Interrupt, progress::Progress, run_directory::RunPaths, trainer::RunEnd,
};

use super::{
    args::{CompareArgs, EvaluateArgs, ExportArgs, GenerateArgs, TrainArgs},
    request,
};
use crate::{
    data::TextData,
    generate::{self, Sampling},
    model::state_dict,
    presets::Preset,
    report::Report,
    run::{self, LanguageModels},
    settings::Settings,
    task,
};

type Outcome = Result<(), Failure>;

/// Where trained tokenizers are kept between runs.
fn tokenizer_cache() -> PathBuf {
    Path::new("runs").join("tokenizers")
}

/// Refuses what cannot fit into main memory. What a GPU holds is not asked.
fn check_memory(settings: &Settings, device: DeviceChoice, at_once: usize, remedy: &str) -> Outcome {
    let mut sized = settings.clone();
    // Before the text is read, the vocabulary is at least this.
    let least = match settings.data.tokenizer {
        TokenizerSpec::Bpe { entries } => entries,
        TokenizerSpec::Bytes | TokenizerSpec::File(_) => 257,
    };
    sized.model.vocabulary = sized.model.vocabulary.max(least);
    kit_request::check_memory(device, || run::memory_estimate(&sized, at_once), remedy)
}

/// Reads the text and settles the vocabulary.
fn load_data(settings: &mut Settings) -> Result<TextData, Failure> {
    let data = TextData::load(&settings.data, Some(&tokenizer_cache())).map_err(anyhow::Error::from)?;
    settings.model.vocabulary = data.vocabulary(settings.model.vocabulary).map_err(|e| Failure::Usage(e.into()))?;
    Ok(data)
}

const COMPARE_REMEDY: &str = "--sequential, fewer --arms, a smaller --micro-batch or --preset";
const TRAIN_REMEDY: &str = "a smaller --micro-batch, --context or --preset";

fn describe(progress: &Progress, settings: &Settings, data: &TextData) {
    progress.message(&data.corpus.to_string());
    progress.message(&format!(
        "tokenizer: {}, vocabulary {}\ntraining rows: {} of {} tokens ({})",
        data.tokenizer.provenance(),
        settings.model.vocabulary,
        data.train.len(),
        settings.data.context,
        data.train.stats()
    ));
    let rows = settings.training.steps as f64 * settings.data.batch as f64;
    progress.message(&format!(
        "model: {} layers of width {}, {} parameters; {} steps of {} x {} tokens, {:.2} epochs",
        settings.model.layers,
        settings.model.width,
        plotting::si(settings.model.parameters() as f64),
        settings.training.steps,
        settings.data.batch,
        settings.data.context,
        rows / f64::from(data.train.len())
    ));
}

/// `compare`, and a run without a subcommand.
pub fn compare(args: &CompareArgs) -> Outcome {
    let request = request::compare(args).map_err(Failure::Usage)?;
    let CompareRequest { comparison, .. } = &request;
    check_memory(&comparison.run, args.run.device, comparison.at_once(), COMPARE_REMEDY)?;
    if !request.resume {
        kit_request::check_is_free(&request.path)?;
    }
    on_device!(args.run.device, |B, device| compare_on::<B>(request, args.run.device, device))
}

fn compare_on<B>(request: CompareRequest<Settings>, choice: DeviceChoice, device: B::Device) -> Outcome
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let CompareRequest { mut comparison, path, resume } = request;
    let interrupt = Interrupt::install().map_err(anyhow::Error::from)?;
    let progress = Progress::new();
    let data = load_data(&mut comparison.run)?;
    check_memory(&comparison.run, choice, comparison.at_once(), COMPARE_REMEDY)?;
    // Only now: text that cannot be read leaves no directory behind.
    let directory = compare::open_directory(run::PROGRAM, &path, &comparison, resume, &B::name(&device))?;
    describe(&progress, &comparison.run, &data);
    let names: Vec<String> = comparison.arms.iter().map(ToString::to_string).collect();
    progress.message(&format!("arms: {}; run directory: {}", names.join(", "), path.display()));
    let experiment = LanguageModels::<B> { data, device };
    let end = compare::run(&experiment, &path, &comparison, &progress, &interrupt)?;
    drop(directory);
    if end == RunEnd::Interrupted {
        note(format!("stopped and saved; go on with: cargo run -p experiments-llm -- --resume {}", path.display()));
        return Err(Failure::Interrupted);
    }
    let written = Report::read(&path, &comparison)?.write(&path)?;
    say(format!("\n{}", written.text));
    for warning in written.warnings {
        note(format!("note: {warning}"));
    }
    for figure in written.figures.iter().filter(|path| path.extension().is_some_and(|e| e == "png")) {
        say(format!("figure: {}", figure.display()));
    }
    say(path.display());
    Ok(())
}

/// `train`.
pub fn train(args: &TrainArgs) -> Outcome {
    let request = request::train(args).map_err(Failure::Usage)?;
    check_memory(&request.settings, args.run.device, 1, TRAIN_REMEDY)?;
    if request.start == Start::New {
        kit_request::check_is_free(&request.path)?;
    }
    on_device!(args.run.device, |B, device| train_on::<B>(request, args.run.device, device))
}

fn train_on<B>(request: TrainRequest<Settings>, choice: DeviceChoice, device: B::Device) -> Outcome
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let TrainRequest { mut settings, path, start } = request;
    let interrupt = Interrupt::install().map_err(anyhow::Error::from)?;
    let progress = Progress::new();
    let data = load_data(&mut settings)?;
    check_memory(&settings, choice, 1, TRAIN_REMEDY)?;
    describe(&progress, &settings, &data);
    let experiment = LanguageModels::<B> { data, device };
    if kit_run::train(&experiment, &path, start, &settings, &progress, &interrupt)? == RunEnd::Interrupted {
        note(format!(
            "stopped and saved; go on with: cargo run -p experiments-llm -- train --resume {}",
            path.display()
        ));
        return Err(Failure::Interrupted);
    }
    let metrics = training::metrics::read_metrics(&RunPaths::new(&path).metrics()).map_err(anyhow::Error::from)?;
    if let Some(last) = metrics.iter().rev().find(|r| r.kind == training::metrics::RecordKind::Evaluation) {
        say(metrics_table(&last.values).to_text());
    }
    say(path.display());
    Ok(())
}

fn metrics_table(values: &[(String, f64)]) -> Table {
    let mut table = Table::new(["held out", "value"]).align(0, Align::Left);
    for (name, value) in values {
        table.push([name.clone(), plotting::significant(*value, 6)]);
    }
    table
}

/// `evaluate`.
pub fn evaluate(args: &EvaluateArgs) -> Outcome {
    on_device!(args.device, |B, device| evaluate_on::<<B as AutodiffBackend>::InnerBackend>(args, device))
}

fn evaluate_on<B: FusedOps>(args: &EvaluateArgs, device: B::Device) -> Outcome {
    let (mut settings, model, step) = run::load::<B>(&args.run, &device)?;
    settings.data.evaluation_tokens = 0;
    settings.data.tokenizer = kept_tokenizer(&args.run, &settings)?;
    if !args.validation.is_empty() {
        settings.data.validation = args.validation.clone();
    }
    let data = load_data(&mut settings)?;
    let values = task::held_out_metrics(&model, &data.held_out, &device).map_err(anyhow::Error::from)?;
    say(format!("{} after {step} steps, on {} held-out tokens", args.run.display(), data.held_out_stats.target_tokens));
    say(metrics_table(&values).to_text());
    Ok(())
}

/// The tokenizer that a run keeps, or the one of its settings where it needs no file.
fn kept_tokenizer(run: &Path, settings: &Settings) -> Result<TokenizerSpec, Failure> {
    let kept = run.join(run::TOKENIZER);
    match &settings.data.tokenizer {
        TokenizerSpec::Bytes => Ok(TokenizerSpec::Bytes),
        _ if kept.is_file() => Ok(TokenizerSpec::File(kept)),
        other => Err(anyhow!("{} is missing: the run was made with the tokenizer {other}", kept.display()).into()),
    }
}

/// `generate`.
pub fn generate(args: &GenerateArgs) -> Outcome {
    if !(args.temperature.is_finite() && args.temperature >= 0.0) {
        return Err(Failure::Usage(anyhow!("--temperature {}: give a number of at least 0", args.temperature)));
    }
    on_device!(args.device, |B, device| generate_on::<<B as AutodiffBackend>::InnerBackend>(args, device))
}

fn generate_on<B: FusedOps>(args: &GenerateArgs, device: B::Device) -> Outcome {
    let (settings, model, _) = run::load::<B>(&args.run, &device)?;
    let tokenizer = kept_tokenizer(&args.run, &settings)?
        .load(&datasets::text::Corpus::default(), None)
        .with_context(|| format!("{} has no tokenizer to write with", args.run.display()))?;
    let (tokens, vocabulary) = (tokenizer.vocabulary_size(), settings.model.vocabulary);
    if tokens > vocabulary {
        return Err(
            anyhow!("the tokenizer has {tokens} tokens and the model {vocabulary}: it is not the run's own").into()
        );
    }
    let sampling = Sampling { tokens: args.tokens, temperature: args.temperature, seed: args.seed };
    say(generate::generate(&model, &tokenizer, &args.prompt, sampling, &device)?);
    Ok(())
}

/// `export`.
pub fn export(args: &ExportArgs) -> Outcome {
    // Links that lead nowhere exist, too.
    if args.to.symlink_metadata().is_ok() {
        return Err(Failure::Usage(anyhow!("{} exists: give --to another name", args.to.display())));
    }
    let (_, model, step) = run::load::<Flex>(&args.run, &Default::default())?;
    let tensors = state_dict::from_model(&model);
    let bytes = state_dict::to_bytes(&tensors).map_err(anyhow::Error::from)?;
    write_new(&args.to, &bytes).with_context(|| format!("cannot write {}", args.to.display()))?;
    say(format!("{} tensors after {step} steps in {}", tensors.len(), args.to.display()));
    Ok(())
}

/// `presets`.
pub fn presets() -> Outcome {
    let mut table = Table::new([
        "preset",
        "parameters",
        "layers",
        "width",
        "heads",
        "tokens a step",
        "steps",
        "lr",
        "memory",
        "for",
    ])
    .units(["", "", "", "", "", "", "", "", "one run", ""])
    .align(0, Align::Left)
    .align(9, Align::Left);
    for preset in Preset::ALL {
        let mut settings = preset.settings();
        settings.model.vocabulary = settings.model.vocabulary.max(257);
        let Settings { model, data, training, .. } = &settings;
        table.push([
            preset.to_string(),
            plotting::si(model.parameters() as f64),
            model.layers.to_string(),
            model.width.to_string(),
            model.heads.to_string(),
            plotting::si((data.batch * data.context) as f64),
            plotting::si(training.steps as f64),
            format!("{:e}", training.lr),
            plotting::bytes(run::memory_estimate(&settings, 1).total()),
            preset.purpose().to_owned(),
        ]);
    }
    say(table.to_text());
    say("All settings of a preset are in the config.toml of a run made with it; --set changes any of them.");
    Ok(())
}
