//! The end-to-end map of a network as a function of its weights: states, Jacobian, tangent kernel, homogeneous parts.

use connection_layout::Coefficients;
use nalgebra::{DMatrix, DVector};

use super::problem::LinearNet;
use super::weights::Weights;

/// The maps between the nodes of a network at given weights.
///
/// Allocates freely: it is for looking at a point, not for training.
#[derive(Clone, Debug)]
pub struct EndToEnd {
    weights: Weights,
    coefficients: Coefficients,
    /// `A_0..A_K`: from the input to each node.
    from_input: Vec<DMatrix<f64>>,
    /// `B_0..B_K`: from each node to the output.
    to_output: Vec<DMatrix<f64>>,
}

impl EndToEnd {
    /// Evaluates a network at these weights.
    ///
    /// # Panics
    ///
    /// When the weights are those of a network of another depth.
    pub fn new(net: &LinearNet, weights: &Weights) -> Self {
        assert_eq!(net.depth(), weights.depth(), "depth of the weights");
        let (depth, d) = (net.depth(), weights.width());
        let coefficients = net.coefficients(weights);
        let mut from_input = vec![DMatrix::identity(d, d)];
        for layer in 1..=depth {
            let mut state = weights.layer(layer) * &from_input[layer - 1];
            for (earlier, c) in from_input.iter().zip(coefficients.row(layer)).filter(|(_, c)| **c != 0.0) {
                state += earlier * *c;
            }
            from_input.push(state);
        }
        let mut to_output = vec![DMatrix::zeros(d, d); depth];
        to_output.push(DMatrix::identity(d, d));
        for layer in (1..=depth).rev() {
            let through = to_output[layer].clone();
            to_output[layer - 1] += &through * weights.layer(layer);
            for (source, c) in coefficients.row(layer).iter().enumerate().filter(|(_, c)| **c != 0.0) {
                to_output[source] += &through * *c;
            }
        }
        Self { weights: weights.clone(), coefficients, from_input, to_output }
    }

    /// The end-to-end map `A_K`, d x d.
    pub fn map(&self) -> &DMatrix<f64> {
        &self.from_input[self.weights.depth()]
    }

    /// `A_l` for a node l from 0 to K: the map from the input to the node.
    ///
    /// # Panics
    ///
    /// When there is no such node.
    pub fn from_input(&self, node: usize) -> &DMatrix<f64> {
        &self.from_input[node]
    }

    /// `B_l` for a node l from 0 to K: the map from the node to the output.
    ///
    /// # Panics
    ///
    /// When there is no such node.
    pub fn to_output(&self, node: usize) -> &DMatrix<f64> {
        &self.to_output[node]
    }

    /// The Jacobian J of `vec(A_K)` with respect to the weights, `d² x K d²`, columns as [`Weights::values`] orders
    /// weights and logits left out: `dA_K = sum_l B_l dW_l A_{l-1}`.
    pub fn jacobian(&self) -> DMatrix<f64> {
        let (depth, d) = (self.weights.depth(), self.weights.width());
        let mut jacobian = DMatrix::zeros(d * d, depth * d * d);
        for layer in 1..=depth {
            let block = self.from_input[layer - 1].transpose().kronecker(&self.to_output[layer]);
            jacobian.columns_mut((layer - 1) * d * d, d * d).copy_from(&block);
        }
        jacobian
    }

    /// The neural tangent kernel of the weights `N = J Jᵀ = sum_l (A_{l-1}ᵀ A_{l-1}) ⊗ (B_l B_lᵀ)`, `d² x d²`.
    pub fn tangent_kernel(&self) -> DMatrix<f64> {
        let (depth, d) = (self.weights.depth(), self.weights.width());
        (1..=depth).fold(DMatrix::zeros(d * d, d * d), |kernel, layer| {
            let (a, b) = (&self.from_input[layer - 1], &self.to_output[layer]);
            kernel + (a.transpose() * a).kronecker(&(b * b.transpose()))
        })
    }

