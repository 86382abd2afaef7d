//! Student's t-test for pairs and Welch's for independent samples.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

use crate::{
    Alternative, Interval, StatisticsError, Summary,
    error::{check, check_level, differences},
};

/// A t-test of a mean difference against 0.
///
/// Samples without any spread have an infinite statistic and the p-values 0 and 1, or, where the difference is 0 too, a
/// statistic and p-value that are not a number; so has scipy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// The mean difference, first minus second.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The estimate over its standard error.
    pub statistic: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// How probable a statistic at least this far on the side (or sides) of the alternative is where there is no difference.
    pub p_value: f64,
    /// What the test was asked.
    pub alternative: Alternative,
}

impl TTest {
    /// Of the differences between pairs, such as two arms with the same seeds; `n - 1` degrees of freedom.
    ///
    /// # Errors
    /// If the samples differ in length, have fewer than two values, or one is not finite.
    pub fn paired(first: &[f64], second: &[f64], alternative: Alternative) -> Result<Self, StatisticsError> {
        let summary = Summary::of(&differences(first, second, 2)?)?;
        Ok(Self::of(summary.mean, summary.standard_error(), (summary.n - 1) as f64, alternative))
    }

    /// Of independent samples whose variances may differ (Welch), with the degrees of freedom of Satterthwaite.
    ///
    /// # Errors
    /// If a sample has fewer than two values, or one is not finite.
    pub fn welch(first: &[f64], second: &[f64], alternative: Alternative) -> Result<Self, StatisticsError> {
        check(first, 2)?;
        check(second, 2)?;
        let [first, second] = [Summary::of(first)?, Summary::of(second)?];
        let parts = [first, second].map(|sample| sample.standard_error().powi(2));
        let sum = parts[0] + parts[1];
        let df = sum.powi(2) / (parts[0].powi(2) / (first.n - 1) as f64 + parts[1].powi(2) / (second.n - 1) as f64);
        // Without spread the quotient has no value, and any number of degrees gives the same answer.
        let df = if sum == 0.0 { 1.0 } else { df };
        Ok(Self::of(first.mean - second.mean, sum.sqrt(), df, alternative))
    }

    fn of(estimate: f64, standard_error: f64, df: f64, alternative: Alternative) -> Self {
        let statistic = estimate / standard_error;
        let p_value = match alternative {
            _ if statistic.is_nan() => f64::NAN,
            Alternative::TwoSided => 2.0 * above(statistic.abs(), df),
            Alternative::Greater => above(statistic, df),
            Alternative::Less => above(-statistic, df),
        };
        Self { estimate, standard_error, statistic, df, p_value, alternative }
    }

    /// The interval that holds the true difference with the probability `level`, such as .95; with an infinite end where the
    /// alternative has one side.
    ///
    /// # Errors
    /// If the level is not between 0 and 1.
    pub fn interval(&self, level: f64) -> Result<Interval, StatisticsError> {
        check_level(level)?;
        let reach = |tail: f64| {
            // A factor that may be infinite.
            if self.standard_error == 0.0 { 0.0 } else { quantile_above(tail, self.df) * self.standard_error }
        };
        Ok(match self.alternative {
            Alternative::TwoSided => {
                let reach = reach((1.0 - level) / 2.0);
                Interval { low: self.estimate - reach, high: self.estimate + reach }
            }
            Alternative::Greater => Interval { low: self.estimate - reach(1.0 - level), high: f64::INFINITY },
            Alternative::Less => Interval { low: f64::NEG_INFINITY, high: self.estimate + reach(1.0 - level) },
        })
    }
}

/// The probability that a t-distributed number lies above `t`.
fn above(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |distribution| distribution.sf(t))
}

