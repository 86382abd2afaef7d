//! The states that a forward pass has produced so far.

use burn::tensor::{Tensor, backend::Backend};

/// The states `h_0, ..., h_l` of one forward pass, as far as later blocks take them.
///
/// Made by [`Connections::start`](crate::Connections::start); the caller holds it, and drops it after the last block.
#[derive(Clone, Debug)]
pub struct History<B: Backend, const D: usize> {
    /// State `i`, or `None` once no later block takes it.
    pub(crate) states: Vec<Option<Tensor<B, D>>>,
    /// All coefficients, computed once a forward pass.
    pub(crate) coefficients: Option<Tensor<B, 1>>,
    /// Mean squares of the states so far, where asked for.
    mean_squares: Option<Vec<Tensor<B, 1>>>,
}

impl<B: Backend, const D: usize> History<B, D> {
    pub(crate) fn new(coefficients: Option<Tensor<B, 1>>) -> Self {
        Self { states: Vec::new(), coefficients, mean_squares: None }
    }

    /// Blocks that have been connected so far.
    pub fn blocks(&self) -> usize {
        self.states.len() - 1
    }

    /// From now on measures the size of each state; call it right after `start`.
    pub fn observe_growth(&mut self) {
        self.mean_squares = Some(self.states.iter().flatten().map(mean_square).collect());
    }

    /// Root mean square of each state so far, relative to `h_0` (so the first is 1): how much the stream has grown.
    /// Empty unless [`observe_growth`](Self::observe_growth) was called.
    pub fn growth(&self) -> Vec<f64> {
        let squares: Vec<f64> =
            self.mean_squares.iter().flatten().flat_map(|t| t.to_data().iter::<f64>().collect::<Vec<_>>()).collect();
        squares.iter().map(|s| (s / squares[0]).sqrt()).collect()
    }

    /// Appends a state, which is kept if a later block takes it.
    pub(crate) fn push(&mut self, state: &Tensor<B, D>, keep: bool) {
        if let Some(squares) = &mut self.mean_squares {
            squares.push(mean_square(state));
        }
        self.states.push(keep.then(|| state.clone()));
    }
}

/// Mean of the squares of a state, off the graph.
fn mean_square<B: Backend, const D: usize>(state: &Tensor<B, D>) -> Tensor<B, 1> {
    state.clone().detach().square().mean()
}
