//! Hyper-Connections whose mix of the streams keeps their sum.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, activation::sigmoid, backend::Backend},
};
use fused_ops::FusedOps;

use super::{
    Rules, State, columns,
    hyper::{add, matrix, move_on, one_hot_and_identity, sum_of_streams, unit_rows_with_gain},
    parameter, weighted,
};

/// Rounds of Sinkhorn's normalisation.
pub(super) const ROUNDS: usize = 20;

/// Manifold-constrained Hyper-Connections (arXiv 2512.24880): a branch reads `sum_s sigmoid(..) h_s`, its output enters the streams
/// with `2 sigmoid(..)`, and the matrix between old and new streams is made doubly stochastic.
///
/// The form is that of the package `hyper-connections` 0.4.11: streams are normalised one by one, and the logits begin as the
/// weights of plain Hyper-Connections, so that the start is not the ordinary network. The state holds the streams.
#[derive(Module, Debug)]
pub struct ManifoldHyperConnections<B: Backend> {
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

impl<B: Backend> ManifoldHyperConnections<B> {
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
}

/// A doubly stochastic matrix for every token out of logits `[tokens, n, n]` (old streams, new streams): exponentials, whose columns
/// and rows are divided by their sums in turn, rows last.
fn sinkhorn<B: Backend>(logits: Tensor<B, 3>) -> Tensor<B, 3> {
    let largest = logits.clone().detach().max_dim(2).max_dim(1);
    let mut weights = (logits - largest).exp();
    for _ in 0..ROUNDS {
        weights = weights.clone() / weights.sum_dim(1);
        weights = weights.clone() / weights.sum_dim(2);
    }
    weights
}

impl<B: FusedOps> Rules<B> for ManifoldHyperConnections<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        vec![input; self.static_beta.dims()[1]]
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        let (branch, n) = (state.branch, state.rows.len());
        let like = state.rows[0].clone();
        let tokens = like.dims()[0];
        let of = |parameter| super::row(parameter, branch, &like);
        let (alpha, betas) = (matrix(&self.static_alpha, branch, &like), columns(of(&self.static_beta)));
        let alpha_fn = matrix(&self.dynamic_alpha_fn, branch, &like);
        let beta_fn = matrix(&self.dynamic_beta_fn, branch, &like);
        let (mut reading, mut logits, mut writing) = (Vec::new(), Vec::new(), Vec::new());
        for (s, (stream, beta)) in state.rows.iter().zip(betas).enumerate() {
            let seen = unit_rows_with_gain(stream.clone(), of(&self.norm_gamma));
            let moved = seen.clone().matmul(alpha_fn.clone());
            let own = alpha.clone().slice([s..s + 1, 0..n + 1]);
            let part = |rows: &Tensor<B, 2>, from: usize, to: usize| {
                let count = rows.dims()[0];
                rows.clone().slice([0..count, from..to])
            };
            reading.push(sigmoid(part(&own, 0, 1) + part(&moved, 0, 1) * of(&self.pre_branch_scale)));
            let row = part(&own, 1, n + 1) + part(&moved, 1, n + 1) * of(&self.residual_scale);
            logits.push(row.reshape([tokens, 1, n]));
            let write = beta + seen.matmul(beta_fn.clone()) * of(&self.h_post_scale);
            writing.push(sigmoid(write).mul_scalar(2.0));
        }
        let input = weighted(reading, &state.rows);
        let mixes = sinkhorn(Tensor::cat(logits, 1)).split(1, 1).into_iter().map(|mix| mix.reshape([tokens, n]));
        state.rows = move_on(&state.rows, mixes.collect());
        state.held = writing;
        input
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        add(state, &output);
    }

    fn finish(&self, state: State<B>) -> Tensor<B, 2> {
        sum_of_streams(state)
    }
}
