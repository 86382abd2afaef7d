//! A forward pass, layer by layer: the one way through a model, which a caller may leave a layer out of.

use ancre::{History, rivals::Stream};
use burn::tensor::{Int, Tensor, backend::Backend};
use fused_ops::{AttentionShape, FusedOps};

use super::Llama;

/// A forward pass that has come to some layer. A clone goes on by itself; it shares what lies behind it.
#[derive(Clone, Debug)]
pub struct Pass<B: Backend> {
    way: Way<B>,
    history: History<B, 2>,
    shape: AttentionShape,
    /// Layers that lie behind.
    layer: usize,
    /// The states so far, where they were asked for.
    states: Option<Vec<Tensor<B, 2>>>,
}

/// What goes from layer to layer.
#[derive(Clone, Debug)]
enum Way<B: Backend> {
    State(Tensor<B, 2>),
    /// Of another paper's connections, which stand inside the layers.
    Stream(Stream<B, 2>),
}

impl<B: Backend> Pass<B> {
    /// Layers that lie behind.
    pub fn layer(&self) -> usize {
        self.layer
    }
}

/// Keeps a state where they are asked for: with a rival, what the next layer reads first, and what the network goes on with.
fn note<B: Backend>(states: &mut Option<Vec<Tensor<B, 2>>>, state: &Tensor<B, 2>) {
    if let Some(states) = states {
        states.push(state.clone());
    }
}

impl<B: FusedOps> Llama<B> {
    /// Begins a forward pass of tokens `[batch, length]`.
    ///
    /// # Panics
    /// In the first layer, where sequences are longer than the model's positions.
    pub fn begin(&self, tokens: Tensor<B, 2, Int>) -> Pass<B> {
        self.start(tokens, false)
    }

    /// As [`begin`](Self::begin); the pass keeps its states and measures their growth.
    pub(super) fn begin_observed(&self, tokens: Tensor<B, 2, Int>) -> Pass<B> {
        self.start(tokens, true)
    }

    fn start(&self, tokens: Tensor<B, 2, Int>, observed: bool) -> Pass<B> {
        let [batch, length] = tokens.dims();
        let shape = AttentionShape { batch, length, heads: self.heads, head_size: self.head_size };
        let state = self.embed_tokens.forward(tokens.reshape([batch * length]));
        let mut history = self.connections.start(state.clone());
        if observed {
            history.observe_growth();
        }
        let states = observed.then(|| vec![state.clone()]);
        let way = match self.connections.rival() {
            None => Way::State(state),
            Some(rival) => Way::Stream(rival.start(state)),
        };
        Pass { way, history, shape, layer: 0, states }
    }

    /// Goes through the next layer.
    ///
    /// # Panics
    /// After the last one.
    pub fn advance(&self, pass: Pass<B>) -> Pass<B> {
        self.next(pass, false)
    }

    /// Leaves the next layer out: its two residual branches give nothing, so `B_l(h) = h`. The connection after it stays, and so does
    /// what a rival does with the stream of its branches.
    ///
    /// # Panics
    /// After the last one.
    pub fn pass_over(&self, pass: Pass<B>) -> Pass<B> {
        self.next(pass, true)
    }

    fn next(&self, mut pass: Pass<B>, skip: bool) -> Pass<B> {
        let (l, shape) = (pass.layer, pass.shape);
        let layer = &self.layers[l];
        pass.way = match (pass.way, self.connections.rival()) {
            (Way::Stream(mut stream), Some(rival)) => {
                let scale = rival.norm_scale(2 * l);
                let input = rival.enter(&mut stream);
                if l > 0 {
                    note(&mut pass.states, &self.connections.record(&mut pass.history, input.clone()));
                }
                let attention = |input| layer.attention(input, &self.rotary, shape, scale);
                rival.leave(&mut stream, if skip { input.zeros_like() } else { attention(input) });
                let input = rival.enter(&mut stream);
                rival.leave(&mut stream, if skip { input.zeros_like() } else { layer.feed_forward(input, scale) });
                Way::Stream(stream)
            }
            (Way::State(state), _) => {
                let output = if skip { state } else { layer.forward(state, &self.rotary, shape) };
                let state = self.connections.connect(&mut pass.history, output);
                note(&mut pass.states, &state);
                Way::State(state)
            }
            (Way::Stream(_), None) => unreachable!("a stream is begun with a rival"),
        };
        pass.layer += 1;
        pass
    }

    /// What the head reads: the last state after the final normalisation, `[batch * length, width]`.
    ///
    /// # Panics
    /// Before the last layer.
    pub fn finish(&self, pass: Pass<B>) -> Tensor<B, 2> {
        self.end(pass).normed
    }

    pub(super) fn end(&self, mut pass: Pass<B>) -> Ended<B> {
        assert_eq!(pass.layer, self.layers.len(), "a forward pass ends after the last layer");
        let state = match (pass.way, self.connections.rival()) {
            (Way::Stream(stream), Some(rival)) => {
                let state = self.connections.record(&mut pass.history, rival.finish(stream));
                note(&mut pass.states, &state);
                state
            }
            (Way::State(state), _) => state,
            (Way::Stream(_), None) => unreachable!("a stream is begun with a rival"),
        };
        let normed = self.norm.forward(state);
        Ended { normed, states: pass.states.unwrap_or_default(), history: pass.history }
    }

    /// Logits of the next token for what [`finish`](Self::finish) gives: `[batch * length, vocabulary]`.
    pub fn head(&self, normed: Tensor<B, 2>) -> Tensor<B, 2> {
        match &self.lm_head {
            Some(head) => head.forward(normed),
            None => self.embed_tokens.head(normed),
        }
    }

    /// Number of layers.
    pub fn depth(&self) -> usize {
        self.layers.len()
    }
}

/// A forward pass after its last layer.
pub(super) struct Ended<B: Backend> {
    pub normed: Tensor<B, 2>,
    pub states: Vec<Tensor<B, 2>>,
    pub history: History<B, 2>,
}
