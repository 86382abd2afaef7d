//! Samples that nothing can be said about.

use thiserror::Error;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum StatisticsError {
    /// There are too few values for a spread.
    #[error("{have} values say nothing about a spread: {need} are needed")]
    TooFew {
        /// How many there are.
        have: usize,
        /// How many are needed.
        need: usize,
    },
    /// Pairs need partners.
    #[error("{first} values cannot be paired with {second}: give as many of both")]
    Lengths {
        /// Values of the first sample.
        first: usize,
        /// Values of the second sample.
        second: usize,
    },
    /// A value is not finite.
    #[error("value {index} is {value}: leave out runs that diverged before they are compared")]
    NotFinite {
        /// Its place.
        index: usize,
        /// What it is.
        value: f64,
    },
    /// A share is none.
    #[error("a level of {0} is none: give one between 0 and 1")]
    Level(f64),
    /// All differences are 0.
    #[error("all differences are 0: there is nothing to rank")]
    AllZero,
    /// The exact distribution was asked for where it is not known.
    #[error("the exact distribution of signed ranks is for samples without ties and zeros; use the sign patterns")]
    NotExact,
    /// The sample is too large to go through its sign patterns.
    #[error("{0} differences are too many for an exact distribution of their ranks: use the normal approximation")]
    TooMany(usize),
    /// A resample names a value that is not there.
    #[error("a resample names value {index} of {values}")]
    Index {
        /// The place that is named.
        index: usize,
        /// How many values there are.
        values: usize,
    },
}

/// Refuses fewer than `need` values, and values that are not finite.
pub(crate) fn check(values: &[f64], need: usize) -> Result<(), StatisticsError> {
    if values.len() < need {
        return Err(StatisticsError::TooFew { have: values.len(), need });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatisticsError::NotFinite { index, value: values[index] }),
        None => Ok(()),
    }
}

/// The differences of pairs, all finite.
pub(crate) fn differences(first: &[f64], second: &[f64], need: usize) -> Result<Vec<f64>, StatisticsError> {
    if first.len() != second.len() {
        return Err(StatisticsError::Lengths { first: first.len(), second: second.len() });
    }
    check(first, need)?;
    check(second, need)?;
    Ok(first.iter().zip(second).map(|(a, b)| a - b).collect())
}

/// Refuses what is no level of confidence.
pub(crate) fn check_level(level: f64) -> Result<(), StatisticsError> {
    if level > 0.0 && level < 1.0 { Ok(()) } else { Err(StatisticsError::Level(level)) }
}
