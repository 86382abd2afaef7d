//! The node of [`residual_block`](crate::residual_block()).

use burn::{backend::Autodiff, tensor::TensorMetadata};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, ops};

#[derive(Debug)]
struct ResidualBlock;

impl<B: FusedOps> Backward<B, 2> for ResidualBlock {
    /// Input, parameters, what the forward pass kept.
    type State = [Primitive<B>; 3];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let wanted = [ops.parents[0].is_some(), ops.parents[1].is_some()];
        let gradients = B::residual_block_backward(ops.state, upstream, wanted);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(gradient) = gradient {
                register!(B, grads, node, gradient);
            }
        }
    }
}

pub(super) fn residual_block<B: FusedOps, C: CheckpointStrategy>(
    x: Tracked<B>,
    parameters: Tracked<B>,
    eps: f64,
) -> Tracked<B> {
    if !B::fused(x.dtype()) {
        return ops::residual_block::composition::<Autodiff<B, C>>(x, parameters, eps);
    }
    let nodes = [x.node, parameters.node];
    let (x, parameters) = (x.primitive, parameters.primitive);
    match ResidualBlock.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (output, saved) = B::residual_block_keeping(x.clone(), parameters.clone(), eps);
            prep.finish([x, parameters, saved], output)
        }
        OpsKind::UnTracked(prep) => prep.finish(B::residual_block(x, parameters, eps)),
    }
}
