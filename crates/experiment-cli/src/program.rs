//! What a program supplies.

use std::path::Path;

use anyhow::Result;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use command_line::Failure;
use experiment_kit::{Experiment, RunSettings, compare::Comparison, report::Written};
use fused_ops::FusedOps;
use training::{memory::MemoryEstimate, progress::Progress};

use crate::RunFlags;

/// A program that trains and compares: between its arguments and its report, what is its own.
pub trait TrainingProgram {
    /// The settings of one run.
    type Settings: RunSettings;
    /// The flags of a run.
    type Flags: RunFlags<Settings = Self::Settings>;
    /// What it trains on.
    type Data;
    /// How it makes models and tasks, on a backend.
    type Experiment<B>: Experiment<Settings = Self::Settings, Backend = B>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;

    /// How the subcommand that compares is typed: empty for a bare run, else its name and a space.
    const COMPARE: &'static str = "";

    /// How the subcommand that makes one run is typed, with a space at the end.
    const TRAIN: &'static str = "train ";

    /// What makes one run smaller, for the message that memory is short.
    const TRAIN_REMEDY: &'static str;

    /// What [`metrics_table`](crate::metrics_table) calls the metrics of the last evaluation.
    const METRICS: &'static str;

    /// Where progress is shown.
    fn progress() -> Progress {
        Progress::new()
    }

    /// What so many runs at once will hold in main memory. Asked before the data is read, too: sizes that the data
    /// settles are then taken to be small ones.
    fn memory_estimate(settings: &Self::Settings, at_once: usize) -> MemoryEstimate;

    /// Reads the data and settles the sizes that depend on it.
    ///
    /// # Errors
    /// If it cannot be read, or does not fit the settings.
    fn load(settings: &mut Self::Settings) -> Result<Self::Data, Failure>;

    /// Says what will be trained on what.
    fn describe(progress: &Progress, settings: &Self::Settings, data: &Self::Data);

    /// The experiment, with whatever all of its runs share.
    ///
    /// # Errors
    /// If that cannot be made.
    fn experiment<B>(
        data: Self::Data,
        settings: &Self::Settings,
        device: <B as BackendTypes>::Device,
        progress: &Progress,
    ) -> Result<Self::Experiment<B>, Failure>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;

    /// Writes the report of a finished comparison into its directory.
    ///
    /// # Errors
    /// If the logs of a run are missing or damaged, or a file cannot be written.
    fn report(path: &Path, comparison: &Comparison<Self::Settings>) -> Result<Written>;
}
