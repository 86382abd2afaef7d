//! Concatenation that is safe beside backward passes of other threads.

use burn::tensor::{Tensor, backend::Backend};

/// `Tensor::cat`: tensors one after the other along dimension `dim`, without losing gradients beside other threads.
///
/// burn-autodiff 0.21 lets go of the inputs of `Tensor::cat` before its output is on the graph. Where nothing else in their graph is
/// held, the backward pass of another thread clears them in between, and the gradients of what is behind them end there without an
/// error. Slices of a parameter get into that state: graphs that are merged a second time leave a parameter behind, and what is made
/// of it later begins a graph without it. Here the inputs are held until the output is on the graph.
///
/// # Panics
/// Where `Tensor::cat` does: without tensors, or where sizes differ in another dimension than `dim`.
pub fn concatenate<B: Backend, const D: usize>(tensors: Vec<Tensor<B, D>>, dim: usize) -> Tensor<B, D> {
    let held = tensors.clone();
    let all = Tensor::cat(tensors, dim);
    drop(held);
    all
}
