//! Scalars on the branch, or on the stream before it.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, backend::Backend},
};
use fused_ops::FusedOps;

use super::{
    Rules, State,
    rows::{add_scaled, columns, parameter, row, weighted},
};
use crate::InitialWeight;

/// ReZero (arXiv 2003.04887): `h + alpha_l f_l(h)`. The state is `h`.
#[derive(Module, Debug)]
pub struct ReZero<B: Backend> {
    /// `[branches, 1]`, from 0.
    pub alpha: Param<Tensor<B, 2>>,
}

impl<B: Backend> ReZero<B> {
    pub(super) fn new(branches: usize, device: &B::Device) -> Self {
        Self { alpha: parameter(vec![0.0; branches], [branches, 1], device) }
    }
}

impl<B: FusedOps> Rules<B> for ReZero<B> {
    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        state.rows[0].clone()
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        let alpha = row(&self.alpha, state.branch, output.dtype());
        state.rows[0] = add_scaled(state.rows[0].clone(), output, alpha);
    }

    fn finish(&self, mut state: State<B>) -> Tensor<B, 2> {
        state.rows.swap_remove(0)
    }
}

/// LayerScale (arXiv 2103.17239): `h + gamma_l * f_l(h)`, channel by channel. The state is `h`.
#[derive(Module, Debug)]
pub struct LayerScale<B: Backend> {
    /// `[branches, width]`.
    pub gamma: Param<Tensor<B, 2>>,
}

impl<B: Backend> LayerScale<B> {
    pub(super) fn new(branches: usize, width: usize, initial: InitialWeight, device: &B::Device) -> Self {
        Self { gamma: parameter(vec![initial.get(); branches * width], [branches, width], device) }
    }
}

impl<B: FusedOps> Rules<B> for LayerScale<B> {
    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        state.rows[0].clone()
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        let gamma = row(&self.gamma, state.branch, output.dtype());
        state.rows[0] = add_scaled(state.rows[0].clone(), output, gamma);
    }

    fn finish(&self, mut state: State<B>) -> Tensor<B, 2> {
        state.rows.swap_remove(0)
    }
}

/// `r_l h + s_l h_0` before each block, whose shortcuts are the ordinary ones. The state is `h` and `h_0`. Wants a smaller learning rate than the weights.
#[derive(Module, Debug)]
pub struct FirstStateScalars<B: Backend> {
    /// `r` and `s` of each block, `[blocks, 2]`, from 1 and 0.
    pub scalars: Param<Tensor<B, 2>>,
    /// Branches in a block.
    per_block: usize,
}

impl<B: Backend> FirstStateScalars<B> {
    pub(super) fn new(blocks: usize, per_block: usize, device: &B::Device) -> Self {
        Self { scalars: parameter([1.0, 0.0].repeat(blocks), [blocks, 2], device), per_block }
    }
}

impl<B: FusedOps> Rules<B> for FirstStateScalars<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        vec![input.clone(), input]
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        if state.branch.is_multiple_of(self.per_block) {
            let scalars = row(&self.scalars, state.branch / self.per_block, state.rows[0].dtype());
            state.rows[0] = weighted(columns(scalars), &state.rows);
        }
        state.rows[0].clone()
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        state.rows[0] = state.rows[0].clone() + output;
    }

    fn finish(&self, mut state: State<B>) -> Tensor<B, 2> {
        state.rows.swap_remove(0)
    }
}
