//! Residual connections of other papers, behind one interface, to be compared with ANCRe.
//!
//! ANCRe's [`Connections`](crate::Connections) follow whole blocks, whose own shortcuts stay as they are. Most rivals stand in the
//! place of those shortcuts, around every residual branch `f_l` (an attention, or an MLP, with the norm before it): what the branch
//! reads, and where its output goes. A [`Rival`] is asked for both:
//!
//! ```
//! use ancre::rivals::{Rival, RivalConfig, RivalKind};
//! use burn::{backend::Flex, nn::{Linear, LinearConfig}, tensor::Tensor};
//!
//! let device = Default::default();
//! let branches: Vec<Linear<Flex>> = (0..4).map(|_| LinearConfig::new(8, 8).init(&device)).collect();
//! let kind: RivalKind = "attention-residuals".parse()?;
//! let rival: Rival<Flex> = RivalConfig { kind, branches: branches.len(), per_block: 2, width: 8, tau: 0.01 }.init(&device)?;
//!
//! let mut stream = rival.start(Tensor::<Flex, 2>::ones([3, 8], &device));
//! for branch in &branches {
//!     let input = rival.enter(&mut stream);
//!     rival.leave(&mut stream, branch.forward(input));
//! }
//! assert_eq!(rival.finish(stream).dims(), [3, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | kind | what a branch reads, and what becomes of its output | source |
//! |---|---|---|
//! | `residual` | `h + f(h)`: the ordinary stream, baseline of all | |
//! | `rezero` | `h + a f(h)`, one scalar a branch, from 0 | Bachlechner et al. 2020 |
//! | `layer-scale[:INIT]` | the same with a scalar a channel, from 0.1 | Touvron et al. 2021 |
//! | `x0-scalars` | the ordinary stream, and `r h + s h_0` before each block; r from 1, s from 0 | modded-nanogpt |
//! | `layer-norm-scaling` | the ordinary stream, with the norms inside block `l` (from 1) over `sqrt(l)` ([`Rival::norm_scale`]) | Sun et al. 2025 |
//! | `dense-former[:DILATION:PERIOD]` | the ordinary stream, and after blocks a free weighted sum of their outputs so far, from the newest alone | Pagliardini et al. 2024 |
//! | `hyper-connections[-static][:STREAMS]` | streams that mix among each other, by weights or by functions of the token; `-rms` has the norm of the package `hyper-connections` 0.4.11 | Zhu et al. 2024 |
//! | `manifold-hyper-connections[:STREAMS]` | the same with a doubly stochastic mix, and functions of all streams together; `-package` has the form of that package, of one stream at a time | Xie et al. 2025 |
//! | `attention-residuals[:BLOCKS]` | a softmax over the outputs so far, of a learned query with each; the network goes on with that of one more query; `-sum` with their sum, as the package `attn-res` 0.1.0 does | Kimi Team 2026 |
//! | `ancre-branches` | a softmax over the outputs so far, of free logits over `tau`, uniform at first; the network goes on with one more | ANCRe's coefficients on branches |
//! | `open-attention-residuals[:BLOCKS]` | the softmax of `attention-residuals` over cumulative states, with a preference for the newest | package `open-attention-residuals` |
//!
//! Blocks have [`RivalConfig::per_block`] branches. Where a package and its paper differ, the bare name is the paper's form.
//!
//! Coefficients, and the sums, norms and softmaxes that lead to them, are in `f32` where the stream is in fewer digits (in `f64` where it
//! is); results are rounded once to the type of the stream.

mod ancre_branches;
mod attention;
mod cumulative;
mod dense_former;
mod hyper;
mod kind;
mod manifold;
mod manifold_package;
pub(crate) mod rows;
mod scales;
pub(crate) mod sinkhorn;
mod streams;

use burn::{
    module::Module,
    tensor::{Tensor, backend::Backend},
};
use fused_ops::FusedOps;
use thiserror::Error;

