//! The states that a forward pass has produced so far.

use burn::tensor::{DType, Tensor, backend::Backend};
use fused_ops::MixChain;

/// The states `h_0, ..., h_l` of one forward pass, as far as later blocks take them.
///
/// Made by [`Connections::start`](crate::Connections::start); the caller holds it, and drops it after the last block.
#[derive(Clone, Debug)]
pub struct History<B: Backend, const D: usize> {
    /// State `i`, or `None` once no later block takes it.
    pub(crate) states: Vec<Option<Tensor<B, D>>>,
    /// All coefficients, computed once a forward pass.
    pub(crate) coefficients: Option<Tensor<B, 1>>,
    /// The states as the backward pass goes through them.
    pub(crate) chain: MixChain<B, D>,
    /// Mean squares of the rows (the last dimension) of the states so far, where asked for.
    mean_squares: Option<Vec<Tensor<B, 1>>>,
    /// `h_0`, until another state follows: whether a growth is to be measured is said only after the start.
    first: Option<Tensor<B, D>>,
}

impl<B: Backend, const D: usize> History<B, D> {
    pub(crate) fn new(coefficients: Option<Tensor<B, 1>>) -> Self {
        Self { states: Vec::new(), coefficients, chain: MixChain::default(), mean_squares: None, first: None }
    }

    /// Blocks that have been connected so far.
    pub fn blocks(&self) -> usize {
        self.states.len() - 1
    }

    /// From now on measures the size of each state; call it right after `start`.
    pub fn observe_growth(&mut self) {
        self.mean_squares = Some(self.first.iter().map(mean_square).collect());
    }

    /// Root mean square of each state so far, relative to `h_0` (so the first is 1): how much the stream has grown.
    /// Empty unless [`observe_growth`](Self::observe_growth) was called.
    pub fn growth(&self) -> Vec<f64> {
        let mean = |rows: &Tensor<B, 1>| rows.to_data().iter::<f64>().sum::<f64>() / rows.dims()[0].max(1) as f64;
        let squares: Vec<f64> = self.mean_squares.iter().flatten().map(mean).collect();
        squares.iter().map(|s| (s / squares[0]).sqrt()).collect()
    }

    /// Appends a state, which is kept if a later block takes it.
    pub(crate) fn push(&mut self, state: &Tensor<B, D>, keep: bool) {
        if let Some(squares) = &mut self.mean_squares {
            squares.push(mean_square(state));
        }
        self.first = self.states.is_empty().then(|| state.clone());
        self.states.push(keep.then(|| state.clone()));
    }
}

/// Mean square of each row of a state, off the graph and in `f32`. Row by row, so that the sums have an order that does
/// not depend on the number of threads.
fn mean_square<B: Backend, const D: usize>(state: &Tensor<B, D>) -> Tensor<B, 1> {
    let dims = state.dims();
    let width = dims.last().copied().unwrap_or(1);
    let rows = dims.iter().product::<usize>() / width.max(1);
    state.clone().detach().reshape([rows, width]).cast(DType::F32).square().mean_dim(1).reshape([rows])
}
