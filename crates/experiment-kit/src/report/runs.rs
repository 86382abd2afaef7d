//! The finished runs of a comparison, as their summaries and logs tell them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use statistics::curves;
use training::{
    metrics::{Record, read_metrics, series, speed},
    run_directory::RunPaths,
};

use crate::{
    RunSettings,
    compare::{Comparison, run_path},
    run::ArmSummary,
};

/// Values against steps.
pub type Curve = Vec<(f64, f64)>;

/// One finished run.
#[derive(Clone, Debug)]
pub struct RunLogs {
    /// The arm's name, with its depth where depths are compared.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// What was trained on in a second (tokens, images), evaluation and saving left out.
    pub tokens_per_second: f64,
    /// Median seconds of a step.
    pub step_seconds: f64,
    /// Sizes, coefficients, memory, and what the experiment found at the end.
    pub summary: ArmSummary,
    metrics: Vec<Record>,
}

impl RunLogs {
    /// Reads a run, which is to be called `arm`. `metric` is one that every evaluation logs.
    ///
    /// # Errors
    /// If the run is missing or unfinished, its logs are damaged, or they end before its last step without having
    /// diverged.
    pub fn read<S: RunSettings>(path: &Path, arm: &str, metric: &str) -> Result<Self> {
        let paths = RunPaths::new(path);
        let summary = ArmSummary::read(path)?;
        let settings: S = paths.read_config()?;
        let metrics = read_metrics(&paths.metrics())?;
        let speed = speed(&read_metrics(&paths.timing())?);
        let (end, steps) = (series(&metrics, metric).last().map_or(0, |&(step, _)| step), settings.training().steps);
        if summary.diverged.is_none() && end != steps {
            bail!("{} ends at step {end} of {steps}: it has been changed since", paths.metrics().display());
        }
        Ok(Self {
            arm: arm.to_owned(),
            seed: summary.seed,
            tokens_per_second: speed.map_or(f64::NAN, |speed| speed.tokens_per_second),
            step_seconds: speed.map_or(f64::NAN, |speed| speed.step_seconds_median),
            summary,
            metrics,
        })
    }

    /// A metric against steps.
    pub fn curve(&self, metric: &str) -> Curve {
        series(&self.metrics, metric).into_iter().map(|(step, value)| (step as f64, value)).collect()
    }

    /// The last value of a metric; not a number where there is none, as after an early divergence.
    pub fn last(&self, metric: &str) -> f64 {
        series(&self.metrics, metric).last().map_or(f64::NAN, |&(_, value)| value)
    }

    /// A metric at a share of the steps, between evaluations by a straight line; of a run that diverged there is nothing
    /// to show.
    pub fn at(&self, metric: &str, share: f64) -> f64 {
        if self.has_diverged() { f64::NAN } else { curves::at_share(&self.curve(metric), share) }
    }

    /// Whether the run ended early, with a loss or gradient that was not finite.
    pub fn has_diverged(&self) -> bool {
        self.summary.diverged.is_some()
    }
}

/// The finished runs of a comparison.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The names of the arms, in their order; at each depth in turn, where depths are compared.
    pub arms: Vec<String>,
    /// For each of them the one that it is measured against.
    pub baselines: Vec<String>,
    /// How many seeds each arm has.
    pub seeds: u64,
    /// All runs: arms in their order, seeds within.
    pub runs: Vec<RunLogs>,
}

impl Runs {
    /// Reads the runs of a comparison; `metric` is one that every evaluation logs.
    ///
    /// # Errors
    /// As [`RunLogs::read`]; the message names the run.
    pub fn read<S: RunSettings>(directory: &Path, comparison: &Comparison<S>, metric: &str) -> Result<Self> {
        let mut runs = Vec::new();
        let variants = comparison.variants();
        for variant in &variants {
            for seed in comparison.seed_range() {
                let path = run_path(directory, variant, seed);
                let run = RunLogs::read::<S>(&path, &variant.to_string(), metric);
                runs.push(run.with_context(|| format!("cannot report on {}", path.display()))?);
            }
        }
        Ok(Self {
            arms: variants.iter().map(ToString::to_string).collect(),
            baselines: variants.iter().map(|variant| comparison.baseline_of(variant).to_string()).collect(),
            seeds: comparison.seeds,
            runs,
        })
    }

    /// The runs of one arm, by seed.
    pub fn of_arm(&self, arm: &str) -> Vec<&RunLogs> {
        self.runs.iter().filter(|run| run.arm == arm).collect()
    }

    /// What an arm is measured against; itself, if it is the baseline.
    pub fn baseline_name<'a>(&'a self, arm: &'a str) -> &'a str {
        self.arms.iter().position(|name| name == arm).map_or(arm, |i| &self.baselines[i])
    }

    /// The run of the baseline with the same seed.
    pub fn baseline_of(&self, run: &RunLogs) -> Option<&RunLogs> {
        let baseline = self.baseline_name(&run.arm);
        self.runs.iter().find(|other| other.arm == baseline && other.seed == run.seed)
    }

    /// Steps at which a falling metric reaches the final value of the baseline; for the baseline itself all of them.
    pub fn steps_to_baseline(&self, run: &RunLogs, metric: &str) -> Option<f64> {
        let baseline = self.baseline_of(run)?;
        if run.has_diverged() {
            return None;
        }
        if baseline.arm == run.arm {
            return run.curve(metric).last().map(|&(step, _)| step);
        }
        curves::first_reach(&run.curve(metric), baseline.at(metric, 1.0))
    }

    /// Median step time relative to the baseline of the same seed.
    pub fn step_time_ratio(&self, run: &RunLogs) -> Option<f64> {
        self.baseline_of(run).map(|baseline| run.step_seconds / baseline.step_seconds)
    }

    /// Why runs ended early, a sentence for each that did.
    pub fn divergences(&self) -> Vec<String> {
        let sentence = |run: &RunLogs| {
            let reason = run.summary.diverged.as_ref()?;
            Some(format!("{}, seed {}: {reason}", run.arm, run.seed))
        };
        self.runs.iter().filter_map(sentence).collect()
    }
}
