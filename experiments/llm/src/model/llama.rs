//! The whole model.

use ancre::Connections;
use burn::{
    module::Module,
    tensor::{Int, Tensor, backend::Backend},
};
use experiment_kit::Connected;
use fused_ops::{FusedOps, RotaryTable};

use super::{
    Drawn, LlamaConfig, ModelError, Pass, Weights,
    layers::{DecoderLayer, Norm, Projection, TokenEmbedding},
    pass::Ended,
    rotary_frequencies,
};

/// A LLaMA whose layers are followed by connections.
#[derive(Module, Debug)]
pub struct Llama<B: Backend> {
    pub(super) embed_tokens: TokenEmbedding<B>,
    pub(super) layers: Vec<DecoderLayer<B>>,
    pub(super) norm: Norm<B>,
    /// None where the matrix of the embeddings is that of the head.
    pub(super) lm_head: Option<Projection<B>>,
    pub(super) connections: Connections<B>,
    pub(super) rotary: RotaryTable<B>,
    pub(super) heads: usize,
    pub(super) head_size: usize,
}

/// What a forward pass shows besides its logits.
#[derive(Clone, Debug)]
pub struct Observation<B: Backend> {
    /// Inputs of the layers (`h_0 .. h_{K-1}`) and the last state `h_K`, each `[batch * length, width]`.
    pub states: Vec<Tensor<B, 2>>,
    /// The last state after the final normalisation.
    pub normed: Tensor<B, 2>,
    /// Root mean square of each state relative to `h_0`.
    pub growth: Vec<f64>,
}

impl<B: FusedOps> Llama<B> {
    /// A model with initial weights that depend on the seed and the sizes, and not on the arm.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(config: &LlamaConfig, seed: u64, device: &B::Device) -> Result<Self, ModelError> {
        let embedding_std = config.variant.embedding_std.unwrap_or(config.init_std);
        Self::with_weights(config, &mut Drawn { seed, std: config.init_std, embedding_std }, device)
    }

    /// A model with weights from a source that is asked for one after another. Connections begin as their arm does.
    ///
    /// # Errors
    /// If the configuration is not valid, or the source has not what it asks for.
    pub fn with_weights<W: Weights>(
        config: &LlamaConfig,
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        config.validate()?;
        let frequencies = rotary_frequencies(config.head_size(), config.rotary_base, config.variant.rotary_scaling);
        let head = [config.width, config.vocabulary];
        Ok(Self {
            embed_tokens: TokenEmbedding::new("model.embed_tokens", config, weights, device)?,
            layers: (0..config.layers)
                .map(|l| DecoderLayer::new(&format!("model.layers.{l}"), config, weights, device))
                .collect::<Result<_, _>>()?,
            norm: Norm::new("model.norm", config, weights, device)?,
            lm_head: match config.variant.tied_head {
                true => None,
                false => Some(Projection::new("lm_head", head, weights, device)?),
            },
            connections: config.connections().init(device).map_err(ModelError::from)?,
            rotary: RotaryTable::with_frequencies(config.positions, &frequencies, device),
            heads: config.heads,
            head_size: config.head_size(),
        })
    }

    /// Logits of the next token, `[batch * length, vocabulary]`, for tokens `[batch, length]`.
    ///
    /// # Panics
    /// Where sequences are longer than the model's positions; callers check lengths when they make batches.
    pub fn forward(&self, tokens: Tensor<B, 2, Int>) -> Tensor<B, 2> {
        self.head(self.end(self.to_the_end(self.begin(tokens))).normed)
    }

    /// The states of a forward pass.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn observe(&self, tokens: Tensor<B, 2, Int>) -> Observation<B> {
        let Ended { normed, states, history } = self.end(self.to_the_end(self.begin_observed(tokens)));
        Observation { states, normed, growth: history.growth() }
    }

    /// Goes through all layers that are left.
    pub fn to_the_end(&self, pass: Pass<B>) -> Pass<B> {
        (pass.layer()..self.depth()).fold(pass, |pass, _| self.advance(pass))
    }

    /// Mean cross-entropy in nats over the targets that count, `[1]`; `targets` is `[batch, length]`, see
    /// [`fused_ops::IGNORE_TARGET`].
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn loss(&self, tokens: Tensor<B, 2, Int>, targets: Tensor<B, 2, Int>) -> Tensor<B, 1> {
        let [batch, length] = targets.dims();
        fused_ops::cross_entropy(self.forward(tokens), targets.reshape([batch * length]))
    }
}

impl<B: Backend> Connected<B> for Llama<B> {
    fn connections(&self) -> &Connections<B> {
        &self.connections
    }

    fn with_connections(mut self, connections: Connections<B>) -> Self {
        self.connections = connections;
        self
    }
}

impl<B: Backend> Llama<B> {
    /// Longest sequence the model takes.
    pub fn positions(&self) -> usize {
        self.rotary.positions()
    }
}
