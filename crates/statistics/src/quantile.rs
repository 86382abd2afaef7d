//! Quantiles by straight lines between order statistics.

/// The quantile `q` (0 to 1) of some numbers: that at the place `(n - 1) q` of their order, by a straight line between
/// neighbours. Infinite ones count; not a number if there are none, if one is not a number, or if `q` is no share.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) || !(0.0..=1.0).contains(&q) {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    // Two infinities have no difference.
    if low == high { low } else { low + (high - low) * place.fract() }
}

/// The median: the value in the middle, or the mean of the two there. Infinite ones count; not a number if there are none
/// or one is not a number.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        _ if values.iter().any(|value| value.is_nan()) => f64::NAN,
        n => {
            let (low, high) = (sorted[(n - 1) / 2], sorted[n / 2]);
            if low == high { low } else { 0.5 * (low + high) }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn medians_count_what_is_infinite() {
        let never = f64::INFINITY;
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[never, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(median(&[never, never, 2.0, 4.0]), never);
        assert_eq!(median(&[never, never]), never);
        assert!(median(&[]).is_nan() && median(&[1.0, f64::NAN]).is_nan());
    }

    #[test]
    fn quantiles_lie_on_straight_lines() {
        let values = [4.0, 1.0, 2.0, 3.0];
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| quantile(&values, q)), [1.0, 2.5, 3.7, 4.0]);
        assert!(quantile(&values, 1.5).is_nan() && quantile(&[], 0.5).is_nan());
    }

    proptest! {
        #[test]
        fn the_median_is_the_quantile_of_one_half(values in prop::collection::vec(-1e3..1e3_f64, 1..40)) {
            prop_assert!((median(&values) - quantile(&values, 0.5)).abs() < 1e-9);
        }
    }
}
