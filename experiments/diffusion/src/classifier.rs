//! The feature extractor of the scores: a small convolutional classifier, trained on the same images.

use burn::{
    module::{AutodiffModule, Module, Param},
    optim::GradientsParams,
    tensor::{
        Int, Tensor, TensorData,
        activation::gelu,
        backend::{AutodiffBackend, Backend},
        module::{adaptive_avg_pool2d, conv2d},
        ops::ConvOptions,
    },
};
use datasets::images::{ImagePlan, ImageSet};
use fused_ops::FusedOps;
use rand_distr::{Distribution, StandardNormal};
use training::{
    optimizer::{Optimizer, OptimizerSettings},
    schedule::{Schedule, Warmup},
};

use crate::data::image_tensor;

/// Channels of the three convolutions.
const CHANNELS: [usize; 3] = [16, 32, 64];
/// Height and width that the last map is averaged to.
const POOLED: usize = 2;
/// Features of the layer before the classes.
pub const FEATURES: usize = 64;
/// Channels of the last map that make up the spatial features, as in ADM's evaluation.
const SPATIAL_CHANNELS: usize = 7;
/// Images of a training step, and how they are trained on.
const BATCH: usize = 64;
const EPOCHS: f64 = 20.0;
const MOST_STEPS: usize = 2000;
const LEARNING_RATE: f64 = 3e-3;

/// A convolution of 3 x 3 with padding 1.
#[derive(Module, Debug)]
struct Convolution<B: Backend> {
    weight: Param<Tensor<B, 4>>,
    bias: Param<Tensor<B, 1>>,
    stride: usize,
}

/// An affine map; the weight is `[inputs, outputs]`.
#[derive(Module, Debug)]
struct Affine<B: Backend> {
    weight: Param<Tensor<B, 2>>,
    bias: Param<Tensor<B, 1>>,
}

/// Normal numbers with the variance `2 / inputs` (He et al. 2015).
fn he<const D: usize, B: Backend>(
    seed: u64,
    name: &str,
    dims: [usize; D],
    inputs: usize,
    device: &B::Device,
) -> Param<Tensor<B, D>> {
    let (count, std) = (dims.iter().product(), (2.0 / inputs as f64).sqrt());
    let rng = training::seed::stream(seed, name, 0);
    let values: Vec<f32> =
        Distribution::<f64>::sample_iter(StandardNormal, rng).take(count).map(|z| (z * std) as f32).collect();
    Param::from_tensor(Tensor::from_data(TensorData::new(values, dims), device))
}

impl<B: Backend> Convolution<B> {
    fn new(seed: u64, name: &str, [inputs, outputs]: [usize; 2], stride: usize, device: &B::Device) -> Self {
        Self {
            weight: he(seed, name, [outputs, inputs, 3, 3], 9 * inputs, device),
            bias: Param::from_tensor(Tensor::zeros([outputs], device)),
            stride,
        }
    }

    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let options = ConvOptions::new([self.stride; 2], [1; 2], [1; 2], 1);
        gelu(conv2d(x, self.weight.val(), Some(self.bias.val()), options))
    }
}

impl<B: Backend> Affine<B> {
    fn new(seed: u64, name: &str, sizes: [usize; 2], device: &B::Device) -> Self {
        let bias = Param::from_tensor(Tensor::zeros([sizes[1]], device));
        Self { weight: he(seed, name, sizes, sizes[0], device), bias }
    }

    fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        x.matmul(self.weight.val()) + self.bias.val().unsqueeze()
    }
}

/// Three convolutions, an average over quarters of the image, two affine maps.
#[derive(Module, Debug)]
pub struct Classifier<B: Backend> {
    first: Convolution<B>,
    second: Convolution<B>,
    third: Convolution<B>,
    features: Affine<B>,
    classes: Affine<B>,
}

/// What a classifier sees in a batch of images.
#[derive(Clone, Debug)]
pub struct Seen<B: Backend> {
    /// The layer before the classes, `[batch, 64]`.
    pub features: Tensor<B, 2>,
    /// Seven channels of the last map, averaged to 2 x 2, `[batch, 28]`.
    pub spatial: Tensor<B, 2>,
    /// Scores of the classes before their softmax, `[batch, classes]`.
    pub logits: Tensor<B, 2>,
}

impl<B: Backend> Classifier<B> {
    /// A classifier before training.
    pub fn new(seed: u64, channels: usize, classes: usize, device: &B::Device) -> Self {
        let [a, b, c] = CHANNELS;
        Self {
            first: Convolution::new(seed, "classifier.first", [channels, a], 1, device),
            second: Convolution::new(seed, "classifier.second", [a, b], 2, device),
            third: Convolution::new(seed, "classifier.third", [b, c], 2, device),
            features: Affine::new(seed, "classifier.features", [c * POOLED * POOLED, FEATURES], device),
            classes: Affine::new(seed, "classifier.classes", [FEATURES, classes], device),
        }
    }

    /// What it sees in images `[batch, channels, size, size]`.
    pub fn forward(&self, images: Tensor<B, 4>) -> Seen<B> {
        let map = self.third.forward(self.second.forward(self.first.forward(images)));
        let pooled = adaptive_avg_pool2d(map, [POOLED; 2]);
        let batch = pooled.dims()[0];
        let spatial = pooled.clone().narrow(1, 0, SPATIAL_CHANNELS);
        let features = gelu(self.features.forward(pooled.reshape([batch, CHANNELS[2] * POOLED * POOLED])));
        Seen {
            spatial: spatial.reshape([batch, SPATIAL_CHANNELS * POOLED * POOLED]),
            logits: self.classes.forward(features.clone()),
            features,
        }
    }
}

/// Trains a classifier; the same images give the same one, whatever the seeds of the runs. `tick` is called after each step
/// with its number and that of all.
///
/// # Errors
/// If the images make no batches.
pub fn train<B>(
    images: &std::sync::Arc<ImageSet>,
    device: &B::Device,
    tick: &mut dyn FnMut(usize, usize),
) -> anyhow::Result<Classifier<B::InnerBackend>>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    const SEED: u64 = 0;
    let [channels, ..] = images.shape();
    let mut model = Classifier::<B>::new(SEED, channels, images.classes(), device);
    let plan = ImagePlan::new(std::sync::Arc::clone(images), BATCH.min(images.len() as usize), SEED, false)?;
    let steps = ((f64::from(images.len()) * EPOCHS / BATCH as f64).ceil() as usize).clamp(1, MOST_STEPS);
    let mut optimizer = Optimizer::<B>::new(OptimizerSettings::default())?;
    let (schedule, warmup) = (Schedule::default(), Warmup::from_zero(steps / 20));
    for step in 0..steps {
        let batch = plan.batch(step as u64);
        let targets: Vec<i32> = batch.labels.iter().map(|&label| label as i32).collect();
        let targets = Tensor::<B, 1, Int>::from_data(TensorData::new(targets, [batch.rows]), device);
        let logits = model.forward(image_tensor(batch.images, batch.shape, device)).logits;
        let loss = fused_ops::cross_entropy(logits, targets);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(model, gradients, LEARNING_RATE * schedule.multiplier(step + 1, warmup, steps));
        tick(step + 1, steps);
    }
    Ok(model.valid())
}
