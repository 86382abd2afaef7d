//! The nodes of [`causal_attention`](crate::causal_attention()) and [`self_attention`](crate::self_attention()).

use burn::{backend::Autodiff, tensor::TensorMetadata};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{AttentionShape, FusedOps, ops};

#[derive(Debug)]
struct CausalAttention;

impl<B: FusedOps> Backward<B, 3> for CausalAttention {
    /// Inputs, rotary table, log-sum-exps, sizes.
    type State = ([Primitive<B>; 3], Primitive<B>, Primitive<B>, AttentionShape);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (inputs, table, saved, shape) = ops.state;
        let gradients = B::causal_attention_backward(inputs, table, saved, upstream, shape);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            register!(B, grads, node, gradient);
        }
    }
}

pub(super) fn causal_attention<B: FusedOps, C: CheckpointStrategy>(
    queries: Tracked<B>,
    keys: Tracked<B>,
    values: Tracked<B>,
    table: Tracked<B>,
    shape: AttentionShape,
) -> Tracked<B> {
    if !B::fused(queries.dtype()) {
        return ops::attention::composition::<Autodiff<B, C>>(queries, keys, values, table, shape);
    }
    let nodes = [queries.node, keys.node, values.node];
    let inputs = [queries.primitive, keys.primitive, values.primitive];
    let [q, k, v] = inputs.clone();
    let (output, saved) = B::causal_attention(q, k, v, table.primitive.clone(), shape);
    match (CausalAttention.prepare::<C>(nodes).compute_bound().stateful(), saved) {
        (OpsKind::Tracked(prep), Some(saved)) => prep.finish((inputs, table.primitive, saved, shape), output),
        (OpsKind::Tracked(_), None) => unreachable!("a fused backend saves what its backward pass needs"),
        (OpsKind::UnTracked(prep), _) => prep.finish(output),
    }
}

#[derive(Debug)]
struct SelfAttention;

impl<B: FusedOps> Backward<B, 1> for SelfAttention {
    /// Packed queries, keys and values; log-sum-exps; sizes.
    type State = (Primitive<B>, Primitive<B>, AttentionShape);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (packed, saved, shape) = ops.state;
        let [node] = ops.parents;
        register!(B, grads, node, B::self_attention_backward(packed, saved, upstream, shape));
    }
}

pub(super) fn self_attention<B: FusedOps, C: CheckpointStrategy>(
    packed: Tracked<B>,
    shape: AttentionShape,
) -> Tracked<B> {
    if !B::fused(packed.dtype()) {
        return ops::self_attention::composition::<Autodiff<B, C>>(packed, shape);
    }
    let (output, saved) = B::self_attention(packed.primitive.clone(), shape);
    match (SelfAttention.prepare::<C>([packed.node]).compute_bound().stateful(), saved) {
        (OpsKind::Tracked(prep), Some(saved)) => prep.finish((packed.primitive, saved, shape), output),
        (OpsKind::Tracked(_), None) => unreachable!("a fused backend saves what its backward pass needs"),
        (OpsKind::UnTracked(prep), _) => prep.finish(output),
    }
}
