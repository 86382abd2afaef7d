//! Everything that a run's values depend on, as one value: what `config.toml` holds and a checkpoint is resumed under.

use std::path::{Path, PathBuf};

use ancre::Arm;
use datasets::images::{ImageOptions, ImageSpec};
use experiment_kit::{
    RunSettings,
    checks::{self, CheckError},
};
use gaussian_diffusion::{Guidance, Respacing, RespacingError};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use training::trainer::{TrainError, TrainSettings};

use crate::model::{DitConfig, ModelError};

/// Steps of the process that models are trained with, as in DiT.
pub const PROCESS_STEPS: usize = 1000;

/// The settings of one run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Source of all randomness: initial weights, data order, noise, samples.
    pub seed: u64,
    /// A safetensors file of weights to begin from, under the authors' names; none begins from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_from: Option<PathBuf>,
    /// The images, and how they become batches.
    pub data: DataSettings,
    /// The model and its connections.
    pub model: DitConfig,
    /// How samples are drawn.
    pub sampling: SamplingSettings,
    /// What is measured, and on how much.
    pub evaluation: EvaluationSettings,
    /// The decay of the moving average of the weights, which samples are drawn with.
    pub ema_decay: f64,
    /// The loop, the optimizer and the schedule.
    pub training: TrainSettings,
}

/// The images, and how they become batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSettings {
    /// `digits`, `twemoji`, or files and folders of the user; see [`ImageSpec::load`].
    pub images: ImageSpec,
    /// Height and width that pictures are brought to; unset leaves them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// 1 (grey) or 3 (colour); unset leaves the choice to the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<usize>,
    /// The share of each class that is held out where the data brings no test images.
    pub held_out: f64,
    /// What stored latents are multiplied with.
    pub latent_scale: f64,
    /// Whether images are mirrored at random; unset mirrors where that makes sense for the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<bool>,
    /// Images of one optimizer step.
    pub batch: usize,
    /// Images that go through the model at once; divides `batch`. Smaller ones need less memory.
    pub micro_batch: usize,
}

/// Which sampler takes noise away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// Ancestral sampling (Ho et al. 2020), which the paper uses.
    Ddpm,
    /// DDIM (Song et al. 2021), good with few steps.
    Ddim,
}

/// How samples are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingSettings {
    /// The sampler.
    pub sampler: Sampler,
    /// Which of the 1000 steps it visits: `50`, `ddim50`, `10,15,20` or `all`.
    pub steps: Respacing,
    /// The noise of DDIM: 0 is deterministic.
    pub eta: f64,
    /// Scale of classifier-free guidance; 1 is none.
    pub guidance: f64,
    /// Which channels are guided.
    pub guided: Guidance,
    /// Whether predicted images are kept in -1..1, which suits pictures and not latents.
    pub clip: bool,
}

/// What is measured, and on how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationSettings {
    /// Bands of equally many steps that the held-out loss is told apart by.
    pub noise_levels: usize,
    /// About how many held-out images an evaluation takes, spread evenly over all of them; 0 takes all. Each is seen once at
    /// every noise level.
    pub images: usize,
    /// Samples that are drawn and scored; 0 scores nothing.
    pub samples: usize,
    /// Scores every so many steps besides those of the last; 0 only those. Rounded up to the next evaluation.
    pub score_every: usize,
    /// Training images that samples are compared with; 0 takes all.
    pub references: usize,
    /// Images that go through the model at once when it samples or is evaluated.
    pub batch: usize,
}

