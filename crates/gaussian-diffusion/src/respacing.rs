//! Which of the original steps a sampler visits.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A choice among the original steps, in OpenAI's notation: nothing for all of them, `250` for that many evenly spread,
/// `10,15,20` for so many in each of equally long sections, `ddim50` for an exact stride that gives 50 steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub enum Respacing {
    /// Every step.
    #[default]
    All,
    /// So many steps in each section; one section covers the whole range.
    Sections(Vec<usize>),
    /// So many steps at a whole-numbered stride from 0.
    Stride(usize),
}

/// Why steps cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RespacingError {
    /// Not in the notation.
    #[error("`{0}` is not a choice of steps: write 250, 10,15,20, ddim50, or `all`")]
    Notation(String),
    /// A section is shorter than what is asked of it.
    #[error("{wanted} steps are asked of {available} steps: ask for at most as many")]
    TooMany {
        /// Steps asked for.
        wanted: usize,
        /// Steps of the section.
        available: usize,
    },
    /// No whole stride gives that many.
    #[error("no whole stride through {steps} steps gives {wanted} of them: try ddim{}", nearest_strides(*steps, *wanted))]
    NoStride {
        /// Original steps.
        steps: usize,
        /// Steps asked for.
        wanted: usize,
    },
}

/// The number of steps that a whole stride can give nearest to the one asked for.
fn nearest_strides(steps: usize, wanted: usize) -> usize {
    (1..steps.max(2)).map(|stride| steps.div_ceil(stride)).min_by_key(|count| count.abs_diff(wanted)).unwrap_or(1)
}

impl Respacing {
    /// The chosen steps among `0..steps`, ascending.
    ///
    /// Positions within a section are rounded half to even, as Python's `round` does on the accumulated stride, so that
    /// the choice is that of OpenAI's code.
    ///
    /// # Errors
    /// If more steps are asked of a section than it has, or no whole stride fits.
    pub fn steps(&self, steps: usize) -> Result<Vec<usize>, RespacingError> {
        if let Self::Sections(counts) = self
            && counts.iter().all(|count| *count == 0)
        {
            return Err(RespacingError::Notation(self.to_string()));
        }
        match self {
            Self::All => Ok((0..steps).collect()),
            Self::Stride(wanted) => (1..steps)
                .find(|stride| steps.div_ceil(*stride) == *wanted)
                .map(|stride| (0..steps).step_by(stride).collect())
                .ok_or(RespacingError::NoStride { steps, wanted: *wanted }),
            Self::Sections(counts) => {
                let (size, longer) = (steps / counts.len().max(1), steps % counts.len().max(1));
                let (mut start, mut kept) = (0, BTreeSet::new());
                for (section, &count) in counts.iter().enumerate() {
                    let size = size + usize::from(section < longer);
                    if count > size {
                        return Err(RespacingError::TooMany { wanted: count, available: size });
                    }
                    let stride = if count <= 1 { 1.0 } else { (size - 1) as f64 / (count - 1) as f64 };
                    let mut position = 0.0f64;
                    for _ in 0..count {
                        kept.insert(start + position.round_ties_even() as usize);
                        position += stride;
                    }
                    start += size;
                }
                Ok(kept.into_iter().collect())
            }
        }
    }
}

impl FromStr for Respacing {
    type Err = RespacingError;

    fn from_str(text: &str) -> Result<Self, RespacingError> {
        let (word, wrong) = (text.trim(), || RespacingError::Notation(text.to_owned()));
        let count = |text: &str| text.trim().parse().ok().filter(|count| *count > 0).ok_or_else(wrong);
        match word.strip_prefix("ddim") {
            _ if word.is_empty() || word == "all" => Ok(Self::All),
            Some(rest) => count(rest).map(Self::Stride),
            None => word.split(',').map(count).collect::<Result<_, _>>().map(Self::Sections),
        }
    }
}

impl fmt::Display for Respacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Stride(count) => write!(f, "ddim{count}"),
            Self::Sections(counts) => {
                let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
                f.pad(&counts.join(","))
            }
        }
    }
}

impl From<Respacing> for String {
    fn from(respacing: Respacing) -> Self {
        respacing.to_string()
    }
}

/// As it may stand in a settings file: a number needs no quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for Respacing {
    type Error = RespacingError;

    fn try_from(written: Written) -> Result<Self, RespacingError> {
        match written {
            Written::Number(count) => count.to_string().parse(),
            Written::Text(text) => text.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_notation_round_trips_and_faults_are_named() {
        for text in ["all", "250", "10,15,20", "ddim50"] {
            assert_eq!(text.parse::<Respacing>().unwrap().to_string(), text);
        }
        for text in ["ddim", "0", "10,,20", "-3", "ddim0", "x"] {
            let message = text.parse::<Respacing>().unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("ddim50"), "{message}");
        }
        let message = Respacing::Sections(vec![11]).steps(10).unwrap_err().to_string();
        assert!(message.contains("11") && message.contains("10"), "{message}");
        let message = Respacing::Stride(300).steps(1000).unwrap_err().to_string();
        assert!(message.contains("ddim334"), "{message}");
    }

    proptest! {
        #[test]
        fn one_section_keeps_both_ends(steps in 2usize..2000, share in 0.0..1.0f64) {
            let wanted = 2 + (share * (steps - 2) as f64) as usize;
            let kept = Respacing::Sections(vec![wanted]).steps(steps).unwrap();
            prop_assert_eq!(kept.len(), wanted);
            prop_assert_eq!((kept[0], kept[wanted - 1]), (0, steps - 1));
        }
    }
}
