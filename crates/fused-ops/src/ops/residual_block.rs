//! A block of a deep residual MLP: layers of matrix product, bias, layer normalisation and swish, with a shortcut around them.

use burn::tensor::{Tensor, TensorMetadata, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, bias_norm_swish, primitive, tensor};
use crate::{FusedOps, kernels::residual_block::BlockShape};

/// `x + layers(x)`, where a layer is `swish(layer_norm(h W + bias) * gain + offset)`.
///
/// `x` is `[rows, width]`. `parameters` is `[layers, width + 3, width]`: of each layer the rows of `W` (`[inputs, outputs]`),
/// then bias, gain and offset. Mean and biased variance are those of each row, and `eps` is added to the variance.
///
/// # Panics
/// Where shapes do not fit, or types differ.
pub fn residual_block<B: FusedOps>(x: Tensor<B, 2>, parameters: Tensor<B, 3>, eps: f64) -> Tensor<B, 2> {
    let ([_, width], [layers, rows, columns]) = (x.dims(), parameters.dims());
    assert!(
        layers > 0 && width > 0 && columns == width && rows == width + 3,
        "residual_block: rows of {width} elements, parameters [{layers}, {rows}, {columns}]"
    );
    assert_one_type("residual_block", &[x.dtype(), parameters.dtype()]);
    tensor(B::residual_block(primitive(x), primitive(parameters), eps))
}

/// Layers and width, from the shape of the parameters.
pub(crate) fn shape<B: Backend>(parameters: &FloatTensor<B>) -> BlockShape {
    let shape = parameters.shape();
    BlockShape { layers: shape[0], width: shape[2] }
}

pub(crate) fn composition<B: Backend>(x: FloatTensor<B>, parameters: FloatTensor<B>, eps: f64) -> FloatTensor<B> {
    let BlockShape { layers, width } = shape::<B>(&parameters);
    let (x, parameters) = (tensor::<B, 2>(x), tensor::<B, 3>(parameters));
    let branch = (0..layers).fold(x.clone(), |h, layer| {
        let of_layer = parameters.clone().narrow(0, layer, 1).squeeze_dim::<2>(0);
        let row = |i: usize| primitive(of_layer.clone().narrow(0, width + i, 1).squeeze_dim::<1>(0));
        let product = h.matmul(of_layer.clone().narrow(0, 0, width));
        tensor(bias_norm_swish::composition::<B>(primitive(product), [row(0), row(1), row(2)], eps))
    });
    primitive(x + branch)
}