use crate::config::check_tau;

pub use ancre_branches::AncreBranches;
pub use attention::AttentionResiduals;
pub use cumulative::CumulativeAttention;
pub use dense_former::DenseFormer;
pub use hyper::{HyperConnections, HyperNorm, TokenFunctions};
pub use kind::{ParseRivalError, RivalKind};
pub use manifold::{ManifoldForm, ManifoldHyperConnections};
pub use manifold_package::PackageManifoldConnections;
pub use scales::{FirstStateScalars, LayerScale, ReZero};

/// The parameters of a rival and how they are applied. Made by [`RivalConfig::init`].
///
/// Parameters are kept for all branches (or blocks) together, in `f32` or in the type that they are loaded in. Scalars among them
/// should have no weight decay.
#[derive(Module, Debug)]
pub struct Rival<B: Backend> {
    connections: Variant<B>,
    branches: usize,
    per_block: usize,
    #[module(skip)]
    kind: RivalKind,
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)]
enum Variant<B: Backend> {
    ReZero(ReZero<B>),
    LayerScale(LayerScale<B>),
    FirstStateScalars(FirstStateScalars<B>),
    DenseFormer(DenseFormer<B>),
    Hyper(HyperConnections<B>),
    Manifold(ManifoldHyperConnections<B>),
    ManifoldPackage(PackageManifoldConnections<B>),
    Attention(AttentionResiduals<B>),
    AncreBranches(AncreBranches<B>),
    Cumulative(CumulativeAttention<B>),
    Plain(Plain),
}

/// No parameters: the branches' outputs are added.
#[derive(Module, Clone, Debug, Default)]
struct Plain {}

/// What has left the branches so far, as far as later ones take it.
#[derive(Clone, Debug)]
pub struct Stream<B: Backend, const D: usize> {
    dims: [usize; D],
    state: State<B>,
}

/// The same, as rows `[rows, width]`.
#[derive(Clone, Debug)]
struct State<B: Backend> {
    /// Branches that have been left.
    branch: usize,
    /// Whether the next one was entered.
    entered: bool,
    /// What it holds is the rival's own affair; see each.
    rows: Vec<Tensor<B, 2>>,
    /// What [`Rules::enter`] keeps for [`Rules::leave`].
    held: Vec<Tensor<B, 2>>,
}

/// What makes one rival.
trait Rules<B: FusedOps> {
    /// The state before the first branch.
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        vec![input]
    }
    /// The input of branch `state.branch`.
    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2>;
    /// Takes the output of branch `state.branch`.
    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>);
    /// What the network goes on with after its last branch.
    fn finish(&self, state: State<B>) -> Tensor<B, 2>;
}

impl<B: FusedOps> Rules<B> for Plain {
    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        state.rows[0].clone()
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        let sum = state.rows[0].clone() + output;
        state.rows[0] = sum;
    }

    fn finish(&self, mut state: State<B>) -> Tensor<B, 2> {
        state.rows.swap_remove(0)
    }
}

/// Kind, number of branches and width.
#[derive(Clone, Debug, PartialEq)]
pub struct RivalConfig {
    /// Which rival.
    pub kind: RivalKind,
    /// Number of residual branches.
    pub branches: usize,
    /// How many of them are in a block: 2 in a transformer.
    pub per_block: usize,
    /// Width of the stream.
    pub width: usize,
    /// Temperature of the softmax of [`RivalKind::AncreBranches`]; of no effect on the others.
    pub tau: f64,
}

/// The largest number of branches and the largest width.
pub(crate) const LARGEST_SIZE: usize = 1 << 24;

