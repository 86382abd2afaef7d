//! What a comparison and a run of reinforcement learning need besides their flags.

use std::path::Path;

use anyhow::Result;
use burn::tensor::backend::AutodiffBackend;
use command_line::Failure;
use experiment_cli::TrainingProgram;
use experiment_kit::{RunSettings, compare::Comparison, report::Written};
use fused_ops::FusedOps;
use training::{memory::MemoryEstimate, progress::Progress};

use super::args::RunArgs;
use crate::{
    contrastive::settings::Settings,
    report::Report,
    run::{self, Agents},
};

/// The program.
pub struct ContrastiveProgram;

impl TrainingProgram for ContrastiveProgram {
    type Settings = Settings;
    type Flags = RunArgs;
    type Data = ();
    type Experiment<B>
        = Agents<B>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;

    const TRAIN_REMEDY: &'static str = "a smaller --batch or --width, fewer collection.environments or evaluation.episodes, or a shorter collection.replay";
    const METRICS: &'static str = "metric";

    fn progress() -> Progress {
        Progress::new().counting("transitions")
    }

    fn memory_estimate(settings: &Settings, at_once: usize) -> MemoryEstimate {
        run::memory_estimate(settings, at_once)
    }

    fn load(settings: &mut Settings) -> Result<(), Failure> {
        settings.validate().map_err(|error| Failure::Usage(error.into()))
    }

    fn describe(progress: &Progress, settings: &Settings, _: &()) {
        let Settings { collection, model, training, data, .. } = settings;
        let evaluated = settings.evaluation_task().map_or_else(|_| String::new(), |task| task.spec().name.clone());
        let rounds = (training.steps / collection.updates) as f64;
        let each = collection.prefill as f64 + rounds * collection.unroll as f64;
        let steps = each * collection.environments as f64;
        progress.message(&format!(
            "task: {}, evaluated on {evaluated}; {} environments, {} steps of them in all",
            settings.task.name,
            collection.environments,
            plotting::si(steps)
        ));
        progress.message(&format!(
            "networks: up to {} layers of width {}, {} parameters; {} updates of {} transitions",
            model.depth,
            model.width,
            plotting::si(settings.parameters() as f64),
            training.steps,
            data.batch
        ));
    }

    fn experiment<B>((): (), _: &Settings, device: B::Device, _: &Progress) -> Result<Agents<B>, Failure>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
    {
        Ok(Agents { device })
    }

    fn report(path: &Path, comparison: &Comparison<Settings>) -> Result<Written> {
        Report::read(path, comparison)?.write(path)
    }
}
