//! The shortcut `0:1` is at best sublinear (paper, Theorem 3.2 for K = 3; here for every K >= 3, on an explicit
//! family).
//!
//! On [`SublinearFamily`] the flow of `0:1` splits into scalar modes `f = w^(K-1) u`, `u = 1 + w_1`, one a singular
//! value of the target. Where that is 0, `u² - w²` keeps its value `1 - eps²` and `z = w²` has `z' = -2 z^(K-1) u²`, so
//! that the mode's loss `z^(K-1) u² / 2` falls like a power of t. From the same weights and for the same target
//! `0:K-1` converges exponentially. This was only measured, at d = 1 and Y = 0: the weights of the family are too large
//! for a certificate of the rate.

use connection_layout::Layout;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::generic_start;
use super::hypothesis::{self, HypothesisError};
use super::measure::{largest, smallest};
use crate::flow::{FlowSettings, GradientFlow, Tolerance, Trajectory};
use crate::network::{Problem, Weights};
use crate::{Draw, Finding, Source, Verdict};

/// Targets and weights on which `0:1` converges no faster than a power of time.
///
/// `Y = Q_K diag(values) Q_1ᵀ` with some of the values 0, `W_1(0) = 0` and `W_l(0) = eps Q_l Q_{l-1}ᵀ` for l >= 2.
///
/// ```
/// use theory::Draw;
/// use theory::theorems::sublinear::SublinearFamily;
///
/// // Two of three singular values are 0.
/// let member = SublinearFamily::random(&mut Draw::new(1, 0), 3, 0.3, &[1.5, 0.0, 0.0])?;
/// assert_eq!((member.zeros(), member.exponent()), (2, 2.0));
/// assert!((member.lower_bound(0.0) - 0.91 * 0.3_f64.powi(4)).abs() < 1e-15);
/// # Ok::<(), theory::theorems::HypothesisError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SublinearFamily {
    epsilon: f64,
    values: DVector<f64>,
    /// `Q_1..Q_K`.
    factors: Vec<DMatrix<f64>>,
}

impl SublinearFamily {
    /// The member with these singular values (not negative, one at least 0) and these orthogonal factors `Q_1..Q_K`.
    ///
    /// # Errors
    ///
    /// [`HypothesisError::OutOfRange`] for K < 3, an eps outside of (0, 1), no value that is 0, a negative value, and
    /// factors that are not orthogonal d x d matrices.
    pub fn new(epsilon: f64, values: &[f64], factors: Vec<DMatrix<f64>>) -> Result<Self, HypothesisError> {
        let d = values.len();
        hypothesis::expect_at_least("the number of factors", factors.len() as f64, 3.0)?;
        hypothesis::expect_above("eps", epsilon, 0.0)?;
        hypothesis::expect_below("eps", epsilon, 1.0)?;
        hypothesis::expect_at_least("the smallest singular value", smallest(values.iter().copied()), 0.0)?;
        let zeros = values.iter().filter(|value| **value == 0.0).count();
        hypothesis::expect_at_least("the number of zero singular values", zeros as f64, 1.0)?;
        for factor in &factors {
            hypothesis::expect_orthonormal(factor, d, true)?;
        }
        Ok(Self { epsilon, values: DVector::from_column_slice(values), factors })
    }

    /// The member with random orthogonal factors.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn random(draw: &mut Draw, depth: usize, epsilon: f64, values: &[f64]) -> Result<Self, HypothesisError> {
        Self::new(epsilon, values, (0..depth).map(|_| draw.orthogonal(values.len())).collect())
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        self.factors.len()
    }

    /// The number of singular values that are 0.
    pub fn zeros(&self) -> usize {
        self.values.iter().filter(|value| **value == 0.0).count()
    }

    /// The exponent p of the law `L ~ t^-p` that `0:1` follows in the end: `(K-1)/(K-2)`, which is 2 for K = 3 only.
    pub fn exponent(&self) -> f64 {
        let depth = self.depth() as f64;
        (depth - 1.0) / (depth - 2.0)
    }

    /// A lower bound on the loss of `0:1` at time t:
    /// `1/2 n (1 - eps²) eps^(2K-2) (1 + (2K-4) eps^(2K-4) t)^(-(K-1)/(K-2))` with n zero singular values.
    pub fn lower_bound(&self, time: f64) -> f64 {
        let (excess, square) = (self.depth() as f64 - 2.0, self.epsilon.powi(2));
        let first = 0.5 * self.zeros() as f64 * (1.0 - square) * square.powf(excess + 1.0);
        first * (1.0 + 2.0 * excess * square.powf(excess) * time).powf(-self.exponent())
    }

    /// What the loss of the zero singular values approaches for `t >> eps^-(2K-4)`, relatively:
    /// `1/2 n (1 - eps²) ((2K-4) (1 - eps²) t)^(-(K-1)/(K-2))`; for K = 3, `n / (8 (1 - eps²) t²)`.
    pub fn asymptote(&self, time: f64) -> f64 {
        let (excess, rest) = (self.depth() as f64 - 2.0, 1.0 - self.epsilon.powi(2));
        0.5 * self.zeros() as f64 * rest * (2.0 * excess * rest * time).powf(-self.exponent())
    }

    /// The target.
    pub fn target(&self) -> DMatrix<f64> {
        self.last() * DMatrix::from_diagonal(&self.values) * self.factors[0].transpose()
    }

    /// The network with `0:1`, which the statement is about.
    pub fn problem(&self) -> Problem {
        self.with_shortcut_to(1)
    }

    /// The network with `0:K-1`, for the same target.
    pub fn with_last_hidden(&self) -> Problem {
        self.with_shortcut_to(self.depth() - 1)
    }

    /// The weights that both start from.
    pub fn weights(&self) -> Weights {
        let mut weights = self.problem().zeros();
        for (layer, pair) in self.factors.windows(2).enumerate() {
            weights.set_layer(layer + 2, &(&pair[1] * pair[0].transpose() * self.epsilon));
        }
        weights
    }

    fn last(&self) -> &DMatrix<f64> {
        // There are three factors at least.
        &self.factors[self.depth() - 1]
    }

    fn with_shortcut_to(&self, node: usize) -> Problem {
        let layout = Layout::new(self.depth(), [(0, node)]).unwrap_or_else(|error| unreachable!("{error}"));
        Problem::whitened(&layout, self.target()).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The loss of `0:1` up to a time. The noise floor does not end it: a power law has no rounding to fear there.
    pub fn trajectory(&self, until_time: f64) -> Trajectory {
        GradientFlow::new(&self.problem(), power_law_settings(until_time)).trajectory(&self.weights()).1
    }
}

