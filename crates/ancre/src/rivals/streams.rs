//! What the families of Hyper-Connections share: `n` streams side by side, and the weights between them and a branch.

use burn::{
    module::Param,
    tensor::{DType, Tensor, backend::Backend},
};

use super::{
    State,
    rows::{cast, concatenate, parameter, widened},
};

/// Weights between streams and a branch, the same for all tokens (one row) or for each (`rows`), in the type of sums.
pub(super) struct Weights<B: Backend> {
    /// Of every stream in what the branch reads, `[1 or rows, 1, n]`.
    pub read: Tensor<B, 3>,
    /// Of every old stream (columns) in each new one, `[1 or rows, n, n]`.
    pub keep: Tensor<B, 3>,
    /// Of the branch's output in each new stream, `[1 or rows, n, 1]`.
    pub write: Tensor<B, 3>,
}

/// All streams are the embeddings: one state `[rows, n * width]`.
pub(super) fn start<B: Backend>(input: Tensor<B, 2>, n: usize) -> Vec<Tensor<B, 2>> {
    // Not `repeat_dim`, whose gradient comes out wrong for dimensions longer than 1 (burn 0.21).
    vec![concatenate(vec![input; n], 1)]
}

/// What the branch reads. The streams of `state` are moved on, up to what the branch adds to them.
pub(super) fn read<B: Backend>(state: &mut State<B>, weights: Weights<B>) -> Tensor<B, 2> {
    let n = weights.write.dims()[1];
    let [rows, all] = state.rows[0].dims();
    let width = all / n;
    let streams = state.rows.swap_remove(0);
    let dtype = streams.dtype();
    let streams = widened(streams).reshape([rows, n, width]);
    let both = concatenate(vec![weights.read, weights.keep], 1).matmul(streams);
    state.rows.push(both.clone().slice([0..rows, 1..n + 1, 0..width]).reshape([rows, all]));
    let tokens = weights.write.dims()[0];
    state.held = vec![weights.write.reshape([tokens, n])];
    cast(both.slice([0..rows, 0..1, 0..width]).reshape([rows, width]), dtype)
}

/// Adds the branch's output to the streams.
pub(super) fn write<B: Backend>(state: &mut State<B>, output: Tensor<B, 2>) {
    let (kept, weights) = (state.rows.swap_remove(0), state.held.swap_remove(0));
    let dtype = output.dtype();
    let [rows, all] = kept.dims();
    let [tokens, n] = weights.dims();
    let output = widened(output).reshape([rows, 1, all / n]);
    let streams = kept.reshape([rows, n, all / n]) + output * weights.reshape([tokens, n, 1]);
    state.rows.push(cast(streams.reshape([rows, all]), dtype));
}

/// The sum of the streams.
pub(super) fn sum<B: Backend>(mut state: State<B>, n: usize) -> Tensor<B, 2> {
    let streams = state.rows.swap_remove(0);
    let (dtype, [rows, all]) = (streams.dtype(), streams.dims());
    cast(widened(streams).reshape([rows, n, all / n]).sum_dim(1).reshape([rows, all / n]), dtype)
}

/// One-hot at stream `l mod n` for what branch `l` reads, and the identity for the streams: `[branches, n, n + 1]`.
pub(super) fn one_hot_and_identity<B: Backend>(branches: usize, n: usize, device: &B::Device) -> Param<Tensor<B, 3>> {
    let entry = |branch: usize, s: usize, column: usize| match column {
        0 => s == branch % n,
        _ => s + 1 == column,
    };
    let entries = (0..branches).flat_map(|branch| {
        (0..n).flat_map(move |s| (0..=n).map(move |column| f32::from(u8::from(entry(branch, s, column)))))
    });
    parameter(entries.collect(), [branches, n, n + 1], device)
}

/// The type of the streams.
pub(super) fn dtype<B: Backend>(state: &State<B>) -> DType {
    state.rows[0].dtype()
}
