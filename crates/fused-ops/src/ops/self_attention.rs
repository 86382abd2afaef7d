//! Bidirectional softmax attention on packed queries, keys and values.

use burn::tensor::{Tensor, activation::softmax, backend::Backend, ops::FloatTensor};

use super::{attention::AttentionShape, primitive, tensor};
use crate::FusedOps;

/// Multi-head attention of every position to every position of its sequence, without position embedding, with scores
/// scaled by `1 / sqrt(head_size)` (the attention of ViT and DiT).
///
/// `packed` is `[batch * length, 3 * heads * head_size]`: queries, then keys, then values, in each of which head
/// follows head, as one linear layer for all three gives them (timm's `qkv`). The result is `[batch * length, heads *
/// head_size]`. Fused kernels read the packed matrix where it lies and keep no `length x length` matrix; the
/// composition that other backends run does.
///
/// # Panics
/// Where `packed` does not fit `shape`, or heads are empty.
pub fn self_attention<B: FusedOps>(packed: Tensor<B, 2>, shape: AttentionShape) -> Tensor<B, 2> {
    let expected = [shape.batch * shape.length, 3 * shape.heads * shape.head_size];
    assert_eq!(packed.dims(), expected, "self_attention: the packed matrix does not fit {shape:?}");
    assert!(shape.head_size > 0, "self_attention: heads are empty in {shape:?}");
    tensor(B::self_attention(primitive(packed), shape).0)
}

pub(crate) fn composition<B: Backend>(packed: FloatTensor<B>, shape: AttentionShape) -> FloatTensor<B> {
    let AttentionShape { batch, length, heads, head_size } = shape;
    let width = heads * head_size;
    let packed = tensor::<B, 2>(packed);
    let part = |i: usize| {
        packed.clone().narrow(1, i * width, width).reshape([batch, length, heads, head_size]).swap_dims(1, 2)
    };
    let (q, k, v) = (part(0), part(1), part(2));
    let scores = q.matmul(k.swap_dims(2, 3)).mul_scalar(1.0 / (head_size as f64).sqrt());
    primitive(softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([batch * length, width]))
}
