//! The training loop, one optimizer step at a time, so that a caller can interleave several runs.
//!
//! Steps are numbered from 1 wherever a person sees them: "step 100" is the state after 100 updates.

mod error;
mod report;
mod settings;
mod step;
mod task;
#[cfg(test)]
mod tests;
mod workers;

use std::{fmt, path::PathBuf};

use burn::{module::AutodiffModule, tensor::backend::AutodiffBackend};
use fused_ops::FusedOps;
use serde::Serialize;

pub use self::{
    error::TrainError,
    report::StepReport,
    settings::{Accumulation, TrainSettings},
    task::{Task, TaskState},
};
use self::{step::Interval, workers::Workers};
use crate::{
    checkpoint::{Checkpoint, CheckpointError, CheckpointHeader, CheckpointStore, Configuration, FORMAT_VERSION},
    interrupt::Interrupt,
    metrics::MetricsLog,
    optimizer::{Optimizer, OptimizerError},
    parameters,
    run_directory::RunDirectory,
};

/// A run in progress: the model, the optimizer, the logs and the checkpoints of one run directory.
///
/// The same settings, seed and data give the same bits, also if the run is stopped at any moment and resumed: weights and
/// `metrics.jsonl` are those of an uninterrupted run. See the [crate documentation](crate) for an example.
pub struct Trainer<B: AutodiffBackend<InnerBackend: FusedOps>, M: AutodiffModule<B>, T: Task<B, M>> {
    /// Always there, but for the moment of an update, which takes it apart.
    model: Option<M>,
    optimizer: Optimizer<B>,
    task: T,
    settings: TrainSettings,
    configuration: Configuration,
    directory: RunDirectory,
    checkpoints: CheckpointStore,
    metrics: MetricsLog,
    timing: MetricsLog,
    step: usize,
    tokens_seen: u64,
    skipped: u64,
    warnings: Vec<String>,
    saved_step: Option<usize>,
    evaluation: Option<(usize, Vec<(String, f64)>)>,
    since_timing: Interval,
    workers: Workers,
}

impl<B, M, T> fmt::Debug for Trainer<B, M, T>
where
    B: AutodiffBackend<InnerBackend: FusedOps>,
    M: AutodiffModule<B>,
    T: Task<B, M>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, directory) = (&self.step, &self.directory.path());
        f.debug_struct("Trainer").field("step", step).field("directory", directory).finish_non_exhaustive()
    }
}

/// How [`Trainer::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// All steps have been made.
    Finished,
    /// The run was interrupted, and is saved.
    Interrupted,
}

/// What a finished run leaves.
#[derive(Debug)]
pub struct Finished<M, T> {
    /// The trained model.
    pub model: M,
    /// The task, with whatever it has gathered.
    pub task: T,
    /// The directory, still held.
    pub directory: RunDirectory,
}

