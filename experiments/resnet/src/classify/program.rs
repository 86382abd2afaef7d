//! The flags of a classification run, and what a comparison and a run need besides them.

use std::path::Path;

use ancre::Arm;
use anyhow::Result;
use burn::tensor::backend::AutodiffBackend;
use clap::Args;
use command_line::Failure;
use datasets::images::ImageSpec;
use experiment_cli::{RunFlags, RunOptions, TrainingProgram};
use experiment_kit::{
    RunSettings,
    compare::Comparison,
    report::Written,
    run::{cores, workers},
};
use fused_ops::FusedOps;
use training::{memory::MemoryEstimate, progress::Progress, settings::Layers};

use super::{Classifiers, Images, Settings, report::Report, task::sized};
use crate::model::{Network, NetworkConfig};

/// Arguments that every kind of training of a classifier shares.
#[derive(Debug, Args)]
#[command(
    mut_arg("batch", |arg| arg.help("Images of one optimizer step")),
    mut_arg("micro_batch", |arg| arg.help("Images that go through the network at once; a divisor of the batch"))
)]
pub struct ClassifyArgs {
    /// Images: digits or twemoji (embedded), a folder of IDX files, of CIFAR binary files or of class folders
    /// [default: digits]
    #[arg(long, value_name = "IMAGES")]
    pub data: Option<ImageSpec>,
    /// The network [default: mlp]
    #[arg(long, value_enum)]
    pub network: Option<Network>,
    /// Layers: a multiple of four for mlp [default: 64], 6 n + 2 for the others (20, 32, 56, 110)
    #[arg(long)]
    pub depth: Option<usize>,
    /// Width of an MLP [default: 64], or channels of the first stage
    #[arg(long)]
    pub width: Option<usize>,
    /// Training loss that the report tells the steps to [default: 0.02]
    #[arg(long)]
    pub target: Option<f64>,
    /// The shared flags.
    #[command(flatten)]
    pub options: RunOptions,
}

impl RunFlags for ClassifyArgs {
    type Settings = Settings;

    fn options(&self) -> &RunOptions {
        &self.options
    }

    fn preset_name(&self) -> String {
        "classify".to_owned()
    }

    /// A convolutional network is 20 layers deep and 16 channels wide unless flags say otherwise.
    fn preset_settings(&self) -> Settings {
        let settings = Settings::cpu();
        match self.network {
            None | Some(Network::Mlp) => settings,
            Some(network) => Settings {
                model: NetworkConfig { network, depth: 20, width: 16, ..settings.model.clone() },
                ..settings
            },
        }
    }

    fn micro_batch(settings: &Settings) -> usize {
        settings.data.micro_batch
    }

    fn lay(&self, layers: &mut Layers<Settings>) -> Result<()> {
        layers.set_if("--data", "data.images", self.data.as_ref())?;
        layers.set_if("--network", "model.network", self.network)?;
        layers.set_if("--depth", "model.depth", self.depth)?;
        layers.set_if("--width", "model.width", self.width)?;
        layers.set_if("--target", "evaluation.target_loss", self.target)?;
        Ok(())
    }

    fn usual_arms() -> Vec<Arm> {
        vec![Arm::Cascade, Arm::default(), Arm::Fixed("0:l".to_owned())]
    }
}

/// The program.
pub struct ClassifyProgram;

impl TrainingProgram for ClassifyProgram {
    type Settings = Settings;
    type Flags = ClassifyArgs;
    type Data = Images;
    type Experiment<B>
        = Classifiers<B>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;

    const COMPARE: &'static str = "classify ";
    const TRAIN: &'static str = "train-classifier ";
    const TRAIN_REMEDY: &'static str = "a smaller --batch, --micro-batch or --width";
    const METRICS: &'static str = "metric";

    fn progress() -> Progress {
        Progress::new().counting("images")
    }

    /// Sizes that the data settles are taken to be those of the embedded digits.
    fn memory_estimate(settings: &Settings, at_once: usize) -> MemoryEstimate {
        let model = sized(&settings.model);
        let (arms, parameters) = (at_once as u64, model.parameters().saturating_mul(4));
        let parallel = workers(settings).max(cores()) as u64;
        let mut estimate = MemoryEstimate::new();
        estimate.add(format!("weights of {arms} run(s), and AdamW's two moments"), parameters.saturating_mul(3 * arms));
        estimate.add("gradients of one step", parameters.saturating_mul(workers(settings) as u64 + 1));
        let rows = settings.data.micro_batch;
        let image = (model.channels as u64).saturating_mul((model.size * model.size) as u64).saturating_mul(4);
        let batch = (settings.data.batch as u64).saturating_mul(image.saturating_add(64));
        estimate.add(format!("the {} images of a step", settings.data.batch), batch);
        estimate.add(
            format!("activations of {parallel} x {rows} images"),
            model.activation_bytes(rows).saturating_mul(parallel),
        );
        estimate
    }

    fn load(settings: &mut Settings) -> Result<Images, Failure> {
        let images = Images::load(settings)?;
        settings.validate().map_err(|error| Failure::Usage(error.into()))?;
        Ok(images)
    }

    fn describe(progress: &Progress, settings: &Settings, images: &Images) {
        let (model, training) = (&settings.model, &settings.training);
        progress.message(&images.description);
        let seen = training.steps as f64 * settings.data.batch as f64;
        progress.message(&format!(
            "network: {} of {} layers of width {}, {} parameters; {} steps of {} images, {:.1} epochs",
            model.network,
            model.depth,
            model.width,
            plotting::si(settings.parameters() as f64),
            training.steps,
            settings.data.batch,
            seen / f64::from(images.train.len())
        ));
    }

    fn experiment<B>(images: Images, _: &Settings, device: B::Device, _: &Progress) -> Result<Classifiers<B>, Failure>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
    {
        Ok(Classifiers { images, device })
    }

    fn report(path: &Path, comparison: &Comparison<Settings>) -> Result<Written> {
        Report::read(path, comparison)?.write(path)
    }
}
