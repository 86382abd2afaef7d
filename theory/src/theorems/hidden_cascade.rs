//! The hidden cascade `0:1+1:2+...+(K-2):(K-1)` converges at a linear rate from small weights, whatever the target is.
//!
//! With `P_l = I + W_l` the network is `A_K = W_K P_{K-1} ... P_1`. The flow keeps `D_l = P_{l+1}ᵀ P_{l+1} - P_l P_lᵀ`
//! for `1 <= l <= K-2` and `C = P_{K-1} P_{K-1}ᵀ - W_Kᵀ W_K`, and it cannot make `P_{K-1} P_{K-1}ᵀ = C + W_Kᵀ W_K`
//! small:
//!
//! - `sigma_min(P_{K-1})² >= b_{K-1} = lambda_min(C)`, and down the layers
//!   `sigma_min(P_l)² >= b_l = b_{l+1} - lambda_max(D_l)`;
//! - while all `b_l > 0`, the slope of `W_K` alone gives `L' <= -2 (b_1 ... b_{K-1}) L`.
//!
//! If all `||W_l(0)||_2 <= eps`, then `lambda_min(C) >= (1 - eps)² - eps² = 1 - 2 eps` and
//! `lambda_max(D_l) <= (1 + eps)² - (1 - eps)² = 4 eps`, so that `b_l >= 1 - x_l` with
//! `x_l = 2 eps + 4 (K-1-l) eps`. The sum of the x_l is `2 (K-1)² eps`. While it is below 1,
//! `prod (1 - x_l) >= 1 - sum x_l` (Weierstrass), so that the product is at least `1 - 2 (K-1)² eps`.

use connection_layout::Layout;
use nalgebra::DMatrix;
use rayon::prelude::*;

use super::decay::{Decay, ExponentialBound};
use super::hypothesis::{self, HypothesisError};
use super::measure::{largest, norm_of, smallest};
use crate::network::{Gradient, Problem, Weights};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// A certificate that the hidden cascade keeps `L(t) <= L(0) exp(-2 (1 - 2 (K-1)² eps) t)` for any target.
///
/// ```
/// use connection_layout::Layout;
/// use theory::network::Problem;
/// use theory::theorems::hidden_cascade::HiddenCascade;
/// use theory::{Draw, TargetLaw};
///
/// let mut draw = Draw::new(0, 0);
/// let problem = Problem::whitened(&Layout::parse("hidden-cascade", 3)?, draw.target(TargetLaw::Gaussian, 4))?;
/// let certificate = HiddenCascade::new(&problem, &draw.weights(&problem, 0.01))?;
/// assert!(certificate.rate() > 1.0 && certificate.sharp_rate() > certificate.rate());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HiddenCascade {
    depth: usize,
    epsilon: f64,
    first: f64,
    sharp: f64,
}

impl HiddenCascade {
    /// The certificate for these weights.
    ///
    /// # Errors
    ///
    /// [`HypothesisError`] for another layout, inputs that are not whitened, weights of another problem, and weights
    /// whose largest spectral norm is not below `1 / (2 (K-1)²)`.
    pub fn new(problem: &Problem, weights: &Weights) -> Result<Self, HypothesisError> {
        let sharp = sharp_rate(problem, weights)?;
        let depth = problem.depth();
        let epsilon = largest((1..=depth).map(|layer| norm_of(weights.layer(layer))));
        hypothesis::expect_below("the largest norm of a layer", epsilon, largest_size(depth))?;
        Ok(Self { depth, epsilon, first: Gradient::new(problem).loss(weights.values()), sharp })
    }

    /// The largest spectral norm of a layer.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The rate `2 (1 - 2 (K-1)² eps)` of the loss.
    pub fn rate(&self) -> f64 {
        2.0 * (1.0 - self.epsilon / largest_size(self.depth))
    }

