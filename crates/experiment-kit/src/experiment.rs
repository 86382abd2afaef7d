//! What a program supplies.

use std::path::Path;

use ancre::Connections;
use anyhow::Result;
use burn::{
    module::{AutodiffModule, Module},
    tensor::backend::{AutodiffBackend, Backend, BackendTypes},
};
use fused_ops::FusedOps;
use serde_json::Value;
use training::trainer::Task;

use crate::RunSettings;

/// What the names of the connections' parameters begin with in every model: their field is called `connections`.
pub const CONNECTIONS: &str = "connections.";

/// A model whose blocks are followed by [`Connections`], which it holds in a field called `connections`.
pub trait Connected<B: Backend>: Module<B> {
    /// The connections between the blocks.
    fn connections(&self) -> &Connections<B>;

    /// All connections of the model, where it has more than one set; the first are those of
    /// [`connections`](Self::connections).
    fn all_connections(&self) -> Vec<&Connections<B>> {
        vec![self.connections()]
    }

    /// The model with other connections of the same depth.
    #[must_use]
    fn with_connections(self, connections: Connections<B>) -> Self;
}

/// The program as `environment.json` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name: `env!("CARGO_PKG_NAME")`.
    pub name: &'static str,
    /// Its version: `env!("CARGO_PKG_VERSION")`.
    pub version: &'static str,
}

/// How the work after a run's last step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// With these results for the [summary](crate::run::ArmSummary::extra); null where there are none.
    Done(Value),
    /// The user stopped it. The run is saved without a summary, and this work is done again when it goes on.
    Interrupted,
}

/// An experiment with its data, on one device: what makes models and tasks of settings.
///
/// One value serves all runs of a comparison, so it holds what they share: data, and whatever scores their results.
pub trait Experiment {
    /// The settings of one run.
    type Settings: RunSettings;
    /// The backend to train on.
    type Backend: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;
    /// What is trained.
    type Model: AutodiffModule<Self::Backend> + Connected<Self::Backend>;
    /// Its batches, its loss, its evaluation.
    type Task: Task<Self::Backend, Self::Model>;

    /// The program.
    const PROGRAM: Program;

    /// What a message calls data of another [fingerprint](Self::data_fingerprint), such as "another text or tokenizer".
    const OTHER_DATA: &'static str = "other data";

    /// Where tensors live.
    fn device(&self) -> &<Self::Backend as BackendTypes>::Device;

    /// A text that changes with the data, so that a run is not resumed on other data.
    fn data_fingerprint(&self) -> String;

    /// The model with initial weights of the seed, which must not depend on the arm.
    ///
    /// # Errors
    /// If the sizes are not those of a model.
    fn model(&self, settings: &Self::Settings) -> Result<Self::Model>;

    /// The model with the weights of a file in place of the initial ones, and what the user should know of them; see
    /// [`state_dict::load`](crate::state_dict::load). A temperature that the connections then have replaces the one of
    /// the settings.
    ///
    /// # Errors
    /// If the file cannot be read or does not fit.
    fn initial_weights(
        &self,
        model: Self::Model,
        file: &Path,
        settings: &Self::Settings,
    ) -> Result<(Self::Model, Vec<String>)>;

    /// The task of a run; `model` is as training begins with it, also where the run then goes on from a checkpoint.
    ///
    /// # Errors
    /// If the data and the settings make no batches.
    fn task(&self, settings: &Self::Settings, model: &Self::Model) -> Result<Self::Task>;

    /// Further files that a new run directory begins with, by name.
    ///
    /// # Errors
    /// If their content cannot be made.
    fn files(&self, settings: &Self::Settings) -> Result<Vec<(String, Vec<u8>)>> {
        let _ = settings;
        Ok(Vec::new())
    }

    /// Called when a run has made its last step and is saved, and before its summary is written: to sample, to score. Not
    /// called for a run that diverged. `path` is the run's directory. A run that is stopped before its summary is written
    /// comes here again.
    ///
    /// # Errors
    /// If that work fails; the run has then no summary, and comes here again when it is resumed.
    fn finished(
        &self,
        settings: &Self::Settings,
        path: &Path,
        model: &Self::Model,
        task: &Self::Task,
    ) -> Result<Ended> {
        let _ = (settings, path, model, task);
        Ok(Ended::Done(Value::Null))
    }
}