fn power_law_settings(until_time: f64) -> FlowSettings {
    FlowSettings { until_time, tolerance: Tolerance::FINE, stop_at_noise: false, ..FlowSettings::default() }
}

/// One depth of the comparison of `0:1` and `0:K-1` from the same weights and for the same target.
#[derive(Clone, Debug, PartialEq)]
pub struct SlopeRow {
    /// The number K of layers.
    pub depth: usize,
    /// The size of the weights.
    pub epsilon: f64,
    /// The slope `d ln L / d ln t` of `0:1` between times 1e4 and 1e5.
    pub slope: f64,
    /// Its limit `-(K-1)/(K-2)`.
    pub limit: f64,
    /// The rate `-d ln L / dt` of `0:K-1` between times 5 and 10.
    pub rate: f64,
    /// The loss of `0:1` up to time 1e5.
    pub sublinear: Trajectory,
    /// The loss of `0:K-1` down to 1e-14 of its first value.
    pub exponential: Trajectory,
}

/// `0:1` and `0:K-1` at d = 1, Y = 0 and eps = .8, for K = 3 to 6.
pub fn slope_table() -> Vec<SlopeRow> {
    (3..=6)
        .map(|depth| {
            let epsilon = 0.8;
            let factors = vec![DMatrix::identity(1, 1); depth];
            let member = SublinearFamily::new(epsilon, &[0.0], factors).unwrap_or_else(|error| unreachable!("{error}"));
            let sublinear = member.trajectory(1e5);
            let settings = FlowSettings { tolerance: Tolerance::FINE, ..FlowSettings::default() };
            let (_, exponential) =
                GradientFlow::new(&member.with_last_hidden(), settings).trajectory(&member.weights());
            SlopeRow {
                depth,
                epsilon,
                slope: sublinear.log_log_slope(1e4, 1e5).unwrap_or(f64::NAN),
                limit: -member.exponent(),
                rate: exponential.rate(5.0, 10.0).unwrap_or(f64::NAN),
                sublinear,
                exponential,
            }
        })
        .collect()
}

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    let mut findings = vec![bound_finding(seed)];
    findings.extend(slope_findings(seed));
    findings.extend(generic_start::findings(seed));
    findings
}

/// A random member: K = 3 to 6, d = 1 to 5, one singular value at least 0, eps from .2 to .9.
fn random_member(draw: &mut Draw) -> SublinearFamily {
    let (depth, d) = (3 + draw.below(4), 1 + draw.below(5));
    let zeros = 1 + draw.below(d);
    let values: Vec<f64> = (0..d).map(|i| if i < zeros { 0.0 } else { draw.uniform(0.1, 2.5) }).collect();
    let epsilon = draw.uniform(0.2, 0.9);
    SublinearFamily::random(draw, depth, epsilon, &values).unwrap_or_else(|error| unreachable!("{error}"))
}

/// The smallest ratio of the loss to the lower bound up to a time; not a number if the flow did not get there.
fn least_ratio(member: &SublinearFamily, until_time: f64) -> f64 {
    let trajectory = member.trajectory(until_time);
    if trajectory.loss_at(until_time).is_none() {
        return f64::NAN;
    }
    smallest(trajectory.points().iter().map(|p| p.loss / member.lower_bound(p.time)))
}