/// Where a t-distributed number lies above with the probability `tail`, which is below one half or equal to it.
fn quantile_above(tail: f64, df: f64) -> f64 {
    let Ok(distribution) = StudentsT::new(0.0, 1.0, df) else { return f64::NAN };
    let mut t = distribution.inverse_cdf(1.0 - tail);
    // The library's root is good to some eight digits; Newton's steps give the rest.
    for _ in 0..4 {
        let step = (distribution.sf(t) - tail) / distribution.pdf(t);
        if step.is_finite() {
            t += step;
        }
    }
    t
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    /// With two pairs the distribution is Cauchy's, and with three its tail has a closed form, too.
    #[test]
    fn small_samples_have_closed_forms() {
        let two = TTest::paired(&[1.0, 5.0], &[0.0, 2.0], Alternative::TwoSided).unwrap();
        // Differences 1 and 3: t = 2 / (sqrt(2) / sqrt(2)) = 2.
        assert!((two.p_value - (1.0 - 2.0 * 2f64.atan() / PI)).abs() < 1e-14, "{two:?}");
        // The quantile of .975 is tan(.475 pi).
        let interval = two.interval(0.95).unwrap();
        assert!((interval.high - (2.0 + (0.475 * PI).tan())).abs() < 1e-11, "{interval:?}");
        let three = TTest::paired(&[0.0; 3], &[1.0, 2.0, 3.0], Alternative::TwoSided).unwrap();
        let t = 2.0 * 3f64.sqrt();
        assert!((three.p_value - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-14, "{three:?}");
    }

    #[test]
    fn samples_without_spread_are_as_scipy_has_them() {
        let apart = TTest::paired(&[2.0, 3.0], &[1.0, 2.0], Alternative::Greater).unwrap();
        assert_eq!((apart.statistic, apart.p_value), (f64::INFINITY, 0.0));
        assert_eq!(apart.interval(0.9).unwrap(), Interval { low: 1.0, high: f64::INFINITY });
        let same = TTest::welch(&[1.0, 1.0], &[1.0, 1.0, 1.0], Alternative::TwoSided).unwrap();
        assert!(same.statistic.is_nan() && same.p_value.is_nan());
    }

    #[test]
    fn samples_that_say_nothing_are_refused() {
        let two_sided = Alternative::TwoSided;
        assert_eq!(TTest::paired(&[1.0], &[2.0], two_sided), Err(StatisticsError::TooFew { have: 1, need: 2 }));
        assert_eq!(
            TTest::paired(&[1.0, 2.0], &[2.0], two_sided),
            Err(StatisticsError::Lengths { first: 2, second: 1 })
        );
        assert!(matches!(
            TTest::welch(&[1.0, 2.0], &[1.0, f64::INFINITY], two_sided),
            Err(StatisticsError::NotFinite { index: 1, .. })
        ));
        let test = TTest::paired(&[1.0, 2.0], &[2.0, 5.0], two_sided).unwrap();
        assert_eq!(test.interval(1.0), Err(StatisticsError::Level(1.0)));
    }

    proptest! {
        /// 0 lies in the interval exactly where the test does not reject.
        #[test]
        fn intervals_and_p_values_agree(
            first in prop::collection::vec(-10.0..10.0_f64, 2..12),
            second in prop::collection::vec(-10.0..10.0_f64, 2..12),
        ) {
            let test = TTest::welch(&first, &second, Alternative::TwoSided).unwrap();
            prop_assume!((test.p_value - 0.05).abs() > 1e-6);
            prop_assert_eq!(test.interval(0.95).unwrap().contains(0.0), test.p_value > 0.05);
        }

        #[test]
        fn the_other_order_is_the_other_sign(
            pairs in prop::collection::vec((-10.0..10.0_f64, -10.0..10.0_f64), 2..12),
        ) {
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let there = TTest::paired(&first, &second, Alternative::Greater).unwrap();
            let back = TTest::paired(&second, &first, Alternative::Less).unwrap();
            prop_assert!((there.p_value - back.p_value).abs() < 1e-12 && (there.estimate + back.estimate).abs() < 1e-12);
        }
    }
}
