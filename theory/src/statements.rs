//! The groups of statements in the order in which they are checked and printed.

use crate::Finding;

/// A group of statements that are checked together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its title, with the section of `docs/theory.md`.
    pub title: &'static str,
    /// Checks it on random instances of a seed.
    pub verify: fn(u64) -> Vec<Finding>,
}

/// Every group.
pub const STATEMENTS: &[Group] = &[];
