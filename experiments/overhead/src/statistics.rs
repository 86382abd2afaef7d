//! Medians and their intervals, which suppose nothing about the distribution of the noise.

use serde::Serialize;

/// A median with an interval that holds the true one with at least 95% probability, where there are enough values for such an
/// interval (six).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// The interval, inclusive.
    pub interval: Option<[f64; 2]>,
    /// How many values there were.
    pub count: usize,
}

/// The median of values; not a number for none.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (n, half) if n % 2 == 1 => sorted[half],
        (_, half) => 0.5 * (sorted[half - 1] + sorted[half]),
    }
}

/// The median with its interval between two order statistics: of independent values, each lies below the true median with
/// probability one half, so the number of those below is binomial.
pub fn with_interval(values: &[f64]) -> Median {
    let sorted = sorted(values);
    let interval = rank(sorted.len()).map(|rank| [sorted[rank], sorted[sorted.len() - 1 - rank]]);
    Median { value: median(values), interval, count: sorted.len() }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The largest `k` for which at most `k` values of `n` lie below the median with a probability of at most 2.5%, so that the values
/// of ranks `k` and `n - 1 - k` (from 0) bound it with 95%.
fn rank(n: usize) -> Option<usize> {
    // In logarithms, as powers of one half vanish for large n.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut rank = None;
    for k in 0..n {
        below += log_term.exp();
        if below > 0.025 {
            break;
        }
        rank = Some(k);
        log_term += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    rank
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[f64::NAN, 7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    /// The ranks of standard tables of the sign test, from 0.
    #[test]
    fn ranks_are_those_of_the_sign_test() {
        for (n, expected) in [
            (0, None),
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (12, Some(2)),
            (20, Some(5)),
            (25, Some(7)),
            (100, Some(39)),
        ] {
            assert_eq!(rank(n), expected, "{n}");
        }
        assert!(rank(5000).is_some_and(|k| (2420..2440).contains(&k)));
    }

    #[test]
    fn the_interval_holds_the_true_median() {
        let mut held = 0;
        for trial in 0..400 {
            let mut rng = training::seed::stream(0, "interval", trial);
            // Skewed, with the median 1/4.
            let values: Vec<f64> = (0..25).map(|_| rng.random::<f64>().powi(2)).collect();
            let Some([low, high]) = with_interval(&values).interval else { panic!("25 are enough") };
            held += u32::from(low <= 0.25 && 0.25 <= high);
        }
        // 95.7% in truth, with a standard deviation of 1% over 400 trials.
        assert!((370..=396).contains(&held), "{held}");
    }
}
