//! What a diffusion run supplies to the training loop.

use std::sync::Arc;

use burn::{
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{DType, Tensor, backend::AutodiffBackend},
};
use datasets::images::{ImageError, ImagePlan};
use experiment_kit::{Connected, RunSettings};
use fused_ops::FusedOps;
use gaussian_diffusion::{Diffusion, Losses, Respacing, Tables, Variance};
use rayon::prelude::*;
use training::{
    average::WeightAverage,
    trainer::{Task, TaskState, TrainError},
};

use crate::{
    data::{HeldOut, Images, NoisedBatch, image_tensor},
    model::{Dit, DitConfig},
    scores::{Judge, SampleScores},
    settings::Settings,
};

/// Names of the held-out numbers, as they stand in `metrics.jsonl`.
pub mod metric {
    /// Mean squared error of the predicted noise over all held-out images and noise levels.
    pub const LOSS: &str = "held_out_mse";
    /// The same with the moving average of the weights.
    pub const AVERAGE_LOSS: &str = "held_out_mse_ema";
    /// The term of the variational bound in bits a dimension, where variances are learned.
    pub const BOUND: &str = "held_out_vb";
    /// Before the number of a noise level: its part of [`LOSS`].
    pub const LEVEL: &str = "held_out_mse_level_";
    /// Root mean square of the last state relative to the first, in the middle of the process.
    pub const STREAM_GROWTH: &str = "stream_growth";
    /// Mean entropy of the connections' softmaxes that have a choice, in nats.
    pub const CONNECTION_ENTROPY: &str = "connection_entropy";
    /// Euclidean norm of the gradient of the connections' parameters.
    pub const THETA_GRADIENT_NORM: &str = "theta_gradient_norm";
    /// Fréchet distance of samples, in the features of the named extractor.
    pub const FRECHET: &str = "frechet_distance";
    /// The same in its spatial features.
    pub const SPATIAL_FRECHET: &str = "spatial_frechet_distance";
    /// Inception-style score of samples.
    pub const INCEPTION: &str = "inception_score";
    /// Improved precision of samples.
    pub const PRECISION: &str = "precision";
    /// Improved recall.
    pub const RECALL: &str = "recall";
    /// Density.
    pub const DENSITY: &str = "density";
    /// Coverage.
    pub const COVERAGE: &str = "coverage";
    /// Share of samples that the classifier takes for their class.
    pub const ACCURACY: &str = "sample_accuracy";
}

/// Predicting the noise in images.
#[derive(Debug)]
pub struct Denoising<B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps> {
    settings: Settings,
    plan: ImagePlan,
    process: Diffusion,
    held_out: HeldOut,
    average: WeightAverage<B, Dit<B>>,
    judge: Option<Arc<Judge<B::InnerBackend>>>,
    /// The samples of the last evaluation that drew some.
    samples: Option<(usize, Vec<f32>)>,
    device: B::Device,
}

/// The process that a model is trained with.
pub fn training_process(model: &DitConfig) -> Diffusion {
    let variance = if model.learn_sigma { Variance::Learned } else { Variance::FixedLarge };
    match Tables::dit(&Respacing::All) {
        Ok(tables) => Diffusion::new(tables, variance),
        Err(error) => unreachable!("all steps are there: {error}"),
    }
}

