//! The nodes of [`rms_norm`](crate::rms_norm()), [`modulated_layer_norm`](crate::modulated_layer_norm()),
//! [`bias_norm_swish`](crate::bias_norm_swish()) and [`gated_shortcut`](crate::gated_shortcut()).

use burn::{backend::Autodiff, tensor::TensorMetadata};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, ops};

#[derive(Debug)]
struct RmsNorm;

impl<B: FusedOps> Backward<B, 2> for RmsNorm {
    type State = (Primitive<B>, Primitive<B>, f64);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (input, weight, eps) = ops.state;
        let (dx, dw) = B::rms_norm_backward(input, weight, upstream, eps);
        let [input, weight] = ops.parents;
        register!(B, grads, input, dx);
        register!(B, grads, weight, dw);
    }
}

pub(super) fn rms_norm<B: FusedOps, C: CheckpointStrategy>(
    input: Tracked<B>,
    weight: Tracked<B>,
    eps: f64,
) -> Tracked<B> {
    if !B::fused(input.dtype()) {
        return ops::rms_norm::composition::<Autodiff<B, C>>(input, weight, eps);
    }
    let output = B::rms_norm(input.primitive.clone(), weight.primitive.clone(), eps);
    match RmsNorm.prepare::<C>([input.node, weight.node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((input.primitive, weight.primitive, eps), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

#[derive(Debug)]
struct ModulatedLayerNorm;

impl<B: FusedOps> Backward<B, 3> for ModulatedLayerNorm {
    /// Input, scale, eps.
    type State = (Primitive<B>, Primitive<B>, f64);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (input, scale, eps) = ops.state;
        let gradients = B::modulated_layer_norm_backward(input, scale, upstream, eps);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            register!(B, grads, node, gradient);
        }
    }
}

pub(super) fn modulated_layer_norm<B: FusedOps, C: CheckpointStrategy>(
    input: Tracked<B>,
    shift: Tracked<B>,
    scale: Tracked<B>,
    eps: f64,
) -> Tracked<B> {
    if !B::fused(input.dtype()) {
        return ops::modulated_layer_norm::composition::<Autodiff<B, C>>(input, shift, scale, eps);
    }
    let nodes = [input.node, shift.node, scale.node];
    let (input, scale) = (input.primitive, scale.primitive);
    let output = B::modulated_layer_norm(input.clone(), shift.primitive, scale.clone(), eps);
    match ModulatedLayerNorm.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((input, scale, eps), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

#[derive(Debug)]
struct BiasNormSwish;

impl<B: FusedOps> Backward<B, 4> for BiasNormSwish {
    /// Input; bias, gain, offset; eps.
    type State = (Primitive<B>, [Primitive<B>; 3], f64);

    fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (x, affine, eps) = ops.state;
        let gradients = B::bias_norm_swish_backward(x, affine, upstream, eps);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            register!(B, grads, node, gradient);
        }
    }
}

pub(super) fn bias_norm_swish<B: FusedOps, C: CheckpointStrategy>(
    x: Tracked<B>,
    affine: [Tracked<B>; 3],
    eps: f64,
) -> Tracked<B> {
    if !B::fused(x.dtype()) {
        return ops::bias_norm_swish::composition::<Autodiff<B, C>>(x, affine, eps);
    }
    let [bias, gain, offset] = affine;
    let nodes = [x.node, bias.node, gain.node, offset.node];
    let (x, affine) = (x.primitive, [bias.primitive, gain.primitive, offset.primitive]);
    let output = B::bias_norm_swish(x.clone(), affine.clone(), eps);
    match BiasNormSwish.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((x, affine, eps), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

#[derive(Debug)]
struct GatedShortcut;

impl<B: FusedOps> Backward<B, 4> for GatedShortcut {
    /// Base, state; weight, query; eps.
    type State = ([Primitive<B>; 2], [Primitive<B>; 2], f64);

    fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (rows, parameters, eps) = ops.state;
        let gradients = B::gated_shortcut_backward(rows, parameters, upstream, eps);
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            register!(B, grads, node, gradient);
        }
    }
}

pub(super) fn gated_shortcut<B: FusedOps, C: CheckpointStrategy>(
    rows: [Tracked<B>; 2],
    parameters: [Tracked<B>; 2],
    eps: f64,
) -> Tracked<B> {
    if !B::fused(rows[0].dtype()) {
        return ops::gated_shortcut::composition::<Autodiff<B, C>>(rows, parameters, eps);
    }
    let [base, state] = rows;
    let [weight, query] = parameters;
    let nodes = [base.node, state.node, weight.node, query.node];
    let (rows, parameters) = ([base.primitive, state.primitive], [weight.primitive, query.primitive]);
    let output = B::gated_shortcut(rows.clone(), parameters.clone(), eps);
    match GatedShortcut.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((rows, parameters, eps), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
