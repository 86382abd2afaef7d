//! The shortcut `0:K-1` converges at a linear rate (paper, Theorem 3.3 for K = 3; the same for every K >= 3).
//!
//! With `M = W_{K-1} ... W_1` the network is `A_K = W_K (I + M)`, and the slope of `W_K` alone gives
//! `L' <= -||E (I + M)ᵀ||² <= -2 (1 - ||M||)² L`. What is left is to keep `||M||` below some `lambda < 1`: the layers
//! below move by `G = W_Kᵀ E` only, whose integral over all time is at most
//! `Gamma = w R / mu + (1 + lambda) R² / (2 mu²)`, `mu = (1 - lambda)²`, `w = ||W_K(0)||_2`, `R = ||E(0)||_F`.

mod verify;

use connection_layout::Layout;
use nalgebra::{DMatrix, DMatrixView};

use super::decay::{Decay, ExponentialBound};
use super::hypothesis::{self, HypothesisError};
use super::measure::{largest, norm_of, spectral_norm};
use crate::network::{Gradient, Problem, Weights};

pub use verify::verify;

const LAYOUT: &str = "0:K-1 with K >= 3";

/// A certificate that the flow of `0:K-1` keeps `||M(t)||_2 < lambda` and hence `L(t) <= L(0) exp(-2 (1-lambda)² t)`.
///
/// Size of the layers below the last: for K = 3 the quadratic mean of `||W_1(0)||_2` and `||W_2(0)||_2`, for K >= 4 the
/// largest of their spectral norms. It has to be below [`admissible_size`] for some lambda in (0, 1).
///
/// ```
/// use connection_layout::Layout;
/// use theory::network::Problem;
/// use theory::theorems::linear_rate::LinearRate;
/// use theory::{Draw, TargetLaw};
///
/// let mut draw = Draw::new(1, 0);
/// let problem = Problem::whitened(&Layout::parse("0:2", 3)?, draw.target(TargetLaw::Gaussian, 4))?;
/// let certificate = LinearRate::new(&problem, &draw.weights(&problem, 1e-3))?;
/// assert!(certificate.rate() > 1.9);
/// // Large weights have none.
/// assert!(LinearRate::new(&problem, &draw.weights(&problem, 1.0)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearRate {
    lambda: f64,
    size: f64,
    start: Start,
}

/// What the condition depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Start {
    depth: usize,
    /// `||W_K(0)||_2`.
    output: f64,
    /// `||E(0)||_F`.
    error: f64,
}

impl LinearRate {
    /// The certificate with the smallest lambda, hence the best rate.
    ///
    /// # Errors
    ///
    /// [`HypothesisError`] for another layout, inputs that are not whitened, weights of another problem, and weights
    /// that are too large for every lambda; the latter with the size they have and the one they may have.
    pub fn new(problem: &Problem, weights: &Weights) -> Result<Self, HypothesisError> {
        let (start, size) = Start::of(problem, weights)?;
        // The logarithm of the admissible size is concave in lambda for K = 3, and minus a power of it for K >= 4.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..200 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if start.log_size(left) < start.log_size(right) { low = left } else { high = right }
        }
        let best = 0.5 * (low + high);
        hypothesis::expect_below(SIZE, size, start.log_size(best).exp())?;
        let (mut below, mut lambda) = (0.0, best);
        for _ in 0..200 {
            let middle = 0.5 * (below + lambda);
            if size < start.log_size(middle).exp() { lambda = middle } else { below = middle }
        }
        Ok(Self { lambda, size, start })
    }

    /// The certificate with a given lambda.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), for this lambda, and for a lambda outside of (0, 1).
    pub fn with_lambda(problem: &Problem, weights: &Weights, lambda: f64) -> Result<Self, HypothesisError> {
        let (start, size) = Start::of(problem, weights)?;
        hypothesis::expect_above("lambda", lambda, 0.0)?;
        hypothesis::expect_below("lambda", lambda, 1.0)?;
        hypothesis::expect_below(SIZE, size, start.log_size(lambda).exp())?;
        Ok(Self { lambda, size, start })
    }

    /// The bound on `||M(t)||_2`.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// The size of the layers below the last.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// The rate `2 (1 - lambda)²` of the loss.
    pub fn rate(&self) -> f64 {
        rate(self.lambda)
    }

    /// The bound on the loss.
    pub fn bound(&self) -> ExponentialBound {
        ExponentialBound { first: 0.5 * self.start.error.powi(2), rate: self.rate() }
    }

    /// `Gamma`: the bound on the integral of `||W_Kᵀ E||_2` over all time.
    pub fn gamma(&self) -> f64 {
        self.start.gamma(self.lambda)
    }
}

const SIZE: &str = "the size of the layers below the last";

/// The rate `2 (1 - lambda)²` of the loss while `||M||_2 <= lambda`.
pub fn rate(lambda: f64) -> f64 {
    2.0 * (1.0 - lambda).powi(2)
}

