//! Each block left out in turn, and what that changes.

use burn::tensor::{DType, Tensor, backend::Backend};
use datasets::text::{Batch, IGNORE};
use fused_ops::FusedOps;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::{data::tensors, model::Llama};

/// What leaving one block out changes: means over the places whose next token is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// `|h' - h| / |h|` of the last hidden state `h`, after the final normalisation.
    pub hidden: f64,
    /// Cosine of the angle between `h'` and `h`.
    pub cosine: f64,
    /// Kullback-Leibler divergence of the distribution of the next token from that of the whole model, in nats.
    pub divergence: f64,
    /// Share of the places where another token is the likeliest.
    pub top1_changed: f64,
    /// Cross-entropy of the next token minus that of the whole model, in nats a token.
    pub loss: f64,
}

/// What every block of a model does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Utilisation {
    /// Places that were measured.
    pub places: u64,
    /// Cross-entropy of the whole model, in nats a token.
    pub loss: f64,
    /// What leaving out changes, for each block in turn.
    pub blocks: Vec<Change>,
}

/// Why there is nothing to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MeasureError {
    /// No token has a successor.
    #[error("the text has no token to predict: give a longer one")]
    NoPlaces,
    /// The whole model already fails.
    #[error("the model's outputs are not finite: it has diverged, or its weights are damaged")]
    NotFinite,
}

/// Whether one batch of a model of so many parameters keeps all cores busy.
pub fn is_large(parameters: u64) -> bool {
    parameters >= 1 << 24
}

/// Leaves each block out in turn. Blocks before the one that is left out are gone through once for all. `progress` is called
/// after each block of each batch, from any thread.
///
/// # Errors
/// If there is nothing to measure, or the model's outputs are not finite.
pub fn measure<B: FusedOps>(
    model: &Llama<B>,
    parameters: u64,
    batches: &[Batch],
    device: &B::Device,
    progress: impl Fn() + Sync,
) -> Result<Utilisation, MeasureError> {
    let of_batch = |model: &mut Llama<B>, batch: &Batch| sums(model, batch, device, &progress);
    // As an evaluation does: small models share the cores batch by batch.
    let all: Vec<Sums> = if B::fused(DType::F32) && !is_large(parameters) {
        batches.par_iter().map_with(model.clone(), of_batch).collect()
    } else {
        let mut model = model.clone();
        batches.iter().map(|batch| of_batch(&mut model, batch)).collect()
    };
    let mut total = Sums::new(model.depth());
    // In their order, so that the number of threads changes nothing.
    all.iter().for_each(|sums| total.add(sums));
    if total.places == 0 {
        return Err(MeasureError::NoPlaces);
    }
    if !total.loss.is_finite() {
        return Err(MeasureError::NotFinite);
    }
    let places = total.places as f64;
    let mean = |sums: &[f64; 5]| {
        let [hidden, cosine, divergence, top1_changed, loss] = sums.map(|sum| sum / places);
        Change { hidden, cosine, divergence, top1_changed, loss }
    };
    Ok(Utilisation { places: total.places, loss: total.loss / places, blocks: total.blocks.iter().map(mean).collect() })
}

/// Sums over places.
struct Sums {
    places: u64,
    loss: f64,
    /// In the order of the fields of [`Change`].
    blocks: Vec<[f64; 5]>,
}

impl Sums {
    fn new(depth: usize) -> Self {
        Self { places: 0, loss: 0.0, blocks: vec![[0.0; 5]; depth] }
    }

