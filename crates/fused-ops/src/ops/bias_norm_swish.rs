//! Bias, layer normalisation and swish: what follows the matrix product in a layer of a deep residual MLP.

use burn::tensor::{Tensor, TensorMetadata, activation::sigmoid, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, primitive, tensor, widened};
use crate::FusedOps;

/// `swish(layer_norm(x + bias) * gain + offset)` for every row, with `swish(u) = u * sigmoid(u)`.
///
/// `x` is `[rows, width]`; `bias`, `gain` and `offset` are `[width]`. Mean and biased variance are those of each row, and
/// `eps` is added to the variance.
///
/// # Panics
/// Where shapes do not fit, or types differ.
pub fn bias_norm_swish<B: FusedOps>(
    x: Tensor<B, 2>,
    bias: Tensor<B, 1>,
    gain: Tensor<B, 1>,
    offset: Tensor<B, 1>,
    eps: f64,
) -> Tensor<B, 2> {
    let [_, columns] = x.dims();
    for [width] in [bias.dims(), gain.dims(), offset.dims()] {
        assert!(
            width > 0 && columns == width,
            "bias_norm_swish: rows of {columns} elements, a bias, gain or offset of {width}"
        );
    }
    assert_one_type("bias_norm_swish", &[x.dtype(), bias.dtype(), gain.dtype(), offset.dtype()]);
    tensor(B::bias_norm_swish(primitive(x), [primitive(bias), primitive(gain), primitive(offset)], eps))
}

pub(crate) fn composition<B: Backend>(
    x: FloatTensor<B>,
    [bias, gain, offset]: [FloatTensor<B>; 3],
    eps: f64,
) -> FloatTensor<B> {
    let dtype = x.dtype();
    let row = |t: FloatTensor<B>| widened(tensor::<B, 1>(t)).unsqueeze::<2>();
    // Squares of half-precision numbers need more digits than the numbers have.
    let x = widened(tensor::<B, 2>(x)) + row(bias);
    let centred = x.clone() - x.mean_dim(1);
    let deviation = centred.clone().square().mean_dim(1).add_scalar(eps).sqrt();
    let u = centred.div(deviation) * row(gain) + row(offset);
    primitive((u.clone() * sigmoid(u)).cast(dtype))
}