/// Why a rival cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RivalError {
    /// There is nothing to connect, or more than any machine holds.
    #[error("a network of {branches} branches of width {width} cannot be connected: give 1 to 16777216 of both")]
    Size {
        /// Asked for.
        branches: usize,
        /// Asked for.
        width: usize,
    },
    /// The temperature is not a positive number.
    #[error("tau = {0} is not a temperature: give a positive number that f32 can hold, such as 0.01")]
    Tau(String),
    /// A number of the kind makes no sense.
    #[error("`{0}` has a number that is out of its range")]
    Number(RivalKind),
    /// Blocks of branches that do not come out even.
    #[error("{branches} branches are not whole blocks of {per_block}")]
    PerBlock {
        /// There are.
        branches: usize,
        /// Asked for.
        per_block: usize,
    },
    /// The sources of Attention Residuals are blocks of equally many branches; those of the open variant have at least one layer.
    #[error(
        "{branches} branches (or layers) cannot be cut into {blocks} blocks: give a number that divides {branches}"
    )]
    Blocks {
        /// Asked for.
        blocks: usize,
        /// There are.
        branches: usize,
    },
    /// The blocks of open attention residuals hold whole layers of two branches.
    #[error("open attention residuals count layers of two branches each, and {branches} is odd")]
    Odd {
        /// There are.
        branches: usize,
    },
}

impl RivalConfig {
    /// Checks that a module can be made.
    ///
    /// # Errors
    /// For sizes and numbers out of range, and where blocks do not fit the number of branches.
    pub fn validate(&self) -> Result<(), RivalError> {
        let Self { ref kind, branches, per_block, width, tau } = *self;
        if !(1..=LARGEST_SIZE).contains(&branches) || !(1..=LARGEST_SIZE).contains(&width) {
            return Err(RivalError::Size { branches, width });
        }
        if per_block == 0 || !branches.is_multiple_of(per_block) {
            return Err(RivalError::PerBlock { branches, per_block });
        }
        if !kind.is_valid() {
            return Err(RivalError::Number(kind.clone()));
        }
        if kind.uses_tau() && check_tau(tau).is_err() {
            return Err(RivalError::Tau(tau.to_string()));
        }
        match *kind {
            RivalKind::AttentionResiduals { blocks: Some(blocks), .. } if !branches.is_multiple_of(blocks) => {
                Err(RivalError::Blocks { blocks, branches })
            }
            RivalKind::OpenAttentionResiduals { blocks: Some(_) } if !branches.is_multiple_of(2) => {
                Err(RivalError::Odd { branches })
            }
            RivalKind::OpenAttentionResiduals { blocks: Some(blocks) } if blocks > branches / 2 => {
                Err(RivalError::Blocks { blocks, branches: branches / 2 })
            }
            _ => Ok(()),
        }
    }

    /// The module on a device, as the source of its kind begins it. It draws no random numbers.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn init<B: Backend>(&self, device: &B::Device) -> Result<Rival<B>, RivalError> {
        self.validate()?;
        let Self { ref kind, branches, per_block, width, tau } = *self;
        let blocks_of_branches = branches / per_block;
        let connections = match *kind {
            RivalKind::Residual | RivalKind::LayerNormScaling => Variant::Plain(Plain {}),
            RivalKind::ReZero => Variant::ReZero(ReZero::new(branches, device)),
            RivalKind::LayerScale { initial } => Variant::LayerScale(LayerScale::new(branches, width, initial, device)),
            RivalKind::FirstStateScalars => {
                Variant::FirstStateScalars(FirstStateScalars::new(blocks_of_branches, per_block, device))
            }
            RivalKind::DenseFormer { dilation, period } => {
                Variant::DenseFormer(DenseFormer::new(blocks_of_branches, per_block, dilation, period, device))
            }
            RivalKind::HyperConnections { streams, dynamic, norm } => {
                Variant::Hyper(HyperConnections::new(branches, width, streams, dynamic.then_some(norm), device))
            }
            RivalKind::ManifoldHyperConnections { streams, form: ManifoldForm::Paper } => {
                Variant::Manifold(ManifoldHyperConnections::new(branches, width, streams, device))
            }
            RivalKind::ManifoldHyperConnections { streams, form: ManifoldForm::Package } => {
                Variant::ManifoldPackage(PackageManifoldConnections::new(branches, width, streams, device))
            }
            RivalKind::AttentionResiduals { blocks, final_query } => {
                Variant::Attention(AttentionResiduals::new(branches, width, blocks, final_query, device))
            }
            RivalKind::AncreBranches => Variant::AncreBranches(AncreBranches::new(branches, tau, device)),
            RivalKind::OpenAttentionResiduals { blocks } => {
                Variant::Cumulative(CumulativeAttention::new(branches, width, blocks, device))
            }
        };
        Ok(Rival { connections, branches, per_block, kind: kind.clone() })
    }
}