    fn add(&mut self, other: &Self) {
        self.places += other.places;
        self.loss += other.loss;
        for (sums, others) in self.blocks.iter_mut().zip(&other.blocks) {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
    }
}

fn sums<B: FusedOps>(model: &Llama<B>, batch: &Batch, device: &B::Device, progress: &(impl Fn() + Sync)) -> Sums {
    let depth = model.depth();
    let mut sums = Sums::new(depth);
    let targets: Vec<(usize, usize)> = (0..).zip(&batch.targets).filter_map(target).collect();
    if targets.is_empty() {
        (0..depth).for_each(|_| progress());
        return sums;
    }
    let (inputs, _) = tensors::<B>(batch, device);
    let whole = Outputs::new(model, model.finish(model.to_the_end(model.begin(inputs.clone()))));
    sums.places = targets.len() as u64;
    sums.loss = targets.iter().map(|&(place, target)| whole.at(place).loss(target)).sum();
    let mut pass = model.begin(inputs);
    for (block, sums) in sums.blocks.iter_mut().enumerate() {
        let without = model.to_the_end(model.pass_over(pass.clone()));
        let without = Outputs::new(model, model.finish(without));
        let changes: Vec<[f64; 5]> =
            targets.par_iter().map(|&(place, target)| whole.at(place).change(&without.at(place), target)).collect();
        for change in &changes {
            sums.iter_mut().zip(change).for_each(|(sum, value)| *sum += value);
        }
        if block + 1 < depth {
            pass = model.advance(pass);
        }
        progress();
    }
    sums
}

/// A place and its target, if it has one.
fn target((place, &target): (usize, &i32)) -> Option<(usize, usize)> {
    if target == IGNORE { None } else { usize::try_from(target).ok().map(|target| (place, target)) }
}

/// What a model gives for a batch.
struct Outputs {
    hidden: Vec<f32>,
    logits: Vec<f32>,
    /// Of each place.
    log_sums: Vec<f64>,
    width: usize,
    vocabulary: usize,
}

impl Outputs {
    fn new<B: FusedOps>(model: &Llama<B>, normed: Tensor<B, 2>) -> Self {
        let logits = model.head(normed.clone());
        let ([_, width], [_, vocabulary]) = (normed.dims(), logits.dims());
        let logits = values(logits);
        let log_sums = logits.par_chunks(vocabulary).map(log_sum).collect();
        Self { hidden: values(normed), logits, log_sums, width, vocabulary }
    }

    fn at(&self, place: usize) -> Output<'_> {
        Output {
            hidden: &self.hidden[place * self.width..][..self.width],
            logits: &self.logits[place * self.vocabulary..][..self.vocabulary],
            log_sum: self.log_sums[place],
        }
    }
}

fn values<B: Backend>(tensor: Tensor<B, 2>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.into_vec().expect("it was converted to f32")
}

/// What a model gives at one place.
struct Output<'a> {
    hidden: &'a [f32],
    logits: &'a [f32],
    log_sum: f64,
}

/// Logarithm of the sum of the exponentials.
fn log_sum(logits: &[f32]) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    largest + logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum::<f64>().ln()
}

impl Output<'_> {
    /// Cross-entropy of a target, in nats.
    fn loss(&self, target: usize) -> f64 {
        self.log_sum - f64::from(self.logits[target])
    }

    fn likeliest(&self) -> usize {
        let mut best = 0;
        for (token, logit) in self.logits.iter().enumerate() {
            if *logit > self.logits[best] {
                best = token;
            }
        }
        best
    }

    /// The numbers of a [`Change`] from `self` to `other`.
    fn change(&self, other: &Self, target: usize) -> [f64; 5] {
        let (mut apart, mut size, mut other_size, mut product) = (0.0, 0.0, 0.0, 0.0);
        for (&h, &o) in self.hidden.iter().zip(other.hidden) {
            let (h, o) = (f64::from(h), f64::from(o));
            apart += (o - h) * (o - h);
            size += h * h;
            other_size += o * o;
            product += h * o;
        }
        let mut divergence = 0.0;
        for (&p, &q) in self.logits.iter().zip(other.logits) {
            let (p, q) = (f64::from(p) - self.log_sum, f64::from(q) - other.log_sum);
            divergence += p.exp() * (p - q);
        }
        [
            (apart / size).sqrt(),
            product / (size.sqrt() * other_size.sqrt()),
            // Rounding can take it below zero.
            divergence.max(0.0),
            f64::from(u8::from(self.likeliest() != other.likeliest())),
            other.loss(target) - self.loss(target),
        ]
    }
}

#[cfg(test)]
mod tests;
