//! Sums of parallel streams with weights for every row: what hyper-connections do with theirs.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{assert_one_type, concatenate::concatenate, primitive, tensor, widened};
use crate::FusedOps;

/// `output_t = sum_s weights_{s,t} streams_s` in every row, over `n` streams.
///
/// `streams` is `[rows, n * width]`, one stream after another. `weights` is `[rows, n * targets]`, or `[1, n * targets]` for weights that
/// all rows share, in `f32` whatever the type of the streams, whose sums are formed in `f32` and rounded once. The result is
/// `[rows, targets * width]`.
///
/// # Panics
/// Where sizes do not fit, or are 0 but for the rows.
pub fn mix_streams<B: FusedOps>(weights: Tensor<B, 2>, streams: Tensor<B, 2>, n: usize) -> Tensor<B, 2> {
    shape(weights.dims(), streams.dims(), n, false);
    tensor(B::mix_streams(primitive(weights), primitive(streams), None, n))
}

/// [`mix_streams`] with one more source after the `n` streams: `added`, `[rows, width]`. The weights are `[rows or 1, (n + 1) * targets]`.
///
/// # Panics
/// Where sizes do not fit or are 0 but for the rows, or what is added is of another type than the streams.
pub fn update_streams<B: FusedOps>(
    weights: Tensor<B, 2>,
    streams: Tensor<B, 2>,
    added: Tensor<B, 2>,
    n: usize,
) -> Tensor<B, 2> {
    let sizes = shape(weights.dims(), streams.dims(), n, true);
    assert_eq!(added.dims(), [sizes.rows, sizes.width], "update_streams: what is added has the size of a stream");
    assert_one_type("update_streams", &[streams.dtype(), added.dtype()]);
    tensor(B::mix_streams(primitive(weights), primitive(streams), Some(primitive(added)), n))
}

/// The sizes of an operation on streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamShape {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Streams, and what is added.
    pub(crate) sources: usize,
    pub(crate) targets: usize,
}

/// Panics where sizes do not fit.
pub(crate) fn shape(weights: [usize; 2], [rows, columns]: [usize; 2], n: usize, added: bool) -> StreamShape {
    let sources = n + usize::from(added);
    let fits = n > 0
        && columns > 0
        && weights[1] > 0
        && columns.is_multiple_of(n)
        && weights[1].is_multiple_of(sources)
        && (weights[0] == rows || weights[0] == 1);
    assert!(fits, "{n} streams [{rows}, {columns}] cannot be mixed by weights {weights:?} of {sources} sources");
    StreamShape { rows, width: columns / n, sources, targets: weights[1] / sources }
}

pub(crate) fn composition<B: Backend>(
    weights: FloatTensor<B>,
    streams: FloatTensor<B>,
    added: Option<FloatTensor<B>>,
    n: usize,
) -> FloatTensor<B> {
    let (weights, streams) = (tensor::<B, 2>(weights), tensor::<B, 2>(streams));
    let dtype = streams.dtype();
    let alike = weights.dims()[0];
    let StreamShape { rows, width, sources, targets } = shape(weights.dims(), streams.dims(), n, added.is_some());
    let streams = match added {
        Some(added) => concatenate(vec![widened(streams), widened(tensor::<B, 2>(added))], 1),
        None => widened(streams),
    };
    let weights = weights.cast(streams.dtype()).reshape([alike, sources, targets]);
    let weights = weights.swap_dims(1, 2).expand([rows, targets, sources]);
    let mixed = weights.matmul(streams.reshape([rows, sources, width]));
    primitive(mixed.reshape([rows, targets * width]).cast(dtype))
}
