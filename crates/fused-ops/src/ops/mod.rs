//! One file an operation: its composition of ordinary tensor operations, and the function on tensors that users call.
//! `autodiff` holds the nodes of the graph.

pub(crate) mod adamw;
pub(crate) mod attention;
mod autodiff;
pub(crate) mod cross_entropy;
pub(crate) mod mix;
pub(crate) mod rms_norm;
pub(crate) mod softmax;
pub(crate) mod swiglu;

use burn::tensor::{DType, Tensor, TensorPrimitive, backend::Backend, ops::FloatTensor};

/// The primitive of a float tensor.
fn primitive<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> FloatTensor<B> {
    tensor.into_primitive().tensor()
}

/// The float tensor of a primitive whose rank is `D`.
fn tensor<B: Backend, const D: usize>(primitive: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}

/// A tensor in `f32`, unless it is `f64`.
fn widened<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, D> {
    if tensor.dtype() == DType::F64 { tensor } else { tensor.cast(DType::F32) }
}
