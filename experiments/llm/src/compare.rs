//! Several arms on the same data from the same weights: made side by side, step by step, so that a slow moment of the
//! machine hits all of them alike.

use std::path::{Path, PathBuf};

use ancre::Arm;
use anyhow::{Context, Result, bail};
use burn::tensor::backend::AutodiffBackend;
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};
use training::{
    interrupt::Interrupt,
    progress::{Progress, RunProgress},
    run_directory::{RunDirectory, RunPaths},
    trainer::{RunEnd, TrainError},
};

use crate::{
    data::TextData,
    model::LlamaConfig,
    run::{self, ArmSummary, LlmTrainer, StepMemory},
    settings::Settings,
};

/// What is compared: the `config.toml` of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The arms; the first is the baseline unless the cascade is among them.
    pub arms: Vec<Arm>,
    /// How many seeds, from that of `run` on. Within a seed all arms share initial weights and data order.
    pub seeds: u64,
    /// Whether arms are made one after another, with the memory of one, instead of side by side.
    pub sequential: bool,
    /// The settings of every run but for its arm and seed.
    pub run: Settings,
}

impl Comparison {
    /// The arms of an ordinary comparison: the baseline, ANCRe, and the two that show how much of it needs no learning.
    pub fn default_arms() -> Vec<Arm> {
        ["cascade", "ancre", "constant", "0:l"].iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The arm that others are measured against.
    pub fn baseline(&self) -> &Arm {
        self.arms.iter().find(|arm| **arm == Arm::Cascade).unwrap_or(&self.arms[0])
    }

    /// The settings of one run.
    pub fn settings(&self, arm: &Arm, seed: u64) -> Settings {
        let model = LlamaConfig { arm: arm.clone(), ..self.run.model.clone() };
        Settings { seed, model, ..self.run.clone() }
    }

    /// The seeds.
    pub fn seed_range(&self) -> std::ops::Range<u64> {
        self.run.seed..self.run.seed + self.seeds
    }

    /// How many runs are in memory at once.
    pub fn at_once(&self) -> usize {
        if self.sequential { 1 } else { self.arms.len() }
    }
}

/// The directory of one run of a comparison.
pub fn arm_path(comparison: &Path, arm: &Arm, seed: u64) -> PathBuf {
    let mut name = arm.to_string().replace(':', "-");
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
pub fn open_directory(path: &Path, comparison: &Comparison, resume: bool, device: &str) -> Result<RunDirectory> {
    if resume {
        return Ok(RunDirectory::open(path)?);
    }
    Ok(RunDirectory::create(path, &run::new_run(comparison, device)?)?)
}

/// Reads the comparison in a directory.
///
/// # Errors
/// If there is none.
pub fn read(path: &Path) -> Result<Comparison> {
    let paths = RunPaths::new(path);
    if !paths.config().is_file() {
        bail!("{} is not the directory of a run: it has no config.toml", path.display());
    }
    if paths.read_config::<Settings>().is_ok() {
        bail!("{} is one run, not a comparison: use `train --resume {}`", path.display(), path.display());
    }
    Ok(paths.read_config()?)
}

/// A run under way.
struct Running<B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps> {
    trainer: LlmTrainer<B>,
    bar: RunProgress,
    path: PathBuf,
    settings: Settings,
    data: String,
    memory: StepMemory,
}

/// Makes all runs of a comparison that are not finished yet. One whose loss or gradient is no longer finite ends there, with
/// a note in its summary; the others go on.
///
/// # Errors
/// If a run cannot be started or continued, is finished with other settings or text, or fails (a disk that is full).
pub fn run<B>(
    path: &Path,
    comparison: &Comparison,
    data: &TextData,
    device: &B::Device,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<RunEnd>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    for seed in comparison.seed_range() {
        for group in comparison.arms.chunks(comparison.at_once()) {
            let mut unfinished = Vec::new();
            for arm in group {
                if !is_finished(path, comparison, arm, seed, data)? {
                    unfinished.push(arm);
                }
            }
            let mut running = Vec::with_capacity(unfinished.len());
            for arm in unfinished {
                running.push(start::<B>(path, comparison, arm, seed, data, device, progress)?);
            }
            if side_by_side(running, interrupt)? == RunEnd::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
        }
    }
    Ok(RunEnd::Finished)
}

/// Whether a run is finished, with these settings on this text.
fn is_finished(path: &Path, comparison: &Comparison, arm: &Arm, seed: u64, data: &TextData) -> Result<bool> {
    let path = arm_path(path, arm, seed);
    let Ok(summary) = ArmSummary::read(&path) else { return Ok(false) };
    let stored: Settings = RunPaths::new(&path).read_config()?;
    let expected = run::with_stored_tau(&path, &comparison.settings(arm, seed))?;
    if stored != expected {
        bail!("{} was finished with other settings than config.toml has now: start a new comparison", path.display());
    }
    if summary.data != data.fingerprint() {
        bail!("{} was finished on another text or tokenizer: start a new comparison", path.display());
    }
    Ok(true)
}

fn start<B>(
    comparison_path: &Path,
    comparison: &Comparison,
    arm: &Arm,
    seed: u64,
    data: &TextData,
    device: &B::Device,
    progress: &Progress,
) -> Result<Running<B>>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let (path, settings) = (arm_path(comparison_path, arm, seed), comparison.settings(arm, seed));
    let mut notes = Vec::new();
    let trainer = run::begin_or_continue::<B>(&path, &settings, data, device, &mut notes)
        .with_context(|| format!("arm {arm}, seed {seed}"))?;
    for note in notes {
        progress.message(&format!("{arm}: {note}"));
    }
    let name = if comparison.seeds > 1 { format!("{arm} #{seed}") } else { arm.to_string() };
    let bar = progress.run(&name, trainer.step(), settings.training.steps);
    let data = data.fingerprint();
    Ok(Running { trainer, bar, path, settings, data, memory: StepMemory::default() })
}

/// Advances the run that is furthest behind until all are finished.
fn side_by_side<B>(mut running: Vec<Running<B>>, interrupt: &Interrupt) -> Result<RunEnd>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    while let Some(next) = (0..running.len()).min_by_key(|&i| running[i].trainer.step()) {
        if interrupt.is_set() {
            for run in &mut running {
                run.trainer.save()?;
            }
            return Ok(RunEnd::Interrupted);
        }
        let run = &mut running[next];
        let diverged = if run.trainer.is_finished() { None } else { run.step()? };
        if diverged.is_some() || run.trainer.is_finished() {
            running.swap_remove(next).finish(diverged)?;
        }
    }
    Ok(RunEnd::Finished)
}

impl<B> Running<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    /// Makes a step; says why, if the run has diverged.
    fn step(&mut self) -> Result<Option<String>> {
        self.memory.begin();
        match self.trainer.advance() {
            Ok(report) => {
                self.memory.end(&report, &self.settings);
                self.bar.update(&report);
                Ok(None)
            }
            // One arm that diverges at a learning rate is a result; the others go on.
            Err(error @ (TrainError::NonFiniteLoss { .. } | TrainError::NonFiniteGradient { .. })) => {
                Ok(Some(error.to_string()))
            }
            Err(error) => {
                let arm = &self.settings.model.arm;
                Err(anyhow::Error::from(error).context(format!("arm {arm}, seed {}", self.settings.seed)))
            }
        }
    }

    fn finish(self, diverged: Option<String>) -> Result<()> {
        let peak = self.memory.peak(&self.trainer);
        let finished = self.trainer.finish()?;
        ArmSummary::new(&self.settings, &self.data, finished.model.connections(), peak, diverged)?.write(&self.path)?;
        self.bar.finish();
        Ok(())
    }
}
