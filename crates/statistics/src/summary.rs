//! A sample in three numbers.

use crate::{StatisticsError, error::check};

/// Number, mean and spread of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values there are.
    pub n: usize,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their standard deviation with divisor `n - 1`; not a number for a single value.
    pub sd: f64,
}

impl Summary {
    /// Of at least one value.
    ///
    /// # Errors
    /// If there is none, or one is not finite.
    pub fn of(values: &[f64]) -> Result<Self, StatisticsError> {
        check(values, 1)?;
        Ok(Self { n: values.len(), mean: mean(values), sd: sample_sd(values) })
    }

    /// Standard deviation of the mean; not a number for a single value.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        self.sd / (self.n as f64).sqrt()
    }
}

/// Arithmetic mean; `NaN` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation of a sample (divisor n - 1); `NaN` for fewer than two values.
#[must_use]
pub fn sample_sd(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let center = mean(values);
    (values.iter().map(|v| (v - center).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_mean_and_spread() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!((summary.n, summary.mean), (4, 3.0));
        assert!((summary.sd - (14.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((summary.standard_error() - (14.0_f64 / 12.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn one_value_has_no_spread_and_none_no_mean() {
        assert!(Summary::of(&[2.0]).unwrap().sd.is_nan());
        assert_eq!(Summary::of(&[]), Err(StatisticsError::TooFew { have: 0, need: 1 }));
        assert!(matches!(Summary::of(&[1.0, f64::NAN]), Err(StatisticsError::NotFinite { index: 1, .. })));
        assert!(mean(&[]).is_nan() && sample_sd(&[1.0]).is_nan());
    }
}
