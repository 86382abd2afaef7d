//! The groups of statements in the order in which they are checked and printed.

use crate::theorems::{
    bounded, closed_forms, determinant, hidden_cascade, identities, learned, linear_rate, reduced_nets, saddle,
    sublinear, zero_init,
};
use crate::{Finding, ranking};

/// A group of statements that are checked together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its title, with the section of `docs/theory.md`.
    pub title: &'static str,
    /// Checks it on random instances of a seed.
    pub verify: fn(u64) -> Vec<Finding>,
}

/// Every group.
pub const STATEMENTS: &[Group] = &[
    Group { title: "1 The shortcut 0:K-1", verify: linear_rate::verify },
    Group { title: "2 The shortcut 0:1", verify: sublinear::verify },
    Group { title: "3 Zero weights", verify: zero_init::verify },
    Group { title: "3 The hidden cascade", verify: hidden_cascade::verify },
    Group { title: "3 Saddles", verify: saddle::verify },
    Group { title: "3 The full cascade", verify: determinant::verify },
    Group { title: "3 Reduced nets", verify: reduced_nets::verify },
    Group { title: "3 Output shortcuts", verify: bounded::verify },
    Group { title: "4 The paper's empirical claims", verify: ranking::verify },
    Group { title: "5 ANCRe on linear networks", verify: learned::verify },
    Group { title: "6 Identities", verify: identities::verify },
    Group { title: "6 Closed forms", verify: closed_forms::verify },
];
