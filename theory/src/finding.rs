//! What came out of checking a statement.

use std::fmt;

/// Where a statement comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A claim of the paper.
    Paper,
    /// Goes beyond the paper, with a proof in `docs/theory.md`.
    Proved,
    /// Goes beyond the paper, and was only ever measured.
    Measured,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Paper => "paper",
            Self::Proved => "proved",
            Self::Measured => "measured",
        })
    }
}

/// Whether a statement holds on the instances that were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The statement holds.
    Holds,
    /// The statement is false, is known to be, and the counter-example was found.
    Refuted,
    /// What was measured is not what was expected.
    Fails,
}

impl Verdict {
    /// [`Holds`](Self::Holds) or [`Fails`](Self::Fails).
    pub fn holds_if(condition: bool) -> Self {
        if condition { Self::Holds } else { Self::Fails }
    }

    /// [`Refuted`](Self::Refuted) for a counter-example that was found as expected, or [`Fails`](Self::Fails).
    pub fn refuted_if(condition: bool) -> Self {
        if condition { Self::Refuted } else { Self::Fails }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::Refuted => "refuted",
            Self::Fails => "FAILS",
        })
    }
}

/// One statement, what was measured, what it was held against, and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Section of `docs/theory.md`.
    pub section: u8,
    /// Where the statement comes from.
    pub source: Source,
    /// The statement, in a few words; the layout in the notation.
    pub statement: String,
    /// What was measured, with the number of instances.
    pub measured: String,
    /// What it was held against.
    pub bound: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

impl Finding {
    /// A finding about a statement of a section.
    pub fn new(section: u8, source: Source, statement: &str, measured: String, bound: &str, verdict: Verdict) -> Self {
        Self { section, source, statement: statement.to_owned(), measured, bound: bound.to_owned(), verdict }
    }
}
