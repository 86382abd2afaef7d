//! Euclidean distances between all rows of two matrices.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, primitive, tensor};
use crate::FusedOps;

/// `|left[i] - right[j]|` for all pairs of rows: `[m, width]` and `[n, width]` give `[m, n]`.
///
/// Distances are taken from differences, and no `[m, n, width]` tensor is kept. The gradient of a pair of equal rows is 0
/// (on backends without a kernel it is not a number).
///
/// # Panics
/// Where widths or types differ.
pub fn pairwise_distances<B: FusedOps>(left: Tensor<B, 2>, right: Tensor<B, 2>) -> Tensor<B, 2> {
    let ([_, width], [_, other]) = (left.dims(), right.dims());
    assert!(width > 0 && width == other, "pairwise_distances: rows of {width} and of {other} elements");
    assert_one_type("pairwise_distances", &[left.dtype(), right.dtype()]);
    tensor(B::pairwise_distances(primitive(left), primitive(right)))
}

pub(crate) fn composition<B: Backend>(left: FloatTensor<B>, right: FloatTensor<B>) -> FloatTensor<B> {
    let (left, right) = (tensor::<B, 2>(left), tensor::<B, 2>(right));
    let ([m, _], [n, _]) = (left.dims(), right.dims());
    let differences = left.unsqueeze_dim::<3>(1) - right.unsqueeze_dim::<3>(0);
    primitive(differences.square().sum_dim(2).sqrt().reshape([m, n]))
}
