//! What a language-model run supplies to the training loop.

use std::sync::Arc;

use burn::{
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{DType, Tensor, backend::AutodiffBackend, backend::Backend},
};
use datasets::text::{Batch, BatchPlan, TextError, bits_per_byte};
use experiment_kit::{Connected, RunSettings};
use fused_ops::FusedOps;
use rayon::prelude::*;
use training::trainer::{Task, TrainError};

use crate::{
    data::{TextData, tensors},
    model::Llama,
    settings::Settings,
};

/// Next-token prediction on the rows of a [`TextData`].
#[derive(Debug)]
pub struct LanguageModelling<B: Backend> {
    plan: BatchPlan,
    accumulation: usize,
    held_out: Arc<Vec<Batch>>,
    device: B::Device,
}

impl<B: Backend> LanguageModelling<B> {
    /// The task of a run; the order of the rows follows from the seed.
    ///
    /// # Errors
    /// If a micro-batch has no rows.
    pub fn new(settings: &Settings, data: &TextData, device: &B::Device) -> Result<Self, TextError> {
        Ok(Self {
            plan: BatchPlan::new(Arc::clone(&data.train), settings.data.micro_batch, settings.seed)?,
            accumulation: settings.accumulation(),
            held_out: Arc::clone(&data.held_out),
            device: device.clone(),
        })
    }
}

/// Names of the held-out numbers, as they stand in `metrics.jsonl`.
pub mod metric {
    /// Mean cross-entropy over all held-out targets, in nats a token.
    pub const LOSS: &str = "held_out_loss";
    /// `exp` of [`LOSS`].
    pub const PERPLEXITY: &str = "held_out_perplexity";
    /// Total cross-entropy in nats over the bytes of the text that the targets stand for.
    pub const NATS_PER_BYTE: &str = "held_out_nats_per_byte";
    /// The same in bits.
    pub const BITS_PER_BYTE: &str = "held_out_bits_per_byte";
    /// The authors' number: the sum of the batches' means over one more than there are batches, so biased low.
    pub const AUTHORS_LOSS: &str = "authors_loss";
    /// `exp` of [`AUTHORS_LOSS`].
    pub const AUTHORS_PERPLEXITY: &str = "authors_perplexity";
    /// Root mean square of the last state relative to the embeddings, on the first held-out batch.
    pub const STREAM_GROWTH: &str = "stream_growth";
    /// Mean entropy of the connections' softmaxes that have a choice, in nats.
    pub const CONNECTION_ENTROPY: &str = "connection_entropy";
    /// Euclidean norm of the gradient of the connections' parameters.
    pub const THETA_GRADIENT_NORM: &str = "theta_gradient_norm";
}

/// The authors' evaluation loss: they count one batch more than there is, so it is low by `n / (n + 1)`.
pub fn authors_loss(sum_of_batch_means: f64, batches: usize) -> f64 {
    sum_of_batch_means / (batches + 1) as f64
}

/// Held-out numbers of a model.
///
/// # Errors
/// If there are no held-out targets.
pub fn held_out_metrics<B: FusedOps>(
    model: &Llama<B>,
    batches: &[Batch],
    device: &B::Device,
) -> Result<Vec<(String, f64)>, TrainError> {
    let batches: Vec<&Batch> = batches.iter().filter(|batch| batch.target_tokens > 0).collect();
    let mean_loss = |model: &mut Llama<B>, batch: &&Batch| -> f64 {
        let (inputs, targets) = tensors::<B>(batch, device);
        model.loss(inputs, targets).into_data().iter::<f64>().sum()
    };
    // Where kernels run on the cores, batches share them; a GPU takes one after another.
    let means: Vec<f64> = if B::fused(DType::F32) {
        batches.par_iter().map_with(model.clone(), mean_loss).collect()
    } else {
        batches.iter().map(|batch| mean_loss(&mut model.clone(), batch)).collect()
    };
    let (mut nats, mut tokens, mut bytes) = (0.0, 0u64, 0u64);
    let (mut sum_of_means, mut counted) = (0.0, 0);
    for (batch, mean) in batches.iter().zip(means) {
        nats += mean * batch.target_tokens as f64;
        tokens += batch.target_tokens as u64;
        bytes += batch.target_bytes;
        sum_of_means += mean;
        counted += 1;
    }
    if tokens == 0 {
        return Err(TrainError::task("the held-out rows have no target to predict: give longer held-out texts"));
    }
    let loss = nats / tokens as f64;
    let authors = authors_loss(sum_of_means, counted);
    let growth = match batches.first() {
        Some(batch) => model.observe(tensors::<B>(batch, device).0).growth.last().copied().unwrap_or(1.0),
        None => 1.0,
    };
    let named = [
        (metric::NATS_PER_BYTE, nats / bytes as f64),
        (metric::LOSS, loss),
        (metric::PERPLEXITY, loss.exp()),
        (metric::BITS_PER_BYTE, bits_per_byte(nats, bytes)),
        (metric::AUTHORS_LOSS, authors),
        (metric::AUTHORS_PERPLEXITY, authors.exp()),
        (metric::STREAM_GROWTH, growth),
    ];
    Ok(named.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

impl<B> Task<B, Llama<B>> for LanguageModelling<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Batch = Batch;

    fn batches(&mut self, step: usize) -> Result<Vec<Batch>, TrainError> {
        let first = step * self.accumulation;
        Ok((first..first + self.accumulation).map(|micro| self.plan.batch(micro as u64)).collect())
    }

    fn weight(&self, batch: &Batch) -> f64 {
        batch.target_tokens as f64
    }

    fn loss(&self, model: &Llama<B>, batch: Batch) -> Result<Tensor<B, 1>, TrainError> {
        let (inputs, targets) = tensors::<B>(&batch, &self.device);
        Ok(model.loss(inputs, targets))
    }

    fn evaluate(
        &mut self,
        model: &<Llama<B> as AutodiffModule<B>>::InnerModule,
        _step: usize,
    ) -> Result<Vec<(String, f64)>, TrainError> {
        held_out_metrics(model, &self.held_out, &self.device)
    }

    fn observe(&mut self, model: &Llama<B>, gradients: &GradientsParams, _step: usize) -> Vec<(String, f64)> {
        let connections = model.connections();
        let mut values = Vec::new();
        if !connections.arm().is_learned() {
            return values;
        }
        if let Some(entropies) = connections.entropies().filter(|e| !e.is_empty()) {
            let mean = entropies.iter().sum::<f64>() / entropies.len() as f64;
            values.push((metric::CONNECTION_ENTROPY.to_owned(), mean));
        }
        if let Some(norm) = connections.theta_gradient_norm(gradients) {
            values.push((metric::THETA_GRADIENT_NORM.to_owned(), norm));
        }
        values
    }
}
