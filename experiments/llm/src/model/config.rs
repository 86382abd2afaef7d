//! The sizes of a model, and what they cost.

use ancre::{Arm, Branches, ConnectionsConfig, ConnectionsError};
use experiment_kit::checks::{self, CheckError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{LlamaVariant, variant::RotaryScalingError};

/// Sizes and constants of a LLaMA with connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlamaConfig {
    /// Entries of the token embedding and of the head; 0 takes the tokenizer's.
    pub vocabulary: usize,
    /// Width of the stream.
    pub width: usize,
    /// Width inside the feed-forward networks.
    pub feed_forward: usize,
    /// Decoder layers, each followed by a connection.
    pub layers: usize,
    /// Attention heads of each layer.
    pub heads: usize,
    /// Longest sequence.
    pub positions: usize,
    /// Base of the rotary embedding's frequencies.
    pub rotary_base: f64,
    /// Added to the mean square in each normalisation.
    pub norm_eps: f64,
    /// Standard deviation of the initial matrices, and of the embeddings where their own is not given.
    pub init_std: f64,
    /// Whether the last embedding row starts at zero and never learns: what `pad_token_id = -1` means in the authors'
    /// configurations.
    pub freeze_last_embedding: bool,
    /// The connections between layers.
    pub arm: Arm,
    /// Temperature of the connections' softmax.
    pub tau: f64,
    /// What the model has that the paper's do not.
    #[serde(default, skip_serializing_if = "LlamaVariant::is_plain")]
    pub variant: LlamaVariant,
}

