//! The fused operations as nodes of the autodiff graph, for every backend beneath it.

use burn::{
    backend::Autodiff,
    tensor::{
        DType, TensorMetadata,
        backend::AutodiffBackend,
        ops::{FloatTensor, IntTensor},
    },
};
use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use super::{attention, cross_entropy, rms_norm, swiglu};
use crate::{AttentionShape, FusedOps};

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

/// Parents: the coefficients, the base, then the states.
#[derive(Debug)]
struct Mix<const N: usize>;

impl<B: FusedOps, const N: usize> Backward<B, N> for Mix<N> {
    /// Coefficients, where this node's begin, and states: handles to what the caller holds.
    type State = (Primitive<B>, usize, Vec<Primitive<B>>);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let (coefficients, first, states) = ops.state;
        let mut parents = ops.parents.into_iter();
        let coefficient_node = parents.next().flatten();
        let base_node = parents.next().flatten();
        let state_nodes: Vec<_> = parents.collect();
        register!(B, grads, base_node, upstream.clone());
        // Takes what other uses of a state have summed so far, so that the kernel adds to it in place.
        let sums = state_nodes
            .iter()
            .map(|node| {
                let node = node.as_ref()?;
                // The container is keyed by tensors: this one carries the node looked up, its value is not read.
                let rc = std::sync::Arc::new(node.id);
                let key = Tracked::<B> { primitive: upstream.clone(), node: node.clone(), rc };
                Some(grads.remove::<B>(&key))
            })
            .collect();
        let (dc, ds) = B::mix_backward(coefficients, first, states, upstream, coefficient_node.is_some(), sums);
        if let Some(dc) = dc {
            register!(B, grads, coefficient_node, dc);
        }
        for (node, gradient) in state_nodes.into_iter().zip(ds) {
            if let Some(gradient) = gradient {
                register!(B, grads, node, gradient);
            }
        }
    }
}

/// States that one node takes; longer sums are chained, which costs one more pass over the output for each link.
const STATES_PER_NODE: usize = 32;

fn mix_node<B: FusedOps, C: CheckpointStrategy, const N: usize>(
    coefficients: Primitive<Autodiff<B, C>>,
    first: usize,
    base: Primitive<Autodiff<B, C>>,
    states: Vec<Primitive<Autodiff<B, C>>>,
) -> Primitive<Autodiff<B, C>> {
    let nodes: Vec<_> =
        [coefficients.node, base.node].into_iter().chain(states.iter().map(|s| s.node.clone())).collect();
    let Ok(nodes) = nodes.try_into() else { unreachable!("the caller picks N by the number of states") };
    let states: Vec<_> = states.into_iter().map(|s| s.primitive).collect();
    let output = B::mix(coefficients.primitive.clone(), first, base.primitive, states.clone());
    match Mix::<N>.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((coefficients.primitive, first, states), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

impl<B: FusedOps, C: CheckpointStrategy> FusedOps for Autodiff<B, C> {
    fn mix(
        coefficients: FloatTensor<Self>,
        first: usize,
        base: FloatTensor<Self>,
        mut states: Vec<FloatTensor<Self>>,
    ) -> FloatTensor<Self> {
        let n = states.len();
        if n > STATES_PER_NODE {
            let rest = states.split_off(STATES_PER_NODE);
            let base = Self::mix(coefficients.clone(), first, base, states);
            return Self::mix(coefficients, first + STATES_PER_NODE, base, rest);
        }
        // The number of parents is a constant of the node's type: one instance for each number of states.
        macro_rules! by_states {
            ($($n:literal)*) => {
                match n {
                    $($n => mix_node::<B, C, { $n + 2 }>(coefficients, first, base, states),)*
                    _ => unreachable!("longer sums were split above"),
                }
            };
        }
        by_states!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    }

    fn row_softmax(logits: FloatTensor<Self>) -> FloatTensor<Self> {
        let p = B::row_softmax(logits.primitive);
        match RowSoftmax.prepare::<C>([logits.node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(p.clone(), p),
            OpsKind::UnTracked(prep) => prep.finish(p),
        }
    }

    fn rms_norm(input: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        if !B::fused(input.dtype()) {
            return rms_norm::composition::<Self>(input, weight, eps);
        }
        let output = B::rms_norm(input.primitive.clone(), weight.primitive.clone(), eps);
        match RmsNorm.prepare::<C>([input.node, weight.node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((input.primitive, weight.primitive, eps), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        if !B::fused(gate.dtype()) {
            return swiglu::composition::<Self>(gate, up);
        }
        let output = B::swiglu(gate.primitive.clone(), up.primitive.clone());
        match SwiGlu.prepare::<C>([gate.node, up.node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((gate.primitive, up.primitive), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn causal_attention(
        queries: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        values: FloatTensor<Self>,
        table: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>) {
        if !B::fused(queries.dtype()) {
            return (attention::composition::<Self>(queries, keys, values, table, shape), None);
        }
        let nodes = [queries.node, keys.node, values.node];
        let inputs = [queries.primitive, keys.primitive, values.primitive];
        let [q, k, v] = inputs.clone();
        let (output, saved) = B::causal_attention(q, k, v, table.primitive.clone(), shape);
        let output = match (CausalAttention.prepare::<C>(nodes).compute_bound().stateful(), saved) {
            (OpsKind::Tracked(prep), Some(saved)) => prep.finish((inputs, table.primitive, saved, shape), output),
            (OpsKind::Tracked(_), None) => unreachable!("a fused backend saves what its backward pass needs"),
            (OpsKind::UnTracked(prep), _) => prep.finish(output),
        };
        (output, None)
    }

    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        if !B::fused(logits.dtype()) {
            return cross_entropy::composition::<Self>(logits, targets);
        }
        match CrossEntropy.prepare::<C>([logits.node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (loss, gradient) = B::cross_entropy_with_gradient(logits.primitive, targets);
                prep.finish(gradient, loss)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::cross_entropy(logits.primitive, targets)),
        }
    }

    fn adamw(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: &super::adamw::AdamWStep,
    ) -> [FloatTensor<Self>; 3] {
        B::adamw(parameter.primitive, gradient.primitive, first.primitive, second.primitive, step).map(Self::from_inner)
    }

    fn fused(dtype: DType) -> bool {
        B::fused(dtype)
    }
}