/// The size that the layers below the last have to stay below for a lambda in (0, 1), with `output = ||W_K(0)||_2` and
/// `error = ||E(0)||_F`.
///
/// `sqrt(lambda) exp(-Gamma)` for K = 3, and `((K-3) Gamma + lambda^(-(K-3)/(K-1)))^(-1/(K-3))` for K >= 4. It falls
/// like `exp(-c R²)` with the size R of the target for K = 3, and only like `R^(-2/(K-3))` for deeper networks.
pub fn admissible_size(depth: usize, lambda: f64, output: f64, error: f64) -> f64 {
    Start { depth, output, error }.log_size(lambda).exp()
}

impl Start {
    fn of(problem: &Problem, weights: &Weights) -> Result<(Self, f64), HypothesisError> {
        expect_problem(problem)?;
        hypothesis::expect_shape(problem, weights)?;
        let depth = problem.depth();
        let norms: Vec<f64> = (1..depth).map(|layer| norm_of(weights.layer(layer))).collect();
        let size = match norms[..] {
            [first, second] => (0.5 * (first.powi(2) + second.powi(2))).sqrt(),
            _ => largest(norms),
        };
        let error = (2.0 * Gradient::new(problem).loss(weights.values())).sqrt();
        Ok((Self { depth, output: norm_of(weights.layer(depth)), error }, size))
    }

    fn gamma(self, lambda: f64) -> f64 {
        let mu = (1.0 - lambda).powi(2);
        self.output * self.error / mu + (1.0 + lambda) * self.error.powi(2) / (2.0 * mu * mu)
    }

    /// The logarithm of the admissible size.
    fn log_size(self, lambda: f64) -> f64 {
        if self.depth == 3 {
            return 0.5 * lambda.ln() - self.gamma(lambda);
        }
        let excess = self.depth as f64 - 3.0;
        -(excess * self.gamma(lambda) + lambda.powf(-excess / (excess + 2.0))).ln() / excess
    }
}

fn expect_problem(problem: &Problem) -> Result<(), HypothesisError> {
    let layout = hypothesis::whitened_layout_of(problem)?;
    let depth = layout.depth();
    hypothesis::expect_at_least("the depth", depth as f64, 3.0)?;
    hypothesis::expect_layout(&layout, [(0, depth - 1)], LAYOUT)
}

/// The flow of `0:K-1` from some weights, with `||M(t)||_2` along it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductPath {
    /// The loss along the flow.
    pub decay: Decay,
    /// `||M||_2` at every step.
    pub products: Vec<f64>,
}

impl ProductPath {
    /// Follows the flow.
    ///
    /// # Errors
    ///
    /// [`HypothesisError`] for another layout, inputs that are not whitened, or weights of another problem.
    pub fn follow(problem: &Problem, weights: &Weights) -> Result<Self, HypothesisError> {
        expect_problem(problem)?;
        hypothesis::expect_shape(problem, weights)?;
        let (depth, d) = (problem.depth(), problem.width());
        let mut products = Vec::new();
        let decay = Decay::follow(problem, weights, |_, values| {
            let layer = |l: usize| DMatrixView::from_slice(&values[l * d * d..][..d * d], d, d);
            products
                .push(spectral_norm(&(0..depth - 1).fold(DMatrix::identity(d, d), |product, l| layer(l) * product)));
        });
        Ok(Self { decay, products })
    }

    /// The largest `||M(t)||_2` along the flow; not a number if the flow did not get to its end.
    pub fn largest_product(&self) -> f64 {
        if self.decay.arrived() { largest(self.products.iter().copied()) } else { f64::NAN }
    }

    /// `2 (1 - sup ||M(t)||_2)²`, a rate that the loss keeps whatever the weights are; `None` where the supremum is not
    /// below 1.
    pub fn rate(&self) -> Option<f64> {
        let lambda = self.largest_product();
        (lambda < 1.0).then(|| rate(lambda))
    }
}

/// The family on which `lambda = ||W_2(0) W_1(0)||_2` in place of a bound along the path gives a rate that is too fast:
/// K = 3, d = 1, `W_1 = -W_2 = scale`, and the given last layer.
///
/// `M = -q` with `q = W_1²` starts at minus lambda, and it grows in size wherever `W_3 E > 0`.
///
/// # Errors
///
/// [`HypothesisError`] unless `0 < scale < 1`, so that lambda lies in (0, 1), and all numbers are finite.
pub fn opposed_layers(scale: f64, output: f64, target: f64) -> Result<(Problem, Weights), HypothesisError> {
    hypothesis::expect_above("the scale", scale, 0.0)?;
    hypothesis::expect_below("the scale", scale, 1.0)?;
    hypothesis::expect_below("the last layer, in size", output.abs(), f64::INFINITY)?;
    hypothesis::expect_below("the target, in size", target.abs(), f64::INFINITY)?;
    let layout = Layout::new(3, [(0, 2)]).unwrap_or_else(|error| unreachable!("{error}"));
    let problem =
        Problem::whitened(&layout, DMatrix::from_element(1, 1, target)).unwrap_or_else(|error| unreachable!("{error}"));
    let mut weights = problem.zeros();
    weights.values_mut().copy_from_slice(&[scale, -scale, output]);
    Ok((problem, weights))
}

