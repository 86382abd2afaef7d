//! Where shortcuts should go in a deep linear network, as statements that are checked by running them.
//!
//! A linear network with shortcuts is the simplest model in which the place of a shortcut decides how fast training
//! is, and much of it can be proved. This crate holds the model and its training ([`network`], [`flow`]), the theorems
//! as types that check their hypotheses and give their conclusions ([`theorems`]), every layout of a depth ranked by
//! its speed ([`ranking`]), and a program that verifies all of it on fresh random instances ([`statements`]) and draws
//! the [`figures`]. `docs/theory.md` has the statements with their proofs, which are the paper's (arXiv 2602.09009),
//! which go beyond it, and what must not be claimed.
//!
//! ```
//! use connection_layout::Layout;
//! use theory::network::Problem;
//! use theory::theorems::{Decay, linear_rate::LinearRate};
//! use theory::{Draw, TargetLaw};
//!
//! // Three layers of width 4, one shortcut from the input to the last hidden node, small random weights.
//! let mut draw = Draw::new(7, 0);
//! let problem = Problem::whitened(&Layout::parse("0:2", 3)?, draw.target(TargetLaw::Gaussian, 4) * 0.5)?;
//! let start = draw.weights(&problem, 1e-4);
//!
//! // The theorem applies to this start, and the loss keeps to its bound.
//! let theorem = LinearRate::new(&problem, &start)?;
//! assert!(Decay::follow(&problem, &start, |_, _| ()).keeps(theorem.rate()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cli;
mod draw;
pub mod figures;
mod finding;
pub mod flow;
pub mod matrix_file;
pub mod network;
pub mod ranking;
pub mod statements;
pub mod theorems;

pub use draw::{Draw, TargetLaw};
pub use finding::{Finding, Source, Verdict};
