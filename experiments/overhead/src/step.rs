//! One training step: the gradient of its micro-batches, as the training loop takes it, then the update.

use std::time::Instant;

use anyhow::{Result, ensure};
use burn::{module::AutodiffModule, optim::GradientsParams, tensor::Tensor};
use rayon::{Scope, ThreadPool, ThreadPoolBuilder};
use training::{
    gradients, memory,
    optimizer::{Optimizer, OptimizerSettings},
};

use crate::B;

/// So small that models stay as they are over any number of steps on the same data; time does not depend on it.
const LEARNING_RATE: f64 = 1e-7;

/// Steps of which the least peak counts: the first ones in a process also make the buffers of its threads, which stay.
const PEAKS: usize = 3;

/// The loss of a micro-batch, by its index.
pub type Loss<M> = Box<dyn Fn(&M, usize) -> Tensor<B, 1> + Send + Sync>;

/// What follows the update, as a moving average of the weights.
pub type AfterUpdate<M> = Box<dyn FnMut(&M) + Send>;

/// What is trained, and on what.
pub struct Lesson<M> {
    /// The model.
    pub model: M,
    /// Its loss.
    pub loss: Loss<M>,
    /// Micro-batches of a step.
    pub micro_batches: usize,
    /// The optimizer of the experiment.
    pub optimizer: OptimizerSettings,
    /// Largest norm of the gradient.
    pub clip: Option<f64>,
    /// What follows the update.
    pub after_update: Option<AfterUpdate<M>>,
}

/// What one step took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds of the forward and backward passes.
    pub gradient: f64,
    /// Seconds of the whole step, the update included.
    pub step: f64,
}

/// Something that makes training steps.
pub trait Training {
    /// Makes one.
    ///
    /// # Errors
    /// If the loss is no number any more: such a step may take another time.
    fn step(&mut self) -> Result<Sample>;

    /// Makes some with their micro-batches one after another, so that the peak does not depend on which thread is ahead: bytes at the
    /// peak of a step beyond what is held between steps; 0 where no allocator counts.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    fn peak(&mut self) -> Result<usize>;

    /// Bytes of weights and of the optimizer's moments.
    fn resident_bytes(&self) -> usize;
}

/// Steps of a lesson. Several micro-batches go through the model at the same time, each on one thread, as the training
/// loop has it on a CPU; a single one goes through it on all threads.
pub struct Trainee<M> {
    /// Always there, but for the moment of an update.
    model: Option<M>,
    loss: Loss<M>,
    micro_batches: usize,
    clip: Option<f64>,
    after_update: Option<AfterUpdate<M>>,
    optimizer: Optimizer<B>,
    threads: Vec<ThreadPool>,
}

impl<M: AutodiffModule<B>> Trainee<M> {
    /// A trainee that has made no step.
    ///
    /// # Errors
    /// If the optimizer's settings make no sense, or the system gives no threads.
    pub fn new(lesson: Lesson<M>) -> Result<Self> {
        let Lesson { model, loss, micro_batches, optimizer, clip, after_update } = lesson;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let at_once = cores.min(micro_batches);
        let single = || ThreadPoolBuilder::new().num_threads(1).build();
        let threads = if at_once > 1 { (0..at_once).map(|_| single()).collect::<Result<_, _>>()? } else { Vec::new() };
        let optimizer = Optimizer::new(optimizer)?;
        Ok(Self { model: Some(model), loss, micro_batches, clip, after_update, optimizer, threads })
    }

    fn model(&self) -> &M {
        self.model.as_ref().unwrap_or_else(|| unreachable!("the model is only taken for the moment of an update"))
    }

    /// Mean loss of the micro-batches, and its gradient; on these threads.
    fn gradient(&self, threads: &[ThreadPool]) -> (f64, GradientsParams) {
        let model = self.model();
        let share = 1.0 / self.micro_batches as f64;
        let loss_of = &self.loss;
        let one = |model: &M, index: usize| {
            let loss = loss_of(model, index);
            let value = loss.clone().inner();
            (value, GradientsParams::from_grads(loss.mul_scalar(share).backward(), model))
        };
        let (mut mean, mut sum) = (0.0, GradientsParams::new());
        let indices: Vec<usize> = (0..self.micro_batches).collect();
        for round in indices.chunks(threads.len().max(1)) {
            let results = match threads.is_empty() {
                true => round.iter().map(|&index| one(model, index)).collect(),
                false => {
                    let device = model.devices().into_iter().next().unwrap_or_default();
                    // Each thread gets a graph of its own.
                    let jobs = round.iter().map(|&index| (model.clone().fork(&device), index)).collect();
                    spread(threads, jobs, &|(model, index): (M, usize)| one(&model, index))
                }
            };
            for (loss, gradient) in results {
                mean += share * loss.into_data().iter::<f64>().sum::<f64>();
                sum = gradients::accumulate(model, sum, gradient);
            }
        }
        (mean, sum)
    }

