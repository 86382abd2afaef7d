//! A shortcut from an earlier state through a gate that each row opens.

use burn::tensor::{DType, Tensor, TensorMetadata, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, primitive, tensor, widened};
use crate::FusedOps;

/// `base + (1 + tanh(query . rms_norm(base))) * weight * state`: a state that is added feature by feature, from nothing of it to twice,
/// as each row of the base asks for. With `query = 0` the gate is 1.
///
/// `base` and `state` are `[rows, width]` of one type; `weight` and `query` `[width]`, in `f32` whatever that is (in `f64` beside `f64`).
/// The norm is `x / sqrt(mean(x^2) + eps)`.
///
/// # Panics
/// Where shapes or types do not fit, or the width is 0.
pub fn gated_shortcut<B: FusedOps>(
    base: Tensor<B, 2>,
    state: Tensor<B, 2>,
    weight: Tensor<B, 1>,
    query: Tensor<B, 1>,
    eps: f64,
) -> Tensor<B, 2> {
    assert_eq!(base.dims(), state.dims(), "gated_shortcut: the state has the shape of what it is added to");
    let width = [base.dims()[1]];
    assert!(width[0] > 0, "gated_shortcut: rows have features");
    assert!(weight.dims() == width && query.dims() == width, "gated_shortcut: one weight and one query a feature");
    assert_one_type("gated_shortcut", &[base.dtype(), state.dtype()]);
    let wide = if base.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    assert_one_type("gated_shortcut", &[wide, weight.dtype(), query.dtype()]);
    let rows = [primitive(base), primitive(state)];
    tensor(B::gated_shortcut(rows, [primitive(weight), primitive(query)], eps))
}

pub(crate) fn composition<B: Backend>(
    [base, state]: [FloatTensor<B>; 2],
    [weight, query]: [FloatTensor<B>; 2],
    eps: f64,
) -> FloatTensor<B> {
    let dtype = base.dtype();
    // Squares and sums of half-precision numbers need more digits than the numbers have.
    let [base, state] = [base, state].map(|t| widened(tensor::<B, 2>(t)));
    let [weight, query] = [weight, query].map(|t| widened(tensor::<B, 1>(t)).unsqueeze::<2>());
    let rms = base.clone().square().mean_dim(1).add_scalar(eps).sqrt();
    let gate = (base.clone() * query).sum_dim(1).div(rms).tanh().add_scalar(1.0);
    primitive((base + state * weight * gate).cast(dtype))
}
