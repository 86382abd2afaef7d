//! The first state after every block, through a gate that each row of the stream opens.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, backend::Backend},
};
use fused_ops::FusedOps;

use crate::rivals::rows::{cast, parameter, wide};

/// Added to the mean square of a row before it is normalised.
const EPSILON: f64 = 1e-6;

/// What learned weights begin at, of a [gated first state](crate::Arm::GatedFirstState) or a [layer scale](crate::rivals::LayerScale): a
/// finite number in single precision, which they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InitialWeight(u32);

impl InitialWeight {
    /// One: a gated first state begins as the layout `0:l`.
    pub const ONE: Self = Self(1f32.to_bits());

    /// `None` unless it is finite in single precision.
    pub fn new(weight: f64) -> Option<Self> {
        // No negative zero, which would be another text.
        let weight = weight as f32 + 0.0;
        weight.is_finite().then_some(Self(weight.to_bits()))
    }

    /// As a number.
    pub fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// `h_l = y + (1 + tanh(q_l . rms_norm(y))) w_l * h_0` with `y = B_l(h_{l-1})`: see [`Arm::GatedFirstState`](crate::Arm::GatedFirstState).
#[derive(Module, Debug)]
pub struct GatedFirstState<B: Backend> {
    /// Of each block and feature, `[blocks, width]`.
    pub weight: Param<Tensor<B, 2>>,
    /// What each block's gate looks for in its output, `[blocks, width]`, from 0.
    pub query: Param<Tensor<B, 2>>,
}

impl<B: Backend> GatedFirstState<B> {
    pub(crate) fn new(blocks: usize, width: usize, initial: InitialWeight, device: &B::Device) -> Self {
        let constant = |value| parameter(vec![value; blocks * width], [blocks, width], device);
        Self { weight: constant(initial.get()), query: constant(0.0) }
    }

    /// The mean weight of each block, `[blocks]`.
    pub(crate) fn mean_weights(&self) -> Tensor<B, 1> {
        let blocks = self.weight.dims()[0];
        self.weight.val().mean_dim(1).reshape([blocks])
    }
}

impl<B: FusedOps> GatedFirstState<B> {
    /// The state after a block: its last dimension holds the features.
    pub(crate) fn connect<const D: usize>(
        &self,
        block: usize,
        output: Tensor<B, D>,
        first: Tensor<B, D>,
    ) -> Tensor<B, D> {
        let (dims, width) = (output.dims(), self.weight.dims()[1]);
        assert!(dims == first.dims() && dims[D - 1] == width, "a gated first state has rows of {width} features");
        let rows = |t: Tensor<B, D>| t.reshape([dims.iter().product::<usize>() / width, width]);
        let of_block = |p: &Param<Tensor<B, 2>>| {
            let row = p.val().slice([block..block + 1, 0..width]).reshape([width]);
            cast(row, wide(output.dtype()))
        };
        let [weight, query] = [&self.weight, &self.query].map(of_block);
        fused_ops::gated_shortcut(rows(output), rows(first), weight, query, EPSILON).reshape(dims)
    }
}