impl<B, M, T> Trainer<B, M, T>
where
    B: AutodiffBackend<InnerBackend: FusedOps>,
    M: AutodiffModule<B>,
    T: Task<B, M>,
{
    /// Starts a new run in `directory`, fresh from [`RunDirectory::create`].
    ///
    /// `configuration` is everything that the run's values depend on, as a rule the whole settings of the experiment: a
    /// checkpoint is only resumed under the same one.
    ///
    /// # Errors
    /// If a setting makes no sense, a file cannot be written, or the evaluation before the first step fails.
    pub fn start(
        directory: RunDirectory,
        configuration: &impl Serialize,
        settings: &TrainSettings,
        model: M,
        task: T,
    ) -> Result<Self, TrainError> {
        let metrics = MetricsLog::create(&directory.paths().metrics())?;
        let mut trainer = Self::new(directory, configuration, settings, model, task, metrics)?;
        trainer.begin()?;
        Ok(trainer)
    }

    /// Continues the run in `directory` from its newest checkpoint that is whole.
    ///
    /// `model` is built as for a new run; its values are replaced. A damaged checkpoint is set aside, and named in
    /// [`warnings`](Self::warnings). A run that was stopped before its first checkpoint starts again at step 0. What the logs say of
    /// later steps is cut off, half a line of a killed process included. With
    /// `allow_changes`, the configuration may differ from the checkpoint's; the differences are then warnings.
    ///
    /// # Errors
    /// If there are checkpoints but not one can be used, if the configuration differs and may not, or if the checkpoint
    /// is of another model.
    pub fn resume(
        directory: RunDirectory,
        configuration: &impl Serialize,
        settings: &TrainSettings,
        model: M,
        task: T,
        allow_changes: bool,
    ) -> Result<Self, TrainError> {
        settings.validate()?;
        let checkpoints = CheckpointStore::open(&directory.paths().checkpoints(), settings.keep_checkpoints)?;
        let metrics_path = directory.paths().metrics();
        let Some(found) = checkpoints.load_newest()? else {
            let metrics = MetricsLog::resume(&metrics_path, 0)?;
            let mut trainer = Self::new(directory, configuration, settings, model, task, metrics)?;
            trainer.warnings.push("there is no checkpoint yet, so the run starts again at step 0".into());
            trainer.begin()?;
            return Ok(trainer);
        };
        let mut warnings = Vec::new();
        let now = Configuration::of(configuration).map_err(TrainError::Configuration)?;
        let header = found.checkpoint.header;
        let differences = header.configuration.differences(&now);
        if !differences.is_empty() {
            if !allow_changes {
                return Err(CheckpointError::OtherConfiguration { path: found.path, differences }.into());
            }
            warnings.push(format!("the settings have changed since the checkpoint:\n  {}", differences.join("\n  ")));
        }
        let model = parameters::import(model, found.checkpoint.model)?;
        let metrics = MetricsLog::resume(&metrics_path, header.metrics_length)?;
        let mut trainer = Self::new(directory, configuration, settings, model, task, metrics)?;
        let Self { model, optimizer, .. } = &mut trainer;
        if let Some(model) = model {
            optimizer.import(model, found.checkpoint.optimizer)?;
        }
        trainer.task.restore(TaskState { extra: header.extra, tensors: found.checkpoint.task })?;
        for (path, error) in found.damaged {
            let aside = trainer.checkpoints.set_aside(&path)?;
            warnings.push(format!(
                "{error}; it is now {}, and the run goes on from {}",
                aside.display(),
                found.path.display()
            ));
        }
        trainer.step = header.step;
        trainer.tokens_seen = header.tokens_seen;
        trainer.skipped = header.skipped;
        trainer.saved_step = Some(header.step);
        trainer.warnings.extend(warnings);
        Ok(trainer)
    }

    fn new(
        directory: RunDirectory,
        configuration: &impl Serialize,
        settings: &TrainSettings,
        model: M,
        task: T,
        metrics: MetricsLog,
    ) -> Result<Self, TrainError> {
        settings.validate()?;
        let parameters = parameters::named_parameters(&model);
        if let Some((first, second)) = parameters::shared_parameters(&parameters).into_iter().next() {
            return Err(OptimizerError::Shared { first, second }.into());
        }
        if let Some(galore) = &settings.optimizer.galore
            && !parameters.iter().any(|info| galore.projects(&info.name, &info.shape))
        {
            return Err(OptimizerError::NothingProjected { patterns: galore.parameters.clone() }.into());
        }
        let unmatched = settings.optimizer.unmatched_patterns(parameters.iter().map(|info| info.name.as_str()));
        let warnings = unmatched.into_iter().map(|pattern| format!("no parameter matches the pattern `{pattern}`"));
        Ok(Self {
            optimizer: Optimizer::new(settings.optimizer.clone())?,
            configuration: Configuration::of(configuration).map_err(TrainError::Configuration)?,
            checkpoints: CheckpointStore::open(&directory.paths().checkpoints(), settings.keep_checkpoints)?,
            timing: MetricsLog::append(&directory.paths().timing())?,
            warnings: warnings.collect(),
            model: Some(model),
            task,
            settings: settings.clone(),
            directory,
            metrics,
            step: 0,
            tokens_seen: 0,
            skipped: 0,
            saved_step: None,
            evaluation: None,
            since_timing: Interval::numbered(1),
            workers: Workers::none(),
        })
    }

    fn begin(&mut self) -> Result<(), TrainError> {
        if self.settings.evaluate_at_start {
            self.evaluate()?;
        }
        Ok(())
    }

    /// Stores a checkpoint of the run as it is now, unless the newest one is just that. Returns its path.
    ///
    /// # Errors
    /// If it cannot be written; older checkpoints are then untouched.
    pub fn save(&mut self) -> Result<Option<PathBuf>, TrainError> {
        if self.saved_step == Some(self.step) {
            return Ok(self.checkpoints.newest());
        }
        self.metrics.sync()?;
        let TaskState { extra, tensors } = self.task.state()?;
        let checkpoint = Checkpoint {
            header: CheckpointHeader {
                format_version: FORMAT_VERSION,
                step: self.step,
                tokens_seen: self.tokens_seen,
                skipped: self.skipped,
                metrics_length: self.metrics.length(),
                configuration: self.configuration.clone(),
                extra,
            },
            model: parameters::export(self.model()),
            optimizer: self.optimizer.export()?,
            task: tensors,
        };
        let path = self.checkpoints.save(&checkpoint)?;
        self.saved_step = Some(self.step);
        Ok(Some(path))
    }

    /// Makes steps until the run is finished or interrupted, and saves. `each` sees every step, for a progress bar.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn run(&mut self, interrupt: &Interrupt, mut each: impl FnMut(&StepReport)) -> Result<RunEnd, TrainError> {
        while !self.is_finished() {
            if interrupt.is_set() {
                self.save()?;
                return Ok(RunEnd::Interrupted);
            }
            each(&self.advance()?);
        }
        Ok(RunEnd::Finished)
    }

    /// Ends the run: stores a checkpoint if that was not done, and hands the parts back.
    ///
    /// # Errors
    /// If the checkpoint cannot be written.
    pub fn finish(mut self) -> Result<Finished<M, T>, TrainError> {
        self.save()?;
        let Self { model, task, directory, .. } = self;
        let model = model.unwrap_or_else(|| unreachable!("{TAKEN}"));
        Ok(Finished { model, task, directory })
    }

    /// From now on the micro-batches of a step go through the model at the same time, `count` of them on a thread each; 1
    /// goes back to one after another. The values of the run do not change: gradients are added up in the order of the
    /// micro-batches. Memory holds the activations of `count` micro-batches at once.
    ///
    /// For models on the CPU whose forward pass changes nothing in them (batch normalisation does).
    ///
    /// # Errors
    /// If the system gives no more threads.
    pub fn set_workers(&mut self, count: usize) -> Result<(), TrainError> {
        self.workers = Workers::new(count).map_err(TrainError::task)?;
        Ok(())
    }

    /// Whether all steps have been made.
    pub fn is_finished(&self) -> bool {
        self.step >= self.settings.steps
    }

    /// How many updates have been made.
    pub fn step(&self) -> usize {
        self.step
    }

    /// How many tokens have been learned from.
    pub fn tokens_seen(&self) -> u64 {
        self.tokens_seen
    }

    /// How many micro-batches have been skipped because there was nothing to learn from.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        self.model.as_ref().unwrap_or_else(|| unreachable!("{TAKEN}"))
    }

    /// The task.
    pub fn task(&self) -> &T {
        &self.task
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &Optimizer<B> {
        &self.optimizer
    }

    /// The settings.
    pub fn settings(&self) -> &TrainSettings {
        &self.settings
    }

    /// The run directory.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The last evaluation that this process made, with its step.
    pub fn evaluation(&self) -> Option<(usize, &[(String, f64)])> {
        self.evaluation.as_ref().map(|(step, values)| (*step, values.as_slice()))
    }

    /// What the user should know about how the run was started or resumed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// `Trainer::model` is only empty within the one expression that updates it, which either returns or unwinds the trainer.
const TAKEN: &str = "the model is only taken for the moment of an update";
