//! Hyper-Connections: several streams, and a matrix that tells how a branch reads from them and how they go on.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, backend::Backend},
};
use fused_ops::{FusedOps, concatenate};

use super::{
    Rules, State,
    rows::{matrix, parameter, root_mean_square, row, widened},
    streams::{self, Weights, one_hot_and_identity},
};

/// Added to the variances of layer norms.
const LAYER_NORM_EPS: f64 = 1e-5;
/// Added to mean squares, so that a row of zeros stays one. (The package bounds the norm of a row by 1e-12 instead.)
const LEAST: f64 = 1e-24;

/// How streams are normalised before the functions of the token look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HyperNorm {
    /// A layer norm, as in the paper.
    #[default]
    Layer,
    /// A root-mean-square norm with gain `1 + gamma`, as the package `hyper-connections` 0.4.11 has it.
    Rms,
}

/// Hyper-Connections (arXiv 2409.19606) with `n` streams `h_s`, all the embeddings at first. A branch reads
/// `sum_s alpha_{s,0} h_s`; stream `t` becomes `sum_s alpha_{s,1+t} h_s + beta_t f_l(..)`. The network goes on with the sum of the
/// streams. `alpha` and `beta` are weights, to which the dynamic form adds small functions of the token.
///
/// From `alpha_{s,0}` one-hot at stream `l mod n`, the rest the identity, and `beta = 1`: every stream is the ordinary one, and their
/// sum `n` times that. The state holds the streams, side by side.
#[derive(Module, Debug)]
pub struct HyperConnections<B: Backend> {
    /// `[branches, n, n + 1]`.
    pub static_alpha: Param<Tensor<B, 3>>,
    /// `[branches, n]`.
    pub static_beta: Param<Tensor<B, 2>>,
    /// Where the weights depend on the token.
    pub dynamic: Option<TokenFunctions<B>>,
    #[module(skip)]
    norm: HyperNorm,
}

/// `scale tanh(z_s W)` with the normalised stream `z_s`; 0 at the start.
#[derive(Module, Debug)]
pub struct TokenFunctions<B: Backend> {
    /// `[branches, width, n + 1]`, from 0.
    pub dynamic_alpha_fn: Param<Tensor<B, 3>>,
    /// `[branches, 1]`, from .01.
    pub dynamic_alpha_scale: Param<Tensor<B, 2>>,
    /// `[branches, width, 1]`, from 0.
    pub dynamic_beta_fn: Param<Tensor<B, 3>>,
    /// `[branches, 1]`, from .01.
    pub dynamic_beta_scale: Param<Tensor<B, 2>>,
    /// The gain of the norm less one, `[branches, width]`, from 0.
    pub norm_gamma: Param<Tensor<B, 2>>,
}

/// Wide rows over their root mean square, with a gain of `1 + gamma`.
pub(super) fn unit_rows_with_gain<B: Backend>(rows: Tensor<B, 2>, gamma: Tensor<B, 2>) -> Tensor<B, 2> {
    rows.clone() / root_mean_square(rows, LEAST) * gamma.add_scalar(1.0)
}

impl<B: Backend> HyperConnections<B> {
    /// Static without a norm.
    pub(super) fn new(branches: usize, width: usize, n: usize, norm: Option<HyperNorm>, device: &B::Device) -> Self {
        let dynamic = norm.map(|_| TokenFunctions {
            dynamic_alpha_fn: parameter(vec![0.0; branches * width * (n + 1)], [branches, width, n + 1], device),
            dynamic_alpha_scale: parameter(vec![0.01; branches], [branches, 1], device),
            dynamic_beta_fn: parameter(vec![0.0; branches * width], [branches, width, 1], device),
            dynamic_beta_scale: parameter(vec![0.01; branches], [branches, 1], device),
            norm_gamma: parameter(vec![0.0; branches * width], [branches, width], device),
        });
        Self {
            static_alpha: one_hot_and_identity(branches, n, device),
            static_beta: parameter(vec![1.0; branches * n], [branches, n], device),
            dynamic,
            norm: norm.unwrap_or_default(),
        }
    }

    fn normalised(&self, stream: Tensor<B, 2>, gamma: Tensor<B, 2>) -> Tensor<B, 2> {
        match self.norm {
            HyperNorm::Rms => unit_rows_with_gain(stream, gamma),
            HyperNorm::Layer => {
                let centred = stream.clone() - stream.mean_dim(1);
                centred.clone() / root_mean_square(centred, LAYER_NORM_EPS) * gamma.add_scalar(1.0)
            }
        }
    }

    fn streams(&self) -> usize {
        self.static_beta.dims()[1]
    }
}

impl<B: FusedOps> Rules<B> for HyperConnections<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        streams::start(input, self.streams())
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        let (branch, n, dtype) = (state.branch, self.streams(), streams::dtype(state));
        let of = |parameter| row(parameter, branch, dtype);
        let beta = of(&self.static_beta).reshape([n, 1]);
        // Of every old stream (rows): in what is read, in each new stream, and of the output in it.
        let mut weights = concatenate(vec![matrix(&self.static_alpha, branch, dtype), beta], 1).unsqueeze();
        if let Some(dynamic) = &self.dynamic {
            let [rows, all] = state.rows[0].dims();
            let each = widened(state.rows[0].clone()).reshape([rows * n, all / n]);
            let seen = self.normalised(each, of(&dynamic.norm_gamma));
            let functions =
                [&dynamic.dynamic_alpha_fn, &dynamic.dynamic_beta_fn].map(|function| matrix(function, branch, dtype));
            let scales = vec![of(&dynamic.dynamic_alpha_scale).repeat_dim(1, n + 1), of(&dynamic.dynamic_beta_scale)];
            let moved = seen.matmul(concatenate(functions.to_vec(), 1)).tanh() * concatenate(scales, 1);
            weights = weights + moved.reshape([rows, n, n + 2]);
        }
        let tokens = weights.dims()[0];
        let columns = |from: usize, to: usize| weights.clone().slice([0..tokens, 0..n, from..to]);
        let weights = Weights {
            read: columns(0, 1).reshape([tokens, n]),
            keep: columns(1, n + 1),
            write: columns(n + 1, n + 2).reshape([tokens, n]),
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
