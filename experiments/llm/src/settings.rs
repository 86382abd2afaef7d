//! Everything that a run's values depend on, as one value: what `config.toml` holds and a checkpoint is resumed under.

use std::path::{Path, PathBuf};

use ancre::Arm;
use datasets::text::{CorpusOptions, HeldOut, RowMode, TokenizerSpec};
use experiment_kit::{
    RunSettings,
    checks::{self, CheckError},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use training::trainer::{TrainError, TrainSettings};

use crate::model::{LlamaConfig, ModelError};

/// The settings of one run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Source of all randomness: initial weights and data order.
    pub seed: u64,
    /// A safetensors file of weights to begin from, under the authors' names; none begins from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_from: Option<PathBuf>,
    /// The text, and how it becomes batches.
    pub data: DataSettings,
    /// The model and its connections.
    pub model: LlamaConfig,
    /// The loop, the optimizer and the schedule.
    pub training: TrainSettings,
}

/// The text, and how it becomes batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSettings {
    /// Files and folders to train on; none takes the embedded text.
    pub train: Vec<PathBuf>,
    /// Files and folders to evaluate on; none holds out a part of the training documents.
    pub validation: Vec<PathBuf>,
    /// The share of the bytes of the user's text that is held out where there is no `validation`.
    pub held_out: f64,
    /// The JSON field or parquet column that holds the text.
    pub text_field: String,
    /// `bytes`, `bpe:N`, or the path of a `tokenizer.json`.
    pub tokenizer: TokenizerSpec,
    /// Packed rows, or one document a row.
    pub rows: RowMode,
    /// Tokens in a row.
    pub context: usize,
    /// Rows of one optimizer step.
    pub batch: usize,
    /// Rows that go through the model at once; divides `batch`. Smaller ones need less memory.
    pub micro_batch: usize,
    /// About how many held-out tokens an evaluation takes, spread evenly over all of them; 0 takes all.
    pub evaluation_tokens: usize,
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
    /// A size, or the seed.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Rows are longer than the model's positions.
    #[error(
        "data.context = {context} tokens are more than the model's {positions} positions: give a smaller --context, or \
         raise model.positions"
    )]
    Context {
        /// Tokens in a row.
        context: usize,
        /// What the model takes.
        positions: usize,
    },
    /// The held-out share is not a share.
    #[error("data.held_out = {0} is not a share: give a number above 0 and below 1")]
    HeldOut(f64),
}

impl Settings {
    /// Checks what can be checked without reading any text. A vocabulary of 0 passes: the tokenizer's is put there later.
    ///
    /// # Errors
    /// The first fault found, with what to do about it.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let data = &self.data;
        let sizes = [("context", data.context), ("batch", data.batch), ("micro_batch", data.micro_batch)];
        const LIMIT: usize = 1 << 24;
        checks::positive("data.", &sizes)?;
        checks::at_most("data.", &sizes, LIMIT)?;
        checks::micro_batch(data.batch, data.micro_batch)?;
        if data.context > self.model.positions {
            return Err(SettingsError::Context { context: data.context, positions: self.model.positions });
        }
        checks::seed(self.seed)?;
        if let TokenizerSpec::Bpe { entries } = data.tokenizer {
            checks::at_most("data.", &[("tokenizer", entries)], LIMIT)?;
        }
        if !(data.held_out > 0.0 && data.held_out < 1.0) {
            return Err(SettingsError::HeldOut(data.held_out));
        }
        let vocabulary = self.model.vocabulary.max(1);
        LlamaConfig { vocabulary, ..self.model.clone() }.validate()?;
        Ok(self.training.validate()?)
    }
}

impl Settings {
    /// Bytes of what the optimizer keeps for the model's parameters, in `f32`; the connections' own scalars are left out.
    pub fn state_bytes(&self) -> u64 {
        let elements = |(name, dims): &(String, Vec<usize>)| {
            u64::try_from(self.training.optimizer.state_elements(name, dims)).unwrap_or(u64::MAX)
        };
        let sum = self.model.parameter_shapes().iter().map(elements).fold(0, u64::saturating_add);
        sum.saturating_mul(4)
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
        let model = LlamaConfig { arm: arm.clone(), ..self.model.clone() };
        Self { seed, model, ..self.clone() }
    }

    fn depth(&self) -> usize {
        self.model.layers
    }

    fn with_depth(&self, depth: usize) -> Self {
        Self { model: LlamaConfig { layers: depth, ..self.model.clone() }, ..self.clone() }
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
    /// How the user's files are read.
    pub fn corpus_options(&self) -> CorpusOptions {
        let held_out = match self.validation.as_slice() {
            [] => HeldOut::Fraction(self.held_out),
            paths => HeldOut::Paths(paths.to_vec()),
        };
        CorpusOptions { text_field: self.text_field.clone(), held_out }
    }
}
