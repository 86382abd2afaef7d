//! What an experiment supplies to the loop.

use burn::{
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{Tensor, backend::AutodiffBackend},
};
use serde_json::Value;

use super::TrainError;
use crate::parameters::NamedTensor;

/// What is to be learned, and from what: everything about a run that is not the loop.
///
/// `M` is the module and `B` its autodiff backend.
pub trait Task<B: AutodiffBackend, M: AutodiffModule<B>>: Sync {
    /// One micro-batch: as much as goes through the model at once.
    type Batch: Send;

    /// The micro-batches of the optimizer step `step`, counted from 0.
    ///
    /// A pure function of `step`, so that a resumed run needs no cursor: take random numbers from
    /// [`seed::stream`](crate::seed::stream) with the step or the epoch as its index.
    ///
    /// # Errors
    /// If the data cannot be had; see [`TrainError::task`].
    fn batches(&mut self, step: usize) -> Result<Vec<Self::Batch>, TrainError>;

    /// How much a micro-batch counts, as a rule the number of its target tokens. One with weight 0 is skipped and
    /// counted; a weight that is negative or not finite is an error.
    fn weight(&self, batch: &Self::Batch) -> f64;

    /// The mean loss of a micro-batch, a tensor of one element on the graph. With [workers](super::Trainer::set_workers)
    /// it is asked for from several threads at once.
    ///
    /// # Errors
    /// If it cannot be computed.
    fn loss(&self, model: &M, batch: Self::Batch) -> Result<Tensor<B, 1>, TrainError>;

    /// Held-out metrics after `step` updates, in the order in which they are to be logged. A function of the model alone.
    ///
    /// # Errors
    /// If the data cannot be had.
    fn evaluate(&mut self, model: &M::InnerModule, step: usize) -> Result<Vec<(String, f64)>, TrainError>;

    /// Further numbers for the log of a step: the entropy of the connections, the gradient norm of one part, and so on.
    /// Gets the model that the gradients (before clipping) belong to, so the one before the update number `step`.
    fn observe(&mut self, model: &M, gradients: &GradientsParams, step: usize) -> Vec<(String, f64)> {
        let _ = (model, gradients, step);
        Vec::new()
    }

    /// Called after each update with the new model; for a moving average of the weights, or to act in the world.
    ///
    /// # Errors
    /// If that fails; the run then stops without a checkpoint of this step. [`TrainError::Diverged`] is for what a model
    /// that has diverged makes impossible.
    fn after_update(&mut self, model: &M, step: usize) -> Result<(), TrainError> {
        let _ = (model, step);
        Ok(())
    }

    /// What the task itself has to remember from step to step, for the checkpoint. Most need nothing.
    ///
    /// # Errors
    /// If it cannot be written down; no checkpoint is then stored.
    fn state(&self) -> Result<TaskState, TrainError> {
        Ok(TaskState::default())
    }

    /// Takes up the state that [`state`](Self::state) gave.
    ///
    /// # Errors
    /// If it does not fit.
    fn restore(&mut self, state: TaskState) -> Result<(), TrainError> {
        let _ = state;
        Ok(())
    }
}

/// What a task remembers from step to step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskState {
    /// Anything that JSON can hold. Floats may come back a unit in the last place off.
    pub extra: Value,
    /// Tensors, which come back to the bit.
    pub tensors: Vec<NamedTensor>,
}
