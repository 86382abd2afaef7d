//! What a test is asked, and the interval that goes with it.

/// What is held against the hypothesis that there is no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// The difference is not 0.
    TwoSided,
    /// The difference is above 0.
    Greater,
    /// The difference is below 0.
    Less,
}

/// An interval of confidence, with an infinite end where a test has one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it, the ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
