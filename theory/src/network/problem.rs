//! A network and what it is trained towards.

use connection_layout::{Coefficients, CoefficientsError, Layout};
use nalgebra::DMatrix;
use thiserror::Error;

use super::connections::{Connections, Wiring};
use super::target::Target;
use super::weights::Weights;

/// Why a problem could not be put together.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ProblemError {
    /// Connections that cannot be: another depth than the network's, or an illegal temperature.
    #[error(transparent)]
    Connections(#[from] CoefficientsError),
    /// A network without layers, or too deep for a layout.
    #[error("a depth of {0} is not possible: a network has between 1 and {max} layers", max = connection_layout::MAX_DEPTH)]
    Depth(usize),
    /// Weights of another shape than the network's.
    #[error(
        "weights of {found_layers} layers of width {found_width} do not fit a network of {layers} layers of width {width}"
    )]
    Weights {
        /// Layers of the weights.
        found_layers: usize,
        /// Width of the weights.
        found_width: usize,
        /// Layers of the network.
        layers: usize,
        /// Width of the network.
        width: usize,
    },
}

/// A linear network: `A_0 = I`, `A_l = W_l A_{l-1} + sum over i < l of c_{l,i} A_i`, end-to-end map `A_K`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearNet {
    depth: usize,
    connections: Connections,
    wiring: Wiring,
}

impl LinearNet {
    /// A network of `depth` layers.
    ///
    /// # Errors
    ///
    /// [`ProblemError`] for an illegal depth, coefficients of another depth, or an illegal temperature.
    pub fn new(depth: usize, connections: Connections) -> Result<Self, ProblemError> {
        if !(1..=connection_layout::MAX_DEPTH).contains(&depth) {
            return Err(ProblemError::Depth(depth));
        }
        let wiring = Wiring::new(depth, &connections)?;
        Ok(Self { depth, connections, wiring })
    }

    /// The network of a layout: every shortcut has coefficient 1.
    pub fn of_layout(layout: &Layout) -> Self {
        let connections = Connections::from(layout);
        // The depths agree by construction.
        let wiring = Wiring::new(layout.depth(), &connections).unwrap_or_else(|error| unreachable!("{error}"));
        Self { depth: layout.depth(), connections, wiring }
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How states are added.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The coefficients at these weights: the fixed ones, or the softmax of the logits.
    pub fn coefficients(&self, weights: &Weights) -> Coefficients {
        let mut values = vec![0.0; self.wiring.edges.len()];
        self.wiring.coefficients(weights.logits(), &mut values);
        let mut rows: Vec<Vec<f64>> = (1..=self.depth).map(|target| vec![0.0; target]).collect();
        for (edge, value) in self.wiring.edges.iter().zip(values) {
            // Shares of finite logits are finite, and weights are finite unless a run has diverged.
            rows[edge.target - 1][edge.source] = if value.is_finite() { value } else { 0.0 };
        }
        Coefficients::from_rows(rows).unwrap_or_else(|error| unreachable!("{error}"))
    }

    pub(crate) fn wiring(&self) -> &Wiring {
        &self.wiring
    }
}

/// A linear network with a training target; its loss is the target's excess loss of the end-to-end map.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    net: LinearNet,
    target: Target,
}

impl Problem {
    /// The network trained towards the target; the target sets the width.
    pub fn new(net: LinearNet, target: Target) -> Self {
        Self { net, target }
    }

    /// The network of a layout, trained towards a map on whitened inputs.
    ///
    /// # Errors
    ///
    /// [`TargetError`](super::TargetError) for a matrix that is no target.
    pub fn whitened(layout: &Layout, map: DMatrix<f64>) -> Result<Self, super::TargetError> {
        Ok(Self::new(LinearNet::of_layout(layout), Target::whitened(map)?))
    }

    /// The network.
    pub fn net(&self) -> &LinearNet {
        &self.net
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        self.net.depth
    }

    /// The width d.
    pub fn width(&self) -> usize {
        self.target.width()
    }

    /// The length of a point of parameter space: `K d²` weights, then the logits.
    pub fn len(&self) -> usize {
        self.depth() * self.width() * self.width() + self.net.wiring.logits()
    }

    /// Whether there is nothing to train; never the case, for K >= 1 and d >= 1.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All weights and logits zero. For a learned softmax, uniform shares.
    pub fn zeros(&self) -> Weights {
        Weights::from_values(self.depth(), self.width(), vec![0.0; self.len()])
    }

    /// These weight matrices with zero logits.
    ///
    /// # Errors
    ///
    /// [`ProblemError::Weights`] unless there are K square matrices of width d.
    pub fn weights(&self, matrices: &[DMatrix<f64>]) -> Result<Weights, ProblemError> {
        let (layers, width) = (self.depth(), self.width());
        let odd = matrices.iter().find(|m| m.shape() != (width, width));
        if matrices.len() != layers || odd.is_some() {
            let found_width = odd.map_or(width, |m| m.ncols());
            return Err(ProblemError::Weights { found_layers: matrices.len(), found_width, layers, width });
        }
        let mut values: Vec<f64> = matrices.iter().flat_map(|m| m.iter().copied()).collect();
        values.resize(self.len(), 0.0);
        Ok(Weights::from_values(layers, width, values))
    }
}