/// Sizes that no model can have.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// A size is zero or that of no machine, or the heads do not divide the width evenly.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A head has an odd width, which the rotary embedding cannot pair.
    #[error(
        "{heads} heads on a width of {width} are {} features each, and the rotary embedding needs an even number: take {}",
        width / heads,
        suggestions(*width, *heads)
    )]
    OddHeads {
        /// Attention heads.
        heads: usize,
        /// Width of the stream.
        width: usize,
    },
    /// A head size that the rotary embedding cannot pair.
    #[error("the model's head size is {0}: the rotary embedding pairs features, so give an even number")]
    OddHeadSize(usize),
    /// Heads of keys and values that do not serve equally many heads.
    #[error("{key_value_heads} heads of keys and values cannot serve {heads} heads: give one of {fitting}")]
    KeyValueHeads {
        /// Heads of keys and values.
        key_value_heads: usize,
        /// Attention heads.
        heads: usize,
        /// What would work, in words.
        fitting: String,
    },
    /// The rotary embedding is scaled by numbers that make no sense.
    #[error(transparent)]
    RotaryScaling(#[from] RotaryScalingError),
    /// A constant that makes no sense.
    #[error("the model's {0} is {1}: give a positive, finite number")]
    Constant(&'static str, f64),
    /// The connections cannot be made.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
}

/// Numbers of heads near the one asked for that do fit.
fn suggestions(width: usize, heads: usize) -> String {
    // Each head has an even number of features.
    match width.is_multiple_of(2) {
        true => checks::listed(&checks::nearest_divisors(width / 2, heads, 3)),
        false => "an even width".to_owned(),
    }
}

impl LlamaConfig {
    /// Checks that a model of these sizes can be made.
    ///
    /// # Errors
    /// The first [`ModelError`] found.
    pub fn validate(&self) -> Result<(), ModelError> {
        let sizes = [
            ("vocabulary", self.vocabulary),
            ("width", self.width),
            ("feed-forward width", self.feed_forward),
            ("number of layers", self.layers),
            ("number of heads", self.heads),
            ("number of positions", self.positions),
        ];
        checks::positive("the model's ", &sizes)?;
        checks::at_most("the model's ", &sizes, 1 << 24)?;
        let constants = [
            ("rotary base", self.rotary_base),
            ("norm eps", self.norm_eps),
            ("initial standard deviation", self.init_std),
            ("initial standard deviation of the embeddings", self.variant.embedding_std.unwrap_or(self.init_std)),
        ];
        if let Some((name, value)) = constants.into_iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            return Err(ModelError::Constant(name, value));
        }
        let (heads, width) = (self.heads, self.width);
        match self.variant.head_size {
            Some(size) if size == 0 || !size.is_multiple_of(2) || size > 1 << 24 => {
                return Err(ModelError::OddHeadSize(size));
            }
            Some(_) => {}
            None => {
                checks::heads(width, heads, || suggestions(width, heads))?;
                if !(width / heads).is_multiple_of(2) {
                    return Err(ModelError::OddHeads { heads, width });
                }
            }
        }
        let key_value_heads = self.key_value_heads();
        if key_value_heads == 0 || !heads.is_multiple_of(key_value_heads) {
            let fitting = checks::listed(&checks::nearest_divisors(heads, key_value_heads, 3));
            return Err(ModelError::KeyValueHeads { key_value_heads, heads, fitting });
        }
        if let Some(scaling) = self.variant.rotary_scaling {
            scaling.validate()?;
        }
        Ok(self.connections().validate()?)
    }

    /// The configuration of the connections.
    pub fn connections(&self) -> ConnectionsConfig {
        // The attention and the feed-forward network of each layer.
        let branches = Branches { per_block: 2, width: self.width };
        ConnectionsConfig::new(self.layers).with_arm(self.arm.clone()).with_tau(self.tau).with_branches(branches)
    }

    /// Width of one attention head.
    pub fn head_size(&self) -> usize {
        self.variant.head_size.unwrap_or(self.width / self.heads.max(1))
    }

    /// Heads of keys and values.
    pub fn key_value_heads(&self) -> usize {
        self.variant.key_value_heads.unwrap_or(self.heads)
    }

    /// Parameters of the model; the connections' own scalars are counted apart, by
    /// [`ConnectionsConfig::trained_parameters`].
    pub fn parameters(&self) -> u64 {
        let [vocabulary, width, inner, layers] =
            [self.vocabulary, self.width, self.feed_forward, self.layers].map(|size| size as u128);
        let [heads, key_value_heads, head_size] =
            [self.heads, self.key_value_heads(), self.head_size()].map(|size| size as u128);
        let attention = 2 * width * (heads + key_value_heads) * head_size;
        let layer = attention + 3 * width * inner + 2 * width;
        let tables = if self.variant.tied_head { 1 } else { 2 };
        saturate(tables * vocabulary * width + layers * layer + width)
    }

    /// Names and shapes of the parameters that [`parameters`](Self::parameters) counts.
    pub fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (vocabulary, width, inner) = (self.vocabulary, self.width, self.feed_forward);
        let mut shapes = vec![
            ("embed_tokens.weight".to_owned(), vec![vocabulary, width]),
            ("norm.weight".to_owned(), vec![width]),
            ("lm_head.weight".to_owned(), vec![width, vocabulary]),
        ];
        for layer in 0..self.layers {
            let mut add = |part: &str, dims: &[usize]| {
                shapes.push((format!("layers.{layer}.{part}.weight"), dims.to_vec()));
            };
            add("input_layernorm", &[width]);
            add("post_attention_layernorm", &[width]);
            for part in ["q_proj", "k_proj", "v_proj", "o_proj"] {
                add(&format!("self_attn.{part}"), &[width, width]);
            }
            add("mlp.gate_proj", &[width, inner]);
            add("mlp.up_proj", &[width, inner]);
            add("mlp.down_proj", &[inner, width]);
        }
        shapes
    }

    /// Bytes of activations that a training step of `rows` sequences of `length` tokens keeps, in `f32`: what each layer
    /// saves for its backward pass, the states (which the connections share with the layers), logits and their gradient.
    pub fn activation_bytes(&self, rows: usize, length: usize) -> u64 {
        let [rows, length, width, inner, vocabulary, layers, heads] =
            [rows, length, self.width, self.feed_forward, self.vocabulary, self.layers, self.heads].map(|n| n as u128);
        // Two normed inputs, q, k, v, the attention's output, the middle state and the layer's output; gate, up and their
        // product; one log-sum-exp a head.
        let attended = heads * self.head_size() as u128;
        let layer = 4 * width + 4 * attended + 3 * inner + heads;
        let mixed = width; // the layer's output before its connection
        let gradients = 4 * width + 3 * inner; // in flight during the backward pass of one layer
        let rival = self.connections().rival().ok().flatten().map_or(0, |rival| u128::from(rival.kept_per_token()));
        let states = layers * width; // gradients of the states that connections gather
        saturate(4 * rows * length * (layers * (layer + mixed) + states + rival + gradients + 3 * vocabulary))
    }

    /// Bytes that a forward pass without a graph holds at once: the states, one layer's work, and the logits.
    pub fn inference_bytes(&self, rows: usize, length: usize) -> u64 {
        let [rows, length, width, inner, vocabulary, layers] =
            [rows, length, self.width, self.feed_forward, self.vocabulary, self.layers].map(|n| n as u128);
        saturate(4 * rows * length * ((layers + 8) * width + 3 * inner + vocabulary))
    }
}