    /// The rate that the conserved matrices of these weights give, at least [`rate`](Self::rate).
    pub fn sharp_rate(&self) -> f64 {
        self.sharp
    }

    /// The bound on the loss.
    pub fn bound(&self) -> ExponentialBound {
        ExponentialBound { first: self.first, rate: self.rate() }
    }
}

/// `1 / (2 (K-1)²)`, which the spectral norms of all layers have to stay below.
pub fn largest_size(depth: usize) -> f64 {
    0.5 / (depth as f64 - 1.0).powi(2)
}

/// The rate `2 b_1 ... b_{K-1}` from the conserved matrices, or 0 where some `b_l` is not positive. It needs no bound
/// on the weights, and is 2 for zero weights.
///
/// # Errors
///
/// [`HypothesisError`] for another layout, inputs that are not whitened, or weights of another problem.
pub fn sharp_rate(problem: &Problem, weights: &Weights) -> Result<f64, HypothesisError> {
    let layout = hypothesis::whitened_layout_of(problem)?;
    let depth = layout.depth();
    hypothesis::expect_at_least("the depth", depth as f64, 2.0)?;
    hypothesis::expect_layout(&layout, (1..depth).map(|l| (l - 1, l)), "the hidden cascade, K >= 2")?;
    hypothesis::expect_shape(problem, weights)?;
    let d = problem.width();
    let block = |layer: usize| weights.layer(layer) + DMatrix::identity(d, d);
    let last = weights.layer(depth);
    let (mut above, mut bound) = (block(depth - 1), 0.0);
    let mut product = 2.0;
    for layer in (1..depth).rev() {
        let here = block(layer);
        bound = if layer == depth - 1 {
            smallest((&here * here.transpose() - last.transpose() * last).symmetric_eigenvalues().iter().copied())
        } else {
            let conserved = above.transpose() * &above - &here * here.transpose();
            bound - largest(conserved.symmetric_eigenvalues().iter().copied())
        };
        product *= bound.max(0.0);
        above = here;
    }
    Ok(product)
}

