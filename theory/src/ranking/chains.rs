//! Why `0:2` wins at depth 3 and `0:2+2:3` at depth 4 under gradient descent, though not under gradient flow.
//!
//! A *gap-free chain* is a hidden-only layout whose shortcuts form one path from the input to the last hidden node:
//! `n_0:n_1+n_1:n_2+...` with `0 = n_0 < n_1 < ... = K-1`. There are `2^(K-2)` of them, one for each way to cut the
//! first K-1 layers into blocks. A block of one layer multiplies by `I + W`; one of several multiplies by `I` plus a
//! product of weights, which is at a saddle at zero and stays there. From small weights a chain with m blocks of one
//! layer therefore trains as `W_K (I + W_m) ... (I + W_1)`: a larger m makes gradient flow faster, and the curvature
//! larger, so that gradient descent needs a smaller rate.

use connection_layout::{Layout, LayoutError};
use nalgebra::DVector;

/// The gap-free chains of a depth, as defined above, each with its number m of blocks of one layer.
///
/// # Errors
///
/// [`LayoutError`] for a depth that is none, and for depth 1, where the last hidden node is the input.
pub fn chains(depth: usize) -> Result<Vec<(Layout, usize)>, LayoutError> {
    Layout::none(depth)?;
    if depth < 2 {
        return Err(LayoutError::TooShallow { name: "0:K-1", needed: 2, depth });
    }
    if depth > connection_layout::MAX_ENUMERATED_DEPTH {
        let limit = connection_layout::MAX_ENUMERATED_DEPTH;
        return Err(LayoutError::TooDeepToEnumerate { depth, limit });
    }
    // Each subset of the inner nodes 1..K-2 is a choice of cuts.
    (0..1usize << (depth - 2))
        .map(|cuts| {
            let inner = (1..depth - 1).filter(|node| cuts >> (node - 1) & 1 == 1);
            let nodes: Vec<usize> = std::iter::once(0).chain(inner).chain([depth - 1]).collect();
            let single = nodes.windows(2).filter(|block| block[1] - block[0] == 1).count();
            Ok((Layout::new(depth, nodes.windows(2).map(|block| (block[0], block[1])))?, single))
        })
        .collect()
}

/// The minimum that `W_K (I + W_m) ... (I + W_1)` reaches from zero weights under gradient flow on whitened data, for a
/// target with singular values `sigma_1, ..., sigma_d`.
///
/// In the bases of the target's singular vectors all matrices stay diagonal, `W_K` with entries s and each `I + W_l`
/// with entries a. Conservation of `W_Kᵀ W_K - (I + W_m)(I + W_m)ᵀ` keeps `a² = 1 + s²`, so that
/// `s (1 + s²)^(m/2) = sigma` at the minimum.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainMinimum {
    blocks: usize,
    /// `s²` of each singular value.
    squares: Vec<f64>,
}

impl ChainMinimum {
    /// The minimum of the chain with `blocks` blocks of one layer; `None` unless the singular values are finite, not
    /// negative, and at least one.
    pub fn new(blocks: usize, singular_values: &[f64]) -> Option<Self> {
        if singular_values.is_empty() || singular_values.iter().any(|sigma| !(sigma.is_finite() && *sigma >= 0.0)) {
            return None;
        }
        let power = i32::try_from(blocks).ok()?;
        let square = |sigma: f64| {
            // s² (1 + s²)^m grows with s² and is at least s², so that the root lies below sigma².
            let (mut low, mut high) = (0.0, sigma * sigma);
            for _ in 0..200 {
                let middle = 0.5 * (low + high);
                if middle * (1.0 + middle).powi(power) < sigma * sigma { low = middle } else { high = middle }
            }
            0.5 * (low + high)
        };
        Some(Self { blocks, squares: singular_values.iter().map(|&sigma| square(sigma)).collect() })
    }

    /// The number m of blocks of one layer.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// `s` for each singular value: the singular values of the last layer.
    pub fn last_layer(&self) -> Vec<f64> {
        self.squares.iter().map(|square| square.sqrt()).collect()
    }

    /// `N_ij = a_j^(2m) + s_i² sum over l = 1..m of a_i^(2(m-l)) a_j^(2(l-1))`: the eigenvalue of the neural tangent
    /// kernel for output mode i and input mode j.
    fn eigenvalue(&self, i: usize, j: usize) -> f64 {
        let power = |base: f64, exponent: usize| (0..exponent).fold(1.0, |product, _| product * base);
        let (out, into) = (1.0 + self.squares[i], 1.0 + self.squares[j]);
        let through: f64 = (1..=self.blocks).map(|l| power(out, self.blocks - l) * power(into, l - 1)).sum();
        power(into, self.blocks) + self.squares[i] * through
    }