impl<B> Denoising<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    /// The task of a run that begins with `model`; the order of the images, their noise and their steps follow from the
    /// seed, and so do the samples that `judge` scores.
    ///
    /// # Errors
    /// If a batch has no images.
    pub fn new(
        settings: &Settings,
        images: &Images,
        judge: Option<Arc<Judge<B::InnerBackend>>>,
        model: &Dit<B>,
        device: &B::Device,
    ) -> Result<Self, ImageError> {
        let flip = settings.data.flip.unwrap_or_else(|| images.train.flips_make_sense());
        Ok(Self {
            plan: ImagePlan::new(Arc::clone(&images.train), settings.data.micro_batch, settings.seed, flip)?,
            process: training_process(&settings.model),
            held_out: HeldOut::new(&images.held_out, &settings.evaluation),
            average: WeightAverage::new(model, settings.ema_decay),
            settings: settings.clone(),
            judge,
            samples: None,
            device: device.clone(),
        })
    }

    /// The model with the moving average of the weights.
    pub fn average(&self) -> &Dit<B::InnerBackend> {
        self.average.model()
    }

    /// The samples of the evaluation at a step, `[samples, channels, size, size]`, if this process has drawn them.
    pub fn samples(&self, step: usize) -> Option<&[f32]> {
        self.samples.as_ref().filter(|(at, _)| *at == step).map(|(_, samples)| samples.as_slice())
    }

    /// Whether samples are scored after a step.
    fn scores_are_due(&self, step: usize) -> bool {
        let (every, evaluate_every) = (self.settings.evaluation.score_every, self.settings.training.evaluate_every);
        if step >= self.settings.training.steps {
            return true;
        }
        // Evaluations come only so often: the first one at or after the step counts.
        every > 0 && step > 0 && (step / every) > (step.saturating_sub(evaluate_every) / every)
    }
}

/// Losses of a batch, one an image.
pub fn batch_losses<B: FusedOps>(
    model: &Dit<B>,
    process: &Diffusion,
    batch: NoisedBatch,
    device: &B::Device,
) -> Losses<B> {
    let NoisedBatch { images, noise, steps, labels, shape } = batch;
    let (images, noise) = (image_tensor(images, shape, device), image_tensor(noise, shape, device));
    let noised = process.noised(images.clone(), noise.clone(), &steps);
    let output = model.forward(noised.clone(), &process.model_steps(&steps), &labels);
    process.losses(output, images, noise, noised, &steps)
}

/// Sums over the images of a batch: squared error, bound, images.
type Sums = [f64; 3];

/// Mean squared error and bound over all held-out images, and the squared error of each noise level.
pub struct HeldOutLosses {
    /// Over all levels.
    pub mse: f64,
    /// The bound, where variances are learned.
    pub bound: Option<f64>,
    /// Squared error by noise level, little noise first.
    pub levels: Vec<f64>,
}

/// Held-out losses of a model.
pub fn held_out_losses<B: FusedOps>(
    model: &Dit<B>,
    process: &Diffusion,
    held_out: &HeldOut,
    device: &B::Device,
) -> HeldOutLosses {
    let sums_of = |model: &Dit<B>, index: usize| -> (usize, Sums) {
        let (level, batch) = held_out.draw(index);
        let rows = batch.rows() as f64;
        let losses = batch_losses(model, process, batch, device);
        let sum = |values: Tensor<B, 1>| values.into_data().iter::<f64>().sum::<f64>();
        (level, [sum(losses.mse), losses.vb.map_or(f64::NAN, sum), rows])
    };
    // Where kernels run on the cores, batches share them; a GPU takes one after another.
    let batches = 0..held_out.batches();
    let sums: Vec<(usize, Sums)> = if B::fused(DType::F32) {
        batches.into_par_iter().map_with(model.clone(), |model, index| sums_of(model, index)).collect()
    } else {
        batches.map(|index| sums_of(model, index)).collect()
    };
    let mut levels = vec![[0.0; 3]; held_out.levels];
    for (level, sums) in sums {
        for (total, part) in levels[level].iter_mut().zip(sums) {
            *total += part;
        }
    }
    let total = |i: usize| levels.iter().map(|sums| sums[i]).sum::<f64>();
    let images = total(2);
    let bound = total(1) / images;
    HeldOutLosses {
        mse: total(0) / images,
        bound: (!bound.is_nan() || model.config().learn_sigma).then_some(bound),
        levels: levels.iter().map(|[mse, _, images]| mse / images).collect(),
    }
}

