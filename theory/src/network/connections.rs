//! The coefficients with which earlier states are added: fixed, or learned through a softmax.

use std::ops::Range;

use connection_layout::{Coefficients, CoefficientsError, Direction, Layout};

/// Which nodes learned shortcuts may end in. The two conventions behave differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// No shortcut ends in the output node: K(K-1)/2 logits, as the paper's summary counts.
    HiddenOnly,
    /// Every node takes shortcuts, the output too: K(K+1)/2 logits, as in the authors' code.
    WithOutput,
}

/// The learned softmax of ANCRe: `p = softmax(theta / tau)` over the sources of each target
/// ([`Direction::Incoming`]) or over the targets of each source ([`Direction::Outgoing`]).
///
/// A node with a single choice has p = 1, and its logit never moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// What the shares of a node sum over.
    pub direction: Direction,
    /// The temperature tau, positive.
    pub tau: f64,
    /// Which nodes take shortcuts.
    pub scope: Scope,
}

/// How states are added: `A_l = W_l A_{l-1} + sum over i < l of c_{l,i} A_i`.
#[derive(Clone, Debug, PartialEq)]
pub enum Connections {
    /// Coefficients that do not change; 1 for the shortcuts of a layout.
    Fixed(Coefficients),
    /// One logit a shortcut, trained together with the weights.
    Learned(Softmax),
}

impl From<&Layout> for Connections {
    fn from(layout: &Layout) -> Self {
        Self::Fixed(Coefficients::from_layout(layout))
    }
}

/// A shortcut `source:target` of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) source: usize,
    pub(crate) target: usize,
}

/// Connections spelled out as lists, ready for the inner loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wiring {
    /// By target, then by source.
    pub(crate) edges: Vec<Edge>,
    /// For each node `0..=K`, its incoming edges.
    pub(crate) incoming: Vec<Range<usize>>,
    /// The coefficients of the edges, where they are fixed.
    pub(crate) fixed: Vec<f64>,
    /// The learned softmax with the edges of each node that shares among several.
    pub(crate) learned: Option<(Softmax, Vec<Vec<usize>>)>,
}

impl Wiring {
    pub(crate) fn new(depth: usize, connections: &Connections) -> Result<Self, CoefficientsError> {
        let mut edges = Vec::new();
        let mut fixed = Vec::new();
        let learned = match connections {
            Connections::Fixed(coefficients) => {
                if coefficients.depth() != depth {
                    let layout = depth;
                    return Err(CoefficientsError::DepthMismatch { coefficients: coefficients.depth(), layout });
                }
                for (shortcut, coefficient) in coefficients.iter().filter(|&(_, c)| c != 0.0) {
                    edges.push(Edge { source: shortcut.source(), target: shortcut.target() });
                    fixed.push(coefficient);
                }
                None
            }
            Connections::Learned(softmax) => {
                if !(softmax.tau > 0.0 && softmax.tau.is_finite()) {
                    return Err(CoefficientsError::Temperature(softmax.tau));
                }
                let last = if softmax.scope == Scope::HiddenOnly { depth - 1 } else { depth };
                edges.extend((1..=last).flat_map(|target| (0..target).map(move |source| Edge { source, target })));
                let node = |edge: &Edge| match softmax.direction {
                    Direction::Incoming => edge.target,
                    Direction::Outgoing => edge.source,
                };
                let groups = (0..=last).map(|n| (0..edges.len()).filter(|&e| node(&edges[e]) == n).collect());
                Some((*softmax, groups.filter(|group: &Vec<usize>| !group.is_empty()).collect()))
            }
        };
        let incoming = (0..=depth)
            .map(|node| edges.partition_point(|e| e.target < node)..edges.partition_point(|e| e.target <= node))
            .collect();
        Ok(Self { edges, incoming, fixed, learned })
    }

    /// The number of logits: one an edge where the coefficients are learned.
    pub(crate) fn logits(&self) -> usize {
        if self.learned.is_some() { self.edges.len() } else { 0 }
    }

    /// Writes the coefficient of each edge for these logits.
    #[inline]
    pub(crate) fn coefficients(&self, logits: &[f64], out: &mut [f64]) {
        let Some((softmax, groups)) = &self.learned else {
            out.copy_from_slice(&self.fixed);
            return;
        };
        for group in groups {
            let largest = group.iter().map(|&e| logits[e]).fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for &e in group {
                out[e] = ((logits[e] - largest) / softmax.tau).exp();
                sum += out[e];
            }
            group.iter().for_each(|&e| out[e] /= sum);
        }
    }

    /// Turns the derivatives with respect to coefficients into those with respect to logits.
    #[inline]
    pub(crate) fn logit_gradient(&self, coefficients: &[f64], slopes: &[f64], out: &mut [f64]) {
        if let Some((softmax, groups)) = &self.learned {
            for group in groups {
                // The mean is subtracted before the product, so that a saturated share gives an exact zero.
                let mean: f64 = group.iter().map(|&e| coefficients[e] * slopes[e]).sum();
                group.iter().for_each(|&e| out[e] = coefficients[e] * (slopes[e] - mean) / softmax.tau);
            }
        }
    }
}