    /// Eigenvalues of the tangent kernel, ascending.
    ///
    /// On whitened data gradient descent on the weights is stable near a minimum for rates below 2 / the largest.
    pub fn kernel_spectrum(&self) -> DVector<f64> {
        let mut values = self.tangent_kernel().symmetric_eigenvalues();
        values.as_mut_slice().sort_by(f64::total_cmp);
        values
    }

    /// The parts of `A_K` that are homogeneous of degree 0, 1, ..., K in the weights; they add up to `A_K`.
    pub fn homogeneous_parts(&self) -> Vec<DMatrix<f64>> {
        let (depth, d) = (self.weights.depth(), self.weights.width());
        let zero = DMatrix::zeros(d, d);
        let mut nodes = vec![vec![DMatrix::identity(d, d)]];
        for layer in 1..=depth {
            let mut parts = vec![zero.clone(); layer + 1];
            for (degree, part) in nodes[layer - 1].iter().enumerate() {
                parts[degree + 1] += self.weights.layer(layer) * part;
            }
            for (source, c) in self.coefficients.row(layer).iter().enumerate().filter(|(_, c)| **c != 0.0) {
                for (degree, part) in nodes[source].iter().enumerate() {
                    parts[degree] += part * *c;
                }
            }
            nodes.push(parts);
        }
        nodes.swap_remove(depth)
    }
}

#[cfg(test)]
mod tests {
    use connection_layout::Layout;

    use super::*;
    use crate::network::{Connections, Problem, Scope, Softmax, Target};

    fn weights(problem: &Problem) -> Weights {
        let mut weights = problem.zeros();
        weights.values_mut().iter_mut().zip(1..).for_each(|(w, i)| *w = f64::from(i * i % 17) / 17.0 - 0.4);
        weights
    }

    #[test]
    fn a_small_network_by_hand() {
        // Depth 2 with 0:1 and 0:2: A_1 = W_1 + 1, A_2 = W_2 (W_1 + 1) + 1.
        let problem = Problem::whitened(&Layout::parse("0:1+0:2", 2).unwrap(), DMatrix::identity(1, 1)).unwrap();
        let weights = problem.weights(&[DMatrix::from_element(1, 1, 3.0), DMatrix::from_element(1, 1, 5.0)]).unwrap();
        let net = EndToEnd::new(problem.net(), &weights);
        assert_eq!(net.map()[0], 21.0);
        assert_eq!(net.jacobian().as_slice(), [5.0, 4.0]);
        assert_eq!(net.tangent_kernel()[0], 41.0);
        assert_eq!(net.homogeneous_parts().iter().map(|p| p[0]).collect::<Vec<_>>(), [1.0, 5.0, 15.0]);
        assert_eq!((net.to_output(0)[0], net.to_output(1)[0]), (21.0, 5.0));
    }

    #[test]
    fn both_ways_through_the_network_agree() {
        let softmax = Softmax { direction: connection_layout::Direction::Outgoing, tau: 0.7, scope: Scope::WithOutput };
        for connections in [Connections::from(&Layout::parse("0:2+1:4+2:3", 4).unwrap()), Connections::Learned(softmax)]
        {
            let net = LinearNet::new(4, connections).unwrap();
            let problem = Problem::new(net, Target::whitened(DMatrix::identity(3, 3)).unwrap());
            let net = EndToEnd::new(problem.net(), &weights(&problem));
            assert!((net.to_output(0) - net.map()).amax() < 1e-12);
            let sum: DMatrix<f64> = net.homogeneous_parts().into_iter().sum();
            assert!((sum - net.map()).amax() < 1e-12);
            let jacobian = net.jacobian();
            assert!((&jacobian * jacobian.transpose() - net.tangent_kernel()).amax() < 1e-12);
        }
    }
}
