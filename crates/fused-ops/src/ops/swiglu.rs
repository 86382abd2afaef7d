//! The gated activation of LLaMA's feed-forward network.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor};
use crate::FusedOps;

/// `silu(gate) * up`, element by element (Shazeer 2020); both of one shape.
///
/// # Panics
/// Where the shapes differ.
pub fn swiglu<B: FusedOps, const D: usize>(gate: Tensor<B, D>, up: Tensor<B, D>) -> Tensor<B, D> {
    assert_eq!(gate.dims(), up.dims(), "swiglu: gate and up have one shape");
    tensor(B::swiglu(primitive(gate), primitive(up)))
}

pub(crate) fn composition<B: Backend>(gate: FloatTensor<B>, up: FloatTensor<B>) -> FloatTensor<B> {
    // On primitives, so as to be generic over the rank.
    let sigmoid = B::sigmoid(gate.clone());
    B::float_mul(B::float_mul(gate, sigmoid), up)
}
