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
    Experiment, Program, RunSettings,
    run::{self, ArmSummary, UnderWay},
};

/// What is compared: the `config.toml` of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison<S> {
    /// The arms; the first is the baseline unless the cascade is among them.
    pub arms: Vec<Arm>,
    /// How many seeds, from that of `run` on. Within a seed all arms share initial weights and data order.
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

    /// The settings of one run.
    pub fn settings(&self, arm: &Arm, seed: u64) -> S {
        self.run.with_arm_and_seed(arm, seed)
    }

    /// The seeds.
    pub fn seed_range(&self) -> std::ops::Range<u64> {
        self.run.seed()..self.run.seed() + self.seeds
    }

    /// How many runs are in memory at once.
    pub fn at_once(&self) -> usize {
        if self.sequential { 1 } else { self.arms.len() }
    }
}

/// The directory of one run of a comparison.
pub fn arm_path(comparison: &Path, arm: &Arm, seed: u64) -> PathBuf {
    let mut name = arm.to_string().replace(':', "-").replace('*', "x");
    // File names end at 255 bytes; a long layout is told apart by its hash.
    if name.len() > 100 {
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        name.truncate(80);
        name += &format!("-{hash:016x}");
    }
    comparison.join("arms").join(format!("{name}-seed{seed}"))
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
        bail!("{} is one run, not a comparison: use `train --resume {}`", path.display(), path.display());
    }
    Ok(paths.read_config()?)
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
    for seed in comparison.seed_range() {
        for group in comparison.arms.chunks(comparison.at_once()) {
            let mut unfinished = Vec::new();
            for arm in group {
                if !is_finished(experiment, path, comparison, arm, seed)? {
                    unfinished.push(arm);
                }
            }
            let mut runs = Vec::with_capacity(unfinished.len());
            for arm in unfinished {
                runs.push(start(experiment, path, comparison, arm, seed, progress)?);
            }
            if side_by_side(experiment, runs, interrupt)? == RunEnd::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
        }
    }
    Ok(RunEnd::Finished)
}

/// Whether a run is finished, with these settings on this data.
fn is_finished<E: Experiment>(
    experiment: &E,
    path: &Path,
    comparison: &Comparison<E::Settings>,
    arm: &Arm,
    seed: u64,
) -> Result<bool> {
    let path = arm_path(path, arm, seed);
    let Ok(summary) = ArmSummary::read(&path) else { return Ok(false) };
    let stored: E::Settings = RunPaths::new(&path).read_config()?;
    let expected = run::with_stored_tau(&path, &comparison.settings(arm, seed))?;
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
    arm: &Arm,
    seed: u64,
    progress: &Progress,
) -> Result<UnderWay<E>> {
    let (path, settings) = (arm_path(comparison_path, arm, seed), comparison.settings(arm, seed));
    let mut notes = Vec::new();
    let trainer = run::begin_or_continue(experiment, &path, &settings, &mut notes)
        .with_context(|| format!("arm {arm}, seed {seed}"))?;
    for note in notes {
        progress.message(&format!("{arm}: {note}"));
    }
    let name = if comparison.seeds > 1 { format!("{arm} #{seed}") } else { arm.to_string() };
    Ok(UnderWay::new(trainer, settings, path, &name, progress))
}

/// Advances the run that is furthest behind until all are finished.
fn side_by_side<E: Experiment>(experiment: &E, mut runs: Vec<UnderWay<E>>, interrupt: &Interrupt) -> Result<RunEnd> {
    while let Some(next) = (0..runs.len()).min_by_key(|&i| runs[i].trainer.step()) {
        if interrupt.is_set() {
            return stop(runs);
        }
        let run = &mut runs[next];
        let diverged = if run.trainer.is_finished() { None } else { step(run)? };
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

/// Makes a step; says why, if the run has diverged.
fn step<E: Experiment>(run: &mut UnderWay<E>) -> Result<Option<String>> {
    match run.step() {
        Ok(()) => Ok(None),
        // One arm that diverges at a learning rate is a result; the others go on.
        Err(error @ (TrainError::NonFiniteLoss { .. } | TrainError::NonFiniteGradient { .. })) => {
            Ok(Some(error.to_string()))
        }
        Err(error) => {
            let (arm, seed) = (run.settings.arm(), run.settings.seed());
            Err(Error::from(error).context(format!("arm {arm}, seed {seed}")))
        }
    }
}