impl RivalConfig {
    /// Number of parameters of a valid configuration, all of which training changes.
    pub fn parameters(&self) -> usize {
        let Self { ref kind, branches, per_block, width, .. } = *self;
        let blocks_of_branches = branches / per_block.max(1);
        match *kind {
            RivalKind::Residual | RivalKind::LayerNormScaling => 0,
            RivalKind::ReZero => branches,
            RivalKind::LayerScale { .. } => branches * width,
            RivalKind::FirstStateScalars => 2 * blocks_of_branches,
            RivalKind::DenseFormer { dilation, period } => {
                (0..blocks_of_branches).map(|block| dense_former::sources(block, dilation, period).count()).sum()
            }
            RivalKind::HyperConnections { streams: n, dynamic, .. } => {
                // Weights; functions of the token, their two scales, and the gain of the norm.
                branches * (n * (n + 2) + if dynamic { width * (n + 3) + 2 } else { 0 })
            }
            RivalKind::ManifoldHyperConnections { streams, form: ManifoldForm::Paper } => {
                branches * manifold::parameters(width, streams)
            }
            RivalKind::ManifoldHyperConnections { streams: n, form: ManifoldForm::Package } => {
                branches * (n * (n + 2) + width * (n + 3) + 3)
            }
            RivalKind::AttentionResiduals { final_query, .. } => (branches + usize::from(final_query)) * width,
            RivalKind::AncreBranches => ancre_branches::first(branches + 1),
            RivalKind::OpenAttentionResiduals { .. } => branches * (2 * width + 1),
        }
    }
}

impl RivalConfig {
    /// Numbers that the graph of a training step keeps for every token, roughly, beyond what the branches keep themselves: for memory
    /// estimates.
    pub fn kept_per_token(&self) -> u64 {
        let [branches, width] = [self.branches, self.width].map(|size| size as u64);
        // A normalised source: its square, its size, the quotient and what it is multiplied to.
        const NORMED: u64 = 5;
        match self.kind {
            RivalKind::Residual | RivalKind::LayerNormScaling => 0,
            RivalKind::ReZero | RivalKind::LayerScale { .. } | RivalKind::FirstStateScalars => 2 * branches * width,
            RivalKind::DenseFormer { .. } | RivalKind::AncreBranches => 2 * branches * width,
            RivalKind::HyperConnections { streams, dynamic, .. } => {
                let n = streams as u64;
                branches * n * width * (2 + if dynamic { NORMED } else { 0 })
            }
            RivalKind::ManifoldHyperConnections { streams, form } => {
                let n = streams as u64;
                // Streams together are normalised after their products.
                let normed = if form == ManifoldForm::Paper { 2 } else { NORMED };
                // Logits and matrices; a backend that composes Sinkhorn's normalisation keeps each of its rounds.
                branches * (n * width * (2 + normed) + 2 * n * n)
            }
            // Its input and its output or state; of every source a handle and some columns, half of the sources on average.
            RivalKind::AttentionResiduals { blocks, .. } | RivalKind::OpenAttentionResiduals { blocks } => {
                let sources = blocks.map_or(branches, |blocks| blocks as u64) + 2;
                branches * (2 * width + NORMED * sources.div_ceil(2))
            }
        }
    }
}

