//! The fused operations as nodes of the autodiff graph, for every backend beneath it.

use burn::{
    backend::Autodiff,
    tensor::{
        DType,
        backend::AutodiffBackend,
        ops::{FloatTensor, IntTensor},
    },
};
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;

use crate::{AdamWStep, AttentionShape, FusedOps, Link};

type Primitive<B> = FloatTensor<B>;

/// A tensor on the graph. Its type has no public path of its own.
type Tracked<B> = FloatTensor<Autodiff<B>>;

/// Adds a gradient to its node, where the node wants one. (A macro, since the type of nodes cannot be named.)
macro_rules! register {
    ($backend:ty, $grads:expr, $node:expr, $gradient:expr) => {
        if let Some(node) = $node {
            $grads.register::<$backend>(node.id, $gradient);
        }
    };
}

mod attention;
mod distances;
mod mix;
mod normalisation;
mod pointwise;
mod residual_block;
mod softmax;
mod streams;

impl<B: FusedOps, C: CheckpointStrategy> FusedOps for Autodiff<B, C> {
    fn mix(
        coefficients: FloatTensor<Self>,
        first: usize,
        base: FloatTensor<Self>,
        states: Vec<FloatTensor<Self>>,
    ) -> FloatTensor<Self> {
        mix::mix::<B, C>(coefficients, first, base, states)
    }

    fn connect(link: Link<Self>) -> FloatTensor<Self> {
        mix::connect::<B, C>(link)
    }

    fn row_softmax(logits: FloatTensor<Self>) -> FloatTensor<Self> {
        softmax::row_softmax::<B, C>(logits)
    }

    fn rms_norm(input: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        normalisation::rms_norm::<B, C>(input, weight, eps)
    }

    fn modulated_layer_norm(
        input: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self> {
        normalisation::modulated_layer_norm::<B, C>(input, shift, scale, eps)
    }

    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        pointwise::swiglu::<B, C>(gate, up)
    }

    fn gated_add(x: FloatTensor<Self>, gate: FloatTensor<Self>, branch: FloatTensor<Self>) -> FloatTensor<Self> {
        pointwise::gated_add::<B, C>(x, gate, branch)
    }

    fn gated_shortcut(rows: [FloatTensor<Self>; 2], parameters: [FloatTensor<Self>; 2], eps: f64) -> FloatTensor<Self> {
        normalisation::gated_shortcut::<B, C>(rows, parameters, eps)
    }

    fn add_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        pointwise::add_bias::<B, C>(x, bias)
    }

    fn bias_gelu(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        pointwise::bias_gelu::<B, C>(x, bias)
    }

    fn bias_norm_swish(x: FloatTensor<Self>, affine: [FloatTensor<Self>; 3], eps: f64) -> FloatTensor<Self> {
        normalisation::bias_norm_swish::<B, C>(x, affine, eps)
    }

    fn pairwise_distances(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        distances::pairwise_distances::<B, C>(left, right)
    }

    fn mix_streams(
        weights: FloatTensor<Self>,
        streams: FloatTensor<Self>,
        added: Option<FloatTensor<Self>>,
        n: usize,
    ) -> FloatTensor<Self> {
        streams::mix_streams::<B, C>(weights, streams, added, n)
    }

    fn sinkhorn(logits: FloatTensor<Self>, n: usize, rounds: usize) -> FloatTensor<Self> {
        streams::sinkhorn::<B, C>(logits, n, rounds)
    }

    fn residual_block(x: FloatTensor<Self>, parameters: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        residual_block::residual_block::<B, C>(x, parameters, eps)
    }

    fn causal_attention(
        queries: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        values: FloatTensor<Self>,
        table: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>) {
        (attention::causal_attention::<B, C>(queries, keys, values, table, shape), None)
    }

    fn self_attention(
        packed: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>) {
        (attention::self_attention::<B, C>(packed, shape), None)
    }

    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        softmax::cross_entropy::<B, C>(logits, targets)
    }

    fn adamw(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: &AdamWStep,
    ) -> [FloatTensor<Self>; 3] {
        B::adamw(parameter.primitive, gradient.primitive, first.primitive, second.primitive, step).map(Self::from_inner)
    }

    fn fused(dtype: DType) -> bool {
        B::fused(dtype)
    }
}
