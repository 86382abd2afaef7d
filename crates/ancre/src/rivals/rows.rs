//! Sums, norms and softmaxes of rows, formed in `f32` where the stream is in fewer digits.

use burn::{
    module::Param,
    tensor::{DType, Tensor, TensorData, backend::Backend},
};

/// A tensor of another type; itself where it has that type.
pub(crate) fn cast<B: Backend, const D: usize>(tensor: Tensor<B, D>, dtype: DType) -> Tensor<B, D> {
    if tensor.dtype() == dtype { tensor } else { tensor.cast(dtype) }
}

/// The type that coefficients and sums have beside a stream of type `dtype`: `f32`, or `f64` beside `f64`.
pub(crate) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// A tensor in the type of sums.
pub(super) fn widened<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, D> {
    let dtype = wide(tensor.dtype());
    cast(tensor, dtype)
}

/// A parameter of constants.
pub(crate) fn parameter<B: Backend, const D: usize>(
    values: Vec<f32>,
    dims: [usize; D],
    device: &B::Device,
) -> Param<Tensor<B, D>> {
    Param::from_tensor(Tensor::from_data(TensorData::new(values, dims), (device, DType::F32)))
}

/// Entry `branch` of a parameter `[branches, columns]`, as a row `[1, columns]`; `stream` is the type of the stream.
pub(super) fn row<B: Backend>(parameter: &Param<Tensor<B, 2>>, branch: usize, stream: DType) -> Tensor<B, 2> {
    let columns = parameter.dims()[1];
    cast(parameter.val().slice([branch..branch + 1, 0..columns]), wide(stream))
}

/// Entry `branch` of a parameter `[branches, rows, columns]`, as `[rows, columns]`.
pub(super) fn matrix<B: Backend>(parameter: &Param<Tensor<B, 3>>, branch: usize, stream: DType) -> Tensor<B, 2> {
    let [_, rows, columns] = parameter.dims();
    let entry = parameter.val().slice([branch..branch + 1, 0..rows, 0..columns]);
    cast(entry.reshape([rows, columns]), wide(stream))
}

/// `sum_i weights[i] states[i]` in the type of the states, with wide weights `[1, 1]` or `[rows, 1]`.
pub(super) fn weighted<B: Backend>(
    weights: impl IntoIterator<Item = Tensor<B, 2>>,
    states: &[Tensor<B, 2>],
) -> Tensor<B, 2> {
    let parts = weights.into_iter().zip(states).map(|(weight, state)| widened(state.clone()) * weight);
    let sum = parts.reduce(|sum, part| sum + part).expect("a stream holds at least one state");
    cast(sum, states[0].dtype())
}

/// `h + scale * output` in the type of `h`; the wide `scale` is `[1, 1]` or `[1, width]`.
pub(super) fn add_scaled<B: Backend>(h: Tensor<B, 2>, output: Tensor<B, 2>, scale: Tensor<B, 2>) -> Tensor<B, 2> {
    let dtype = h.dtype();
    cast(widened(h) + widened(output) * scale, dtype)
}

/// The sum of states, in their type.
pub(super) fn sum<B: Backend>(states: Vec<Tensor<B, 2>>) -> Tensor<B, 2> {
    let dtype = states[0].dtype();
    let sum = states.into_iter().map(widened).reduce(|sum, state| sum + state).expect("there is a state");
    cast(sum, dtype)
}

/// The root mean square of wide rows, `[rows, 1]`; `eps` is added to the mean square.
pub(super) fn root_mean_square<B: Backend>(rows: Tensor<B, 2>, eps: f64) -> Tensor<B, 2> {
    rows.square().mean_dim(1).add_scalar(eps).sqrt()
}

/// The columns `[rows, 1]` of a matrix.
pub(super) fn columns<B: Backend>(matrix: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
    matrix.split(1, 1)
}
