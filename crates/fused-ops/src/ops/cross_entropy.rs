//! Softmax cross-entropy with ignored targets.

use burn::tensor::{Int, Tensor, activation::log_softmax, backend::Backend, ops::FloatTensor, ops::IntTensor};

use super::{primitive, tensor, widened};
use crate::FusedOps;

/// The target that is not counted (PyTorch's `ignore_index`).
pub const IGNORE_TARGET: i64 = -100;

/// Mean cross-entropy, `[1]` in nats, over the targets that are not [`IGNORE_TARGET`]; 0 where all are ignored.
///
/// `logits` is `[rows, classes]`, `targets` is `[rows]` with entries in `0..classes` or [`IGNORE_TARGET`]. Where the
/// graph is tracked, the gradient of the logits is formed on the way and replaces them as the saved state.
///
/// # Panics
/// Where the numbers of rows differ, or (on the CPU) a target is out of range: check targets when batches are made.
pub fn cross_entropy<B: FusedOps>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    assert_eq!(logits.dims()[0], targets.dims()[0], "cross_entropy: one target for each row");
    tensor(B::cross_entropy(primitive(logits), targets.into_primitive()))
}

pub(crate) fn composition<B: Backend>(logits: FloatTensor<B>, targets: IntTensor<B>) -> FloatTensor<B> {
    let logits = tensor::<B, 2>(logits);
    // Sums over a vocabulary, and counts of targets, do not fit half precision.
    let loss_dtype = logits.dtype();
    let logits = widened(logits);
    let targets = Tensor::<B, 1, Int>::from_primitive(targets);
    let rows = targets.dims()[0];
    let ignored = targets.clone().equal_elem(IGNORE_TARGET);
    let dtype = logits.dtype();
    let counted = ignored.clone().bool_not().float().cast(dtype);
    let safe = targets.mask_fill(ignored, 0).reshape([rows, 1]);
    let losses = log_softmax(logits, 1).gather(1, safe).reshape([rows]).neg();
    // At least 1, so that a batch in which every target is ignored gives 0 and not NaN.
    let total = counted.clone().sum().clamp_min(1.0);
    primitive(losses.mul(counted).sum().div(total).cast(loss_dtype))
}
