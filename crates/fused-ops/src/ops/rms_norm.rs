//! Root-mean-square normalisation.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor, widened};
use crate::FusedOps;

/// `x / sqrt(mean(x^2) + eps) * weight` over the last dimension (Zhang and Sennrich 2019; LLaMA).
///
/// `input` is `[..., width]`, `weight` is `[width]`.
///
/// # Panics
/// Where the last dimension of `input` is not the length of `weight`.
pub fn rms_norm<B: FusedOps, const D: usize>(input: Tensor<B, D>, weight: Tensor<B, 1>, eps: f64) -> Tensor<B, D> {
    let dims = input.dims();
    let width = weight.dims()[0];
    assert_eq!(dims[D - 1], width, "rms_norm: the last dimension is the length of the weight");
    let rows = dims.iter().product::<usize>() / width.max(1);
    let normed = tensor::<B, 2>(B::rms_norm(primitive(input.reshape([rows, width])), primitive(weight), eps));
    normed.reshape(dims)
}

pub(crate) fn composition<B: Backend>(input: FloatTensor<B>, weight: FloatTensor<B>, eps: f64) -> FloatTensor<B> {
    let (x, weight) = (tensor::<B, 2>(input), tensor::<B, 1>(weight));
    let dtype = x.dtype();
    // Squares of half-precision numbers need more digits than the numbers have.
    let x = widened(x);
    let rms = x.clone().square().mean_dim(1).add_scalar(eps).sqrt();
    primitive(x.div(rms).cast(dtype).mul(weight.unsqueeze()))
}
