//! One step: gather the gradient, update, and do what is due.

use std::time::Instant;

use burn::{
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{Tensor, backend::AutodiffBackend},
};
use fused_ops::FusedOps;

use super::{Accumulation, StepReport, Task, TrainError, Trainer};
use crate::{
    gradients, memory,
    metrics::{Record, RecordKind, timing},
};

/// What has happened since the last line in the log of times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// Counted from 1 in each process, which is how a reader knows where one began.
    number: usize,
    steps: usize,
    tokens: u64,
    seconds: f64,
}

impl Interval {
    pub(super) fn numbered(number: usize) -> Self {
        Self { number, steps: 0, tokens: 0, seconds: 0.0 }
    }

    fn add(&mut self, tokens: u64, seconds: f64) {
        self.steps = self.steps.saturating_add(1);
        self.tokens = self.tokens.saturating_add(tokens);
        self.seconds += seconds;
    }
}

struct Gathered {
    /// `None` if no micro-batch counted.
    gradients: Option<GradientsParams>,
    loss: Option<f64>,
    tokens: u64,
    skipped: usize,
}

/// The loss of a micro-batch, off the graph, and its weighted gradient.
type LossAndGradient<B> = (Tensor<<B as AutodiffBackend>::InnerBackend, 1>, GradientsParams);

fn named(name: &str, value: f64) -> (String, f64) {
    (name.to_owned(), value)
}

