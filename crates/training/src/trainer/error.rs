//! Why a run stops before its end.

use std::{error::Error, fmt, path::PathBuf};

use crate::{
    checkpoint::CheckpointError, metrics::MetricsError, optimizer::OptimizerError, parameters::ParameterError,
    run_directory::RunDirectoryError, schedule::ScheduleError,
};

/// Why a run stops before its end, or cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting makes no sense.
    #[error("the setting `{setting}` {message}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What it should be.
        message: &'static str,
    },
    /// The configuration cannot be written down.
    #[error("the configuration cannot be written as JSON: {0}")]
    Configuration(#[source] serde_json::Error),
    /// The experiment's own code failed.
    #[error("{0}")]
    Task(#[source] Box<dyn Error + Send + Sync>),
    /// The task gave no micro-batches.
    #[error("step {step} has no data at all; the task must give at least one micro-batch")]
    NoBatch {
        /// The number of the step, from 1.
        step: usize,
    },
    /// A micro-batch counts in no sensible way.
    #[error("micro-batch {batch} of step {step} has the weight {weight}; a weight is a finite number of at least 0")]
    Weight {
        /// The number of the step, from 1.
        step: usize,
        /// The number of the micro-batch, from 1.
        batch: usize,
        /// The weight.
        weight: f64,
    },
    /// A loss is infinite or not a number. The model is as it was after the last good update.
    #[error(
        "the loss of micro-batch {batch} in step {step} is {loss}, so the run stops before this update; {}. Try a lower \
         learning rate, a longer warm-up or clipping",
        Kept(kept)
    )]
    NonFiniteLoss {
        /// The number of the step, from 1.
        step: usize,
        /// The number of the micro-batch, from 1.
        batch: usize,
        /// The loss.
        loss: f64,
        /// The newest checkpoint.
        kept: Option<PathBuf>,
    },
    /// A gradient is infinite or not a number. The model is as it was after the last good update.
    #[error(
        "the gradient of step {step} is not finite (in {}), so the run stops before this update; {}. Try a lower \
         learning rate, a longer warm-up or clipping",
        Names(parameters),
        Kept(kept)
    )]
    NonFiniteGradient {
        /// The number of the step, from 1.
        step: usize,
        /// The parameters whose gradients are not finite.
        parameters: Vec<String>,
        /// The newest checkpoint.
        kept: Option<PathBuf>,
    },
    /// What the model gives can no longer be used: the task says why.
    #[error("{reason}, so the run stops after step {step}. Try a lower learning rate, a longer warm-up or clipping")]
    Diverged {
        /// How many updates had been made.
        step: usize,
        /// What is no number any more.
        reason: String,
    },
    /// The task was asked to stop before it had what a step needs. The run can be saved, and goes on from where it was.
    #[error("stopped while preparing step {step}")]
    Interrupted {
        /// The number of the step, from 1.
        step: usize,
    },
    /// All steps have been made.
    #[error("the run has made all its {steps} steps")]
    Finished {
        /// How many.
        steps: usize,
    },
    /// The log.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The optimizer.
    #[error(transparent)]
    Optimizer(#[from] OptimizerError),
    /// The checkpoint holds another model.
    #[error("the checkpoint is of another model: {0}")]
    Parameters(#[from] ParameterError),
    /// The schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The run directory.
    #[error(transparent)]
    RunDirectory(#[from] RunDirectoryError),
}

impl TrainError {
    /// An error of the experiment's own.
    pub fn task(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Task(error.into())
    }
}

struct Kept<'a>(&'a Option<PathBuf>);

impl fmt::Display for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "the newest checkpoint, {}, is kept", path.display()),
            None => f.write_str("there is no checkpoint yet"),
        }
    }
}

struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Finite gradients of which the norm is not.
            [] => f.write_str("its norm"),
            [names @ .., last] if names.len() < 3 => {
                names.iter().try_for_each(|name| write!(f, "{name}, "))?;
                f.write_str(last)
            }
            names => write!(f, "{}, {} and {} more", names[0], names[1], names.len() - 2),
        }
    }
}