    fn update(&mut self, (loss, mut gradient): (f64, GradientsParams)) -> Result<()> {
        ensure!(loss.is_finite(), "the loss is {loss}");
        let norm = gradients::global_norm(self.model(), &gradient);
        if let Some(max) = self.clip {
            gradient = gradients::scale(self.model(), gradient, gradients::clip_factor(norm, max));
        }
        self.model = self.model.take().map(|model| self.optimizer.step(model, gradient, LEARNING_RATE));
        if let (Some(after), Some(model)) = (&mut self.after_update, &self.model) {
            after(model);
        }
        Ok(())
    }
}

/// The work of each job on a thread of its own; results are in the order of the jobs, of which there are no more than threads.
fn spread<J: Send, R: Send>(threads: &[ThreadPool], jobs: Vec<J>, work: &(impl Fn(J) -> R + Sync)) -> Vec<R> {
    fn start<J: Send, R: Send>(
        threads: &[ThreadPool],
        mut jobs: std::vec::IntoIter<(J, &mut Option<R>)>,
        work: &(impl Fn(J) -> R + Sync),
    ) {
        let (Some((thread, others)), Some((job, result))) = (threads.split_first(), jobs.next()) else { return };
        thread.in_place_scope(|scope: &Scope<'_>| {
            scope.spawn(move |_| *result = Some(work(job)));
            start(others, jobs, work);
        });
    }
    let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    let pairs: Vec<_> = jobs.into_iter().zip(&mut results).collect();
    start(threads, pairs.into_iter(), work);
    results.into_iter().flatten().collect()
}

impl<M: AutodiffModule<B>> Training for Trainee<M> {
    fn step(&mut self) -> Result<Sample> {
        let started = Instant::now();
        let gradient = self.gradient(&self.threads);
        let of_gradient = started.elapsed().as_secs_f64();
        self.update(gradient)?;
        Ok(Sample { gradient: of_gradient, step: started.elapsed().as_secs_f64() })
    }

    fn peak(&mut self) -> Result<usize> {
        let mut least = usize::MAX;
        for _ in 0..PEAKS {
            let before = memory::current_bytes();
            memory::reset_peak();
            let gradient = self.gradient(&[]);
            self.update(gradient)?;
            least = least.min(memory::peak_bytes().saturating_sub(before));
        }
        Ok(least)
    }

    fn resident_bytes(&self) -> usize {
        self.model().num_params() * size_of::<f32>() + self.optimizer.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use burn::{nn::LinearConfig, tensor::Distribution};

    use super::*;

    #[test]
    fn micro_batches_share_a_step() {
        let device = Default::default();
        for micro_batches in [1, 2, 5] {
            let x = Tensor::<B, 2>::random([8, 3], Distribution::Default, &device);
            let loss: Loss<_> = Box::new(move |model: &burn::nn::Linear<B>, index| {
                model.forward(x.clone()).square().mean().mul_scalar(index as f64 + 1.0)
            });
            let model = LinearConfig::new(3, 2).init(&device);
            let optimizer = OptimizerSettings::default();
            let lesson = Lesson { model, loss, micro_batches, optimizer, clip: Some(1.0), after_update: None };
            let mut trainee = Trainee::new(lesson).unwrap();
            let (loss, _) = trainee.gradient(&trainee.threads);
            let (in_turn, _) = trainee.gradient(&[]);
            assert_eq!(loss, in_turn);
            let one = (trainee.loss)(trainee.model(), 0).into_data().iter::<f64>().sum::<f64>();
            // The mean of 1, 2, ... times the first one's.
            assert!((loss / one - (micro_batches as f64 + 1.0) / 2.0).abs() < 1e-5, "{loss} {one}");
            let sample = trainee.step().unwrap();
            assert!(sample.step >= sample.gradient && sample.gradient > 0.0, "{sample:?}");
            // Weights and two moments.
            assert_eq!(trainee.resident_bytes(), 3 * 4 * 8);
        }
    }
}