impl<B, M, T> Trainer<B, M, T>
where
    B: AutodiffBackend<InnerBackend: FusedOps>,
    M: AutodiffModule<B>,
    T: Task<B, M>,
{
    /// Makes one optimizer step, and whatever is due after it: a line in the log, an evaluation, a checkpoint.
    ///
    /// # Errors
    /// If the loss or the gradient is not finite (the model is then as it was after the step before), if the task fails,
    /// or if a file cannot be written.
    pub fn advance(&mut self) -> Result<StepReport, TrainError> {
        if self.is_finished() {
            return Err(TrainError::Finished { steps: self.settings.steps });
        }
        let started = Instant::now();
        let number = self.step + 1;
        let lr = self.settings.lr_at(self.step);
        let logged = number == 1 || self.settings.due(self.settings.log_every, number);
        let Gathered { gradients, loss, tokens, skipped } = self.gather(number)?;

        let mut gradient_norm = None;
        let mut observed = Vec::new();
        if let Some(mut sum) = gradients {
            let norm = gradients::global_norm(self.model(), &sum);
            if !norm.is_finite() {
                let parameters = gradients::non_finite(self.model(), &sum);
                return Err(TrainError::NonFiniteGradient {
                    step: number,
                    parameters,
                    kept: self.checkpoints.newest(),
                });
            }
            gradient_norm = Some(norm);
            if let (true, Some(model)) = (logged, &self.model) {
                observed = self.task.observe(model, &sum, number);
            }
            if let Some(max) = self.settings.clip {
                sum = gradients::scale(self.model(), sum, gradients::clip_factor(norm, max));
            }
            self.model = self.model.take().map(|model| self.optimizer.step(model, sum, lr));
        }
        self.step = number;
        self.tokens_seen = self.tokens_seen.saturating_add(tokens);
        self.skipped = self.skipped.saturating_add(skipped as u64);
        if let Some(model) = &self.model {
            self.task.after_update(model, number)?;
        }
        let seconds = started.elapsed().as_secs_f64();
        self.since_timing.add(tokens, seconds);

        if logged {
            let mut values = Vec::new();
            values.extend(loss.map(|loss| named("loss", loss)));
            values.push(named("lr", lr));
            values.extend(gradient_norm.map(|norm| named("gradient_norm", norm)));
            values.push(named("tokens", self.tokens_seen as f64));
            if self.skipped > 0 {
                values.push(named("skipped", self.skipped as f64));
            }
            values.extend(observed);
            self.metrics.log(&Record::new(number, RecordKind::Train, values))?;
            self.log_timing()?;
        }
        let evaluation = match self.settings.due(self.settings.evaluate_every, number) {
            true => Some(self.evaluate()?),
            false => None,
        };
        if self.settings.due(self.settings.checkpoint_every, number) {
            self.save()?;
        }
        let (steps, tokens_seen) = (self.settings.steps, self.tokens_seen);
        Ok(StepReport {
            step: number,
            steps,
            loss,
            lr,
            gradient_norm,
            tokens,
            tokens_seen,
            skipped,
            seconds,
            evaluation,
        })
    }

    /// The gradient and the loss of a step, over its micro-batches.
    fn gather(&mut self, number: usize) -> Result<Gathered, TrainError> {
        let batches = self.task.batches(self.step)?;
        if batches.is_empty() {
            return Err(TrainError::NoBatch { step: number });
        }
        let mut counted = Vec::with_capacity(batches.len());
        let (mut total, mut skipped) = (0.0, 0);
        for (index, batch) in batches.into_iter().enumerate() {
            let weight = self.task.weight(&batch);
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(TrainError::Weight { step: number, batch: index + 1, weight });
            }
            match weight == 0.0 {
                true => skipped += 1,
                false => counted.push((index + 1, weight, batch)),
            }
            total += weight;
        }
        let tokens = total.round() as u64;
        let count = counted.len() as f64;
        let Some(model) = self.model.as_ref().filter(|_| !counted.is_empty()) else {
            return Ok(Gathered { gradients: None, loss: None, tokens, skipped });
        };
        let shared = counted.into_iter().map(|(index, weight, batch)| {
            let share = match self.settings.accumulation {
                Accumulation::Tokens => weight / total,
                Accumulation::Equal => 1.0 / count,
            };
            (index, share, batch)
        });
        let (mut losses, mut shares) = (Vec::new(), Vec::new());
        let mut sum = GradientsParams::new();
        let at_once = self.workers.count().max(1);
        let mut waiting = shared.peekable();
        while waiting.peek().is_some() {
            let round: Vec<_> = waiting.by_ref().take(at_once).collect();
            shares.extend(round.iter().map(|(index, share, _)| (*index, *share)));
            // In the order of the micro-batches, so that the sum does not depend on who was first.
            for result in self.gradients_of(model, round) {
                let (loss, more) = result?;
                losses.push(loss);
                sum = gradients::accumulate(model, sum, more);
            }
        }
        // Read together, and only now: each read waits for the device.
        let losses: Vec<f64> = Tensor::cat(losses, 0).into_data().iter::<f64>().collect();
        let mut mean = 0.0;
        for (&(batch, share), &loss) in shares.iter().zip(&losses) {
            if !loss.is_finite() {
                let kept = self.checkpoints.newest();
                return Err(TrainError::NonFiniteLoss { step: number, batch, loss, kept });
            }
            mean += share * loss;
        }
        Ok(Gathered { gradients: Some(sum), loss: Some(mean), tokens, skipped })
    }

    /// Loss and weighted gradient of each of these micro-batches: of one right here, of several on a thread each.
    fn gradients_of(
        &self,
        model: &M,
        mut batches: Vec<(usize, f64, T::Batch)>,
    ) -> Vec<Result<LossAndGradient<B>, TrainError>> {
        if let (1, Some((_, share, batch))) = (batches.len(), batches.pop_if(|_| self.workers.count() == 0)) {
            return vec![gradient_of(&self.task, model, share, batch)];
        }
        let device = model.devices().into_iter().next().unwrap_or_default();
        // Each thread gets a graph of its own.
        let jobs = batches.into_iter().map(|(_, share, batch)| (model.clone().fork(&device), share, batch)).collect();
        let task = &self.task;
        self.workers.run(jobs, |(model, share, batch)| gradient_of(task, &model, share, batch))
    }

    /// Evaluates the model as it is now, and logs the metrics.
    ///
    /// # Errors
    /// If the task fails or the log cannot be written.
    pub(super) fn evaluate(&mut self) -> Result<Vec<(String, f64)>, TrainError> {
        let values = self.task.evaluate(&self.model().valid(), self.step)?;
        self.metrics.log(&Record::new(self.step, RecordKind::Evaluation, values.clone()))?;
        self.evaluation = Some((self.step, values.clone()));
        Ok(values)
    }

    fn log_timing(&mut self) -> Result<(), TrainError> {
        let Interval { number, steps, tokens, seconds } = self.since_timing;
        self.since_timing = Interval::numbered(number.saturating_add(1));
        let mut values = vec![
            named(timing::INTERVAL, number as f64),
            named(timing::STEPS, steps as f64),
            named(timing::SECONDS, seconds),
            named(timing::TOKENS_PER_SECOND, tokens as f64 / seconds.max(1e-9)),
        ];
        if let Some(cost) = self.optimizer.take_refresh_cost() {
            values.push(named("galore_bases", cost.bases as f64));
            values.push(named("galore_bases_seconds", cost.seconds));
        }
        // Only known where the program has installed the allocator that counts.
        if memory::peak_bytes() > 0 {
            values.push(named("memory_bytes", memory::current_bytes() as f64));
            values.push(named("peak_memory_bytes", memory::peak_bytes() as f64));
        }
        Ok(self.timing.log(&Record::new(self.step, RecordKind::Timing, values))?)
    }
}

/// Loss of a micro-batch, and the gradient of `share` times that loss.
fn gradient_of<B, M, T>(task: &T, model: &M, share: f64, batch: T::Batch) -> Result<LossAndGradient<B>, TrainError>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    T: Task<B, M>,
{
    let loss = task.loss(model, batch)?;
    let [elements] = loss.dims();
    if elements != 1 {
        return Err(TrainError::task(format!("the loss of a micro-batch must be one number, not {elements}")));
    }
    let value = loss.clone().inner();
    // Scaled before the backward pass: one number is cheaper to scale than all gradients.
    let scaled = if share == 1.0 { loss } else { loss.mul_scalar(share) };
    Ok((value, GradientsParams::from_grads(scaled.backward(), model)))
}
