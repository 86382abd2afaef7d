//! Random instances, each a function of a seed and a number.

use connection_layout::Layout;
use nalgebra::DMatrix;
use rand::RngExt;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::StandardNormal;

use crate::network::{Problem, Svd, Weights};

/// A source of random instances.
///
/// ```
/// use theory::Draw;
///
/// let matrix = Draw::new(7, 0).gaussian(3, 1.0);
/// assert_eq!(matrix, Draw::new(7, 0).gaussian(3, 1.0));
/// assert_ne!(matrix, Draw::new(7, 1).gaussian(3, 1.0));
/// ```
#[derive(Clone, Debug)]
pub struct Draw(ChaCha8Rng);

impl Draw {
    /// Instance number `instance` of a seed. Different numbers are independent.
    pub fn new(seed: u64, instance: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(instance);
        Self(generator)
    }

    /// A d x d matrix of independent normal entries of the given standard deviation.
    pub fn gaussian(&mut self, d: usize, deviation: f64) -> DMatrix<f64> {
        DMatrix::from_fn(d, d, |_, _| self.normal() * deviation)
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        self.0.sample(StandardNormal)
    }

    /// A number from `low` to `high`, uniformly.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// A number from 0 to `bound - 1`, uniformly.
    ///
    /// # Panics
    ///
    /// When `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    /// An orthogonal d x d matrix, uniformly (Haar): the Q of a Gaussian matrix, with the signs of R's diagonal.
    pub fn orthogonal(&mut self, d: usize) -> DMatrix<f64> {
        let (q, r) = self.gaussian(d, 1.0).qr().unpack();
        let signs = DMatrix::from_fn(d, d, |i, j| if i == j { r[(i, i)].signum() } else { 0.0 });
        q * signs
    }

    /// A target of the given law, d x d.
    pub fn target(&mut self, law: TargetLaw, d: usize) -> DMatrix<f64> {
        let gaussian = self.gaussian(d, (d as f64).sqrt().recip());
        match law {
            TargetLaw::Gaussian => gaussian,
            TargetLaw::NearIdentity => DMatrix::identity(d, d) + gaussian * 0.5,
            TargetLaw::Singular => {
                let mut svd = Svd::new(&gaussian);
                svd.values[d - 1] = 0.0;
                svd.recompose()
            }
        }
    }

    /// Independent normal weights of the given standard deviation, and zero logits.
    pub fn weights(&mut self, problem: &Problem, deviation: f64) -> Weights {
        let mut weights = problem.zeros();
        let matrices = problem.depth() * problem.width() * problem.width();
        weights.values_mut()[..matrices].fill_with(|| self.normal() * deviation);
        weights
    }

    /// A layout of any density, from none to dense; with `hidden_only`, none of its shortcuts ends in the output.
    ///
    /// # Panics
    ///
    /// When the depth is illegal for a layout.
    pub fn layout(&mut self, depth: usize, hidden_only: bool) -> Layout {
        let density = self.uniform(0.0, 1.0);
        let mut pairs = Vec::new();
        for target in 1..if hidden_only { depth } else { depth + 1 } {
            pairs.extend((0..target).filter(|_| self.uniform(0.0, 1.0) < density).map(|source| (source, target)));
        }
        Layout::new(depth, pairs).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// How targets are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetLaw {
    /// `Y ~ N(0, 1/d)`, entry by entry.
    Gaussian,
    /// The same with its smallest singular value set to 0.
    Singular,
    /// `Y = I + G/2` with `G ~ N(0, 1/d)`.
    NearIdentity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orthogonal_matrices_are_orthogonal() {
        for d in 1..6 {
            let q = Draw::new(0, d as u64).orthogonal(d);
            assert!((&q * q.transpose() - DMatrix::identity(d, d)).amax() < 1e-14);
        }
    }

    #[test]
    fn laws_have_their_spectra() {
        let mut draw = Draw::new(1, 0);
        let singular = draw.target(TargetLaw::Singular, 5).singular_values();
        assert!(singular.min() < 1e-15 && singular.iter().filter(|s| **s > 1e-3).count() == 4, "{singular}");
        let mean: f64 = (0..4000).map(|_| draw.target(TargetLaw::Gaussian, 5).norm_squared()).sum::<f64>() / 4000.0;
        assert!((mean / 5.0 - 1.0).abs() < 0.05, "{mean}");
    }
}
