//! ANCRe's normalised coefficients over what the branches make, instead of over the states that they leave.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, backend::Backend},
};
use fused_ops::{FusedOps, mix_at, row_softmax};

use super::{
    Rules, State,
    rows::{cast, parameter, wide},
};

/// ANCRe (arXiv 2602.09009) over branch outputs: with the embeddings `v_0` and the outputs `v_l = f_l(h_{l-1})` of the branches,
/// `h_l = sum_{i=0}^{l} softmax_i(theta_l / tau) v_i`. Branch `l + 1` reads `h_l`, and the network goes on with `h_L`, the mix after the
/// last branch. From `theta = 0`: a mean.
///
/// Where ANCRe adds the mix of earlier states to a block's output, whose own shortcut holds the sum of all before, a branch has no
/// shortcut here: the newest output is one of the mixed. Shares sum to one, so that the stream keeps its size. It is also
/// Attention Residuals with logits that do not depend on the token, the "input-independent mix" of their report (arXiv 2603.15031).
/// The state holds the `v_i`.
#[derive(Module, Debug)]
pub struct AncreBranches<B: Backend> {
    /// Logits of `h_1`, of `h_2` and so on, one after another, oldest source first in each: `[L (L + 3) / 2]`, from 0. (`h_0` is `v_0`.)
    pub theta: Param<Tensor<B, 1>>,
    pub(super) tau: f64,
}

/// Number of logits before those of `h_l`, `l` from 1.
pub(super) fn first(l: usize) -> usize {
    (l - 1) * (l + 2) / 2
}

impl<B: Backend> AncreBranches<B> {
    pub(super) fn new(branches: usize, tau: f64, device: &B::Device) -> Self {
        let logits = first(branches + 1);
        Self { theta: parameter(vec![0.0; logits], [logits], device), tau }
    }
}

impl<B: FusedOps> AncreBranches<B> {
    fn mix(&self, sources: &[Tensor<B, 2>]) -> Tensor<B, 2> {
        let l = sources.len() - 1;
        if l == 0 {
            return sources[0].clone();
        }
        let theta = cast(self.theta.val().slice(first(l)..first(l + 1)), wide(sources[0].dtype()));
        // As ANCRe's: the temperature is an f32, and its reciprocal is rounded before it multiplies.
        let shares = row_softmax(theta.mul_scalar(1.0 / self.tau as f32).reshape([1, l + 1])).reshape([l + 1]);
        mix_at(shares, 0, sources[0].zeros_like(), sources.to_vec())
    }
}

impl<B: FusedOps> Rules<B> for AncreBranches<B> {
    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        self.mix(&state.rows)
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        state.rows.push(output);
    }

    fn finish(&self, state: State<B>) -> Tensor<B, 2> {
        self.mix(&state.rows)
    }
}
