//! Text from a prompt.

use anyhow::{Result, bail};
use burn::tensor::{Int, Tensor, TensorData};
use datasets::text::{SpecialTokens, Tokenizer};
use fused_ops::FusedOps;
use rand::RngExt;

use crate::model::Llama;

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Tokens to write.
    pub tokens: usize,
    /// Divides the logits; 0 takes the likeliest token.
    pub temperature: f64,
    /// Seed of the choices.
    pub seed: u64,
}

/// The prompt and its continuation, which ends early at an end of text. The model sees the last tokens that fit into its
/// positions; there is no cache, so the time is that of one forward pass a token.
///
/// # Errors
/// If the prompt gives no token, or the tokenizer does not fit the model.
pub fn generate<B: FusedOps>(
    model: &Llama<B>,
    tokenizer: &Tokenizer,
    prompt: &str,
    sampling: Sampling,
    device: &B::Device,
) -> Result<String> {
    let mut ids = tokenizer.encode(prompt)?;
    if ids.is_empty() {
        // A text begins after the end of another.
        match tokenizer.end_of_text() {
            Some(id) => ids.push(id),
            None => bail!("the prompt gives no token: give --prompt some text"),
        }
    }
    let mut rng = training::seed::stream(sampling.seed, "generate", 0);
    for _ in 0..sampling.tokens {
        let window = &ids[ids.len().saturating_sub(model.positions())..];
        let tokens: Vec<i32> = window.iter().map(|&id| id as i32).collect();
        let length = tokens.len();
        let tokens = Tensor::<B, 2, Int>::from_data(TensorData::new(tokens, [1, length]), device);
        let logits = model.forward(tokens).narrow(0, length - 1, 1);
        // A model may have more entries than the tokenizer has tokens.
        let logits: Vec<f64> = logits.into_data().iter::<f64>().take(tokenizer.vocabulary_size()).collect();
        let next = choose(&logits, sampling.temperature, rng.random());
        if Some(next) == tokenizer.end_of_text() {
            break;
        }
        ids.push(next);
    }
    Ok(tokenizer.decode(&ids, SpecialTokens::Skip)?)
}

/// The token at `quantile` (in `0..1`) of the softmax of `logits / temperature`.
fn choose(logits: &[f64], temperature: f64, quantile: f64) -> u32 {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let likeliest = logits.iter().position(|&l| l == largest).unwrap_or(0);
    if temperature == 0.0 {
        return likeliest as u32;
    }
    let weights: Vec<f64> = logits.iter().map(|l| ((l - largest) / temperature).exp()).collect();
    let mut left = quantile * weights.iter().sum::<f64>();
    for (token, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return token as u32;
        }
    }
    likeliest as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_chosen_by_their_share() {
        let logits = [0.0, f64::ln(3.0), f64::NEG_INFINITY];
        assert_eq!([0.0, 0.2, 0.3, 0.999].map(|q| choose(&logits, 1.0, q)), [0, 0, 1, 1]);
        assert_eq!(choose(&logits, 0.0, 0.0), 1);
        assert_eq!(choose(&[1000.0, 0.0], 0.01, 0.999), 0);
    }
}
