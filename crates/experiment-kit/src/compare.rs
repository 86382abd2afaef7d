//! Several arms on the same data from the same weights: made side by side, step by step, so that a slow moment of the
//! machine hits all of them alike.

use std::path::{Path, PathBuf};

use ancre::{Arm, Parameterization};
use anyhow::{Context, Error, Result, bail};
use serde::{Deserialize, Serialize};
use training::{
    interrupt::Interrupt,
    progress::Progress,
    run_directory::{RunDirectory, RunPaths},
    trainer::{RunEnd, TrainError},
};

use crate::{
    Experiment, Program, RunSettings, Variant,
    run::{self, ArmSummary, UnderWay},
};

/// What is compared: the `config.toml` of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison<S> {
    /// The arms; the first is the baseline unless the cascade is among them.
    pub arms: Vec<Arm>,
    /// Depths at which every arm is made; none leaves that of `run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<usize>,
    /// How many seeds, from that of `run` on. Within a seed all arms of a depth share initial weights, and all share the
    /// data order.
    pub seeds: u64,
    /// Whether arms are made one after another, with the memory of one, instead of side by side.
    pub sequential: bool,
    /// The settings of every run but for its arm and seed.
    pub run: S,
}

/// The arms of an ordinary comparison: the baseline, ANCRe, and the two that show how much of it needs no learning.
pub fn default_arms() -> Vec<Arm> {
    let uniform = Arm::Incoming(Parameterization::Constant);
    vec![Arm::Cascade, Arm::default(), uniform, Arm::Fixed("0:l".to_owned())]
}

impl<S: RunSettings> Comparison<S> {
    /// The arm that others are measured against.
    ///
    /// # Panics
    /// If there are no arms.
    pub fn baseline(&self) -> &Arm {
        self.arms.iter().find(|arm| **arm == Arm::Cascade).unwrap_or(&self.arms[0])
    }

    /// The baseline in words.
    ///
    /// # Panics
    /// If there are no arms.
    pub fn baseline_name(&self) -> String {
        match self.depths.len() {
            0 | 1 => self.baseline().to_string(),
            _ => format!("{} at the same depth", self.baseline()),
        }
    }

    /// What is made for each seed: the arms, at each depth in turn.
    pub fn variants(&self) -> Vec<Variant> {
        let depths = match self.depths.as_slice() {
            [] => vec![None],
            depths => depths.iter().copied().map(Some).collect(),
        };
        let arms = |depth: Option<usize>| self.arms.iter().map(move |arm| Variant { arm: arm.clone(), depth });
        depths.into_iter().flat_map(arms).collect()
    }

    /// What a variant is measured against: the baseline at its depth.
    ///
    /// # Panics
    /// If there are no arms.
    pub fn baseline_of(&self, variant: &Variant) -> Variant {
        Variant { arm: self.baseline().clone(), depth: variant.depth }
    }

