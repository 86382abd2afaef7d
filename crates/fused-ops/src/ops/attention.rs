//! Rotary embedding and causal softmax attention as one operation.

use burn::{
    module::Module,
    tensor::{Bool, Tensor, TensorData, activation::softmax, backend::Backend, ops::FloatTensor},
};

use super::{concatenate::concatenate, primitive, tensor};
use crate::FusedOps;

/// Sizes of an attention problem: batch, length, heads, head size.
pub type AttentionShape = crate::kernels::attention::Shape;

/// Cosines and sines of the rotary embedding (Su et al. 2021), `[2, positions, head_size / 2]`, for the rotate-half
/// form of LLaMA: feature `j` is paired with feature `j + head_size / 2`.
///
/// Frequencies are rounded to `f32` before they are multiplied by the position, as PyTorch models do.
///
/// It is a burn module without parameters, so that a model can hold it.
#[derive(Module, Debug)]
pub struct RotaryTable<B: Backend> {
    table: Tensor<B, 3>,
}

impl<B: Backend> RotaryTable<B> {
    /// The table of `positions` positions (from 0) for heads of `head_size` features and the given base (LLaMA: 10000).
    ///
    /// # Panics
    /// Where `head_size` is odd or 0.
    pub fn new(positions: usize, head_size: usize, base: f64, device: &B::Device) -> Self {
        assert!(head_size > 0 && head_size.is_multiple_of(2), "the rotary embedding turns pairs of features");
        let frequency = |j: usize| (1.0 / base.powf(2.0 * j as f64 / head_size as f64)) as f32;
        let frequencies: Vec<f32> = (0..head_size / 2).map(frequency).collect();
        Self::with_frequencies(positions, &frequencies, device)
    }

    /// The table of `positions` positions (from 0) with any frequencies, in radians a position: one for each pair of features
    /// of a head.
    pub fn with_frequencies(positions: usize, frequencies: &[f32], device: &B::Device) -> Self {
        let half = frequencies.len();
        let angle = |t: usize, j: usize| f64::from(t as f32 * frequencies[j]);
        let (mut cos, mut sin) = (Vec::with_capacity(positions * half), Vec::with_capacity(positions * half));
        for t in 0..positions {
            for j in 0..half {
                cos.push(angle(t, j).cos() as f32);
                sin.push(angle(t, j).sin() as f32);
            }
        }
        cos.append(&mut sin);
        Self { table: Tensor::from_data(TensorData::new(cos, [2, positions, half]), device) }
    }

    /// Positions in the table.
    pub fn positions(&self) -> usize {
        self.table.dims()[1]
    }
}

/// Causal multi-head attention with rotary embedding: each position attends to itself and all earlier ones, with scores
/// scaled by `1 / sqrt(head_size)`.
///
/// `queries`, `keys` and `values` are `[batch * length, heads * head_size]`; so is the result. `rotary` must hold at
/// least `shape.length` positions. Fused kernels keep no `length x length` matrix; the composition that other backends run
/// does.
///
/// # Panics
/// Where a tensor or the table does not fit `shape`, or types differ.
pub fn causal_attention<B: FusedOps>(
    queries: Tensor<B, 2>,
    keys: Tensor<B, 2>,
    values: Tensor<B, 2>,
    rotary: &RotaryTable<B>,
    shape: AttentionShape,
) -> Tensor<B, 2> {
    let expected = [shape.batch * shape.length, shape.heads * shape.head_size];
    for (name, t) in [("queries", &queries), ("keys", &keys), ("values", &values)] {
        assert_eq!(t.dims(), expected, "causal_attention: {name} do not fit {shape:?}");
    }
    let [_, positions, half] = rotary.table.dims();
    assert!(
        positions >= shape.length && 2 * half == shape.head_size,
        "causal_attention: the rotary table ({positions} positions, {half} pairs) does not fit {shape:?}"
    );
    let mut table = rotary.table.clone();
    if positions > shape.length {
        table = table.narrow(1, 0, shape.length);
    }
    let dtype = queries.dtype();
    assert!(
        keys.dtype() == dtype && values.dtype() == dtype,
        "causal_attention: queries, keys and values have one type"
    );
    let table = if table.dtype() == dtype { table } else { table.cast(dtype) };
    tensor(B::causal_attention(primitive(queries), primitive(keys), primitive(values), primitive(table), shape).0)
}

pub(crate) fn composition<B: Backend>(
    queries: FloatTensor<B>,
    keys: FloatTensor<B>,
    values: FloatTensor<B>,
    table: FloatTensor<B>,
    shape: AttentionShape,
) -> FloatTensor<B> {
    let AttentionShape { batch, length, heads, head_size } = shape;
    let half = head_size / 2;
    let split = |t: FloatTensor<B>| tensor::<B, 2>(t).reshape([batch, length, heads, head_size]).swap_dims(1, 2);
    let table = tensor::<B, 3>(table);
    let part = |i: usize| table.clone().narrow(0, i, 1).reshape([1, 1, length, half]);
    let (cos, sin) = (part(0), part(1));
    let rotate = |x: Tensor<B, 4>| {
        let (low, high) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
        concatenate(
            vec![low.clone() * cos.clone() - high.clone() * sin.clone(), high * cos.clone() + low * sin.clone()],
            3,
        )
    };
    let (q, k, v) = (rotate(split(queries)), rotate(split(keys)), split(values));
    let scores = q.matmul(k.swap_dims(2, 3)).mul_scalar(1.0 / (head_size as f64).sqrt());
    let future = Tensor::<B, 2, Bool>::tril_mask([length, length], 0, &scores.device());
    let scores = scores.mask_fill(future.reshape([1, 1, length, length]).expand([batch, heads, length, length]), -1e30);
    primitive(softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([batch * length, heads * head_size]))
}