/// Settings that cannot work.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The model.
    #[error("model: {0}")]
    Model(#[from] ModelError),
    /// The loop.
    #[error("training: {0}")]
    Training(#[from] TrainError),
    /// The sampler's steps.
    #[error("sampling.steps: {0}")]
    Steps(#[from] RespacingError),
    /// A size, or the seed.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A number is out of its range.
    #[error("{name} = {value}: give a number {range}")]
    Range {
        /// Which number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Too few samples to score.
    #[error("evaluation.samples = {0} are too few to score: give at least {LEAST_SAMPLES}, or 0 for no scores")]
    Samples(usize),
    /// Guidance needs a model that knows what no label is.
    #[error(
        "sampling.guidance = {0} needs a model that was trained without labels, too: give model.label_dropout a share above 0, \
         or sampling.guidance = 1"
    )]
    Guidance(f64),
}

/// Scores look at the three nearest neighbours of each sample.
pub const LEAST_SAMPLES: usize = 8;

impl Settings {
    /// Checks what can be checked without reading any image. Sizes that the data settles may be 0.
    ///
    /// # Errors
    /// The first fault found, with what to do about it.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let (data, evaluation) = (&self.data, &self.evaluation);
        let sizes = [
            ("data.batch", data.batch),
            ("data.micro_batch", data.micro_batch),
            ("evaluation.batch", evaluation.batch),
            ("evaluation.noise_levels", evaluation.noise_levels),
        ];
        const LIMIT: usize = 1 << 24;
        checks::positive("", &sizes)?;
        checks::at_most("", &sizes, LIMIT)?;
        checks::at_most("", &[("evaluation.samples", evaluation.samples)], LIMIT)?;
        checks::at_most("", &[("evaluation.noise_levels", evaluation.noise_levels)], PROCESS_STEPS)?;
        checks::micro_batch(data.batch, data.micro_batch)?;
        checks::seed(self.seed)?;
        if (1..LEAST_SAMPLES).contains(&evaluation.samples) {
            return Err(SettingsError::Samples(evaluation.samples));
        }
        let share = |name, value: f64, most: f64, range| match value >= 0.0 && value < most {
            true => Ok(()),
            false => Err(SettingsError::Range { name, value, range }),
        };
        share("data.held_out", data.held_out, 1.0, "above 0 and below 1")?;
        if data.held_out == 0.0 {
            return Err(SettingsError::Range { name: "data.held_out", value: 0.0, range: "above 0 and below 1" });
        }
        share("ema_decay", self.ema_decay, 1.0, "from 0 to below 1")?;
        share("sampling.eta", self.sampling.eta, 1.0 + f64::EPSILON, "from 0 to 1")?;
        share("sampling.guidance", self.sampling.guidance, 1e4, "from 0 to below 10000")?;
        if !(data.latent_scale.is_finite() && data.latent_scale > 0.0) {
            let range = "above 0";
            return Err(SettingsError::Range { name: "data.latent_scale", value: data.latent_scale, range });
        }
        if self.sampling.guidance != 1.0 && self.model.label_dropout == 0.0 {
            return Err(SettingsError::Guidance(self.sampling.guidance));
        }
        self.sampling.steps.steps(PROCESS_STEPS)?;
        let known = |size: usize, stand_in: usize| if size == 0 { stand_in } else { size };
        let model = &self.model;
        DitConfig {
            size: known(model.size, model.patch),
            channels: known(model.channels, 1),
            classes: known(model.classes, 1),
            ..model.clone()
        }
        .validate()?;
        Ok(self.training.validate()?)
    }
}

impl RunSettings for Settings {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn arm(&self) -> &Arm {
        &self.model.arm
    }

    fn tau(&self) -> f64 {
        self.model.tau
    }

    fn set_tau(&mut self, tau: f64) {
        self.model.tau = tau;
    }

    fn with_arm_and_seed(&self, arm: &Arm, seed: u64) -> Self {
        let model = DitConfig { arm: arm.clone(), ..self.model.clone() };
        Self { seed, model, ..self.clone() }
    }

    fn depth(&self) -> usize {
        self.model.layers
    }

    fn with_depth(&self, depth: usize) -> Self {
        Self { model: DitConfig { layers: depth, ..self.model.clone() }, ..self.clone() }
    }

    fn training(&self) -> &TrainSettings {
        &self.training
    }

    fn accumulation(&self) -> usize {
        self.data.batch / self.data.micro_batch
    }

    fn init_from(&self) -> Option<&Path> {
        self.init_from.as_deref()
    }

    fn parameters(&self) -> u64 {
        self.model.parameters()
    }

    fn check(&self) -> anyhow::Result<()> {
        Ok(self.validate()?)
    }
}

impl DataSettings {
    /// How the images are read. Which are held out does not depend on the run's seed, so that all seeds are measured on the
    /// same.
    pub fn options(&self, expected_classes: Option<usize>) -> ImageOptions {
        ImageOptions {
            size: self.size,
            channels: self.channels,
            held_out: self.held_out,
            seed: 0,
            expected_classes,
            latent_scale: self.latent_scale as f32,
            ..ImageOptions::default()
        }
    }
}
