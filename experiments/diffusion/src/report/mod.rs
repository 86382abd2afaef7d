//! The report of a comparison: read from its run directories, written as tables, `report.json` and figures.
//!
//! Everything is computed from the logs, so that a report can be made again without training.

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

use crate::{settings::Settings, task::metric};

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
        let runs = Runs::read(directory, comparison, metric::LOSS)?;
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

    /// What scores depend on besides the samples, in words; none where nothing was scored.
    fn protocol(&self) -> Option<String> {
        let run = self.runs.runs.iter().find(|run| !run.summary.extra["protocol"].is_null())?;
        let protocol: generative_metrics::Protocol =
            serde_json::from_value(run.summary.extra["protocol"].clone()).ok()?;
        Some(protocol.to_string())
    }
}

/// Held-out squared error at a share of the steps.
fn loss(run: &RunLogs, share: f64) -> f64 {
    run.at(metric::LOSS, share)
}

/// The last value of a metric; of a run that diverged there is nothing to show.
fn last(run: &RunLogs, metric: &str) -> f64 {
    if run.has_diverged() { f64::NAN } else { run.last(metric) }
}

/// Final held-out squared error by noise level.
fn levels(run: &RunLogs, count: usize) -> Vec<f64> {
    (0..count).map(|i| last(run, &format!("{}{i}", metric::LEVEL))).collect()
}

/// The shares of the steps that a report shows.
const QUARTERS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
