//! The node of [`pairwise_distances`](crate::pairwise_distances()).

use burn::{backend::Autodiff, tensor::TensorMetadata};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, ops};

#[derive(Debug)]
struct PairwiseDistances;

impl<B: FusedOps> Backward<B, 2> for PairwiseDistances {
    /// Left, right, distances.
    type State = [Primitive<B>; 3];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let wanted = [ops.parents[0].is_some(), ops.parents[1].is_some()];
        let gradients = B::pairwise_distances_backward(ops.state, upstream, wanted);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(gradient) = gradient {
                register!(B, grads, node, gradient);
            }
        }
    }
}

pub(super) fn pairwise_distances<B: FusedOps, C: CheckpointStrategy>(
    left: Tracked<B>,
    right: Tracked<B>,
) -> Tracked<B> {
    if !B::fused(left.dtype()) {
        return ops::distances::composition::<Autodiff<B, C>>(left, right);
    }
    let nodes = [left.node, right.node];
    let (left, right) = (left.primitive, right.primitive);
    let output = B::pairwise_distances(left.clone(), right.clone());
    match PairwiseDistances.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish([left, right, output.clone()], output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
