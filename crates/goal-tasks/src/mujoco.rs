//! The physics library MuJoCo, opened while the program runs.
//!
//! The library is looked for when the first task asks for it ([`library`]). Nothing is linked: the program starts
//! without it, and says what is missing where it is missing or of another version. That is why the bindings of the
//! crate `mujoco-rs` are not used. They link `libmujoco`, so that a program with them ends in the loader, before
//! `main`, where the library is missing; their build wants it under another name than the wheel of PyPI has; and their
//! handler of errors ends the process. The tasks need some twenty functions, and no layout of a structure: what they
//! read they ask functions for. So the same code drives each of the two [`Version`]s that are checked against records.

mod bindings;
mod search;

#[cfg(test)]
pub(crate) use bindings::tests::column;
pub(crate) use bindings::{BodyId, Data, Model, Part};
pub(crate) use search::library;

/// The versions that are checked against records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 3.2.6, whose dynamics are those of MJX, with which the paper's numbers were made.
    Old,
    /// 3.17.0.
    New,
}

impl Version {
    /// The version of a number that `mj_version` gives.
    pub(crate) fn of(number: i32) -> Option<Self> {
        [Self::Old, Self::New].into_iter().find(|version| version.number() == number)
    }

    /// What `mj_version` gives.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Old => 326,
            Self::New => 3_017_000,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Old => "3.2.6",
            Self::New => "3.17.0",
        }
    }

    /// `mjSTATE_CTRL`, from the headers of the version.
    fn controls(self) -> i32 {
        match self {
            Self::Old => 1 << 5,
            Self::New => 1 << 6,
        }
    }

    /// `mjSTATE_INTEGRATION`, from the headers of the version.
    fn integration(self) -> i32 {
        match self {
            Self::Old => (1 << 13) - 1,
            Self::New => (1 << 14) - 1,
        }
    }
}
