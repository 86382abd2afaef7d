//! The report of a comparison: read from its run directories, written as a table, `report.json` and figures.
//!
//! Everything is computed from the logs, so that a report can be made again without training.

mod figures;
mod json;
mod table;

use std::path::Path;

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
}

impl Report {
    /// Reads the runs of a comparison.
    ///
    /// # Errors
    /// If a run is missing, unfinished, or its logs are damaged.
    pub fn read(directory: &Path, comparison: &Comparison<Settings>) -> Result<Self> {
        let runs = Runs::read(directory, comparison, metric::NATS_PER_BYTE)?;
        Ok(Self { comparison: comparison.clone(), runs })
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

/// The learning rate, and the embeddings' where it is another: comparisons of other rates are other comparisons.
fn rate(run: &Settings) -> String {
    let lr = run.training.lr;
    match run.training.optimizer.of("embed_tokens.weight").1 {
        1.0 => format!("rate {lr}"),
        factor => format!("rate {lr}, embeddings {factor} times"),
    }
}

/// Held-out nats per byte at a share of the steps.
fn nats_per_byte(run: &RunLogs, share: f64) -> f64 {
    run.at(metric::NATS_PER_BYTE, share)
}

/// Held-out bits per byte at a share of the steps.
fn bits_per_byte(run: &RunLogs, share: f64) -> f64 {
    nats_per_byte(run, share) / std::f64::consts::LN_2
}

/// Held-out nats a token at a share of the steps.
fn loss(run: &RunLogs, share: f64) -> f64 {
    run.at(metric::LOSS, share)
}

/// Held-out perplexity a token at a share of the steps.
fn perplexity(run: &RunLogs, share: f64) -> f64 {
    loss(run, share).exp()
}

/// The shares of the steps that a report shows.
const QUARTERS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;

    #[test]
    fn the_rate_of_the_embeddings_is_named_where_it_differs() {
        let mut run = Preset::Cpu.settings();
        run.training.lr = 0.008;
        assert_eq!(rate(&run), "rate 0.008");
        run.training.optimizer.groups.insert(
            0,
            training::optimizer::ParameterGroup {
                parameters: vec!["embed_tokens.weight".to_owned()],
                weight_decay: None,
                lr_factor: 30.0,
            },
        );
        assert_eq!(rate(&run), "rate 0.008, embeddings 30 times");
    }
}
