//! The bias of a linear layer, alone and with GELU after it.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use burn::tensor::{Tensor, TensorMetadata, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, primitive, tensor, widened};
use crate::FusedOps;

/// `x + bias` for every row; `x` is `[rows, width]`, `bias` is `[width]`.
///
/// The kernel adds in place where nobody else holds `x`, as after a matrix product.
///
/// # Panics
/// Where shapes do not fit, or types differ.
pub fn add_bias<B: FusedOps>(x: Tensor<B, 2>, bias: Tensor<B, 1>) -> Tensor<B, 2> {
    check("add_bias", &x, &bias);
    tensor(B::add_bias(primitive(x), primitive(bias)))
}

/// `gelu(x + bias)` for every row, with the tanh form of GELU (Hendrycks and Gimpel 2016; PyTorch's
/// `gelu(approximate="tanh")`): `u / 2 * (1 + tanh(sqrt(2 / pi) * (u + 0.044715 u^3)))`.
///
/// `x` is `[rows, width]`, `bias` is `[width]`. Where the graph is tracked, the kernel forms the derivative on the way,
/// in the storage of `x` where nobody else holds it.
///
/// # Panics
/// Where shapes do not fit, or types differ.
pub fn bias_gelu<B: FusedOps>(x: Tensor<B, 2>, bias: Tensor<B, 1>) -> Tensor<B, 2> {
    check("bias_gelu", &x, &bias);
    tensor(B::bias_gelu(primitive(x), primitive(bias)))
}

fn check<B: Backend>(operation: &str, x: &Tensor<B, 2>, bias: &Tensor<B, 1>) {
    let ([_, columns], [width]) = (x.dims(), bias.dims());
    assert!(width > 0 && columns == width, "{operation}: rows of {columns} elements, a bias of {width}");
    assert_one_type(operation, &[x.dtype(), bias.dtype()]);
}

pub(crate) fn add_composition<B: Backend>(x: FloatTensor<B>, bias: FloatTensor<B>) -> FloatTensor<B> {
    primitive(tensor::<B, 2>(x) + tensor::<B, 1>(bias).unsqueeze())
}

pub(crate) fn gelu_composition<B: Backend>(x: FloatTensor<B>, bias: FloatTensor<B>) -> FloatTensor<B> {
    let dtype = x.dtype();
    // In half precision 1 + tanh would keep next to nothing of the left tail.
    let u = widened(tensor::<B, 2>(x)) + widened(tensor::<B, 1>(bias)).unsqueeze();
    let inner = (u.clone() * u.clone()).mul_scalar(0.044715).add_scalar(1.0) * u.clone();
    let tanh = inner.mul_scalar(FRAC_2_SQRT_PI * FRAC_1_SQRT_2).tanh();
    primitive((u * tanh.add_scalar(1.0)).mul_scalar(0.5).cast(dtype))
}
