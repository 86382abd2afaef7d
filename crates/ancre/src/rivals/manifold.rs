//! Hyper-Connections whose mix of the streams keeps their sum.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, activation::sigmoid, backend::Backend},
};
use fused_ops::{FusedOps, concatenate};

use super::{
    Rules, State,
    rows::{matrix, parameter, root_mean_square, row, widened},
    sinkhorn::sinkhorn,
    streams::{self, Weights},
};

/// Added to the mean square of all streams together.
const EPS: f64 = 1e-6;
/// What the gates begin at, as the paper has it.
const GATE: f32 = 0.01;
/// What a branch reads of its own stream at the start.
const OWN_SHARE: f32 = 0.9;
/// Logits beside the diagonal of the matrix at the start.
const BESIDE: f32 = -5.0;

/// Which form of the manifold-constrained Hyper-Connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ManifoldForm {
    /// That of the paper.
    #[default]
    Paper,
    /// That of the package `hyper-connections` 0.4.11.
    Package,
}

/// Manifold-constrained Hyper-Connections (arXiv 2512.24880, equations 3 and 7 to 9). With `x` all `n` streams as one vector and
/// `x' = x / rms(x)`, a branch reads `H_pre x` with `H_pre = sigmoid(a_pre x' phi_pre + b_pre)`, and the streams become
/// `H_res x + H_post^T f_l(..)` with `H_post = 2 sigmoid(a_post x' phi_post + b_post)` and
/// `H_res = Sinkhorn(exp(a_res mat(x' phi_res) + b_res))`: 20 rounds that divide columns (old streams) by their sums, then rows (new
/// streams), as in equation 9. `phi` takes up the gain of the norm. All streams are the embeddings at first, and the network goes on
/// with their sum, as in Hyper-Connections.
///
/// Of the start the paper gives the gates `a` = .01 alone, and implementations differ. Here `phi` = 0 and `b_post` = 0, so that
/// `H_post` = 1; `H_pre` reads nine tenths of stream `l mod n` and shares the rest among the others, which tells the streams apart
/// without random numbers (logit 8, all but all, of a single stream); and `b_res` is -5 beside the diagonal, nearly the identity. So
/// every stream begins as the ordinary one, and their sum as `n` times that. The state holds the streams, side by side.
#[derive(Module, Debug)]
pub struct ManifoldHyperConnections<B: Backend> {
    /// `phi_pre`, `phi_post` and `phi_res` (by rows, which are new streams), `[branches, n * width, n (n + 2)]`, from 0.
    pub phi: Param<Tensor<B, 3>>,
    /// `a_pre`, `a_post` and `a_res`, `[branches, 3]`, from .01.
    pub gates: Param<Tensor<B, 2>>,
    /// `b_pre`, `b_post` and `b_res`, `[branches, n (n + 2)]`.
    pub bias: Param<Tensor<B, 2>>,
    streams: usize,
}

/// Number of parameters of one branch.
pub(super) fn parameters(width: usize, n: usize) -> usize {
    n * (n + 2) * (n * width + 1) + 3
}

impl<B: Backend> ManifoldHyperConnections<B> {
    pub(super) fn new(branches: usize, width: usize, n: usize, device: &B::Device) -> Self {
        let logit = |share: f32| (share / (1.0 - share)).ln();
        let bias = |branch: usize| {
            let pre = move |s: usize| match (n, s == branch % n) {
                (1, _) => 8.0,
                (_, true) => logit(OWN_SHARE),
                (_, false) => logit((1.0 - OWN_SHARE) / (n - 1) as f32),
            };
            let residual = move |i: usize| if i / n == i % n { 0.0 } else { BESIDE };
            (0..n).map(pre).chain((0..n).map(|_| 0.0)).chain((0..n * n).map(residual)).collect::<Vec<f32>>()
        };
        let logits = n * (n + 2);
        Self {
            phi: parameter(vec![0.0; branches * n * width * logits], [branches, n * width, logits], device),
            gates: parameter(vec![GATE; 3 * branches], [branches, 3], device),
            bias: parameter((0..branches).flat_map(bias).collect(), [branches, logits], device),
            streams: n,
        }
    }
}

impl<B: FusedOps> Rules<B> for ManifoldHyperConnections<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        streams::start(input, self.streams)
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        let (branch, n, dtype) = (state.branch, self.streams, streams::dtype(state));
        let x = widened(state.rows[0].clone());
        let rows = x.dims()[0];
        let gates = row(&self.gates, branch, dtype).split(1, 1).into_iter().zip([n, n, n * n]);
        let gates = concatenate(gates.map(|(gate, logits)| gate.repeat_dim(1, logits)).collect(), 1);
        // The norm divides the few products instead of the many factors.
        let seen = x.clone().matmul(matrix(&self.phi, branch, dtype)) / root_mean_square(x, EPS);
        let logits = seen * gates + row(&self.bias, branch, dtype);
        let columns = |from: usize, to: usize| logits.clone().slice([0..rows, from..to]);
        let weights = Weights {
            read: sigmoid(columns(0, n)),
            // Rows are new streams.
            keep: sinkhorn(columns(2 * n, n * (n + 2)).reshape([rows, n, n])).swap_dims(1, 2),
            write: sigmoid(columns(n, 2 * n)).mul_scalar(2.0),
        };
        streams::read(state, weights)
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        streams::write(state, output);
    }

    fn finish(&self, state: State<B>) -> Tensor<B, 2> {
        streams::sum(state, self.streams)
    }
}
