//! What a comparison and a run of diffusion models need besides their flags.

use std::path::Path;

use anyhow::Result;
use burn::tensor::backend::AutodiffBackend;
use command_line::Failure;
use experiment_cli::TrainingProgram;
use experiment_kit::{compare::Comparison, report::Written};
use fused_ops::FusedOps;
use training::{memory::MemoryEstimate, progress::Progress};

use super::args::RunArgs;
use crate::{
    data::Images,
    report::Report,
    run::{self, DiffusionModels},
    scores::Judge,
    settings::Settings,
};

/// The program.
pub struct DiffusionProgram;

impl TrainingProgram for DiffusionProgram {
    type Settings = Settings;
    type Flags = RunArgs;
    type Data = Images;
    type Experiment<B>
        = DiffusionModels<B>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;

    const TRAIN_REMEDY: &'static str = "a smaller --micro-batch or --preset";
    const METRICS: &'static str = "metric";

    fn progress() -> Progress {
        Progress::new().counting("images")
    }

    /// Sizes that the data settles are taken to be those of the embedded digits.
    fn memory_estimate(settings: &Settings, at_once: usize) -> MemoryEstimate {
        let mut sized = settings.clone();
        let model = &mut sized.model;
        for (size, least) in [(&mut model.size, 8), (&mut model.channels, 1), (&mut model.classes, 10)] {
            *size = if *size == 0 { least } else { *size };
        }
        run::memory_estimate(&sized, at_once)
    }

    /// Reads the images and settles the sizes of the model.
    fn load(settings: &mut Settings) -> Result<Images, Failure> {
        let images = Images::load(settings).map_err(anyhow::Error::from)?;
        settings.model = images.settle(&settings.model).map_err(|error| Failure::Usage(error.into()))?;
        settings.validate().map_err(|error| Failure::Usage(error.into()))?;
        Ok(images)
    }

    fn describe(progress: &Progress, settings: &Settings, images: &Images) {
        let (model, training) = (&settings.model, &settings.training);
        progress.message(&images.description);
        if images.train.classes() < 2 {
            progress.message("note: there is one class only, so that labels tell the model nothing");
        }
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

    /// The images, the device, and whatever judges samples.
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

    fn report(path: &Path, comparison: &Comparison<Settings>) -> Result<Written> {
        Report::read(path, comparison)?.write(path)
    }
}