fn saturate(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RotaryScaling;

    fn config() -> LlamaConfig {
        LlamaConfig {
            vocabulary: 32_000,
            width: 512,
            feed_forward: 1376,
            layers: 8,
            heads: 8,
            positions: 256,
            rotary_base: 10_000.0,
            norm_eps: 1e-6,
            init_std: 0.02,
            freeze_last_embedding: true,
            arm: Arm::default(),
            tau: 0.01,
            variant: LlamaVariant::default(),
        }
    }

    #[test]
    fn the_paper_60m_model_has_58_million_parameters() {
        assert_eq!(config().parameters(), 58_073_600);
        assert_eq!(config().validate(), Ok(()));
    }

    #[test]
    fn the_shapes_are_those_of_the_module() {
        type B = burn::backend::Flex;
        let config = LlamaConfig { vocabulary: 9, width: 8, feed_forward: 12, layers: 2, heads: 2, ..config() };
        let model = crate::model::Llama::<B>::new(&config, 0, &Default::default()).unwrap();
        let mut found: Vec<_> =
            training::parameters::named_parameters(&model).into_iter().map(|info| (info.name, info.shape)).collect();
        found.retain(|(name, _)| !name.starts_with("connections."));
        let mut shapes = config.parameter_shapes();
        found.sort();
        shapes.sort();
        assert_eq!(shapes, found);
    }

    #[test]
    fn impossible_heads_are_answered_with_possible_ones() {
        let message = |heads, width| LlamaConfig { heads, width, ..config() }.validate().unwrap_err().to_string();
        assert_eq!(message(7, 64), "7 heads do not divide a width of 64: take 2, 4 or 8");
        assert!(message(64, 64).contains("1 features each") && message(64, 64).contains("8, 16 or 32"));
        assert!(message(0, 64).contains("number of heads is 0"));
        assert!(message(3, 7).contains("an even width"), "{}", message(3, 7));
    }

    /// Llama 3.2 1B, whose size its makers state as 1.23 billion parameters.
    #[test]
    fn grouped_keys_and_a_tied_head_are_counted() {
        let variant = LlamaVariant { key_value_heads: Some(8), tied_head: true, ..LlamaVariant::default() };
        let sizes = LlamaConfig { vocabulary: 128_256, width: 2048, feed_forward: 8192, layers: 16, ..config() };
        let llama = LlamaConfig { heads: 32, variant, ..sizes };
        assert_eq!((llama.validate(), llama.parameters()), (Ok(()), 1_235_814_400));
    }

    #[test]
    fn a_variant_that_cannot_be_is_refused() {
        let message = |variant| LlamaConfig { variant, ..config() }.validate().unwrap_err().to_string();
        let plain = LlamaVariant::default();
        let message_of = |heads| message(LlamaVariant { key_value_heads: Some(heads), ..plain });
        assert!(message_of(3).contains("one of 1, 2 or 4") && message_of(0).contains("0 heads"), "{}", message_of(3));
        assert!(message(LlamaVariant { head_size: Some(7), ..plain }).contains("head size is 7"));
    }

    /// Settings files and checkpoints of the paper's model say nothing of variants, before and after.
    #[test]
    fn a_plain_model_is_written_as_it_always_was() {
        let plain = toml::to_string(&config()).unwrap();
        assert!(!plain.contains("variant"), "{plain}");
        assert_eq!(toml::from_str::<LlamaConfig>(&plain).unwrap(), config());
        let scaling = RotaryScaling::Linear { factor: 2.0 };
        let variant = LlamaVariant { head_size: Some(6), rotary_scaling: Some(scaling), ..LlamaVariant::default() };
        let other = LlamaConfig { variant, ..config() };
        assert_eq!(toml::from_str::<LlamaConfig>(&toml::to_string(&other).unwrap()).unwrap(), other);
    }
}
