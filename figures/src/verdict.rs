//! What follows from a number of the paper and one of ours: a rule, so that nobody's hopes take part.

use std::fmt;

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Measured at the paper's scale, and it holds: the number is within [`TOLERANCE`], a difference has the paper's sign with
    /// p below [`LEVEL`], a bound is kept.
    Reproduced,
    /// Measured at a smaller scale, and the difference has the paper's sign with p below [`LEVEL`], or the bound is kept.
    SignReproduced,
    /// Measured at a smaller scale, and it does not show there; or a number that says nothing at another scale.
    NotAtThisScale,
    /// Measured at the paper's scale, with an interval that holds the bound: it may be kept or not.
    NotDecided,
    /// Measured at the paper's scale, and it does not hold.
    NotReproduced,
    /// No log backs it.
    NotRun,
}

impl Verdict {
    /// All verdicts, the best one first.
    pub const ALL: [Self; 6] = [
        Self::Reproduced,
        Self::SignReproduced,
        Self::NotAtThisScale,
        Self::NotDecided,
        Self::NotReproduced,
        Self::NotRun,
    ];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::SignReproduced => "sign reproduced",
            Self::NotAtThisScale => "not at this scale",
            Self::NotDecided => "not decided",
            Self::NotReproduced => "not reproduced",
            Self::NotRun => "not run",
        })
    }
}

/// How near a number must be to the paper's, relative to it.
pub const TOLERANCE: f64 = 0.02;
/// Below which p-value a difference counts.
pub const LEVEL: f64 = 0.05;

/// Whether what the paper says is seen in a log, whatever its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sign {
    /// A difference that the paper has with this sign; `p` of a two-sided test, none with fewer than two pairs.
    Difference {
        /// The sign that it has in the paper: 1 or -1.
        expected: f64,
        /// Ours.
        measured: f64,
        /// How probable one as large is by chance.
        p: Option<f64>,
    },
    /// Something that lies below a bound, with its interval, if there is one.
    Below {
        /// The bound.
        bound: f64,
        /// Both ends.
        interval: Option<[f64; 2]>,
    },
    /// Something that lies above a bound, with the lower end of its interval, if there is one.
    Above {
        /// The bound.
        bound: f64,
        /// The lower end of the interval.
        low: Option<f64>,
    },
}

impl Sign {
    /// Whether it is seen.
    #[must_use]
    pub fn holds(&self) -> bool {
        match *self {
            Self::Difference { expected, measured, p } => measured * expected > 0.0 && p.is_some_and(|p| p < LEVEL),
            Self::Below { bound, interval } => interval.is_some_and(|[_, high]| high < bound),
            Self::Above { bound, low } => low.is_some_and(|low| low > bound),
        }
    }

    /// Whether an interval holds the bound, so that more rounds would be needed to tell.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(*self, Self::Below { bound, interval: Some([low, high]) } if low < bound && bound <= high)
    }
}

/// What a log has to say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Our number and the paper's, where the claim is a number.
    pub number: Option<(f64, f64)>,
    /// The sign of a difference or a bound, where there is one.
    pub sign: Option<Sign>,
    /// Whether the log is of the paper's scale.
    pub at_scale: bool,
}

/// The verdict.
#[must_use]
pub fn verdict(seen: Option<&Seen>) -> Verdict {
    let Some(seen) = seen else { return Verdict::NotRun };
    let sign = seen.sign.map(|sign| sign.holds());
    let number = seen.number.map(|(ours, paper)| (ours - paper).abs() <= TOLERANCE * paper.abs());
    match (seen.at_scale, sign, number) {
        (true, None, None) => Verdict::NotReproduced,
        (true, sign, number) if sign != Some(false) && number != Some(false) => Verdict::Reproduced,
        (_, Some(true), _) => Verdict::SignReproduced,
        (true, ..) if seen.sign.is_some_and(|sign| sign.is_open()) => Verdict::NotDecided,
        (true, ..) => Verdict::NotReproduced,
        (false, ..) => Verdict::NotAtThisScale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(measured: f64, p: Option<f64>) -> Option<Sign> {
        Some(Sign::Difference { expected: -1.0, measured, p })
    }

    fn of(at_scale: bool, number: Option<(f64, f64)>, sign: Option<Sign>) -> Verdict {
        verdict(Some(&Seen { number, sign, at_scale }))
    }

    #[test]
    fn a_small_run_shows_a_sign_and_no_number() {
        let number = Some((30.0, 30.39));
        assert_eq!(of(false, number, None), Verdict::NotAtThisScale, "near by chance");
        assert_eq!(of(false, number, lower(-0.1, Some(0.01))), Verdict::SignReproduced);
        assert_eq!(of(false, number, lower(-0.1, Some(0.06))), Verdict::NotAtThisScale);
        assert_eq!(of(false, number, lower(0.1, Some(0.001))), Verdict::NotAtThisScale, "the other sign");
        assert_eq!(of(false, number, lower(-0.1, None)), Verdict::NotAtThisScale, "one seed says nothing");
        assert_eq!(of(false, number, lower(f64::NAN, Some(0.01))), Verdict::NotAtThisScale);
    }

    #[test]
    fn at_the_papers_scale_the_number_counts_too() {
        let sign = lower(-0.7, Some(0.01));
        assert_eq!(of(true, Some((29.5, 29.62)), sign), Verdict::Reproduced);
        assert_eq!(of(true, Some((33.0, 29.62)), sign), Verdict::SignReproduced);
        assert_eq!(of(true, Some((29.5, 29.62)), lower(0.7, Some(0.01))), Verdict::NotReproduced);
        assert_eq!(of(true, Some((29.5, 29.62)), None), Verdict::Reproduced);
        assert_eq!(of(true, Some((f64::NAN, 29.62)), None), Verdict::NotReproduced);
        assert_eq!(of(true, None, lower(-0.7, Some(0.2))), Verdict::NotReproduced);
    }

    #[test]
    fn bounds_are_held_by_the_end_of_the_interval() {
        let below = |low, high| Some(Sign::Below { bound: 1.0, interval: Some([low, high]) });
        assert_eq!(of(true, None, below(0.5, 0.9)), Verdict::Reproduced);
        assert_eq!(of(true, None, below(0.9, 1.1)), Verdict::NotDecided);
        assert_eq!(of(true, None, below(1.05, 1.1)), Verdict::NotReproduced);
        assert_eq!(of(false, None, below(0.5, 0.9)), Verdict::SignReproduced);
        assert_eq!(of(false, None, below(0.9, 1.1)), Verdict::NotAtThisScale);
        assert_eq!(of(false, None, Some(Sign::Below { bound: 1.0, interval: None })), Verdict::NotAtThisScale);
        let above = |low| Some(Sign::Above { bound: -0.05, low });
        assert_eq!(of(false, None, above(Some(0.0))), Verdict::SignReproduced);
        assert_eq!(of(false, None, above(Some(-0.2))), Verdict::NotAtThisScale);
    }

    #[test]
    fn without_a_log_nothing_was_run() {
        assert_eq!(verdict(None), Verdict::NotRun);
    }
}
