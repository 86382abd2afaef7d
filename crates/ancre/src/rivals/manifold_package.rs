//! Manifold-constrained Hyper-Connections in the form of a package.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, activation::sigmoid, backend::Backend},
};
use fused_ops::{FusedOps, concatenate};

use super::{
    Rules, State,
    hyper::unit_rows_with_gain,
    rows::{matrix, parameter, row, widened},
    sinkhorn::sinkhorn,
    streams::{self, Weights, one_hot_and_identity},
};

/// The form of Manifold-constrained Hyper-Connections that the package `hyper-connections` 0.4.11 has: streams are normalised and
/// looked at one by one, and the logits begin as the weights of plain Hyper-Connections, so that the start is not the ordinary
/// network (the output of a branch has weight `2 sigmoid(1)` = 1.46). The state holds the streams, side by side.
#[derive(Module, Debug)]
pub struct PackageManifoldConnections<B: Backend> {
    /// Logits, `[branches, n, n + 1]`.
    pub static_alpha: Param<Tensor<B, 3>>,
    /// Logits, `[branches, n]`.
    pub static_beta: Param<Tensor<B, 2>>,
    /// `[branches, width, n + 1]`, from 0.
    pub dynamic_alpha_fn: Param<Tensor<B, 3>>,
    /// `[branches, width, 1]`, from 0.
    pub dynamic_beta_fn: Param<Tensor<B, 3>>,
    /// Gate of what the token adds to the reading, `[branches, 1]`, from .01.
    pub pre_branch_scale: Param<Tensor<B, 2>>,
    /// The same for the matrix.
    pub residual_scale: Param<Tensor<B, 2>>,
    /// The same for the output.
    pub h_post_scale: Param<Tensor<B, 2>>,
    /// The gain of the norm less one, `[branches, width]`, from 0.
    pub norm_gamma: Param<Tensor<B, 2>>,
}

impl<B: Backend> PackageManifoldConnections<B> {
    pub(super) fn new(branches: usize, width: usize, n: usize, device: &B::Device) -> Self {
        let gate = || parameter(vec![0.01; branches], [branches, 1], device);
        Self {
            static_alpha: one_hot_and_identity(branches, n, device),
            static_beta: parameter(vec![1.0; branches * n], [branches, n], device),
            dynamic_alpha_fn: parameter(vec![0.0; branches * width * (n + 1)], [branches, width, n + 1], device),
            dynamic_beta_fn: parameter(vec![0.0; branches * width], [branches, width, 1], device),
            pre_branch_scale: gate(),
            residual_scale: gate(),
            h_post_scale: gate(),
            norm_gamma: parameter(vec![0.0; branches * width], [branches, width], device),
        }
    }

    fn streams(&self) -> usize {
        self.static_beta.dims()[1]
    }
}

impl<B: FusedOps> Rules<B> for PackageManifoldConnections<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        streams::start(input, self.streams())
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        let (branch, n, dtype) = (state.branch, self.streams(), streams::dtype(state));
        let [rows, all] = state.rows[0].dims();
        let of = |parameter| row(parameter, branch, dtype);
        let seen = widened(state.rows[0].clone()).reshape([rows * n, all / n]);
        let seen = unit_rows_with_gain(seen, of(&self.norm_gamma));
        let functions = [&self.dynamic_alpha_fn, &self.dynamic_beta_fn].map(|function| matrix(function, branch, dtype));
        let gates = vec![of(&self.pre_branch_scale), of(&self.residual_scale).repeat_dim(1, n), of(&self.h_post_scale)];
        let moved = seen.matmul(concatenate(functions.to_vec(), 1)) * concatenate(gates, 1);
        let beta = of(&self.static_beta).reshape([n, 1]);
        let own = concatenate(vec![matrix(&self.static_alpha, branch, dtype), beta], 1).unsqueeze();
        // Logits of every old stream (rows): of what is read, of each new stream, and of the output.
        let logits = moved.reshape([rows, n, n + 2]) + own;
        let columns = |from: usize, to: usize| logits.clone().slice([0..rows, 0..n, from..to]);
        let weights = Weights {
            read: sigmoid(columns(0, 1)).reshape([rows, n]),
            keep: sinkhorn(columns(1, n + 1)),
            write: sigmoid(columns(n + 1, n + 2)).mul_scalar(2.0).reshape([rows, n]),
        };
        streams::read(state, weights)
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        streams::write(state, output);
    }

    fn finish(&self, state: State<B>) -> Tensor<B, 2> {
        streams::sum(state, self.streams())
    }
}
