//! Everything that the values of a classification run depend on: what `config.toml` holds.

use std::path::Path;

use ancre::{Arm, DEFAULT_TAU};
use datasets::images::{ImageOptions, ImageSpec};
use experiment_kit::{
    RunSettings,
    checks::{self, CheckError},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use training::trainer::{TrainError, TrainSettings};

use crate::model::{Network, NetworkConfig, NetworkError};

/// The settings of one run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Source of all randomness: initial weights and the order of the images.
    pub seed: u64,
    /// The images, and how they become batches.
    pub data: DataSettings,
    /// The network and its connections.
    pub model: NetworkConfig,
    /// What is measured.
    pub evaluation: EvaluationSettings,
    /// The loop, the optimizer and the schedule.
    pub training: TrainSettings,
}

/// The images, and how they become batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSettings {
    /// `digits`, `twemoji`, or files and folders of the user.
    pub images: ImageSpec,
    /// The share of each class that is held out where the data brings no test images.
    pub held_out: f64,
    /// Whether images are mirrored at random; unset mirrors where that makes sense for the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<bool>,
    /// Images of one optimizer step.
    pub batch: usize,
    /// Images that go through the network at once; divides `batch`.
    pub micro_batch: usize,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationSettings {
    /// Images of an evaluation, of the training images as of the held-out ones, spread over each; 0 takes all.
    pub images: usize,
    /// The training loss that a report tells the steps and seconds to.
    pub target_loss: f64,
}

/// Settings that make no sense.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A fault that any program may have.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Of the network.
    #[error("model.{0}")]
    Model(#[from] NetworkError),
    /// Of the loop.
    #[error("training: {0}")]
    Training(#[from] TrainError),
    /// The batch is no number of micro-batches.
    #[error("data.micro_batch = {micro_batch} does not divide data.batch = {batch}")]
    MicroBatch {
        /// As given.
        batch: usize,
        /// As given.
        micro_batch: usize,
    },
    /// A share that is none.
    #[error(
        "data.held_out = {0} is not a share of the images to evaluate on: give a number between 0 and 1, such as 0.1"
    )]
    HeldOut(f64),
    /// A loss that is none.
    #[error("evaluation.target_loss = {0} is not a loss: give a positive number")]
    Target(f64),
}

impl Settings {
    /// A deep residual MLP on the embedded digits, minutes on two cores.
    pub fn cpu() -> Self {
        Self {
            seed: 0,
            data: DataSettings { images: ImageSpec::Digits, held_out: 0.1, flip: None, batch: 64, micro_batch: 64 },
            model: NetworkConfig {
                network: Network::Mlp,
                depth: 64,
                width: 64,
                size: 0,
                channels: 0,
                classes: 0,
                arm: Arm::default(),
                tau: DEFAULT_TAU,
            },
            evaluation: EvaluationSettings { images: 0, target_loss: 0.02 },
            training: TrainSettings {
                steps: 600,
                lr: 1e-3,
                warmup: 60,
                log_every: 10,
                evaluate_every: 10,
                checkpoint_every: 100,
                ..TrainSettings::default()
            },
        }
    }

    /// Checks what can be checked without reading the images.
    ///
    /// # Errors
    /// The first fault found.
    pub fn validate(&self) -> Result<(), SettingsError> {
        checks::seed(self.seed)?;
        checks::positive("data.", &[("batch", self.data.batch), ("micro_batch", self.data.micro_batch)])?;
        checks::at_most("data.", &[("batch", self.data.batch)], 1 << 24)?;
        let NetworkConfig { size, channels, classes, .. } = self.model;
        checks::at_most("model.", &[("size", size), ("channels", channels), ("classes", classes)], 1 << 16)?;
        self.model.validate()?;
        let DataSettings { batch, micro_batch, held_out, .. } = self.data;
        if !batch.is_multiple_of(micro_batch) {
            return Err(SettingsError::MicroBatch { batch, micro_batch });
        }
        if !(held_out > 0.0 && held_out < 1.0) {
            return Err(SettingsError::HeldOut(held_out));
        }
        if !(self.evaluation.target_loss > 0.0 && self.evaluation.target_loss.is_finite()) {
            return Err(SettingsError::Target(self.evaluation.target_loss));
        }
        Ok(self.training.validate()?)
    }

    /// How the images are read. Which are held out does not depend on the run's seed.
    pub fn image_options(&self) -> ImageOptions {
        let expected_classes = (self.model.classes > 0).then_some(self.model.classes);
        let size = (self.model.size > 0).then_some(self.model.size);
        ImageOptions { size, held_out: self.data.held_out, expected_classes, ..ImageOptions::default() }
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
        Self { seed, model: NetworkConfig { arm: arm.clone(), ..self.model.clone() }, ..self.clone() }
    }

    fn depth(&self) -> usize {
        self.model.depth
    }

    fn with_depth(&self, depth: usize) -> Self {
        Self { model: NetworkConfig { depth, ..self.model.clone() }, ..self.clone() }
    }

    fn training(&self) -> &TrainSettings {
        &self.training
    }

    fn accumulation(&self) -> usize {
        self.data.batch / self.data.micro_batch
    }

    fn init_from(&self) -> Option<&Path> {
        None
    }

    fn parameters(&self) -> u64 {
        self.model.parameters()
    }

    fn check(&self) -> anyhow::Result<()> {
        Ok(self.validate()?)
    }
}