impl<B: Backend> Rival<B> {
    /// Replaces the temperature of [`RivalKind::AncreBranches`], which the caller has checked.
    pub(crate) fn set_tau(&mut self, tau: f64) {
        if let Variant::AncreBranches(rules) = &mut self.connections {
            rules.tau = tau;
        }
    }
}

impl<B: FusedOps> Rival<B> {
    fn rules(&self) -> &dyn Rules<B> {
        match &self.connections {
            Variant::ReZero(rules) => rules,
            Variant::LayerScale(rules) => rules,
            Variant::FirstStateScalars(rules) => rules,
            Variant::DenseFormer(rules) => rules,
            Variant::Hyper(rules) => rules,
            Variant::Manifold(rules) => rules,
            Variant::ManifoldPackage(rules) => rules,
            Variant::Attention(rules) => rules,
            Variant::AncreBranches(rules) => rules,
            Variant::Cumulative(rules) => rules,
            Variant::Plain(rules) => rules,
        }
    }

    /// Which rival this is.
    pub fn kind(&self) -> &RivalKind {
        &self.kind
    }

    /// Number of branches.
    pub fn branches(&self) -> usize {
        self.branches
    }

    /// How many of them are in a block.
    pub fn per_block(&self) -> usize {
        self.per_block
    }

    /// What the output of the norm inside a branch (from 0) is to be multiplied by: `1 / sqrt(l)` in block `l` (from 1) for layer-norm
    /// scaling, and else 1.
    pub fn norm_scale(&self, branch: usize) -> f64 {
        match self.kind {
            RivalKind::LayerNormScaling => 1.0 / ((branch / self.per_block + 1) as f64).sqrt(),
            _ => 1.0,
        }
    }

    /// Begins a forward pass with the embeddings; the last dimension is the width.
    pub fn start<const D: usize>(&self, input: Tensor<B, D>) -> Stream<B, D> {
        let dims = input.dims();
        let rows = self.rules().start(as_rows(input));
        Stream { dims, state: State { branch: 0, entered: false, rows, held: Vec::new() } }
    }

    /// What the next branch reads.
    ///
    /// # Panics
    /// After the last branch, and where the one before was not left.
    pub fn enter<const D: usize>(&self, stream: &mut Stream<B, D>) -> Tensor<B, D> {
        assert!(stream.state.branch < self.branches, "this rival has {} branches, and all were left", self.branches);
        assert!(!stream.state.entered, "branch {} is left before another is entered", stream.state.branch);
        stream.state.entered = true;
        self.rules().enter(&mut stream.state).reshape(stream.dims)
    }

    /// Takes what that branch made of it.
    ///
    /// # Panics
    /// Where no branch was entered, or the output has another shape than its input.
    pub fn leave<const D: usize>(&self, stream: &mut Stream<B, D>, output: Tensor<B, D>) {
        assert!(stream.state.entered, "branch {} is entered before it is left", stream.state.branch);
        assert_eq!(output.dims(), stream.dims, "what leaves a branch has the shape of what entered it");
        stream.state.entered = false;
        self.rules().leave(&mut stream.state, as_rows(output));
        stream.state.branch += 1;
    }

    /// What the network goes on with.
    ///
    /// # Panics
    /// Before all branches were left.
    pub fn finish<const D: usize>(&self, stream: Stream<B, D>) -> Tensor<B, D> {
        assert_eq!(stream.state.branch, self.branches, "all branches are left before the stream is finished");
        self.rules().finish(stream.state).reshape(stream.dims)
    }
}

fn as_rows<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, 2> {
    let width = tensor.dims()[D - 1];
    let rows = tensor.dims().iter().product::<usize>() / width.max(1);
    tensor.reshape([rows, width])
}
