//! The softmax of connection coefficients: tiny, and differentiated without cancellation.

use burn::tensor::{Tensor, activation::softmax, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor};
use crate::FusedOps;

/// Softmax of each row; `logits` is `[rows, entries]`.
///
/// One node of the graph, whose gradient is `p (g - sum(p g))` from the probabilities `p`. Differentiating the quotient of
/// exponentials step by step loses digits where the entries of `g` are nearly equal, as those of connections often are.
pub fn row_softmax<B: FusedOps>(logits: Tensor<B, 2>) -> Tensor<B, 2> {
    tensor(B::row_softmax(primitive(logits)))
}

pub(crate) fn composition<B: Backend>(logits: FloatTensor<B>) -> FloatTensor<B> {
    primitive(softmax(tensor::<B, 2>(logits), 1))
}
