//! The bodies of the paper's tasks, with the constants that the authors' environments use.

mod ant;
mod humanoid;

pub use ant::{Ant, ant};
pub use humanoid::{Humanoid, humanoid};
