//! Learned residual connections for burn models: ANCRe (arXiv 2602.09009) and the layouts it is compared with, behind
//! one interface.
//!
//! A deep network computes `h_l = B_l(h_{l-1})`, each block `B_l` with residuals of its own inside. ANCRe follows every
//! block by a weighted sum of all earlier states, with weights that are learned and sum to one:
//!
//! ```text
//! h_l = B_l(h_{l-1}) + sum_{i < l} p_{l,i} h_i        p_l = softmax(theta_l / tau)
//! ```
//!
//! That is `K(K+1)/2` scalars for `K` blocks. [`Arm`] names the variants: the plain cascade, any fixed layout, ANCRe
//! itself, uniform and outgoing normalisation, a softmax in place of the blocks' own shortcuts, unnormalised scalars, and the first state
//! through a learned gate. Each is one value of the same configuration, so that
//! a comparison changes nothing else.
//!
//! To use it in a model, hold a [`Connections`] beside the blocks and pass each block's output through it:
//!
//! ```
//! use ancre::{Arm, ConnectionsConfig};
//! use burn::{backend::Flex, nn::{Linear, LinearConfig}, tensor::Tensor};
//!
//! let device = Default::default();
//! let blocks: Vec<Linear<Flex>> = (0..4).map(|_| LinearConfig::new(8, 8).init(&device)).collect();
//! let connections = ConnectionsConfig::new(blocks.len()).init::<Flex>(&device)?;
//!
//! let mut x = Tensor::<Flex, 2>::ones([3, 8], &device);
//! let mut history = connections.start(x.clone());
//! for block in &blocks {
//!     x = connections.connect(&mut history, block.forward(x));
//! }
//! assert_eq!(x.dims(), [3, 8]);
//! # Ok::<(), ancre::ConnectionsError>(())
//! ```
//!
//! The history is a value that the caller holds: the module has no hidden state, so one model can be evaluated from many
//! threads. States that no later block takes are dropped as soon as that is known.
//!
//! What the connections do is available as numbers: [`Connections::coefficients`] (and, through it, entropies and the
//! growth of the stream for identity blocks), [`Connections::theta_gradient_norm`], and [`History::observe_growth`] for
//! the growth that really happens.
//!
//! [`rivals`] are the connections of other papers, from ReZero to Attention Residuals. They stand around the residual branches inside
//! blocks, so a model has to open those; one that does tells the configuration its [`Branches`], and goes through its [`Blocks`] by
//! [`Connections::pass`], which does either:
//!
//! ```
//! use ancre::{Blocks, Branches, ConnectionsConfig};
//! use burn::{backend::Flex, nn::{Linear, LinearConfig}, tensor::{Tensor, activation::tanh}};
//!
//! // Blocks of one residual branch: h + tanh(W h).
//! struct Net(Vec<Linear<Flex>>);
//!
//! impl Blocks<Flex, 2> for Net {
//!     fn block(&self, block: usize, x: Tensor<Flex, 2>) -> Tensor<Flex, 2> {
//!         x.clone() + self.branch(block, 0, x, 1.0)
//!     }
//!
//!     fn branch(&self, block: usize, _branch: usize, x: Tensor<Flex, 2>, _norm_scale: f64) -> Tensor<Flex, 2> {
//!         tanh(self.0[block].forward(x))
//!     }
//! }
//!
//! let device = Default::default();
//! let net = Net((0..4).map(|_| LinearConfig::new(8, 8).init(&device)).collect());
//! for arm in ["ancre", "gated-first-state", "hyper-connections:2"] {
//!     let connections = ConnectionsConfig::new(4)
//!         .with_arm(arm.parse()?)
//!         .with_branches(Branches { per_block: 1, width: 8 })
//!         .init::<Flex>(&device)?;
//!     assert_eq!(connections.pass(Tensor::ones([3, 8], &device), &net).dims(), [3, 8]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate knows no data, no files and no command-line arguments.

mod arm;
mod blocks;
mod config;
mod connections;
mod cost;
mod gated;
mod history;
mod plan;
pub mod rivals;

pub use arm::{Arm, Parameterization, ParseArmError, Replacement};
pub use blocks::Blocks;
pub use config::{Branches, ConnectionsConfig, ConnectionsError, DEFAULT_TAU};
pub use connections::Connections;
pub use cost::{Cost, Work};
pub use gated::{GatedFirstState, InitialWeight};
pub use history::History;

/// The Rust code in the repository's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
