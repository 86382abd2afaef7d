//! The whole model.

use ancre::{Connections, History};
use burn::{
    module::Module,
    tensor::{Int, Tensor, backend::Backend},
};
use experiment_kit::Connected;
use fused_ops::{AttentionShape, FusedOps, RotaryTable};

use super::{
    LlamaConfig, ModelError,
    layers::{DecoderLayer, Norm, Projection, TokenEmbedding},
};

/// A LLaMA whose layers are followed by connections.
#[derive(Module, Debug)]
pub struct Llama<B: Backend> {
    embed_tokens: TokenEmbedding<B>,
    layers: Vec<DecoderLayer<B>>,
    norm: Norm<B>,
    lm_head: Projection<B>,
    connections: Connections<B>,
    rotary: RotaryTable<B>,
    heads: usize,
    head_size: usize,
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
        config.validate()?;
        Ok(Self {
            embed_tokens: TokenEmbedding::new("model.embed_tokens", config, seed, device),
            layers: (0..config.layers)
                .map(|l| DecoderLayer::new(&format!("model.layers.{l}"), config, seed, device))
                .collect(),
            norm: Norm::new(config, device),
            lm_head: Projection::new("lm_head", [config.width, config.vocabulary], config, seed, device),
            connections: config.connections().init(device)?,
            rotary: RotaryTable::new(config.positions, config.head_size(), config.rotary_base, device),
            heads: config.heads,
            head_size: config.head_size(),
        })
    }

    /// Logits of the next token, `[batch * length, vocabulary]`, for tokens `[batch, length]`.
    ///
    /// # Panics
    /// Where sequences are longer than the model's positions; callers check lengths when they make batches.
    pub fn forward(&self, tokens: Tensor<B, 2, Int>) -> Tensor<B, 2> {
        let (state, shape) = self.embed(tokens);
        let mut history = self.connections.start(state.clone());
        let state = self.through_layers(state, shape, &mut history, |_| {});
        self.lm_head.forward(self.norm.forward(state))
    }

    /// The states of a forward pass.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn observe(&self, tokens: Tensor<B, 2, Int>) -> Observation<B> {
        let (state, shape) = self.embed(tokens);
        let mut history = self.connections.start(state.clone());
        history.observe_growth();
        let mut states = vec![state.clone()];
        let state = self.through_layers(state, shape, &mut history, |state| states.push(state.clone()));
        Observation { states, normed: self.norm.forward(state), growth: history.growth() }
    }

    /// The last state. `each` sees the states `h_1 .. h_K`; with a rival, what the next layer reads first, and what the network goes
    /// on with.
    fn through_layers(
        &self,
        mut state: Tensor<B, 2>,
        shape: AttentionShape,
        history: &mut History<B, 2>,
        mut each: impl FnMut(&Tensor<B, 2>),
    ) -> Tensor<B, 2> {
        let Some(rival) = self.connections.rival() else {
            for layer in &self.layers {
                state = self.connections.connect(history, layer.forward(state, &self.rotary, shape));
                each(&state);
            }
            return state;
        };
        let mut stream = rival.start(state);
        for (l, layer) in self.layers.iter().enumerate() {
            let scale = rival.norm_scale(2 * l);
            let input = rival.enter(&mut stream);
            if l > 0 {
                each(&self.connections.connect(history, input.clone()));
            }
            rival.leave(&mut stream, layer.attention(input, &self.rotary, shape, scale));
            let input = rival.enter(&mut stream);
            rival.leave(&mut stream, layer.feed_forward(input, scale));
        }
        let state = self.connections.connect(history, rival.finish(stream));
        each(&state);
        state
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

    fn embed(&self, tokens: Tensor<B, 2, Int>) -> (Tensor<B, 2>, AttentionShape) {
        let [batch, length] = tokens.dims();
        let shape = AttentionShape { batch, length, heads: self.heads, head_size: self.head_size };
        (self.embed_tokens.forward(tokens.reshape([batch * length])), shape)
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
