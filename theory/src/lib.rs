//! Linear networks with shortcuts, and what can be proved about them.

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
