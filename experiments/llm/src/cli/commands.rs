//! What the subcommands do that are the program's own.

use anyhow::{Context, anyhow};
use burn::{backend::Flex, tensor::backend::AutodiffBackend};
use command_line::{Failure, note, say};
use experiment_cli::{ExportOptions, TrainingProgram, metrics_table};
use experiment_kit::{
    on_device,
    request::{check_is_free, next_directory},
};
use fused_ops::FusedOps;
use plotting::{Align, Table};
use training::progress::Progress;

use super::{
    args::{DepthArgs, EvaluateArgs, GenerateArgs},
    program::LlmProgram,
};
use crate::{
    depth::{
        report::{self, MeasuredGroup},
        targets,
    },
    generate::{self, Sampling},
    model::state_dict,
    presets::Preset,
    run,
    settings::Settings,
    task,
};

type Outcome = Result<(), Failure>;

/// `evaluate`.
pub fn evaluate(args: &EvaluateArgs) -> Outcome {
    on_device!(args.device, |B, device| evaluate_on::<<B as AutodiffBackend>::InnerBackend>(args, device))
}

fn evaluate_on<B: FusedOps>(args: &EvaluateArgs, device: B::Device) -> Outcome {
    let (mut settings, model, step) = run::load::<B>(&args.run, &device)?;
    settings.data.evaluation_tokens = 0;
    settings.data.tokenizer = run::kept_tokenizer(&args.run, &settings)?;
    if !args.validation.is_empty() {
        settings.data.validation = args.validation.clone();
    }
    let data = LlmProgram::load(&mut settings)?;
    let values = task::held_out_metrics(&model, &data.held_out, &device).map_err(anyhow::Error::from)?;
    say(format!("{} after {step} steps, on {} held-out tokens", args.run.display(), data.held_out_stats.target_tokens));
    say(metrics_table(LlmProgram::METRICS, &values).to_text());
    Ok(())
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
    let tokenizer = run::kept_tokenizer(&args.run, &settings)?
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

/// `depth`.
pub fn depth(args: &DepthArgs) -> Outcome {
    if args.tokens == 0 {
        return Err(Failure::Usage(anyhow!("--tokens 0: give a positive number")));
    }
    let groups = targets::find(&args.paths)?;
    let directory = args.out.clone().unwrap_or_else(|| next_directory("depth"));
    check_is_free(&directory)?;
    let request = targets::Request {
        text: args.text.clone(),
        text_field: args.text_field.clone(),
        tokens: args.tokens,
        context: args.context,
        tokenizer: args.tokenizer.clone(),
        device: args.device,
    };
    let measured: Vec<MeasuredGroup> = on_device!(args.device, |B, device| {
        measured_groups::<<B as AutodiffBackend>::InnerBackend>(groups, &request, &device)?
    });
    let written = report::write(&directory, &measured)?;
    say(&written.text);
    for warning in written.warnings {
        note(format!("note: {warning}"));
    }
    for figure in written.figures.iter().filter(|path| path.extension().is_some_and(|e| e == "png")) {
        say(format!("figure: {}", figure.display()));
    }
    say(directory.display());
    Ok(())
}

/// One model is in memory at a time.
fn measured_groups<B: FusedOps>(
    groups: Vec<targets::Group>,
    request: &targets::Request,
    device: &B::Device,
) -> Result<Vec<MeasuredGroup>, Failure> {
    let progress = Progress::new();
    let of_group = |group: targets::Group| {
        let models = group.members.iter().map(|path| targets::measured::<B>(path, request, device, &progress));
        Ok(MeasuredGroup { name: group.name, models: models.collect::<Result<_, Failure>>()? })
    };
    groups.into_iter().map(of_group).collect()
}

/// `export`.
pub fn export(options: &ExportOptions) -> Outcome {
    experiment_cli::export(options, |path| {
        let (_, model, step) = run::load::<Flex>(path, &Default::default())?;
        Ok((state_dict::from_model(&model), step))
    })
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
