//! Wilcoxon's signed ranks: whether differences lie to one side, without supposing that they are normal.
//!
//! Names and rules are those of scipy 1.17: what becomes of zeros, ties at their mean rank, the correction for continuity, and
//! which distribution is taken where none is asked for.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Alternative, StatisticsError, error::check, mean};

/// What becomes of differences that are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// They are left out (Wilcoxon).
    Drop,
    /// They are ranked, and their ranks left out (Pratt).
    Rank,
    /// Half of their ranks goes to either side.
    Split,
}

/// Where the p-value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// [`Exact`](Self::Exact) up to 50 differences without ties and zeros, else [`SignPatterns`](Self::SignPatterns) up to 13,
    /// else [`Normal`](Self::Normal) without correction.
    Auto,
    /// The distribution of the sum over all signs, for ranks without ties and zeros.
    Exact,
    /// The same over the mean ranks of ties.
    SignPatterns,
    /// A normal distribution with the variance of the ranks, those of ties corrected.
    Normal {
        /// Moves the sum by one half towards its mean.
        correction: bool,
    },
}

/// A test of signed ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRanks {
    /// The sum of the ranks of positive differences; two-sided, the smaller one of both sums.
    pub statistic: f64,
    /// The sum of the ranks of positive differences.
    pub positive: f64,
    /// How probable such a sum is where signs are drawn.
    pub p_value: f64,
    /// How far the sum lies from its mean, in standard deviations, where the distribution is normal; two-sided, minus the size.
    pub z: Option<f64>,
}

/// Up to here sums of sign patterns are counted exactly in `f64`.
const MOST_PATTERNS: usize = 50;
/// Up to here [`Method::Auto`] goes through the sign patterns of ranks with ties.
const AUTO_PATTERNS: usize = 13;

/// Tests whether differences (first minus second, of pairs) lie to one side of 0.
///
/// # Errors
/// If there are none, one is not finite, all are 0, or the method does not fit them.
pub fn signed_ranks(
    differences: &[f64],
    zeros: Zeros,
    method: Method,
    alternative: Alternative,
) -> Result<SignedRanks, StatisticsError> {
    check(differences, 1)?;
    let zero_count = differences.iter().filter(|d| **d == 0.0).count();
    if zero_count == differences.len() {
        return Err(StatisticsError::AllZero);
    }
    let kept: Vec<f64> = differences.iter().copied().filter(|d| zeros != Zeros::Drop || *d != 0.0).collect();
    let Ranks { ranks, ties } = Ranks::of(&kept);
    let sum = |side: fn(f64) -> bool| kept.iter().zip(&ranks).filter(|(d, _)| side(**d)).map(|(_, r)| r).sum::<f64>();
    let split = if zeros == Zeros::Split { sum(|d| d == 0.0) / 2.0 } else { 0.0 };
    let [positive, negative] = [sum(|d| d > 0.0) + split, sum(|d| d < 0.0) + split];
    let clean = zero_count == 0 && ties.is_empty();
    let method = match method {
        Method::Auto if clean && differences.len() <= MOST_PATTERNS => Method::Exact,
        Method::Auto if differences.len() <= AUTO_PATTERNS => Method::SignPatterns,
        Method::Auto => Method::Normal { correction: false },
        given => given,
    };
    let (p_value, z) = match method {
        Method::Exact if !clean => return Err(StatisticsError::NotExact),
        Method::Normal { correction } => {
            let z = normal(&kept, zeros, &ties, positive, correction, alternative);
            (normal_p(z, alternative), Some(if alternative == Alternative::TwoSided { -z.abs() } else { z }))
        }
        _ => {
            let signed = kept.iter().zip(&ranks).filter(|(d, _)| **d != 0.0).map(|(_, rank)| *rank).collect::<Vec<_>>();
            if signed.len() > MOST_PATTERNS {
                return Err(StatisticsError::TooMany(signed.len()));
            }
            (pattern_p(&signed, positive - split, alternative), None)
        }
    };
    let statistic = if alternative == Alternative::TwoSided { positive.min(negative) } else { positive };
    Ok(SignedRanks { statistic, positive, p_value, z })
}

/// Ranks of sizes, from 1, with the mean rank where sizes tie.
struct Ranks {
    ranks: Vec<f64>,
    /// How many share a size, for each size that several have, and whether it is 0.
    ties: Vec<(usize, bool)>,
}

impl Ranks {
    fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
        let (mut ranks, mut ties, mut start) = (vec![0.0; values.len()], Vec::new(), 0);
        for group in order.chunk_by(|&a, &b| values[a].abs() == values[b].abs()) {
            let places: Vec<f64> = (start + 1..=start + group.len()).map(|place| place as f64).collect();
            for &index in group {
                ranks[index] = mean(&places);
            }
            if group.len() > 1 {
                ties.push((group.len(), values[group[0]] == 0.0));
            }
            start += group.len();
        }
        Self { ranks, ties }
    }
}

