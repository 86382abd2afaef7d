//! The report of a comparison: read from its run directories, written as a table, `report.json` and figures.
//!
//! Everything is computed from the logs, so that a report can be made again without training.

mod figures;
mod json;
mod statistics;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use training::{
    metrics::{read_metrics, series, speed},
    run_directory::{RunPaths, atomic_write},
};

use crate::{
    compare::{Comparison, arm_path},
    run::ArmSummary,
    settings::Settings,
    task::metric,
};

/// One finished run, as its logs tell it.
#[derive(Clone, Debug)]
pub struct ArmRun {
    /// The arm's name.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// Held-out nats per byte against steps.
    pub curve: Vec<(f64, f64)>,
    /// Held-out nats a token against steps.
    pub loss_curve: Vec<(f64, f64)>,
    /// The authors' evaluation loss at the end.
    pub final_authors_loss: f64,
    /// Growth of the stream at the end.
    pub final_growth: f64,
    /// Training tokens a second, evaluation and saving left out.
    pub tokens_per_second: f64,
    /// Median seconds of a step.
    pub step_seconds: f64,
    /// Sizes, coefficients, memory.
    pub summary: ArmSummary,
}

/// A comparison whose runs are all finished.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was compared.
    pub comparison: Comparison,
    /// Its runs: arms in their order, seeds within.
    pub runs: Vec<ArmRun>,
}

/// The files of a report.
#[derive(Clone, Debug)]
pub struct Written {
    /// The tables, for a terminal.
    pub text: String,
    /// What the figures could not show.
    pub warnings: Vec<String>,
    /// The figures that were drawn.
    pub figures: Vec<PathBuf>,
}

impl Report {
    /// Reads the runs of a comparison.
    ///
    /// # Errors
    /// If a run is missing, unfinished, or its logs are damaged.
    pub fn read(directory: &Path, comparison: &Comparison) -> Result<Self> {
        let mut runs = Vec::new();
        for arm in &comparison.arms {
            for seed in comparison.seed_range() {
                let path = arm_path(directory, arm, seed);
                runs.push(ArmRun::read(&path).with_context(|| format!("cannot report on {}", path.display()))?);
            }
        }
        Ok(Self { comparison: comparison.clone(), runs })
    }

    /// Writes `report.md`, `report.json` and the figures into the directory of the comparison.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<Written> {
        // Tables are written even where a figure cannot be.
        let (figures, warnings) = figures::draw(self, &RunPaths::new(directory).figures())
            .unwrap_or_else(|error| (Vec::new(), vec![format!("a figure could not be drawn: {error:#}")]));
        let json = serde_json::to_string_pretty(&json::report(self))?;
        for (name, text) in [("report.json", json), ("report.md", table::markdown(self, &figures))] {
            let path = directory.join(name);
            atomic_write(&path, |file| std::io::Write::write_all(file, text.as_bytes()))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Written { text: table::text(self), warnings, figures })
    }

    /// The runs of one arm, by seed.
    fn of_arm(&self, arm: &str) -> Vec<&ArmRun> {
        self.runs.iter().filter(|run| run.arm == arm).collect()
    }

    /// The names of the arms, in their order.
    fn arms(&self) -> Vec<String> {
        self.comparison.arms.iter().map(ToString::to_string).collect()
    }

    /// The run of the baseline with the same seed.
    fn baseline_of(&self, run: &ArmRun) -> Option<&ArmRun> {
        let baseline = self.comparison.baseline().to_string();
        self.runs.iter().find(|other| other.arm == baseline && other.seed == run.seed)
    }

    /// Steps at which a run reaches the final loss of its baseline; for the baseline itself all of them.
    fn steps_to_baseline(&self, run: &ArmRun) -> Option<f64> {
        let baseline = self.baseline_of(run)?;
        if run.summary.diverged.is_some() {
            return None;
        }
        if baseline.arm == run.arm {
            return run.curve.last().map(|&(step, _)| step);
        }
        statistics::first_reach(&run.curve, baseline.final_nats_per_byte())
    }

    /// Median step time relative to the baseline of the same seed.
    fn step_time_ratio(&self, run: &ArmRun) -> Option<f64> {
        self.baseline_of(run).map(|baseline| run.step_seconds / baseline.step_seconds)
    }
}

impl ArmRun {
    fn read(path: &Path) -> Result<Self> {
        let paths = RunPaths::new(path);
        let summary = ArmSummary::read(path)?;
        let settings: Settings = paths.read_config()?;
        let metrics = read_metrics(&paths.metrics())?;
        let timing = read_metrics(&paths.timing())?;
        let curve = |name: &str| -> Vec<(f64, f64)> {
            series(&metrics, name).into_iter().map(|(step, value)| (step as f64, value)).collect()
        };
        // A run that diverged early may have no evaluation at all.
        let last = |name: &str| series(&metrics, name).last().map_or(f64::NAN, |&(_, value)| value);
        let speed = speed(&timing);
        let (end, steps) =
            (curve(metric::NATS_PER_BYTE).last().map_or(0.0, |&(step, _)| step), settings.training.steps);
        if summary.diverged.is_none() && end != steps as f64 {
            bail!("{} ends at step {end} of {steps}: it has been changed since", paths.metrics().display());
        }
        Ok(Self {
            arm: summary.arm.clone(),
            seed: summary.seed,
            final_authors_loss: last(metric::AUTHORS_LOSS),
            final_growth: last(metric::STREAM_GROWTH),
            curve: curve(metric::NATS_PER_BYTE),
            loss_curve: curve(metric::LOSS),
            tokens_per_second: speed.map_or(f64::NAN, |speed| speed.tokens_per_second),
            step_seconds: speed.map_or(f64::NAN, |speed| speed.step_seconds_median),
            summary,
        })
    }

    /// Final held-out loss in nats per byte.
    pub fn final_nats_per_byte(&self) -> f64 {
        self.nats_per_byte(1.0)
    }

    /// Held-out nats per byte at a share of the steps, between evaluations by a straight line.
    fn nats_per_byte(&self, share: f64) -> f64 {
        self.at(&self.curve, share)
    }

    /// A curve at a share of the steps; of a run that diverged there is nothing to show.
    fn at(&self, curve: &[(f64, f64)], share: f64) -> f64 {
        if self.summary.diverged.is_some() { f64::NAN } else { statistics::at_share(curve, share) }
    }

    /// Held-out bits per byte at a share of the steps.
    fn bits_per_byte(&self, share: f64) -> f64 {
        self.nats_per_byte(share) / std::f64::consts::LN_2
    }

    /// Held-out nats a token at a share of the steps.
    fn loss(&self, share: f64) -> f64 {
        self.at(&self.loss_curve, share)
    }

    /// Held-out perplexity a token at a share of the steps.
    fn perplexity(&self, share: f64) -> f64 {
        self.loss(share).exp()
    }
}

/// The shares of the steps that a report shows.
const QUARTERS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
