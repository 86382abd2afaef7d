//! Doubly stochastic matrices by Sinkhorn's normalisation.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor, widened};
use crate::FusedOps;

/// The exponentials of every `n x n` matrix of logits, whose columns and then rows are divided by their sums, `rounds` times (Sinkhorn
/// and Knopp 1967): a doubly stochastic matrix, of which the rows sum to one exactly.
///
/// `logits` is `[matrices, n * n]`, row by row. The first round is made on logarithms. From then on every sum is at least `1 / n`, so
/// that logits of any size give numbers.
///
/// # Panics
/// Where the last dimension is not `n * n`, or there is no row or no round.
pub fn sinkhorn<B: FusedOps>(logits: Tensor<B, 2>, n: usize, rounds: usize) -> Tensor<B, 2> {
    assert!(n > 0 && logits.dims()[1] == n * n, "sinkhorn: matrices are square");
    assert!(rounds > 0, "sinkhorn: at least one round");
    tensor(B::sinkhorn(primitive(logits), n, rounds))
}

pub(crate) fn composition<B: Backend>(logits: FloatTensor<B>, n: usize, rounds: usize) -> FloatTensor<B> {
    let logits = tensor::<B, 2>(logits);
    let (dtype, [matrices, entries]) = (logits.dtype(), logits.dims());
    let logits = widened(logits).reshape([matrices, n, n]);
    let normalised = |logits: Tensor<B, 3>, dim: usize| {
        let largest = logits.clone().detach().max_dim(dim);
        let logits = logits - largest;
        logits.clone() - logits.exp().sum_dim(dim).log()
    };
    let mut matrix = normalised(normalised(logits, 1), 2).exp();
    for _ in 1..rounds {
        matrix = matrix.clone() / matrix.sum_dim(1);
        matrix = matrix.clone() / matrix.sum_dim(2);
    }
    primitive(matrix.reshape([matrices, entries]).cast(dtype))
}