impl<B> Task<B, Dit<B>> for Denoising<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Batch = NoisedBatch;

    fn batches(&mut self, step: usize) -> Result<Vec<NoisedBatch>, TrainError> {
        let accumulation = self.settings.accumulation();
        let first = step * accumulation;
        let draw = |index: usize| {
            let mut rng = training::seed::stream(self.settings.seed, "training noise", index as u64);
            NoisedBatch::draw(self.plan.batch(index as u64), &self.settings.model, &mut rng)
        };
        Ok((first..first + accumulation).map(draw).collect())
    }

    fn weight(&self, batch: &NoisedBatch) -> f64 {
        batch.rows() as f64
    }

    fn loss(&self, model: &Dit<B>, batch: NoisedBatch) -> Result<Tensor<B, 1>, TrainError> {
        Ok(batch_losses(model, &self.process, batch, &self.device).total().mean())
    }

    fn evaluate(
        &mut self,
        model: &<Dit<B> as AutodiffModule<B>>::InnerModule,
        step: usize,
    ) -> Result<Vec<(String, f64)>, TrainError> {
        let losses = held_out_losses(model, &self.process, &self.held_out, &self.device);
        let averaged = held_out_losses(self.average.model(), &self.process, &self.held_out, &self.device);
        let mut values = vec![(metric::LOSS.to_owned(), losses.mse), (metric::AVERAGE_LOSS.to_owned(), averaged.mse)];
        values.extend(losses.bound.map(|bound| (metric::BOUND.to_owned(), bound)));
        values.extend(losses.levels.iter().enumerate().map(|(i, mse)| (format!("{}{i}", metric::LEVEL), *mse)));
        let growth = growth(model, &self.process, &self.held_out, &self.device);
        values.extend(growth.map(|growth| (metric::STREAM_GROWTH.to_owned(), growth)));
        if let Some(judge) = self.judge.clone()
            && self.scores_are_due(step)
        {
            let (samples, scores) =
                judge.judge(self.average.model(), &self.settings, &self.device).map_err(TrainError::task)?;
            self.samples = Some((step, samples));
            // Samples that are not finite have no scores; the loss says how the run goes on.
            values.extend(scores.iter().flat_map(SampleScores::metrics));
        }
        Ok(values)
    }

    fn observe(&mut self, model: &Dit<B>, gradients: &GradientsParams, _step: usize) -> Vec<(String, f64)> {
        let connections = model.connections();
        let mut values = Vec::new();
        if !connections.arm().is_learned() {
            return values;
        }
        if let Some(entropies) = connections.entropies().filter(|e| !e.is_empty()) {
            values.push((metric::CONNECTION_ENTROPY.to_owned(), plotting::mean(&entropies)));
        }
        if let Some(norm) = connections.theta_gradient_norm(gradients) {
            values.push((metric::THETA_GRADIENT_NORM.to_owned(), norm));
        }
        values
    }

    fn after_update(&mut self, model: &Dit<B>, _step: usize) -> Result<(), TrainError> {
        self.average.update(model);
        Ok(())
    }

    fn state(&self) -> Result<TaskState, TrainError> {
        Ok(TaskState { tensors: self.average.export(), ..TaskState::default() })
    }

    fn restore(&mut self, state: TaskState) -> Result<(), TrainError> {
        self.average.import(state.tensors).map_err(TrainError::task)
    }
}

/// Growth of the stream over the blocks, on the first held-out batch of the middle noise level.
fn growth<B: FusedOps>(model: &Dit<B>, process: &Diffusion, held_out: &HeldOut, device: &B::Device) -> Option<f64> {
    let middle = held_out.levels / 2 * (held_out.batches() / held_out.levels.max(1));
    if middle >= held_out.batches() {
        return None;
    }
    let (_, batch) = held_out.draw(middle);
    let images = image_tensor::<B>(batch.images, batch.shape, device);
    let noised = process.noised(images, image_tensor(batch.noise, batch.shape, device), &batch.steps);
    let seen = model.observe(noised, &process.model_steps(&batch.steps), &batch.labels);
    seen.growth.last().copied()
}
