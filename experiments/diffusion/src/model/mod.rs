//! DiT (Peebles and Xie 2023) with any connections between its blocks.
//!
//! The forward pass and every name follow the authors' `DiT`, so that their state dicts load. Each block keeps its own two
//! residuals; the connection comes after it, and the conditioning is no part of the history.

mod block;
mod config;
mod dit;
mod embed;
mod linear;
mod positions;
pub mod state_dict;

pub use config::{DitConfig, ModelError};
pub use dit::{Dit, Observation};
pub use embed::frequencies;
