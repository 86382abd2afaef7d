//! Training, exporting, listing: what these subcommands do.

use anyhow::{Context, anyhow};
use burn::{backend::Flex, tensor::backend::AutodiffBackend};
use command_line::{Failure, note, say, write_new};
use experiment_kit::{
    compare, on_device,
    request::{self as kit_request, CompareRequest, TrainRequest},
    run::{self as kit_run, Start},
    state_dict,
};
use fused_ops::FusedOps;
use plotting::{Align, Table};
use training::{
    device::DeviceChoice,
    interrupt::Interrupt,
    metrics::{RecordKind, read_metrics},
    progress::Progress,
    run_directory::RunPaths,
    trainer::RunEnd,
};

use super::{
    args::{CompareArgs, ExportArgs, TrainArgs},
    request,
};
use crate::{
    data::Images,
    presets::Preset,
    report::Report,
    run::{self, DiffusionModels},
    scores::Judge,
    settings::Settings,
};

pub(super) type Outcome = Result<(), Failure>;

/// Refuses what cannot fit into main memory. What a GPU holds is not asked. Sizes that the data settles are taken to be
/// those of the embedded digits.
fn check_memory(settings: &Settings, device: DeviceChoice, at_once: usize, remedy: &str) -> Outcome {
    let mut sized = settings.clone();
    let model = &mut sized.model;
    for (size, least) in [(&mut model.size, 8), (&mut model.channels, 1), (&mut model.classes, 10)] {
        *size = if *size == 0 { least } else { *size };
    }
    kit_request::check_memory(device, || run::memory_estimate(&sized, at_once), remedy)
}

/// Reads the images and settles the sizes of the model.
pub(super) fn load_images(settings: &mut Settings) -> Result<Images, Failure> {
    let images = Images::load(settings).map_err(anyhow::Error::from)?;
    settings.model = images.settle(&settings.model).map_err(|error| Failure::Usage(error.into()))?;
    settings.validate().map_err(|error| Failure::Usage(error.into()))?;
    Ok(images)
}

const COMPARE_REMEDY: &str = "--sequential, fewer --arms, a smaller --micro-batch or --preset";
const TRAIN_REMEDY: &str = "a smaller --micro-batch or --preset";

fn describe(progress: &Progress, settings: &Settings, images: &Images) {
    let (model, training) = (&settings.model, &settings.training);
    progress.message(&images.description);
    let seen = training.steps as f64 * settings.data.batch as f64;
    progress.message(&format!(
        "model: {} blocks of width {}, {} parameters, {} patches of {} x {}; {} steps of {} images, {:.1} epochs",
        model.layers,
        model.width,
        plotting::si(model.parameters() as f64),
        model.tokens(),
        model.patch,
        model.patch,
        training.steps,
        settings.data.batch,
        seen / f64::from(images.train.len())
    ));
}

/// What makes runs: the images, the device, and whatever judges samples.
fn experiment<B>(
    images: Images,
    settings: &Settings,
    device: B::Device,
    progress: &Progress,
) -> Result<DiffusionModels<B>, Failure>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let judge = match settings.evaluation.samples {
        0 => None,
        _ => Some(Judge::train::<B>(&images, settings.evaluation.references, &device, progress)?),
    };
    Ok(DiffusionModels { images, judge, device })
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
    let progress = Progress::new().counting("images");
    let images = load_images(&mut comparison.run)?;
    check_memory(&comparison.run, choice, comparison.at_once(), COMPARE_REMEDY)?;
    // Only now: images that cannot be read leave no directory behind.
    let directory = compare::open_directory(run::PROGRAM, &path, &comparison, resume, &B::name(&device))?;
    describe(&progress, &comparison.run, &images);
    let names: Vec<String> = comparison.arms.iter().map(ToString::to_string).collect();
    progress.message(&format!("arms: {}; run directory: {}", names.join(", "), path.display()));
    let experiment = experiment::<B>(images, &comparison.run, device, &progress)?;
    let end = compare::run(&experiment, &path, &comparison, &progress, &interrupt)?;
    drop(directory);
    if end == RunEnd::Interrupted {
        let path = path.display();
        note(format!("stopped and saved; go on with: cargo run -p experiments-diffusion -- --resume {path}"));
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
    let progress = Progress::new().counting("images");
    let images = load_images(&mut settings)?;
    check_memory(&settings, choice, 1, TRAIN_REMEDY)?;
    describe(&progress, &settings, &images);
    let experiment = experiment::<B>(images, &settings, device, &progress)?;
    if kit_run::train(&experiment, &path, start, &settings, &progress, &interrupt)? == RunEnd::Interrupted {
        let path = path.display();
        note(format!("stopped and saved; go on with: cargo run -p experiments-diffusion -- train --resume {path}"));
        return Err(Failure::Interrupted);
    }
    let metrics = read_metrics(&RunPaths::new(&path).metrics()).map_err(anyhow::Error::from)?;
    if let Some(last) = metrics.iter().rev().find(|record| record.kind == RecordKind::Evaluation) {
        let mut table = Table::new(["metric", "value"]).align(0, Align::Left);
        for (name, value) in &last.values {
            table.push([name.clone(), plotting::significant(*value, 6)]);
        }
        say(table.to_text());
    }
    say(path.display());
    Ok(())
}

/// `export`.
pub fn export(args: &ExportArgs) -> Outcome {
    // Links that lead nowhere exist, too.
    if args.to.symlink_metadata().is_ok() {
        return Err(Failure::Usage(anyhow!("{} exists: give --to another name", args.to.display())));
    }
    let (_, model, step) = run::load::<Flex>(&args.run, args.weights, &Default::default())?;
    let tensors = run::to_state_dict(&model);
    let bytes = state_dict::to_bytes(&tensors).map_err(anyhow::Error::from)?;
    write_new(&args.to, &bytes).with_context(|| format!("cannot write {}", args.to.display()))?;
    say(format!("{} tensors after {step} steps in {}", tensors.len(), args.to.display()));
    Ok(())
}

/// `presets`.
pub fn presets() -> Outcome {
    let columns =
        ["preset", "parameters", "blocks", "width", "heads", "patch", "images a step", "steps", "lr", "memory", "for"];
    let mut table = Table::new(columns)
        .units(["", "", "", "", "", "", "", "", "", "one run", ""])
        .align(0, Align::Left)
        .align(10, Align::Left);
    for &preset in &Preset::ALL {
        let mut settings = preset.settings();
        if settings.model.size == 0 {
            // Those of the embedded digits.
            (settings.model.size, settings.model.channels, settings.model.classes) = (8, 1, 10);
        }
        let Settings { model, data, training, .. } = &settings;
        table.push([
            preset.to_string(),
            plotting::si(model.parameters() as f64),
            model.layers.to_string(),
            model.width.to_string(),
            model.heads.to_string(),
            model.patch.to_string(),
            data.batch.to_string(),
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
