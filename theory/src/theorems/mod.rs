//! The statements, each as a type whose hypotheses are checked and whose conclusion is measured.
//!
//! Every module has a function `verify` that draws fresh instances from a seed and returns one
//! [`Finding`](crate::Finding) a statement.

pub mod bounded;
pub mod closed_forms;
pub mod decay;
pub mod determinant;
pub mod generic_start;
pub mod hidden_cascade;
pub mod hypothesis;
pub mod identities;
pub mod learned;
pub mod linear_rate;
pub(crate) mod measure;
pub mod reduced_nets;
pub mod saddle;
pub mod scalar_flows;
pub mod sublinear;
pub mod zero_init;

pub use decay::{Decay, ExponentialBound};
pub use hypothesis::HypothesisError;
