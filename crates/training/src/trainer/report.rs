//! What a step tells its caller.

/// What happened in one optimizer step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// The number of the step, from 1: how many updates have now been made.
    pub step: usize,
    /// How many steps the run has in total.
    pub steps: usize,
    /// The loss before the update, over all micro-batches; `None` if not one of them had anything to learn from.
    pub loss: Option<f64>,
    /// The learning rate of the update.
    pub lr: f64,
    /// The L2 norm of the gradient before clipping; `None` where there was none.
    pub gradient_norm: Option<f64>,
    /// The tokens of this step: the sum of the weights of its micro-batches.
    pub tokens: u64,
    /// The tokens of the run so far.
    pub tokens_seen: u64,
    /// How many micro-batches were skipped because their weight was 0.
    pub skipped: usize,
    /// What the step took, evaluation and saving left out.
    pub seconds: f64,
    /// The held-out metrics, if the step ended with an evaluation.
    pub evaluation: Option<Vec<(String, f64)>>,
}

impl StepReport {
    /// Throughput of this step.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.seconds.max(1e-9)
    }
}
