//! Small sums over curves and seeds.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The value of a curve at `x`, by straight lines between its points; not a number before the first, constant after the
/// last.
pub fn interpolate(curve: &[(f64, f64)], x: f64) -> f64 {
    let Some(&(first_x, first_y)) = curve.first() else { return f64::NAN };
    if x <= first_x {
        return if x == first_x { first_y } else { f64::NAN };
    }
    for pair in curve.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        if x <= x1 {
            return if x1 > x0 { y0 + (y1 - y0) * (x - x0) / (x1 - x0) } else { y1 };
        }
    }
    curve[curve.len() - 1].1
}

/// The value of a curve at a share of its length; not a number for an empty one.
pub fn at_share(curve: &[(f64, f64)], share: f64) -> f64 {
    curve.last().map_or(f64::NAN, |&(end, _)| interpolate(curve, share * end))
}

/// Where a falling curve first comes down to `level`, by straight lines between its points.
pub fn first_reach(curve: &[(f64, f64)], level: f64) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for &(x, y) in curve {
        if y <= level {
            return Some(match before {
                Some((x0, y0)) if y0 > y => x0 + (x - x0) * (y0 - level) / (y0 - y),
                _ => x,
            });
        }
        before = Some((x, y));
    }
    None
}

/// How the values of one arm differ from those of another with the same seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifference {
    /// How many pairs both have a finite value for.
    pub pairs: usize,
    /// Mean difference, the first arm minus the second; not a number without pairs.
    pub mean: f64,
    /// Sample standard deviation of the differences; not a number with fewer than two pairs.
    pub sd: f64,
    /// Two-sided p-value of the paired t-test: how probable a mean at least this far from 0 is where differences are
    /// normal around 0. None with fewer than two pairs, and where all differences are 0.
    pub p_value: Option<f64>,
}

/// The differences of `values` from `baseline`, pair by pair; pairs with a value that is not finite are left out.
///
/// The statistic is `mean / (sd / sqrt(n))` under Student's t distribution with `n - 1` degrees of freedom.
pub fn paired_difference(values: &[f64], baseline: &[f64]) -> PairedDifference {
    let differences: Vec<f64> = values.iter().zip(baseline).map(|(a, b)| a - b).filter(|d| d.is_finite()).collect();
    let (pairs, mean) = (differences.len(), plotting::mean(&differences));
    if pairs < 2 {
        return PairedDifference { pairs, mean, sd: f64::NAN, p_value: None };
    }
    let sd = plotting::sample_sd(&differences);
    let t = mean / (sd / (pairs as f64).sqrt());
    // Without spread, t is infinite (p = 0), or not a number where the mean is 0, too.
    let p_value = StudentsT::new(0.0, 1.0, (pairs - 1) as f64)
        .ok()
        .filter(|_| !t.is_nan())
        .map(|distribution| if t.is_infinite() { 0.0 } else { 2.0 * distribution.sf(t.abs()) });
    PairedDifference { pairs, mean, sd, p_value }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: [(f64, f64); 3] = [(10.0, 3.0), (20.0, 2.0), (40.0, 1.0)];

    #[test]
    fn curves_are_read_by_straight_lines() {
        let at = |x| interpolate(&CURVE, x);
        assert_eq!([at(10.0), at(15.0), at(30.0), at(99.0)], [3.0, 2.5, 1.5, 1.0]);
        assert!(at(9.0).is_nan(), "nothing is known before the first evaluation");
        assert!(interpolate(&[], 1.0).is_nan());
    }

    #[test]
    fn the_first_step_at_a_level_lies_between_evaluations() {
        assert_eq!(first_reach(&CURVE, 2.5), Some(15.0));
        assert_eq!(first_reach(&CURVE, 1.0), Some(40.0));
        assert_eq!(first_reach(&CURVE, 5.0), Some(10.0));
        assert_eq!(first_reach(&CURVE, 0.5), None);
    }

    /// With two pairs the distribution is Cauchy's, and with three its tail has a closed form, too.
    #[test]
    fn the_p_value_is_that_of_students_t() {
        use std::f64::consts::PI;
        let two = paired_difference(&[1.0, 5.0], &[0.0, 2.0]);
        assert_eq!((two.pairs, two.mean), (2, 2.0));
        assert!((two.sd - 2f64.sqrt()).abs() < 1e-15);
        // Differences 1 and 3: t = 2 / (sqrt(2) / sqrt(2)) = 2, and p = 1 - 2 atan(t) / pi.
        assert!((two.p_value.unwrap() - (1.0 - 2.0 * 2f64.atan() / PI)).abs() < 1e-12, "{two:?}");
        // Differences -1, -2, -3: t = -2 sqrt(3), and p = 1 - |t| / sqrt(2 + t^2).
        let three = paired_difference(&[0.0, 0.0, 0.0], &[1.0, 2.0, 3.0]);
        let t = 2.0 * 3f64.sqrt();
        assert!((three.p_value.unwrap() - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-12, "{three:?}");
    }

    #[test]
    fn pairs_that_say_nothing_have_no_p_value() {
        assert_eq!(paired_difference(&[1.0, f64::NAN], &[0.5, 1.0]).pairs, 1);
        assert_eq!(paired_difference(&[1.0], &[0.5]).p_value, None);
        assert_eq!(paired_difference(&[1.0, 2.0], &[1.0, 2.0]).p_value, None);
        assert_eq!(paired_difference(&[2.0, 3.0], &[1.0, 2.0]).p_value, Some(0.0));
        let none = paired_difference(&[], &[]);
        assert!(none.pairs == 0 && none.mean.is_nan() && none.p_value.is_none());
    }
}