/// Distance of the sum from its mean in standard deviations.
fn normal(
    kept: &[f64],
    zeros: Zeros,
    ties: &[(usize, bool)],
    positive: f64,
    correction: bool,
    side: Alternative,
) -> f64 {
    let moments = |n: f64| (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
    let (mut center, mut variance) = moments(kept.len() as f64);
    if zeros == Zeros::Rank {
        let (of_zeros, variance_of_zeros) = moments(kept.iter().filter(|d| **d == 0.0).count() as f64);
        center -= of_zeros;
        variance -= variance_of_zeros;
    }
    for &(tied, zero) in ties {
        if !(zero && zeros == Zeros::Rank) {
            let t = tied as f64;
            variance -= (t.powi(3) - t) / 48.0;
        }
    }
    let distance = positive - center;
    let shift = match side {
        _ if !correction => 0.0,
        Alternative::TwoSided if distance == 0.0 => 0.0,
        Alternative::TwoSided => 0.5 * distance.signum(),
        Alternative::Greater => 0.5,
        Alternative::Less => -0.5,
    };
    (distance - shift) / variance.sqrt()
}

fn normal_p(z: f64, alternative: Alternative) -> f64 {
    let normal = Normal::standard();
    match alternative {
        Alternative::TwoSided => 2.0 * normal.sf(z.abs()),
        Alternative::Greater => normal.sf(z),
        Alternative::Less => normal.cdf(z),
    }
}

/// The p-value of a sum of positive ranks over all signs of the ranks, which are whole or half numbers.
fn pattern_p(ranks: &[f64], positive: f64, alternative: Alternative) -> f64 {
    let doubled = |rank: f64| (2.0 * rank).round() as usize;
    let total: usize = ranks.iter().map(|&rank| doubled(rank)).sum();
    // How many of the sign patterns give each sum.
    let mut counts = vec![0.0_f64; total + 1];
    counts[0] = 1.0;
    for &rank in ranks {
        let rank = doubled(rank);
        for sum in (rank..=total).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    let patterns = 2.0_f64.powi(ranks.len() as i32);
    let seen = doubled(positive).min(total);
    let above = counts[seen..].iter().sum::<f64>() / patterns;
    let below = counts[..=seen].iter().sum::<f64>() / patterns;
    match alternative {
        Alternative::TwoSided => (2.0 * above.min(below)).min(1.0),
        Alternative::Greater => above,
        Alternative::Less => below,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_positive_differences_are_one_pattern_of_eight() {
        let test = |side| signed_ranks(&[0.5, 2.0, 1.0], Zeros::Drop, Method::Auto, side).unwrap();
        assert_eq!(test(Alternative::Greater).p_value, 0.125);
        assert_eq!(test(Alternative::TwoSided).p_value, 0.25);
        assert_eq!((test(Alternative::TwoSided).statistic, test(Alternative::TwoSided).positive), (0.0, 6.0));
        assert_eq!(test(Alternative::Less).p_value, 1.0);
    }

    #[test]
    fn what_cannot_be_ranked_is_refused() {
        let test = |differences: &[f64], method| signed_ranks(differences, Zeros::Drop, method, Alternative::TwoSided);
        assert_eq!(test(&[0.0, 0.0], Method::Auto), Err(StatisticsError::AllZero));
        assert_eq!(test(&[1.0, 1.0], Method::Exact), Err(StatisticsError::NotExact));
        assert!(matches!(test(&[f64::NAN], Method::Auto), Err(StatisticsError::NotFinite { .. })));
        assert_eq!(test(&vec![1.0; 51], Method::SignPatterns), Err(StatisticsError::TooMany(51)));
        assert_eq!(test(&[], Method::Auto), Err(StatisticsError::TooFew { have: 0, need: 1 }));
    }

    proptest! {
        /// Counting sums gives what going through all patterns gives.
        #[test]
        fn patterns_are_counted_as_they_are_listed(values in prop::collection::vec(-4i8..=4, 1..9)) {
            let differences: Vec<f64> = values.iter().map(|&v| f64::from(v)).filter(|v| *v != 0.0).collect();
            prop_assume!(!differences.is_empty());
            let seen = signed_ranks(&differences, Zeros::Drop, Method::SignPatterns, Alternative::Greater).unwrap();
            let ranks = Ranks::of(&differences).ranks;
            let sums = (0..1u32 << ranks.len()).map(|signs| -> f64 {
                ranks.iter().enumerate().filter(|(i, _)| signs >> i & 1 == 1).map(|(_, rank)| rank).sum()
            });
            let as_far = sums.filter(|sum| *sum >= seen.positive - 1e-9).count();
            prop_assert!((seen.p_value - as_far as f64 / f64::from(1u32 << ranks.len())).abs() < 1e-12);
        }

        #[test]
        fn the_other_order_is_the_other_side(values in prop::collection::vec(-9.0..9.0_f64, 1..40)) {
            let test = |values: &[f64], side| signed_ranks(values, Zeros::Rank, Method::Normal { correction: true }, side).unwrap();
            let back: Vec<f64> = values.iter().map(|v| -v).collect();
            let difference = test(&values, Alternative::Greater).p_value - test(&back, Alternative::Less).p_value;
            prop_assert!(difference.abs() < 1e-12);
        }
    }
}