/// A random instance: any target, and weights whose largest spectral norm is `share` of the largest one allowed.
fn instance(draw: &mut Draw, depth: usize, share: f64) -> (Problem, Weights) {
    let layout = Layout::new(depth, (1..depth).map(|l| (l - 1, l))).unwrap_or_else(|error| unreachable!("{error}"));
    let d = 1 + draw.below(6);
    let law = [TargetLaw::Gaussian, TargetLaw::Singular, TargetLaw::NearIdentity][draw.below(3)];
    let target = draw.target(law, d) * draw.normal().exp();
    let problem = Problem::whitened(&layout, target).unwrap_or_else(|error| unreachable!("{error}"));
    let mut weights = draw.weights(&problem, 1.0);
    // Every layer at the limit, the worst case.
    for layer in 1..=depth {
        let factor = share * largest_size(depth) / norm_of(weights.layer(layer));
        let scaled = weights.layer(layer) * factor;
        weights.set_layer(layer, &scaled);
    }
    (problem, weights)
}

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    let runs: Vec<(f64, f64, bool)> = (0..200_u64)
        .into_par_iter()
        .filter_map(|i| {
            let mut draw = Draw::new(seed, i);
            let share = draw.uniform(0.01, 0.999);
            let (problem, weights) = instance(&mut draw, 2 + i as usize % 5, share);
            let certificate = HiddenCascade::new(&problem, &weights).ok()?;
            let decay = Decay::follow(&problem, &weights, |_, _| ());
            let kept = decay.keeps(certificate.rate())
                && decay.keeps(certificate.sharp_rate())
                && certificate.sharp_rate() >= certificate.rate() * (1.0 - 1e-12);
            let lowest = decay.lowest_rate();
            Some((lowest / certificate.rate(), lowest / certificate.sharp_rate(), kept))
        })
        .collect();
    // Weights that are too large for the first certificate.
    let beyond: Vec<(f64, bool)> = (0..100_u64)
        .into_par_iter()
        .filter_map(|i| {
            let mut draw = Draw::new(seed, 1000 + i);
            let share = draw.uniform(1.0, 3.0);
            let (problem, weights) = instance(&mut draw, 2 + i as usize % 5, share);
            let rate = sharp_rate(&problem, &weights).ok().filter(|rate| *rate > 0.0)?;
            let decay = Decay::follow(&problem, &weights, |_, _| ());
            Some((decay.lowest_rate() / rate, decay.keeps(rate)))
        })
        .collect();
    let sharpest = smallest(runs.iter().map(|run| run.1).chain(beyond.iter().map(|run| run.0)));
    vec![
        Finding {
            section: 3,
            source: Source::Proved,
            statement: "hidden cascade, |W| <= eps: rate >= 2(1-2(K-1)^2 eps)".into(),
            measured: format!("least rate / bound {:.4}, {} runs", smallest(runs.iter().map(|r| r.0)), runs.len()),
            bound: ">= 1, every Y".into(),
            verdict: Verdict::holds_if(runs.len() == 200 && runs.iter().all(|run| run.2)),
        },
        Finding {
            section: 3,
            source: Source::Proved,
            statement: "hidden cascade: rate >= that of conserved matrices".into(),
            measured: format!("least rate / bound {sharpest:.4}, {} runs", runs.len() + beyond.len()),
            bound: ">= 1, beyond 1/(2(K-1)^2)".into(),
            verdict: Verdict::holds_if(beyond.len() >= 20 && beyond.iter().all(|run| run.1)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_statements_hold() {
        let findings = verify(14);
        assert_eq!(findings.len(), 2);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }

    #[test]
    fn zero_weights_have_rate_two() {
        let (problem, _) = instance(&mut Draw::new(0, 0), 4, 1.0);
        let certificate = HiddenCascade::new(&problem, &problem.zeros()).unwrap();
        assert_eq!((certificate.rate(), certificate.sharp_rate(), certificate.epsilon()), (2.0, 2.0, 0.0));
        assert!((certificate.bound().first / problem.target().scale() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn failed_hypotheses_are_named() {
        let (problem, weights) = instance(&mut Draw::new(0, 1), 3, 1.01);
        let message = HiddenCascade::new(&problem, &weights).unwrap_err().to_string();
        assert_eq!(message, "the largest norm of a layer is 1.2625e-1: it has to be below 1.2500e-1");
        let full = Problem::whitened(&Layout::parse("cascade", 3).unwrap(), DMatrix::identity(2, 2)).unwrap();
        assert!(matches!(HiddenCascade::new(&full, &full.zeros()), Err(HypothesisError::Layout { .. })));
        assert!(matches!(HiddenCascade::new(&problem, &full.zeros()), Err(HypothesisError::Shape { .. })));
    }

    #[test]
    fn the_matrices_are_conserved() {
        let (problem, weights) = instance(&mut Draw::new(0, 2), 4, 0.9);
        let before = sharp_rate(&problem, &weights).unwrap();
        let after = sharp_rate(&problem, &Decay::follow(&problem, &weights, |_, _| ()).outcome().weights).unwrap();
        assert!((before - after).abs() < 1e-8, "{before} {after}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn small_weights_keep_the_rate(seed in any::<u64>(), depth in 2usize..=6, share in 0.0f64..0.9999) {
            let (problem, weights) = instance(&mut Draw::new(seed, 0), depth, share);
            let certificate = HiddenCascade::new(&problem, &weights).unwrap();
            prop_assert!(certificate.sharp_rate() >= certificate.rate() * (1.0 - 1e-12));
            let decay = Decay::follow(&problem, &weights, |_, _| ());
            prop_assert!(decay.keeps(certificate.sharp_rate()), "{} {:?}", decay.lowest_rate(), certificate);
        }
    }
}