/// Where [`opposed_layers`] end for target 0: the limit of `q = W_1²`, so that the loss falls at rate `2 (1 - q)²` in
/// the end, below `2 (1 - scale²)²` for every last layer but 0.
///
/// From `dq = 2 w² q (1-q) dt` and `d(w²) = -2 w² (1-q)² dt` with `w = W_3`, `ln q - q + w²` is constant, and w ends at
/// 0. `None` where the last layer is so large that q would pass 1, at which the flow ends.
pub fn opposed_limit(scale: f64, output: f64) -> Option<f64> {
    let level = (scale * scale).ln() - scale * scale + output * output;
    // ln q - q grows on (0, 1), up to -1.
    (level < -1.0).then(|| {
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if middle.ln() - middle < level { low = middle } else { high = middle }
        }
        high
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::verify::{instance_of, largest_certified};
    use super::*;
    use crate::{Draw, Verdict};

    #[test]
    fn the_statements_hold() {
        let findings = verify(11);
        assert_eq!(findings.len(), 5);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }

    #[test]
    fn the_best_lambda_is_the_smallest_that_is_admissible() {
        let mut draw = Draw::new(0, 0);
        for depth in 3..=6 {
            let problem = instance_of(&mut draw, depth, 3, 0.8);
            let (certificate, _) = largest_certified(&problem, &draw.weights(&problem, 0.5)).unwrap();
            let weights = {
                let mut weights = draw.weights(&problem, 1.0);
                weights.values_mut().iter_mut().for_each(|w| *w *= 1e-3);
                weights
            };
            let best = LinearRate::new(&problem, &weights).unwrap();
            assert!(LinearRate::with_lambda(&problem, &weights, best.lambda() * 0.999).is_err());
            assert!(LinearRate::with_lambda(&problem, &weights, best.lambda() * 1.001).is_ok());
            assert!(certificate.rate() < best.rate());
        }
    }

    #[test]
    fn zero_layers_below_give_rate_two() {
        let mut draw = Draw::new(0, 1);
        for depth in 3..=5 {
            let problem = instance_of(&mut draw, depth, 2, 3.0);
            let certificate = LinearRate::new(&problem, &problem.zeros()).unwrap();
            assert!((certificate.rate() - 2.0).abs() < 1e-12, "{certificate:?}");
            assert!((certificate.bound().first / problem.target().scale() - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn failed_hypotheses_are_named() {
        let mut draw = Draw::new(0, 2);
        let problem = instance_of(&mut draw, 3, 2, 2.0);
        let message = LinearRate::new(&problem, &draw.weights(&problem, 1.0)).unwrap_err().to_string();
        assert!(message.contains("the size of the layers below the last is") && message.contains("below"), "{message}");
        let other = Problem::whitened(&Layout::parse("0:1", 3).unwrap(), DMatrix::identity(2, 2)).unwrap();
        assert!(matches!(LinearRate::new(&other, &other.zeros()), Err(HypothesisError::Layout { .. })));
        let shallow = Problem::whitened(&Layout::parse("0:1", 2).unwrap(), DMatrix::identity(2, 2)).unwrap();
        assert!(matches!(LinearRate::new(&shallow, &shallow.zeros()), Err(HypothesisError::OutOfRange { .. })));
        assert!(LinearRate::with_lambda(&problem, &problem.zeros(), 1.0).is_err());
        assert!(matches!(ProductPath::follow(&problem, &shallow.zeros()), Err(HypothesisError::Shape { .. })));
    }

    #[test]
    fn the_condition_is_that_of_the_statement() {
        let (output, error, lambda): (f64, f64, f64) = (0.3, 0.5, 0.4);
        let mu = 0.36;
        let gamma = output * error / mu + 1.4 * error * error / (2.0 * mu * mu);
        let size = admissible_size(3, lambda, output, error);
        assert!((size * size * (2.0 * gamma).exp() - lambda).abs() < 1e-12);
        let size = admissible_size(5, lambda, output, error);
        assert!((size.powi(-2) - 2.0 * gamma - lambda.powf(-0.5)).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn certified_weights_keep_the_bound(
            seed in any::<u64>(), depth in 3usize..=5, d in 1usize..=4, size in 0.1f64..2.0,
        ) {
            let mut draw = Draw::new(seed, 0);
            let problem = instance_of(&mut draw, depth, d, size);
            let Some((certificate, path)) = largest_certified(&problem, &draw.weights(&problem, 0.5)) else {
                return Err(TestCaseError::fail("no certificate at any scale"));
            };
            prop_assert!(path.largest_product() < certificate.lambda());
            prop_assert!(path.decay.keeps(certificate.rate()));
        }
    }
}
