//! The mix of a connection: a block's output plus a weighted sum of earlier states.

use burn::tensor::{DType, FloatDType, Shape, Tensor, TensorMetadata, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor};
use crate::FusedOps;

/// `base + sum_i coefficients[i] * states[i]`: the connection of ANCRe (arXiv 2602.09009) and of every layout whose
/// coefficients do not depend on the token.
///
/// `coefficients` is `[n]` in `f32` whatever the type of the states, whose sum is then formed in `f32` and rounded once.
/// `base` and each of the `n` states share one shape. The gradient keeps nothing but handles to the inputs and is formed
/// in one pass over all states, adding straight into the sums that other uses of a state have begun.
///
/// # Panics
/// Where the number of states is not that of the coefficients, or shapes differ.
pub fn mix<B: FusedOps, const D: usize>(
    coefficients: Tensor<B, 1>,
    base: Tensor<B, D>,
    states: Vec<Tensor<B, D>>,
) -> Tensor<B, D> {
    assert_eq!(coefficients.dims()[0], states.len(), "mix: one coefficient for each state");
    mix_at(coefficients, 0, base, states)
}

/// [`mix()`] with the coefficients `coefficients[first..first + states.len()]`, so that all rows of a network's
/// coefficients can live in one tensor that is computed once a forward pass.
///
/// # Panics
/// Where that range is not inside `coefficients`, or shapes differ.
pub fn mix_at<B: FusedOps, const D: usize>(
    coefficients: Tensor<B, 1>,
    first: usize,
    base: Tensor<B, D>,
    states: Vec<Tensor<B, D>>,
) -> Tensor<B, D> {
    assert!(first + states.len() <= coefficients.dims()[0], "mix: one coefficient for each state");
    for state in &states {
        assert_eq!(state.dims(), base.dims(), "mix: states have the shape of the base");
    }
    if states.is_empty() {
        return base;
    }
    tensor(B::mix(primitive(coefficients), first, primitive(base), states.into_iter().map(primitive).collect()))
}

/// A tensor in `f32`, unless it is `f64` or `f32` already.
fn widened<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    match tensor.dtype() {
        DType::F64 | DType::F32 => tensor,
        _ => B::float_cast(tensor, FloatDType::F32),
    }
}

fn cast_like<B: Backend>(tensor: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    if tensor.dtype() == dtype { tensor } else { B::float_cast(tensor, dtype.into()) }
}

fn flat<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let elements = tensor.shape().num_elements();
    B::float_reshape(tensor, Shape::new([elements]))
}

/// Coefficient `i` as a `[1]` tensor in the type in which states are summed.
fn coefficient<B: Backend>(coefficients: &FloatTensor<B>, i: usize, dtype: DType) -> FloatTensor<B> {
    cast_like::<B>(B::float_slice(coefficients.clone(), &[(i..i + 1).into()]), dtype)
}

pub(crate) fn composition<B: Backend>(
    coefficients: FloatTensor<B>,
    first: usize,
    base: FloatTensor<B>,
    states: Vec<FloatTensor<B>>,
) -> FloatTensor<B> {
    let (shape, dtype) = (base.shape(), base.dtype());
    let mut sum = widened::<B>(flat::<B>(base));
    for (i, state) in states.into_iter().enumerate() {
        let c = coefficient::<B>(&coefficients, first + i, sum.dtype());
        sum = B::float_add(sum, B::float_mul(widened::<B>(flat::<B>(state)), c));
    }
    cast_like::<B>(B::float_reshape(sum, shape), dtype)
}

pub(crate) fn composition_backward<B: Backend>(
    coefficients: FloatTensor<B>,
    first: usize,
    states: Vec<FloatTensor<B>>,
    upstream: FloatTensor<B>,
    want_coefficients: bool,
    gradients: Vec<Option<Option<FloatTensor<B>>>>,
) -> (Option<FloatTensor<B>>, Vec<Option<FloatTensor<B>>>) {
    let (shape, dtype) = (upstream.shape(), upstream.dtype());
    let wide = widened::<B>(flat::<B>(upstream));
    let coefficient_gradient = want_coefficients.then(|| {
        let dots: Vec<_> = states
            .into_iter()
            .map(|state| B::float_sum(B::float_mul(widened::<B>(flat::<B>(state)), wide.clone())))
            .collect();
        let (device, dtype) = (B::float_device(&coefficients), coefficients.dtype());
        let slots = first..first + dots.len();
        let zeros = B::float_zeros(coefficients.shape(), &device, dtype.into());
        B::float_slice_assign(zeros, &[slots.into()], cast_like::<B>(B::float_cat(dots, 0), dtype))
    });
    let state_gradients = gradients
        .into_iter()
        .enumerate()
        .map(|(i, wanted)| {
            wanted.map(|sum| {
                let part = B::float_mul(wide.clone(), coefficient::<B>(&coefficients, first + i, wide.dtype()));
                let part = cast_like::<B>(B::float_reshape(part, shape.clone()), dtype);
                match sum {
                    Some(sum) => B::float_add(sum, part),
                    None => part,
                }
            })
        })
        .collect();
    (coefficient_gradient, state_gradients)
}
