//! The report of a comparison: read from its run directories, written as tables, `report.json` and figures.

mod figures;
mod json;
mod table;

use std::path::{Path, PathBuf};

use anyhow::Result;
use experiment_kit::{
    compare::Comparison,
    report::{self as kit_report, Drawn, RunLogs, Runs, Written},
};
use training::run_directory::RunPaths;

use crate::contrastive::{metric, settings::Settings};

/// A comparison whose runs are all finished.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was compared.
    pub comparison: Comparison<Settings>,
    /// Its runs.
    pub runs: Runs,
    directory: PathBuf,
}

impl Report {
    /// Reads the runs of a comparison.
    ///
    /// # Errors
    /// If a run is missing, unfinished, or its logs are damaged.
    pub fn read(directory: &Path, comparison: &Comparison<Settings>) -> Result<Self> {
        let runs = Runs::read(directory, comparison, metric::SUCCESS)?;
        Ok(Self { comparison: comparison.clone(), runs, directory: directory.to_owned() })
    }

    /// Writes `report.md`, `report.json` and the figures into the directory of the comparison.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<Written> {
        // Tables are written even where a figure cannot be.
        let figures = figures::draw(self, &RunPaths::new(directory).figures()).unwrap_or_else(|error| Drawn {
            paths: Vec::new(),
            warnings: vec![format!("a figure could not be drawn: {error:#}")],
        });
        kit_report::write(directory, &table::markdown(self, &figures), &json::report(self))?;
        Ok(Written { text: table::text(self), warnings: figures.warnings, figures: figures.paths })
    }
}

/// Evaluations whose mean is the result of a run, as in the paper.
pub const LAST: usize = 5;

/// The mean of a metric over the last evaluations; of a run that diverged there is nothing to show.
pub fn late(run: &RunLogs, metric: &str) -> f64 {
    if run.has_diverged() {
        return f64::NAN;
    }
    let values: Vec<f64> = run.curve(metric).into_iter().map(|(_, value)| value).collect();
    plotting::mean(&values[values.len().saturating_sub(LAST)..])
}

/// How much the policy changes when a block is left out, block by block; empty where it is not known.
fn block_drop(run: &RunLogs) -> Vec<f64> {
    serde_json::from_value(run.summary.extra["block_drop"].clone()).unwrap_or_default()
}

/// The last value of a metric; of a run that diverged there is nothing to show.
fn last(run: &RunLogs, metric: &str) -> f64 {
    if run.has_diverged() { f64::NAN } else { run.last(metric) }
}
