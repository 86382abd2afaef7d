//! The nodes of [`mix_streams`](crate::mix_streams()), [`update_streams`](crate::update_streams()) and
//! [`sinkhorn`](crate::sinkhorn()).

use burn::{backend::Autodiff, tensor::TensorMetadata};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, ops};

/// Parents: the weights, the streams, and what is added, if anything.
#[derive(Debug)]
struct MixStreams<const N: usize>;

impl<B: FusedOps, const N: usize> Backward<B, N> for MixStreams<N> {
    /// Weights, streams, what is added, number of streams.
    type State = (Primitive<B>, Primitive<B>, Option<Primitive<B>>, usize);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (weights, streams, added, n) = ops.state;
        let (dweights, dstreams, dadded) = B::mix_streams_backward(weights, streams, added, upstream, n);
        for (node, gradient) in ops.parents.into_iter().zip([Some(dweights), Some(dstreams), dadded]) {
            if let Some(gradient) = gradient {
                register!(B, grads, node, gradient);
            }
        }
    }
}

pub(super) fn mix_streams<B: FusedOps, C: CheckpointStrategy>(
    weights: Tracked<B>,
    streams: Tracked<B>,
    added: Option<Tracked<B>>,
    n: usize,
) -> Tracked<B> {
    if !B::fused(streams.dtype()) || weights.dtype() != streams.dtype() {
        return ops::streams::composition::<Autodiff<B, C>>(weights, streams, added, n);
    }
    let (w, x) = (weights.primitive, streams.primitive);
    let y = added.as_ref().map(|added| added.primitive.clone());
    let output = B::mix_streams(w.clone(), x.clone(), y.clone(), n);
    macro_rules! node {
        ($count:literal, $nodes:expr) => {
            match MixStreams::<$count>.prepare::<C>($nodes).compute_bound().stateful() {
                OpsKind::Tracked(prep) => prep.finish((w, x, y, n), output),
                OpsKind::UnTracked(prep) => prep.finish(output),
            }
        };
    }
    match added {
        Some(added) => node!(3, [weights.node, streams.node, added.node]),
        None => node!(2, [weights.node, streams.node]),
    }
}

#[derive(Debug)]
struct Sinkhorn;

impl<B: FusedOps> Backward<B, 1> for Sinkhorn {
    /// Logits, order of the matrices, rounds.
    type State = (Primitive<B>, usize, usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (logits, n, rounds) = ops.state;
        let [node] = ops.parents;
        register!(B, grads, node, B::sinkhorn_backward(logits, upstream, n, rounds));
    }
}

pub(super) fn sinkhorn<B: FusedOps, C: CheckpointStrategy>(logits: Tracked<B>, n: usize, rounds: usize) -> Tracked<B> {
    if !B::fused(logits.dtype()) {
        return ops::sinkhorn::composition::<Autodiff<B, C>>(logits, n, rounds);
    }
    let output = B::sinkhorn(logits.primitive.clone(), n, rounds);
    match Sinkhorn.prepare::<C>([logits.node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((logits.primitive, n, rounds), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
