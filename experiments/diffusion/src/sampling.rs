//! Drawing samples from a model.

use burn::tensor::{DType, Tensor};
use fused_ops::FusedOps;
use gaussian_diffusion::{Diffusion, RespacingError, Tables, Variance};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::{
    data::{image_tensor, normal},
    model::{Dit, DitConfig},
    settings::{Sampler, SamplingSettings},
};

/// Which samples to draw: one for each label. Sample number `first + i` has a random stream of its own, so that it does not
/// depend on how many are drawn with it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Seed of all of them.
    pub seed: u64,
    /// Number of the first.
    pub first: u64,
    /// Their classes.
    pub labels: &'a [u32],
    /// How many go through the model at once.
    pub batch: usize,
}

/// The process that samples are drawn with.
///
/// # Errors
/// If the steps cannot be chosen.
pub fn sampling_process(model: &DitConfig, settings: &SamplingSettings) -> Result<Diffusion, RespacingError> {
    let variance = if model.learn_sigma { Variance::Learned } else { Variance::FixedLarge };
    Ok(Diffusion::new(Tables::dit(&settings.steps)?, variance))
}

/// Labels for `count` samples that go through the classes in turn, so that all have equally many.
pub fn labels_in_turn(count: usize, classes: usize) -> Vec<u32> {
    (0..count).map(|i| (i % classes.max(1)) as u32).collect()
}

/// Samples `[labels, channels, size, size]`; pictures are in about -1..1. `tick` is called with the number of samples that
/// have been finished, from any thread.
///
/// # Errors
/// If the sampler's steps cannot be chosen.
pub fn draw<B: FusedOps>(
    model: &Dit<B>,
    settings: &SamplingSettings,
    wanted: Wanted<'_>,
    device: &B::Device,
    tick: &(dyn Fn(usize) + Sync),
) -> Result<Vec<f32>, RespacingError> {
    let process = sampling_process(model.config(), settings)?;
    let batches: Vec<(u64, &[u32])> = wanted
        .labels
        .chunks(wanted.batch.max(1))
        .enumerate()
        .map(|(i, labels)| (wanted.first + (i * wanted.batch.max(1)) as u64, labels))
        .collect();
    let draw = |model: &Dit<B>, (first, labels): (u64, &[u32])| {
        let samples = draw_batch(model, &process, settings, wanted.seed, first, labels, device);
        tick(labels.len());
        samples
    };
    // Where kernels run on the cores, batches share them; a GPU takes one after another.
    let samples: Vec<Vec<f32>> = if B::fused(DType::F32) {
        batches.into_par_iter().map_with(model.clone(), |model, batch| draw(model, batch)).collect()
    } else {
        batches.into_iter().map(|batch| draw(model, batch)).collect()
    };
    Ok(samples.concat())
}

fn draw_batch<B: FusedOps>(
    model: &Dit<B>,
    process: &Diffusion,
    settings: &SamplingSettings,
    seed: u64,
    first: u64,
    labels: &[u32],
    device: &B::Device,
) -> Vec<f32> {
    let config = model.config();
    let shape = [config.channels, config.size, config.size];
    let values = shape.iter().product();
    let mut streams: Vec<ChaCha8Rng> =
        (0..labels.len()).map(|i| training::seed::stream(seed, "samples", first + i as u64)).collect();
    let mut noise = || -> Tensor<B, 4> {
        let values: Vec<f32> = streams.iter_mut().flat_map(|rng| normal(rng, values)).collect();
        image_tensor(values, shape, device)
    };
    let mut sample = noise();
    for step in (0..process.steps()).rev() {
        let times = vec![process.tables().timestep_map[step]; labels.len()];
        let output = model.forward_guided(sample.clone(), &times, labels, settings.guidance, settings.guided);
        sample = match settings.sampler {
            Sampler::Ddpm => process.ddpm_step(output, sample, step, noise(), settings.clip),
            Sampler::Ddim => process.ddim_step(output, sample, step, noise(), settings.eta, settings.clip),
        }
        .sample;
    }
    sample.into_data().iter::<f32>().collect()
}
