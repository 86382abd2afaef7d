//! Hyper-Connections: several streams, and a matrix that tells how a branch reads from them and how they go on.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, backend::Backend},
};
use fused_ops::FusedOps;

use super::{Rules, State, columns, parameter, unit_rows, weighted};

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
/// sum `n` times that. The state holds the streams.
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

/// One-hot at stream `l mod n` for what branch `l` reads, and the identity for the streams: `[branches, n, n + 1]`.
pub(super) fn one_hot_and_identity<B: Backend>(branches: usize, n: usize, device: &B::Device) -> Param<Tensor<B, 3>> {
    let entry = |branch: usize, s: usize, column: usize| match column {
        0 => s == branch % n,
        _ => s + 1 == column,
    };
    let entries = (0..branches).flat_map(|branch| {
        (0..n).flat_map(move |s| (0..=n).map(move |column| f32::from(u8::from(entry(branch, s, column)))))
    });
    parameter(entries.collect(), [branches, n, n + 1], device)
}

/// Entry `branch` of `[branches, rows, columns]`, as `[rows, columns]` of the type of `like`.
pub(super) fn matrix<B: Backend>(parameter: &Param<Tensor<B, 3>>, branch: usize, like: &Tensor<B, 2>) -> Tensor<B, 2> {
    let [_, rows, columns] = parameter.dims();
    parameter.val().slice([branch..branch + 1, 0..rows, 0..columns]).reshape([rows, columns]).cast(like.dtype())
}

/// Rows over their root mean square, with a gain of `1 + gamma`.
pub(super) fn unit_rows_with_gain<B: Backend>(rows: Tensor<B, 2>, gamma: Tensor<B, 2>) -> Tensor<B, 2> {
    unit_rows(rows, LEAST) * gamma.add_scalar(1.0)
}

/// Moves the streams on: `mixes[s]` is `[1 or rows, n]` with the weights of stream `s` in each new one.
pub(super) fn move_on<B: Backend>(streams: &[Tensor<B, 2>], mixes: Vec<Tensor<B, 2>>) -> Vec<Tensor<B, 2>> {
    let by_source: Vec<Vec<Tensor<B, 2>>> = mixes.into_iter().map(columns).collect();
    (0..streams.len()).map(|t| weighted(by_source.iter().map(|mix| mix[t].clone()), streams)).collect()
}

/// Adds a branch's output to every stream; `betas[t]` is `[1 or rows, 1]`.
pub(super) fn add<B: FusedOps>(state: &mut State<B>, output: &Tensor<B, 2>) {
    for (stream, beta) in state.rows.iter_mut().zip(state.held.drain(..)) {
        *stream = stream.clone() + output.clone() * beta;
    }
}

pub(super) fn sum_of_streams<B: Backend>(state: State<B>) -> Tensor<B, 2> {
    state.rows.into_iter().reduce(|sum, stream| sum + stream).expect("there is a stream")
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
                unit_rows(centred, LAYER_NORM_EPS) * gamma.add_scalar(1.0)
            }
        }
    }
}

impl<B: FusedOps> Rules<B> for HyperConnections<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        vec![input; self.static_beta.dims()[1]]
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        let (branch, n) = (state.branch, state.rows.len());
        let like = state.rows[0].clone();
        let alpha = matrix(&self.static_alpha, branch, &like);
        let mut alphas: Vec<_> = (0..n).map(|s| alpha.clone().slice([s..s + 1, 0..n + 1])).collect();
        let mut betas = columns(super::row(&self.static_beta, branch, &like));
        if let Some(dynamic) = &self.dynamic {
            let of = |parameter| super::row(parameter, branch, &like);
            let (alpha_fn, beta_fn) =
                (matrix(&dynamic.dynamic_alpha_fn, branch, &like), matrix(&dynamic.dynamic_beta_fn, branch, &like));
            for ((stream, alpha), beta) in state.rows.iter().zip(&mut alphas).zip(&mut betas) {
                let seen = self.normalised(stream.clone(), of(&dynamic.norm_gamma));
                let moved = seen.clone().matmul(alpha_fn.clone()).tanh() * of(&dynamic.dynamic_alpha_scale);
                *alpha = alpha.clone() + moved;
                *beta = beta.clone() + seen.matmul(beta_fn.clone()).tanh() * of(&dynamic.dynamic_beta_scale);
            }
        }
        let mut parts: Vec<Vec<_>> = alphas.iter().map(|alpha| alpha.clone().split(1, 1)).collect();
        let input = weighted(parts.iter_mut().map(|columns| columns.remove(0)), &state.rows);
        state.rows = move_on(&state.rows, parts.into_iter().map(|columns| Tensor::cat(columns, 1)).collect());
        state.held = betas;
        input
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        add(state, &output);
    }

    fn finish(&self, state: State<B>) -> Tensor<B, 2> {
        sum_of_streams(state)
    }
}