    /// All `d²` eigenvalues of the neural tangent kernel at the minimum, ascending.
    pub fn kernel_spectrum(&self) -> DVector<f64> {
        let d = self.squares.len();
        let mut values: Vec<f64> = (0..d * d).map(|index| self.eigenvalue(index / d, index % d)).collect();
        values.sort_by(f64::total_cmp);
        DVector::from_vec(values)
    }

    /// The largest eigenvalue of the kernel, which is the largest curvature of the loss at the minimum.
    pub fn sharpness(&self) -> f64 {
        self.kernel_spectrum().max()
    }

    /// `2 / sharpness`: gradient descent with a larger rate does not stay at the minimum.
    pub fn largest_rate(&self) -> f64 {
        2.0 / self.sharpness()
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::Draw;
    use crate::flow::{FlowSettings, GradientFlow, Tolerance};
    use crate::network::{EndToEnd, Problem};

    #[test]
    fn chains_of_depth_three_and_four() {
        let names = |depth| {
            let mut names: Vec<_> = chains(depth).unwrap().iter().map(|(layout, m)| (layout.to_string(), *m)).collect();
            names.sort();
            names
        };
        let pairs = |list: &[(&str, usize)]| list.iter().map(|(name, m)| ((*name).to_owned(), *m)).collect::<Vec<_>>();
        assert_eq!(names(2), pairs(&[("0:1", 1)]));
        assert_eq!(names(3), pairs(&[("0:1+1:2", 2), ("0:2", 0)]));
        assert_eq!(names(4), pairs(&[("0:1+1:2+2:3", 3), ("0:1+1:3", 1), ("0:2+2:3", 1), ("0:3", 0)]));
        assert_eq!(chains(8).unwrap().len(), 64);
        assert!(chains(0).is_err() && chains(1).is_err() && chains(11).is_err());
    }

    #[test]
    fn rates_at_the_singular_value_of_the_paper_by_hand() {
        // m = 1: s⁴ + s² = sigma², and the sharpness is a² + s² = 1 + 2 s².
        let sigma: f64 = 2.01;
        let square = 0.5 * ((1.0 + 4.0 * sigma * sigma).sqrt() - 1.0);
        let one = ChainMinimum::new(1, &[sigma]).unwrap();
        assert!((one.sharpness() - (1.0 + 2.0 * square)).abs() < 1e-12);
        let rates = [0, 1, 2, 3].map(|m| ChainMinimum::new(m, &[sigma]).unwrap().largest_rate());
        for (rate, expected) in rates.into_iter().zip([2.0, 0.48, 0.25, 0.16]) {
            assert!((rate - expected).abs() < 0.005, "{rates:?}");
        }
    }

    #[test]
    fn the_minimum_is_where_training_ends() {
        for blocks in 0..=3 {
            let target = Draw::new(5, blocks as u64).gaussian(4, 0.5);
            let layout = Layout::parse("hidden-cascade", blocks + 1).unwrap();
            let problem = Problem::whitened(&layout, target).unwrap();
            let settings = FlowSettings { tolerance: Tolerance::FINE, ..FlowSettings::default() };
            let end = GradientFlow::new(&problem, settings).run(&problem.zeros(), |_, _| ()).weights;
            let minimum = ChainMinimum::new(blocks, problem.target().singular_values().as_slice()).unwrap();
            let measured = EndToEnd::new(problem.net(), &end).kernel_spectrum();
            let worst = (measured - minimum.kernel_spectrum()).amax() / minimum.sharpness();
            assert!(worst < 1e-6, "{blocks}: {worst:e}");
        }
    }

    #[test]
    fn singular_values_must_be_numbers() {
        assert_eq!(ChainMinimum::new(1, &[]), None);
        assert_eq!(ChainMinimum::new(1, &[-1.0]), None);
        assert_eq!(ChainMinimum::new(1, &[f64::NAN]), None);
        assert_eq!(ChainMinimum::new(2, &[0.0]).unwrap().sharpness(), 1.0);
        assert_eq!(DMatrix::<f64>::identity(1, 1)[0], ChainMinimum::new(0, &[3.0]).unwrap().sharpness());
    }
}
