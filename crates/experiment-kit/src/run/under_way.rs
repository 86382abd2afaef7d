//! A run between its first step and its summary.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
use training::{
    interrupt::Interrupt,
    progress::{Progress, RunProgress},
    trainer::{RunEnd, TrainError},
};

use super::{ArmSummary, RunTrainer, Start, StepMemory, begin};
use crate::{Ended, Experiment, RunSettings};

/// A run under way.
pub(crate) struct UnderWay<E: Experiment> {
    pub trainer: RunTrainer<E>,
    pub settings: E::Settings,
    bar: RunProgress,
    path: PathBuf,
    memory: StepMemory,
}

impl<E: Experiment> UnderWay<E> {
    /// A run that has begun, with its progress bar.
    pub fn new(trainer: RunTrainer<E>, settings: E::Settings, path: PathBuf, bar: RunProgress) -> Self {
        Self { trainer, settings, bar, path, memory: StepMemory::default() }
    }

    /// Makes a step.
    pub fn step(&mut self) -> Result<(), TrainError> {
        self.memory.begin();
        let report = self.trainer.advance()?;
        self.memory.end(&report, &self.settings);
        self.bar.update(&report);
        Ok(())
    }

    /// Saves the run as it is and lets go of it.
    pub fn stop(mut self) -> Result<(), TrainError> {
        self.trainer.save()?;
        self.bar.finish();
        Ok(())
    }

    /// Ends the run: its last checkpoint, what the experiment makes of it, its summary.
    pub fn finish(self, experiment: &E, diverged: Option<String>) -> Result<RunEnd> {
        let peak = self.memory.peak::<E>(&self.trainer);
        let finished = self.trainer.finish()?;
        self.bar.finish();
        let extra = match &diverged {
            Some(_) => Value::Null,
            None => match experiment.finished(&self.settings, &self.path, &finished.model, &finished.task)? {
                Ended::Done(extra) => extra,
                Ended::Interrupted => return Ok(RunEnd::Interrupted),
            },
        };
        let data = experiment.data_fingerprint();
        let summary = ArmSummary::new(&self.settings, &data, &finished.model, peak, diverged);
        ArmSummary { extra, ..summary }.write(&self.path)?;
        Ok(RunEnd::Finished)
    }
}

/// Makes or continues a single run and leaves its summary. A run that is interrupted is saved.
///
/// # Errors
/// As [`begin`], or if the run fails: its loss or gradient is no longer finite, the disk is full.
pub fn train<E: Experiment>(
    experiment: &E,
    path: &Path,
    start: Start,
    settings: &E::Settings,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<RunEnd> {
    let mut notes = Vec::new();
    let trainer = begin(experiment, path, start, settings, &mut notes)?;
    for note in notes {
        progress.message(&note);
    }
    let arm = settings.arm().to_string();
    progress.message(&format!("arm: {arm}; run directory: {}", path.display()));
    let bar = progress.run(&arm, trainer.step(), settings.training().steps);
    let mut run = UnderWay::<E>::new(trainer, settings.clone(), path.to_owned(), bar);
    while !run.trainer.is_finished() {
        if interrupt.is_set() {
            run.stop()?;
            return Ok(RunEnd::Interrupted);
        }
        match run.step() {
            Err(TrainError::Interrupted { .. }) => {
                run.stop()?;
                return Ok(RunEnd::Interrupted);
            }
            stepped => stepped?,
        }
    }
    run.finish(experiment, None)
}
