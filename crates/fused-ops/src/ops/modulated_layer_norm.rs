//! Layer normalisation with a shift and a scale for each sequence.

use burn::tensor::{Tensor, TensorMetadata, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, primitive, sequences, tensor, widened};
use crate::{FusedOps, kernels::sequences::Sequences};

/// `(x - mean) / sqrt(variance + eps) * (1 + scale) + shift`: the adaptive layer norm of DiT (Peebles and Xie 2023).
///
/// `input` is `[batch * length, width]`, the rows of a sequence following each other; `shift` and `scale` are `[batch,
/// width]`, one row for each sequence. Mean and biased variance are those of each row; there is no affine part.
///
/// # Panics
/// Where shapes do not fit, or types differ.
pub fn modulated_layer_norm<B: FusedOps>(
    input: Tensor<B, 2>,
    shift: Tensor<B, 2>,
    scale: Tensor<B, 2>,
    eps: f64,
) -> Tensor<B, 2> {
    sequences("modulated_layer_norm", input.dims(), shift.dims());
    sequences("modulated_layer_norm", input.dims(), scale.dims());
    assert_one_type("modulated_layer_norm", &[input.dtype(), shift.dtype(), scale.dtype()]);
    tensor(B::modulated_layer_norm(primitive(input), primitive(shift), primitive(scale), eps))
}

pub(crate) fn composition<B: Backend>(
    input: FloatTensor<B>,
    shift: FloatTensor<B>,
    scale: FloatTensor<B>,
    eps: f64,
) -> FloatTensor<B> {
    let dtype = input.dtype();
    let (x, shift, scale) = (tensor::<B, 2>(input), tensor::<B, 2>(shift), tensor::<B, 2>(scale));
    let dims = x.dims();
    let Sequences { batch, length, width } = sequences("modulated_layer_norm", dims, shift.dims());
    // Squares of half-precision numbers need more digits than the numbers have.
    let x = widened(x).reshape([batch, length, width]);
    let modulation = |m: Tensor<B, 2>| widened(m).reshape([batch, 1, width]);
    let centred = x.clone() - x.mean_dim(2);
    let deviation = centred.clone().square().mean_dim(2).add_scalar(eps).sqrt();
    let output = centred.div(deviation) * modulation(scale).add_scalar(1.0) + modulation(shift);
    primitive(output.reshape(dims).cast(dtype))
}
