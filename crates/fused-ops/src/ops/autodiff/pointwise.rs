//! The nodes of the element-wise operations: [`swiglu`](crate::swiglu()), [`gated_add`](crate::gated_add()),
//! [`add_bias`](crate::add_bias()) and [`bias_gelu`](crate::bias_gelu()).

use burn::{backend::Autodiff, tensor::TensorMetadata};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, ops};

#[derive(Debug)]
struct SwiGlu;

impl<B: FusedOps> Backward<B, 2> for SwiGlu {
    type State = (Primitive<B>, Primitive<B>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (dgate, dup) = B::swiglu_backward(ops.state.0, ops.state.1, upstream);
        let [gate, up] = ops.parents;
        register!(B, grads, gate, dgate);
        register!(B, grads, up, dup);
    }
}

pub(super) fn swiglu<B: FusedOps, C: CheckpointStrategy>(gate: Tracked<B>, up: Tracked<B>) -> Tracked<B> {
    if !B::fused(gate.dtype()) {
        return ops::swiglu::composition::<Autodiff<B, C>>(gate, up);
    }
    let output = B::swiglu(gate.primitive.clone(), up.primitive.clone());
    match SwiGlu.prepare::<C>([gate.node, up.node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((gate.primitive, up.primitive), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

#[derive(Debug)]
struct GatedAdd;

impl<B: FusedOps> Backward<B, 3> for GatedAdd {
    /// Gate and branch.
    type State = (Primitive<B>, Primitive<B>);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (gate, branch) = ops.state;
        let [x_node, gate_node, branch_node] = ops.parents;
        if gate_node.is_some() || branch_node.is_some() {
            let (dgate, dbranch) = B::gated_add_backward(gate, branch, upstream.clone());
            register!(B, grads, gate_node, dgate);
            register!(B, grads, branch_node, dbranch);
        }
        register!(B, grads, x_node, upstream);
    }
}

pub(super) fn gated_add<B: FusedOps, C: CheckpointStrategy>(
    x: Tracked<B>,
    gate: Tracked<B>,
    branch: Tracked<B>,
) -> Tracked<B> {
    if !B::fused(x.dtype()) {
        return ops::gated_add::composition::<Autodiff<B, C>>(x, gate, branch);
    }
    let nodes = [x.node, gate.node, branch.node];
    let (gate, branch) = (gate.primitive, branch.primitive);
    let output = B::gated_add(x.primitive, gate.clone(), branch.clone());
    match GatedAdd.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((gate, branch), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

#[derive(Debug)]
struct AddBias;

impl<B: FusedOps> Backward<B, 2> for AddBias {
    type State = ();

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let [x, bias] = ops.parents;
        register!(B, grads, bias, B::add_bias_backward(upstream.clone()));
        register!(B, grads, x, upstream);
    }
}

pub(super) fn add_bias<B: FusedOps, C: CheckpointStrategy>(x: Tracked<B>, bias: Tracked<B>) -> Tracked<B> {
    if !B::fused(x.dtype()) {
        return ops::bias::add_composition::<Autodiff<B, C>>(x, bias);
    }
    let output = B::add_bias(x.primitive, bias.primitive);
    AddBias.prepare::<C>([x.node, bias.node]).compute_bound().stateless(output)
}

#[derive(Debug)]
struct BiasGelu;

impl<B: FusedOps> Backward<B, 2> for BiasGelu {
    /// The derivative of GELU at the sums.
    type State = Primitive<B>;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (dx, dbias) = B::bias_gelu_backward(ops.state, upstream);
        let [x, bias] = ops.parents;
        register!(B, grads, x, dx);
        register!(B, grads, bias, dbias);
    }
}

pub(super) fn bias_gelu<B: FusedOps, C: CheckpointStrategy>(x: Tracked<B>, bias: Tracked<B>) -> Tracked<B> {
    if !B::fused(x.dtype()) {
        return ops::bias::gelu_composition::<Autodiff<B, C>>(x, bias);
    }
    match BiasGelu.prepare::<C>([x.node, bias.node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (output, derivative) = B::bias_gelu_with_derivative(x.primitive, bias.primitive);
            prep.finish(derivative, output)
        }
        OpsKind::UnTracked(prep) => prep.finish(B::bias_gelu(x.primitive, bias.primitive)),
    }
}
