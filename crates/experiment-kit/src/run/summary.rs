//! What a finished run says about itself.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use ancre::Connections;
use anyhow::{Context, Result};
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use training::run_directory::atomic_write;

use crate::{Connected, RunSettings};

/// What an arm's run leaves besides its logs: `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The arm, in the notation of the command line.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// The fingerprint of the data.
    pub data: String,
    /// Parameters of the model without its connections.
    pub parameters: u64,
    /// Parameters of the connections that are trained, over all sets that the model has.
    pub connection_parameters: usize,
    /// Final coefficients of the first set, one row a layer; none for a rival.
    pub coefficients: Vec<Vec<f64>>,
    /// Entropy in nats of each softmax that has a choice; none for arms without a softmax.
    pub entropies: Option<Vec<f64>>,
    /// Largest number of bytes that a training step held at once: parameters, moments, gradients and activations.
    /// Unknown on a GPU, and where a run was resumed just before its end.
    pub peak_memory_bytes: Option<u64>,
    /// Why the run ended early, if it diverged; its last numbers are those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diverged: Option<String>,
    /// What the experiment found when the run had ended; null if nothing. See
    /// [`Experiment::finished`](crate::Experiment::finished).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extra: Value,
}

impl ArmSummary {
    /// The file in a run directory.
    pub fn path(run: &Path) -> PathBuf {
        run.join("summary.json")
    }

    /// The summary of a finished run, with nothing in [`extra`](Self::extra).
    pub fn new<B: FusedOps>(
        settings: &impl RunSettings,
        data: &str,
        model: &impl Connected<B>,
        peak_memory_bytes: Option<u64>,
        diverged: Option<String>,
    ) -> Self {
        let connections = model.connections();
        // They are finite but for a run that diverged, of which there is nothing to show; those of another paper are no such matrix.
        let rows = match connections.rival() {
            Some(_) => Vec::new(),
            None => connections.coefficients().map_or_else(|_| Vec::new(), |c| c.rows().map(<[f64]>::to_vec).collect()),
        };
        Self {
            arm: settings.arm().to_string(),
            seed: settings.seed(),
            data: data.to_owned(),
            parameters: settings.parameters(),
            connection_parameters: model.all_connections().into_iter().map(Connections::trained_parameters).sum(),
            entropies: connections.entropies(),
            coefficients: rows,
            peak_memory_bytes,
            diverged,
            extra: Value::Null,
        }
    }

    /// Writes the summary into a run directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, run: &Path) -> Result<()> {
        let path = Self::path(run);
        let text = serde_json::to_string_pretty(self)?;
        atomic_write(&path, |file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads the summary of a run directory.
    ///
    /// # Errors
    /// If it is missing or does not parse.
    pub fn read(run: &Path) -> Result<Self> {
        let path = Self::path(run);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }
}
