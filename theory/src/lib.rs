//! Linear networks with shortcuts, and what can be proved about them.

mod draw;
mod finding;
pub mod flow;
pub mod network;
pub mod ranking;
pub mod theorems;

pub use draw::{Draw, TargetLaw};
pub use finding::{Finding, Source, Verdict};
