//! Coefficients that share: softmax, normalisation, sums and entropies, over what enters a node or
//! over what leaves it.

use std::fmt;

use crate::coefficients::{Coefficients, CoefficientsError};
use crate::layout::Layout;

/// Which coefficients belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The coefficients into one node: its sources compete. ANCRe normalises these. Results are
    /// listed by target, for the nodes `1..=K`.
    Incoming,
    /// The coefficients out of one node: it is shared out among its targets. Results are listed by
    /// source, for the nodes `0..K`.
    Outgoing,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Incoming => "incoming",
            Self::Outgoing => "outgoing",
        })
    }
}

impl Coefficients {
    /// Takes these numbers as logits: `softmax(logits / temperature)` over what enters or leaves
    /// each node.
    ///
    /// The largest logit is subtracted first, so that no logit is too large and no temperature too
    /// small: cold softmax tends to the largest logit, shared among equal ones.
    ///
    /// ```
    /// use connection_layout::{Coefficients, Direction};
    ///
    /// let logits = Coefficients::from_rows([vec![0.0], vec![0.03, 0.01]])?;
    /// let mixed = logits.softmax(Direction::Incoming, 0.01)?;
    /// let odds = mixed.row(2)[0] / mixed.row(2)[1];
    /// assert!((odds - 2f64.exp()).abs() < 1e-12);
    /// # Ok::<(), connection_layout::CoefficientsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::Temperature`] unless the temperature is positive and finite.
    pub fn softmax(&self, direction: Direction, temperature: f64) -> Result<Self, CoefficientsError> {
        self.softmax_where(direction, temperature, |_| true)
    }

    /// A softmax among the shortcuts of a layout; all other coefficients are 0, and so are those of
    /// a node that the layout leaves without any.
    ///
    /// # Errors
    ///
    /// As [`softmax`](Self::softmax), and [`CoefficientsError::DepthMismatch`].
    pub fn softmax_within(
        &self,
        direction: Direction,
        temperature: f64,
        layout: &Layout,
    ) -> Result<Self, CoefficientsError> {
        if layout.depth() != self.depth() {
            return Err(CoefficientsError::DepthMismatch { coefficients: self.depth(), layout: layout.depth() });
        }
        self.softmax_where(direction, temperature, |position| layout.has_position(position))
    }