    /// The depths that are made, for a heading: `12`, or `16, 64`.
    pub fn depth_names(&self) -> String {
        match self.depths.as_slice() {
            [] => self.run.depth().to_string(),
            depths => depths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }

    /// The settings of one run.
    pub fn settings(&self, variant: &Variant, seed: u64) -> S {
        let settings = self.run.with_arm_and_seed(&variant.arm, seed);
        variant.depth.map_or_else(|| settings.clone(), |depth| settings.with_depth(depth))
    }

    /// The settings at the greatest depth, for estimates of memory.
    pub fn deepest(&self) -> S {
        self.depths.iter().max().map_or_else(|| self.run.clone(), |&depth| self.run.with_depth(depth))
    }

    /// The seeds.
    pub fn seed_range(&self) -> std::ops::Range<u64> {
        self.run.seed()..self.run.seed() + self.seeds
    }

    /// How many runs are in memory at once.
    pub fn at_once(&self) -> usize {
        if self.sequential { 1 } else { self.arms.len() * self.depths.len().max(1) }
    }
}

/// The directory of one run of a comparison.
pub fn run_path(comparison: &Path, variant: &Variant, seed: u64) -> PathBuf {
    comparison.join("arms").join(format!("{}-seed{seed}", variant.directory_name()))
}

/// Makes the directory of a comparison, or takes hold of the one that is there.
///
/// # Errors
/// If it exists, cannot be made, or another process has it.
pub fn open_directory<S: RunSettings>(
    program: Program,
    path: &Path,
    comparison: &Comparison<S>,
    resume: bool,
    device: &str,
) -> Result<RunDirectory> {
    if resume {
        return Ok(RunDirectory::open(path)?);
    }
    Ok(RunDirectory::create(path, &run::new_run(program, comparison, device)?)?)
}

/// Reads the comparison in a directory.
///
/// # Errors
/// If there is none.
pub fn read<S: RunSettings>(path: &Path) -> Result<Comparison<S>> {
    let paths = RunPaths::new(path);
    if !paths.config().is_file() {
        bail!("{} is not the directory of a run: it has no config.toml", path.display());
    }
    if paths.read_config::<S>().is_ok() {
        bail!(
            "{} is one run, not a comparison: resume it with the command that makes one run, such as `train --resume`",
            path.display()
        );
    }
    paths.read_config().with_context(|| format!("{} is not a comparison that this command makes", path.display()))
}

/// Makes all runs of a comparison that are not finished yet. One whose loss or gradient is no longer finite ends there, with
/// a note in its summary; the others go on.
///
/// # Errors
/// If a run cannot be started or continued, is finished with other settings or data, or fails (a disk that is full).
pub fn run<E: Experiment>(
    experiment: &E,
    path: &Path,
    comparison: &Comparison<E::Settings>,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<RunEnd> {
    let variants = comparison.variants();
    let of_a_seed = || variants.chunks(comparison.at_once());
    let groups = comparison.seed_range().flat_map(|seed| of_a_seed().map(move |group| (seed, group)));
    // Not counted one by one: there may be more seeds than anyone can wait for.
    let mut after = comparison.seeds.saturating_mul(of_a_seed().len() as u64);
    for (seed, group) in groups {
        // Later groups count whole, even where some of their runs are finished.
        after = after.saturating_sub(1);
        let mut unfinished = Vec::new();
        for variant in group {
            if !is_finished(experiment, path, comparison, variant, seed)? {
                unfinished.push(variant);
            }
        }
        let mut runs = Vec::with_capacity(unfinished.len());
        for variant in unfinished {
            runs.push(start(experiment, path, comparison, variant, seed, progress, after)?);
        }
        if side_by_side(experiment, runs, interrupt)? == RunEnd::Interrupted {
            return Ok(RunEnd::Interrupted);
        }
    }
    Ok(RunEnd::Finished)
}

/// Whether a run is finished, with these settings on this data.
fn is_finished<E: Experiment>(
    experiment: &E,
    path: &Path,
    comparison: &Comparison<E::Settings>,
    variant: &Variant,
    seed: u64,
) -> Result<bool> {
    let path = run_path(path, variant, seed);
    let Ok(summary) = ArmSummary::read(&path) else { return Ok(false) };
    let stored: E::Settings = RunPaths::new(&path).read_config()?;
    let expected = run::with_stored_tau(&path, &comparison.settings(variant, seed))?;
    if stored != expected {
        bail!("{} was finished with other settings than config.toml has now: start a new comparison", path.display());
    }
    if summary.data != experiment.data_fingerprint() {
        bail!("{} was finished on {}: start a new comparison", path.display(), E::OTHER_DATA);
    }
    Ok(true)
}

fn start<E: Experiment>(
    experiment: &E,
    comparison_path: &Path,
    comparison: &Comparison<E::Settings>,
    variant: &Variant,
    seed: u64,
    progress: &Progress,
    after: u64,
) -> Result<UnderWay<E>> {
    let (path, settings) = (run_path(comparison_path, variant, seed), comparison.settings(variant, seed));
    let mut notes = Vec::new();
    let trainer = run::begin_or_continue(experiment, &path, &settings, &mut notes)
        .with_context(|| format!("arm {variant}, seed {seed}"))?;
    for note in notes {
        progress.message(&format!("{variant}: {note}"));
    }
    let name = if comparison.seeds > 1 { format!("{variant}, seed {seed}") } else { variant.to_string() };
    let bar = progress
        .run(&name, trainer.step(), comparison.run.training().steps)
        .followed_by(usize::try_from(after).unwrap_or(usize::MAX));
    Ok(UnderWay::new(trainer, settings, path, bar))
}

/// Advances the run that is furthest behind until all are finished.
fn side_by_side<E: Experiment>(experiment: &E, mut runs: Vec<UnderWay<E>>, interrupt: &Interrupt) -> Result<RunEnd> {
    while let Some(next) = (0..runs.len()).min_by_key(|&i| runs[i].trainer.step()) {
        if interrupt.is_set() {
            return stop(runs);
        }
        let run = &mut runs[next];
        let diverged = match run.trainer.is_finished() {
            true => None,
            false => match step(run)? {
                Stepped::Well => None,
                Stepped::Diverged(why) => Some(why),
                Stepped::Interrupted => return stop(runs),
            },
        };
        if (diverged.is_some() || run.trainer.is_finished())
            && runs.swap_remove(next).finish(experiment, diverged)? == RunEnd::Interrupted
        {
            return stop(runs);
        }
    }
    Ok(RunEnd::Finished)
}

/// Saves all runs.
fn stop<E: Experiment>(runs: Vec<UnderWay<E>>) -> Result<RunEnd> {
    for run in runs {
        run.stop()?;
    }
    Ok(RunEnd::Interrupted)
}

/// How a step of a run went.
enum Stepped {
    Well,
    Diverged(String),
    Interrupted,
}

/// Makes a step.
fn step<E: Experiment>(run: &mut UnderWay<E>) -> Result<Stepped> {
    match run.step() {
        Ok(()) => Ok(Stepped::Well),
        Err(TrainError::Interrupted { .. }) => Ok(Stepped::Interrupted),
        // One arm that diverges at a learning rate is a result; the others go on.
        Err(
            error @ (TrainError::NonFiniteLoss { .. }
            | TrainError::NonFiniteGradient { .. }
            | TrainError::Diverged { .. }),
        ) => Ok(Stepped::Diverged(error.to_string())),
        Err(error) => {
            let (arm, seed) = (run.settings.arm(), run.settings.seed());
            Err(Error::from(error).context(format!("arm {arm}, seed {seed}")))
        }
    }
}
