//! How one arm differs from another with the same seeds.

use crate::{Alternative, TTest, mean, sample_sd};

/// How the values of one arm differ from those of another with the same seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifference {
    /// How many pairs both have a finite value for.
    pub pairs: usize,
    /// Mean difference, the first arm minus the second; not a number without pairs.
    pub mean: f64,
    /// Sample standard deviation of the differences; not a number with fewer than two pairs.
    pub sd: f64,
    /// Two-sided p-value of the [paired t-test](TTest::paired). None with fewer than two pairs, and where all differences are
    /// 0.
    pub p_value: Option<f64>,
}

/// The differences of `values` from `baseline`, pair by pair; pairs with a value that is not finite, as of a run that
/// diverged, are left out.
#[must_use]
pub fn paired_difference(values: &[f64], baseline: &[f64]) -> PairedDifference {
    let pairs = values.iter().zip(baseline).filter(|(a, b)| (*a - *b).is_finite());
    let (values, baseline): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let differences: Vec<f64> = values.iter().zip(&baseline).map(|(a, b)| a - b).collect();
    let test = TTest::paired(&values, &baseline, Alternative::TwoSided);
    PairedDifference {
        pairs: differences.len(),
        mean: mean(&differences),
        sd: sample_sd(&differences),
        p_value: test.ok().map(|test| test.p_value).filter(|p| !p.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_say_nothing_have_no_p_value() {
        assert_eq!(paired_difference(&[1.0, f64::NAN], &[0.5, 1.0]).pairs, 1);
        assert_eq!(paired_difference(&[1.0], &[0.5]).p_value, None);
        assert_eq!(paired_difference(&[1.0, 2.0], &[1.0, 2.0]).p_value, None);
        assert_eq!(paired_difference(&[2.0, 3.0], &[1.0, 2.0]).p_value, Some(0.0));
        let none = paired_difference(&[], &[]);
        assert!(none.pairs == 0 && none.mean.is_nan() && none.p_value.is_none());
    }

    #[test]
    fn runs_that_diverged_are_left_out_in_pairs() {
        let difference = paired_difference(&[1.0, f64::NAN, 3.0], &[2.0, 2.0, 5.0]);
        assert_eq!((difference.pairs, difference.mean), (2, -1.5));
    }
}
