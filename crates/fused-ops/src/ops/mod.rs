//! One file an operation: its composition of ordinary tensor operations, and the function on tensors that users call.
//! `autodiff` holds the nodes of the graph.

pub(crate) mod adamw;
pub(crate) mod attention;
mod autodiff;
pub(crate) mod bias;
pub(crate) mod bias_norm_swish;
pub(crate) mod concatenate;
pub(crate) mod cross_entropy;
pub(crate) mod distances;
pub(crate) mod gated_add;
pub(crate) mod gated_shortcut;
pub(crate) mod mix;
pub(crate) mod modulated_layer_norm;
pub(crate) mod residual_block;
pub(crate) mod rms_norm;
pub(crate) mod self_attention;
pub(crate) mod sinkhorn;
pub(crate) mod softmax;
pub(crate) mod streams;
pub(crate) mod swiglu;

use burn::tensor::{DType, Tensor, TensorPrimitive, backend::Backend, ops::FloatTensor};

use crate::kernels::sequences::Sequences;

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

/// The sizes of rows and of their modulation; panics where one does not fit the other.
pub(crate) fn sequences(operation: &str, [rows, columns]: [usize; 2], [batch, width]: [usize; 2]) -> Sequences {
    let length = rows.checked_div(batch).unwrap_or(0);
    assert!(
        columns == width && batch * length == rows,
        "{operation}: {rows} rows of {columns} elements are no sequences of one length for modulation \
         [{batch}, {width}]"
    );
    Sequences { batch, length, width }
}

/// Panics where the tensors of an operation differ in type.
fn assert_one_type(operation: &str, types: &[DType]) {
    assert!(types.iter().all(|t| *t == types[0]), "{operation}: tensors have one type, not {types:?}");
}
