//! Attention over cumulative states, with a preference for the newest.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, activation::softmax, backend::Backend},
};
use fused_ops::{FusedOps, concatenate};

use super::{
    Rules, State,
    attention::score,
    rows::{columns, parameter, row, weighted},
};

/// What the score of the newest state has more than the others at the start.
const RECENCY: f32 = 3.0;

/// The variant of Attention Residuals that the package `open-attention-residuals` implements: sources are states of the ordinary
/// stream `h + f_l(u)`, keys have learned gains, and a bias on the newest makes the start nearly the ordinary network.
///
/// A state is remembered after every branch, or, in the block form, after the last branch of every block of layers. The state
/// holds the remembered ones, then `h`.
#[derive(Module, Debug)]
pub struct CumulativeAttention<B: Backend> {
    /// `[branches, width]`, from 0.
    pub query: Param<Tensor<B, 2>>,
    /// Gains of the keys, `[branches, width]`, from 1.
    pub norm_weight: Param<Tensor<B, 2>>,
    /// Added to the score of `h`, `[branches, 1]`, from 3.
    pub recency_bias: Param<Tensor<B, 2>>,
    /// Branches after which a state is remembered.
    every: usize,
}

impl<B: Backend> CumulativeAttention<B> {
    pub(super) fn new(branches: usize, width: usize, blocks: Option<usize>, device: &B::Device) -> Self {
        let every = blocks.map_or(1, |blocks| 2 * (branches / 2).div_ceil(blocks));
        let of = |value: f32, columns: usize| parameter(vec![value; branches * columns], [branches, columns], device);
        Self { query: of(0.0, width), norm_weight: of(1.0, width), recency_bias: of(RECENCY, 1), every }
    }
}

impl<B: FusedOps> Rules<B> for CumulativeAttention<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        vec![input.clone(), input]
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        let (branch, sources) = (state.branch, &state.rows);
        let of = |parameter| row(parameter, branch, sources[0].dtype());
        let query = of(&self.query) * of(&self.norm_weight);
        let mut scores: Vec<_> = sources.iter().map(|source| score(source.clone(), query.clone())).collect();
        if let Some(newest) = scores.last_mut() {
            *newest = newest.clone() + of(&self.recency_bias);
        }
        weighted(columns(softmax(concatenate(scores, 1), 1)), sources)
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        let newest = state.rows.len() - 1;
        let sum = state.rows[newest].clone() + output;
        state.rows[newest] = sum.clone();
        if (state.branch + 1).is_multiple_of(self.every) {
            state.rows.push(sum);
        }
    }

    fn finish(&self, mut state: State<B>) -> Tensor<B, 2> {
        state.rows.pop().expect("the embeddings are there")
    }
}
