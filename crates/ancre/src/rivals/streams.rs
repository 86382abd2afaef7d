//! What the families of Hyper-Connections share: `n` streams side by side, and the weights between them and a branch.

use burn::{
    module::Param,
    tensor::{DType, Tensor, backend::Backend},
};
use fused_ops::{FusedOps, concatenate, mix_streams, update_streams};

use super::{
    State,
    rows::{cast, parameter, widened},
};

/// Weights between streams and a branch, the same for all tokens (one row) or for each (`rows`), in the type of sums.
pub(super) struct Weights<B: Backend> {
    /// Of every stream in what the branch reads, `[1 or rows, n]`.
    pub read: Tensor<B, 2>,
    /// Of every old stream in each new one, old streams first: `[1 or rows, n, n]`.
    pub keep: Tensor<B, 3>,
    /// Of the branch's output in each new stream, `[1 or rows, n]`.
    pub write: Tensor<B, 2>,
}

/// All streams are the embeddings: one state `[rows, n * width]`.
pub(super) fn start<B: Backend>(input: Tensor<B, 2>, n: usize) -> Vec<Tensor<B, 2>> {
    // Not `repeat_dim`, whose gradient comes out wrong for dimensions longer than 1 (burn 0.21).
    vec![concatenate(vec![input; n], 1)]
}

/// What the branch reads. The weights of what comes after it are held in the state.
pub(super) fn read<B: FusedOps>(state: &mut State<B>, weights: Weights<B>) -> Tensor<B, 2> {
    let [tokens, n] = weights.write.dims();
    state.held = vec![concatenate(vec![weights.keep.reshape([tokens, n * n]), weights.write], 1)];
    mix_streams(weights.read, state.rows[0].clone(), n)
}

/// Mixes the streams, and adds the branch's output to them.
pub(super) fn write<B: FusedOps>(state: &mut State<B>, output: Tensor<B, 2>) {
    let (streams, weights) = (state.rows.swap_remove(0), state.held.swap_remove(0));
    let n = streams.dims()[1] / output.dims()[1];
    state.rows.push(update_streams(weights, streams, output, n));
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