fn bound_finding(seed: u64) -> Finding {
    let ratios: Vec<f64> =
        (0..60).into_par_iter().map(|i| least_ratio(&random_member(&mut Draw::new(seed, i)), 1e3)).collect();
    let ratio = smallest(ratios.iter().copied());
    Finding {
        section: 2,
        source: Source::Paper,
        statement: "0:1, balanced, singular Y: L >= c (1+bt)^-(K-1)/(K-2)".into(),
        measured: format!("least L / bound {ratio:.4}, {} runs", ratios.len()),
        bound: ">= 1".into(),
        verdict: Verdict::holds_if(ratio >= 1.0),
    }
}

fn slope_findings(seed: u64) -> Vec<Finding> {
    let table = slope_table();
    let list = |value: fn(&SlopeRow) -> f64| table.iter().map(|row| format!("{:.3}", value(row))).collect::<Vec<_>>();
    let off = largest(table.iter().map(|row| (row.slope - row.limit).abs()));
    let least = smallest(table.iter().map(|row| row.rate));
    // Exponential: the same rate in the next window.
    let drift =
        largest(table.iter().map(|row| (row.exponential.rate(10.0, 15.0).unwrap_or(f64::NAN) / row.rate - 1.0).abs()));
    let member = SublinearFamily::random(&mut Draw::new(seed, 100), 3, 0.3, &[0.0, 0.0])
        .unwrap_or_else(|error| unreachable!("{error}"));
    let end = 1e6;
    let ratio = member.trajectory(end).loss_at(end).map_or(f64::NAN, |loss| loss / member.asymptote(end));
    vec![
        Finding {
            section: 2,
            source: Source::Proved,
            statement: "0:1, balanced, Y = 0: slope of ln L in ln t, K = 3..6".into(),
            measured: list(|row| row.slope).join(", "),
            bound: list(|row| row.limit).join(", "),
            verdict: Verdict::holds_if(off < 0.02),
        },
        Finding {
            section: 2,
            source: Source::Measured,
            statement: "0:K-1 from there, d = 1: exponential, rate at K = 3..6".into(),
            measured: list(|row| row.rate).join(", "),
            bound: format!("constant: changes by {drift:.0e}"),
            verdict: Verdict::holds_if(least > 1.0 && drift < 0.01),
        },
        Finding {
            section: 2,
            source: Source::Proved,
            statement: "0:1, K = 3, eps = .3: t^2 L / n -> 1/(8(1-eps^2))".into(),
            measured: format!("ratio {ratio:.5} at t = 1e6"),
            bound: "1".into(),
            verdict: Verdict::holds_if((ratio - 1.0).abs() < 1e-3),
        },
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_statements_hold() {
        let findings = verify(12);
        assert_eq!(findings.len(), 7);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }

    #[test]
    fn slopes_and_rates_are_the_known_ones() {
        for (row, (slope, rate)) in
            slope_table().iter().zip([(-1.998, 1.11), (-1.489, 1.42), (-1.316, 1.63), (-1.232, 1.77)])
        {
            assert!((row.slope - slope).abs() < 2e-3, "K = {}: {}", row.depth, row.slope);
            assert!((row.rate / rate - 1.0).abs() < 0.02, "K = {}: {}", row.depth, row.rate);
        }
    }

    #[test]
    fn the_flow_is_that_of_the_scalar_modes() {
        // One mode at target 0 and one that is fitted: the first alone has the loss of a member of width 1.
        let mut draw = Draw::new(3, 0);
        let both = SublinearFamily::random(&mut draw, 4, 0.6, &[0.0, 1.2]).unwrap();
        let alone = SublinearFamily::random(&mut draw, 4, 0.6, &[0.0]).unwrap();
        let (both, alone) = (both.trajectory(200.0), alone.trajectory(200.0));
        let (last, expected) = (both.points().last().unwrap().loss, alone.points().last().unwrap().loss);
        assert!((last / expected - 1.0).abs() < 1e-6, "{last:e} {expected:e}");
    }

    #[test]
    fn failed_hypotheses_are_named() {
        let mut draw = Draw::new(3, 1);
        let message = |result: Result<SublinearFamily, HypothesisError>| result.unwrap_err().to_string();
        assert!(message(SublinearFamily::random(&mut draw, 3, 0.5, &[1.0])).contains("zero singular values is 0"));
        assert!(message(SublinearFamily::random(&mut draw, 3, 1.5, &[0.0])).contains("eps is 1.5"));
        assert!(message(SublinearFamily::random(&mut draw, 2, 0.5, &[0.0])).contains("number of factors is 2"));
        assert!(message(SublinearFamily::random(&mut draw, 3, 0.5, &[0.0, -1.0])).contains("smallest singular value"));
        let skew = vec![DMatrix::from_element(1, 1, 1.1); 3];
        assert!(message(SublinearFamily::new(0.5, &[0.0], skew)).contains("orthogonality"));
        assert!(message(SublinearFamily::new(0.5, &[0.0], vec![DMatrix::identity(2, 2); 3])).contains("inf"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_loss_stays_above_the_bound(seed in any::<u64>()) {
            let member = random_member(&mut Draw::new(seed, 0));
            let ratio = least_ratio(&member, 300.0);
            prop_assert!(ratio >= 1.0, "K = {}, {:?}: {}", member.depth(), member.values, ratio);
        }
    }
}
