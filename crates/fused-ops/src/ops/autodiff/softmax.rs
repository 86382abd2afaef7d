//! The nodes of [`row_softmax`](crate::row_softmax()) and [`cross_entropy`](crate::cross_entropy()).

use burn::{
    backend::Autodiff,
    tensor::{TensorMetadata, ops::IntTensor},
};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, ops::cross_entropy as operation};

#[derive(Debug)]
struct RowSoftmax;

impl<B: FusedOps> Backward<B, 1> for RowSoftmax {
    /// The probabilities.
    type State = Primitive<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let p = ops.state;
        let mean = B::float_sum_dim(B::float_mul(p.clone(), upstream.clone()), 1);
        let [logits] = ops.parents;
        register!(B, grads, logits, B::float_mul(p, B::float_sub(upstream, mean)));
    }
}

pub(super) fn row_softmax<B: FusedOps, C: CheckpointStrategy>(logits: Tracked<B>) -> Tracked<B> {
    let p = B::row_softmax(logits.primitive);
    match RowSoftmax.prepare::<C>([logits.node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(p.clone(), p),
        OpsKind::UnTracked(prep) => prep.finish(p),
    }
}

#[derive(Debug)]
struct CrossEntropy;

impl<B: FusedOps> Backward<B, 1> for CrossEntropy {
    /// The gradient of the logits for an upstream gradient of 1.
    type State = Primitive<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let [logits] = ops.parents;
        let upstream = B::float_reshape(upstream, [1, 1].into());
        register!(B, grads, logits, B::float_mul(ops.state, upstream));
    }
}

pub(super) fn cross_entropy<B: FusedOps, C: CheckpointStrategy>(
    logits: Tracked<B>,
    targets: IntTensor<B>,
) -> Tracked<B> {
    if !B::fused(logits.dtype()) {
        return operation::composition::<Autodiff<B, C>>(logits, targets);
    }
    match CrossEntropy.prepare::<C>([logits.node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (loss, gradient) = B::cross_entropy_with_gradient(logits.primitive, targets);
            prep.finish(gradient, loss)
        }
        OpsKind::UnTracked(prep) => prep.finish(B::cross_entropy(logits.primitive, targets)),
    }
}
