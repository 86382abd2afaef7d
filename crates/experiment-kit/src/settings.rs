//! What the kit has to know about the settings of a run.

use std::{fmt::Debug, path::Path};

use ancre::Arm;
use serde::{Serialize, de::DeserializeOwned};
use training::trainer::TrainSettings;

/// The settings of one run of one arm: everything that its values depend on, as one value that `config.toml` holds and a
/// checkpoint is resumed under.
///
/// As TOML, the field `seed` is [`seed`](Self::seed) and the table `training` is [`training`](Self::training): the
/// [`layers`](crate::layers) set values in them by name. The type should refuse unknown fields, so that a run is told
/// from a comparison.
pub trait RunSettings: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// Source of all randomness.
    fn seed(&self) -> u64;

    /// The connections.
    fn arm(&self) -> &Arm;

    /// Temperature of the connections' softmax.
    fn tau(&self) -> f64;

    /// Replaces the temperature, as stored weights do.
    fn set_tau(&mut self, tau: f64);

    /// The same settings for another run of a comparison.
    #[must_use]
    fn with_arm_and_seed(&self, arm: &Arm, seed: u64) -> Self;

    /// How deep the model is, in the unit of its `--depth` or its presets.
    fn depth(&self) -> usize;

    /// The same settings at another depth, for a comparison over depths.
    #[must_use]
    fn with_depth(&self, depth: usize) -> Self;

    /// The loop, the optimizer and the schedule.
    fn training(&self) -> &TrainSettings;

    /// Micro-batches of one optimizer step.
    fn accumulation(&self) -> usize;

    /// A file of weights to begin from, under the authors' names; none begins from the seed.
    fn init_from(&self) -> Option<&Path>;

    /// Parameters of the model without its connections.
    fn parameters(&self) -> u64;

    /// Checks what can be checked without reading any data.
    ///
    /// # Errors
    /// The first fault found, with what to do about it.
    fn check(&self) -> anyhow::Result<()>;
}
