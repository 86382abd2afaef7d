//! The nodes of [`mix`](crate::mix()) and of a [`MixChain`](crate::MixChain).

use burn_autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};

use burn::{
    backend::Autodiff,
    tensor::{DType, Shape, TensorMetadata},
};

use super::{Primitive, Tracked};
use crate::{FusedOps, Link, PendingGradients};

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
    coefficients: Tracked<B>,
    first: usize,
    base: Tracked<B>,
    states: Vec<Tracked<B>>,
) -> Tracked<B> {
    let nodes: Vec<_> =
        [coefficients.node, base.node].into_iter().chain(states.iter().map(|s| s.node.clone())).collect();
    let Ok(nodes) = nodes.try_into() else { unreachable!("the caller picks N by the number of states") };
    // The states themselves stay until the node is on the graph; see `concatenate`.
    let primitives: Vec<_> = states.iter().map(|s| s.primitive.clone()).collect();
    let output = B::mix(coefficients.primitive.clone(), first, base.primitive, primitives.clone());
    match Mix::<N>.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((coefficients.primitive, first, primitives), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

pub(super) fn mix<B: FusedOps, C: CheckpointStrategy>(
    coefficients: Tracked<B>,
    first: usize,
    base: Tracked<B>,
    mut states: Vec<Tracked<B>>,
) -> Tracked<B> {
    let n = states.len();
    if n > STATES_PER_NODE {
        let rest = states.split_off(STATES_PER_NODE);
        let base = mix::<B, C>(coefficients.clone(), first, base, states);
        return mix::<B, C>(coefficients, first + STATES_PER_NODE, base, rest);
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

/// Parents: the coefficients, the base, and the state before, which gets no gradient from here but has its turn later.
#[derive(Debug)]
struct Connect;

#[derive(Clone, Debug)]
struct Connected<B: FusedOps> {
    pending: PendingGradients,
    coefficients: Primitive<B>,
    first: usize,
    /// Nodes of the states that were mixed; none for those off the graph.
    sources: Vec<Option<u64>>,
    /// This state itself, where a later one may take it.
    state: Option<Primitive<B>>,
    shape: Shape,
    dtype: DType,
}

impl<B: FusedOps> Backward<B, 3> for Connect {
    type State = Connected<B>;

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let Connected { pending, coefficients, first, sources, state, shape, dtype } = ops.state;
        let [coefficient_node, base_node, _] = ops.parents;
        // The container is keyed by tensors: this one carries the node looked up, its value is not read. There may be no gradient yet, where
        // only later mixes took this state.
        let rc = std::sync::Arc::new(ops.node.id);
        let key = Tracked::<B> { primitive: coefficients.clone(), node: ops.node.clone(), rc };
        let upstream = grads.remove::<B>(&key);
        let (indices, later) = pending.take::<B>(ops.node.id.value);
        let device = B::float_device(&coefficients);
        let zeros = |shape: Shape, dtype: DType| B::float_zeros(shape, &device, dtype.into());
        let none = || zeros(coefficients.shape(), coefficients.dtype());
        // Nodes that are visited expect a gradient, be it of zeros.
        let (dc, gradient) = match (later.is_empty(), upstream) {
            (true, Some(upstream)) => (none(), upstream),
            (true, None) => (none(), zeros(shape, dtype)),
            (false, upstream) => {
                let state = state.filter(|_| coefficient_node.is_some());
                let (dc, gradient) = B::gather(coefficients.clone(), &indices, upstream, later, state);
                (dc.unwrap_or_else(none), gradient)
            }
        };
        register!(B, grads, coefficient_node, dc);
        for (k, source) in sources.into_iter().enumerate() {
            if let Some(source) = source {
                pending.push::<B>(source, first + k, gradient.clone());
            }
        }
        register!(B, grads, base_node, gradient);
    }
}

pub(super) fn connect<B: FusedOps, C: CheckpointStrategy>(link: Link<Autodiff<B, C>>) -> Tracked<B> {
    let Link { pending, coefficients, first, base, states, previous, kept } = link;
    let (shape, dtype) = (base.shape(), base.dtype());
    let node = |state: &Tracked<B>| (!state.node.requirement.is_none()).then_some(state.node.id.value);
    let sources: Vec<Option<u64>> = states.iter().map(node).collect();
    let nodes = [coefficients.node.clone(), base.node.clone(), previous.as_ref().unwrap_or(&base).node.clone()];
    let output = B::connect(Link {
        pending: pending.clone(),
        coefficients: coefficients.primitive.clone(),
        first,
        base: base.primitive,
        // The states themselves stay until the node is on the graph; see `concatenate`.
        states: states.iter().map(|state| state.primitive.clone()).collect(),
        previous: None,
        kept,
    });
    match Connect.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let state = kept.then(|| output.clone());
            let coefficients = coefficients.primitive;
            prep.finish(Connected { pending, coefficients, first, sources, state, shape, dtype }, output)
        }
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
