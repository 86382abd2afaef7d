//! A gated branch added to the residual stream.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, primitive, sequences, tensor};
use crate::{FusedOps, kernels::sequences::Sequences};

/// `x + gate * branch`, with a gate for each sequence and feature: the residual connection of DiT's blocks (adaLN-Zero,
/// Peebles and Xie 2023).
///
/// `x` and `branch` are `[batch * length, width]`, the rows of a sequence following each other; `gate` is
/// `[batch, width]`.
///
/// # Panics
/// Where shapes do not fit, or types differ.
pub fn gated_add<B: FusedOps>(x: Tensor<B, 2>, gate: Tensor<B, 2>, branch: Tensor<B, 2>) -> Tensor<B, 2> {
    assert_eq!(x.dims(), branch.dims(), "gated_add: the branch has the shape of what it is added to");
    sequences("gated_add", x.dims(), gate.dims());
    assert_one_type("gated_add", &[x.dtype(), gate.dtype(), branch.dtype()]);
    tensor(B::gated_add(primitive(x), primitive(gate), primitive(branch)))
}

pub(crate) fn composition<B: Backend>(
    x: FloatTensor<B>,
    gate: FloatTensor<B>,
    branch: FloatTensor<B>,
) -> FloatTensor<B> {
    let (x, gate, branch) = (tensor::<B, 2>(x), tensor::<B, 2>(gate), tensor::<B, 2>(branch));
    let dims = x.dims();
    let Sequences { batch, length, width } = sequences("gated_add", dims, gate.dims());
    let gated = branch.reshape([batch, length, width]) * gate.reshape([batch, 1, width]);
    primitive(x + gated.reshape(dims))
}