    fn softmax_where(
        &self,
        direction: Direction,
        temperature: f64,
        keep: impl Fn(usize) -> bool,
    ) -> Result<Self, CoefficientsError> {
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(CoefficientsError::Temperature(temperature));
        }
        let logits = self.values();
        let mut shares = vec![0.0; logits.len()];
        for (_, mut group) in self.groups(direction) {
            group.retain(|&position| keep(position));
            let largest = group.iter().map(|&p| logits[p]).fold(f64::NEG_INFINITY, f64::max);
            // The largest logit contributes 1: the sum is at least 1 and the division is safe.
            for &p in &group {
                shares[p] = ((logits[p] - largest) / temperature).exp();
            }
            let sum: f64 = group.iter().map(|&p| shares[p]).sum();
            group.iter().for_each(|&p| shares[p] /= sum);
        }
        Ok(self.with_values(shares))
    }

    /// Scales what enters or leaves each node to a sum of 1. A node with zeros only keeps them.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::ZeroSum`] for coefficients that cancel.
    pub fn normalized(&self, direction: Direction) -> Result<Self, CoefficientsError> {
        let mut values = self.values().to_vec();
        for (node, group) in self.groups(direction) {
            let largest = group.iter().map(|&p| values[p].abs()).fold(0.0, f64::max);
            if largest == 0.0 {
                continue;
            }
            // Dividing by the largest value first keeps the sum of huge values finite.
            group.iter().for_each(|&p| values[p] /= largest);
            let sum: f64 = group.iter().map(|&p| values[p]).sum();
            group.iter().for_each(|&p| values[p] /= sum);
            // A sum that is zero, or next to it, has no multiple that is 1.
            if !group.iter().all(|&p| values[p].is_finite()) {
                return Err(CoefficientsError::ZeroSum { direction, node });
            }
        }
        Ok(self.with_values(values))
    }

    /// The sum of what enters (index `l - 1` for node l) or leaves (index i for node i) each node.
    pub fn sums(&self, direction: Direction) -> Vec<f64> {
        self.groups(direction).map(|(_, group)| group.into_iter().map(|p| self.values()[p]).sum()).collect()
    }

    /// The entropy in nats of how each node divides its coefficients, indexed as
    /// [`sums`](Self::sums).
    ///
    /// Coefficients are scaled to shares first, so that their sum does not matter. The entropy is 0
    /// when one shortcut has it all (and when there is none), and `ln n` when n share equally.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::Negative`] when a coefficient is negative.
    pub fn entropies(&self, direction: Direction) -> Result<Vec<f64>, CoefficientsError> {
        if let Some((shortcut, value)) = self.iter().find(|&(_, value)| value < 0.0) {
            return Err(CoefficientsError::Negative { shortcut, value });
        }
        let shares = self.normalized(direction)?;
        let entropy = |(_, group): (usize, Vec<usize>)| {
            let shares = group.into_iter().map(|p| shares.values()[p]).filter(|&share| share > 0.0);
            // Subtracting from 0, where a sum of negated terms would give -0.
            shares.fold(0.0, |entropy, share| entropy - share * share.ln())
        };
        Ok(shares.groups(direction).map(entropy).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::{coefficients, layout_of_depth};

    const BOTH: [Direction; 2] = [Direction::Incoming, Direction::Outgoing];

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-12 * (1.0 + right.abs())
    }

    #[test]
    fn equal_logits_share_equally() {
        // A large common value is how a softmax over ones at temperature 0.01 looks.
        for logit in [0.0, 1.0, -1e300] {
            let logits = Coefficients::from_fn(6, |_, _| logit).unwrap();
            let incoming = logits.softmax(Direction::Incoming, 0.01).unwrap();
            assert_eq!(incoming, Coefficients::uniform_incoming(6).unwrap());
            let outgoing = logits.softmax(Direction::Outgoing, 0.01).unwrap();
            assert_eq!(outgoing, Coefficients::uniform_outgoing(6).unwrap());
        }
    }

    #[test]
    fn the_two_directions_share_what_they_say() {
        let logits = Coefficients::from_rows([vec![5.0], vec![3f64.ln(), 0.0]]).unwrap();
        let incoming = logits.softmax(Direction::Incoming, 1.0).unwrap();
        assert!(close(incoming.get(0, 1).unwrap(), 1.0));
        assert!(close(incoming.get(0, 2).unwrap(), 0.75));
        assert!(close(incoming.get(1, 2).unwrap(), 0.25));
        let logits = Coefficients::from_rows([vec![0.0], vec![3f64.ln(), 5.0]]).unwrap();
        let outgoing = logits.softmax(Direction::Outgoing, 1.0).unwrap();
        assert!(close(outgoing.get(0, 1).unwrap(), 0.25));
        assert!(close(outgoing.get(0, 2).unwrap(), 0.75));
        assert!(close(outgoing.get(1, 2).unwrap(), 1.0));
    }

    #[test]
    fn extreme_logits_and_temperatures_stay_finite() {
        let logits = Coefficients::from_rows([vec![f64::MAX], vec![f64::MAX, f64::MIN]]).unwrap();
        for temperature in [f64::MIN_POSITIVE, 5e-324, 1e-2, f64::MAX] {
            let shares = logits.softmax(Direction::Incoming, temperature).unwrap();
            assert!(shares.sums(Direction::Incoming).into_iter().all(|sum| close(sum, 1.0)));
        }
        assert_eq!(logits.softmax(Direction::Incoming, 1e-2).unwrap().row(2), [1.0, 0.0]);
    }

    #[test]
    fn impossible_requests_are_refused() {
        let logits = Coefficients::from_rows([vec![1.0], vec![1.0, -1.0]]).unwrap();
        for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = logits.softmax(Direction::Incoming, temperature).unwrap_err();
            assert!(matches!(error, CoefficientsError::Temperature(_)));
        }
        assert_eq!(
            logits.normalized(Direction::Incoming).unwrap_err().to_string(),
            "the incoming coefficients of node 2 sum to 0 and cannot be normalised"
        );
        assert_eq!(
            logits.entropies(Direction::Outgoing).unwrap_err().to_string(),
            "the coefficient of 1:2 is -1: only coefficients that are not negative have an entropy"
        );
        let deeper = Layout::none(3).unwrap();
        assert_eq!(
            logits.softmax_within(Direction::Incoming, 1.0, &deeper),
            Err(CoefficientsError::DepthMismatch { coefficients: 2, layout: 3 })
        );
    }

    #[test]
    fn a_sum_next_to_zero_is_refused_as_zero() {
        let nearly = Coefficients::from_rows([vec![1.0], vec![1.0, 1.0], vec![1.0, -1.0, 1e-320]]);
        assert_eq!(
            nearly.unwrap().normalized(Direction::Incoming),
            Err(CoefficientsError::ZeroSum { direction: Direction::Incoming, node: 3 })
        );
    }

    #[test]
    fn entropies_lie_between_one_winner_and_equal_shares() {
        let uniform = Coefficients::uniform_incoming(5).unwrap();
        for (entropy, count) in uniform.entropies(Direction::Incoming).unwrap().into_iter().zip(1..) {
            assert!(close(entropy, f64::from(count).ln()));
        }
        let single = Coefficients::from_layout(&Layout::parse("0:3", 4).unwrap());
        let entropies = single.entropies(Direction::Incoming).unwrap();
        assert_eq!(entropies, [0.0; 4]);
        assert!(entropies.iter().all(|entropy| entropy.is_sign_positive()));
        // Shares matter, not the sum: 3 to 1 is 3/4 and 1/4.
        let uneven = Coefficients::from_rows([vec![7.0], vec![3e300, 1e300]]).unwrap();
        let expected = 4f64.ln() - 0.75 * 3f64.ln();
        assert!(close(uneven.entropies(Direction::Incoming).unwrap()[1], expected));
    }

    proptest! {
        #[test]
        fn softmax_shares_sum_to_one(logits in coefficients(12, -50.0..50.0), temperature in 1e-3..10.0) {
            for direction in BOTH {
                let shares = logits.softmax(direction, temperature).unwrap();
                prop_assert!(shares.iter().all(|(_, share)| (0.0..=1.0).contains(&share)));
                prop_assert_eq!(shares.sums(direction).len(), logits.depth());
                prop_assert!(shares.sums(direction).into_iter().all(|sum| close(sum, 1.0)));
            }
        }

        #[test]
        fn only_the_ratio_to_the_temperature_and_differences_matter(
            logits in coefficients(8, -3.0..3.0),
            temperature in 0.1..10.0,
            shift in -5.0..5.0,
        ) {
            let scaled =
                Coefficients::from_fn(logits.depth(), |i, l| logits.get(i, l).unwrap() / temperature + shift).unwrap();
            for direction in BOTH {
                let (left, right) =
                    (logits.softmax(direction, temperature).unwrap(), scaled.softmax(direction, 1.0).unwrap());
                prop_assert!(left.iter().zip(right.iter()).all(|((_, l), (_, r))| close(l, r)));
            }
        }

        #[test]
        fn a_masked_softmax_lives_on_the_layout(
            (logits, layout) in coefficients(8, -3.0..3.0).prop_flat_map(|logits| {
                let layout = layout_of_depth(logits.depth());
                (Just(logits), layout)
            })
        ) {
            for direction in BOTH {
                let shares = logits.softmax_within(direction, 1.0, &layout).unwrap();
                prop_assert_eq!(&shares.layout_above(0.0), &layout);
                let kept = Coefficients::from_layout(&layout).sums(direction);
                for (sum, kept) in shares.sums(direction).into_iter().zip(kept) {
                    let expected = if kept > 0.0 { 1.0 } else { 0.0 };
                    prop_assert!(close(sum, expected));
                }
                // Masking is the same as normalising what the unmasked softmax gives to the layout.
                let all = logits.softmax(direction, 1.0).unwrap();
                let masked = Coefficients::from_fn(logits.depth(), |i, l| {
                    if layout.contains(i, l) { all.get(i, l).unwrap() } else { 0.0 }
                })
                .unwrap()
                .normalized(direction)
                .unwrap();
                prop_assert!(shares.iter().zip(masked.iter()).all(|((_, l), (_, r))| close(l, r)));
            }
        }

        #[test]
        fn normalizing_keeps_ratios(weights in coefficients(8, 0.1..3.0)) {
            for direction in BOTH {
                let shares = weights.normalized(direction).unwrap();
                let sums = weights.sums(direction);
                for (shortcut, share) in shares.iter() {
                    let (source, target) = (shortcut.source(), shortcut.target());
                    let sum = match direction {
                        Direction::Incoming => sums[target - 1],
                        Direction::Outgoing => sums[source],
                    };
                    prop_assert!(close(share * sum, weights.get(source, target).unwrap()));
                }
            }
        }
    }
}
