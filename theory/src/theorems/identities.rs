//! Identities of the numerics (section 6), each as a function of an instance that returns how far it is from holding.
//!
//! Deviations are relative, as the documentation of each function says, and 0 where both sides vanish. Where a map
//! happens to lie near its target, `A_K - A*` has lost digits to cancellation: losses are therefore compared relative
//! to the larger of the loss and the target's scale ([`Target::scale`]), and whatever is proportional to the error
//! relative to its size at an error of that scale. An instance is a [`Problem`] and a point [`Weights`] of its
//! parameter space; coefficients may be fixed or learned and data whitened or general, unless a function says
//! otherwise.

mod conservation;
mod symmetry;
mod verify;

use nalgebra::{DMatrix, DVector};

pub use conservation::{balance, balance_drift, conserved_nodes};
pub use symmetry::{reversal_deviation, reversed, rotated, rotation_deviation};
pub use verify::verify;

use super::measure::largest;
use crate::network::{EndToEnd, Gradient, LinearNet, Problem, Target, Weights};

/// Step of the central differences.
pub const DIFFERENCE_STEP: f64 = 1e-6;

/// The gradient against central differences of step [`DIFFERENCE_STEP`], for every weight and every logit.
///
/// The largest difference, relative to the larger of the largest slope and the loss: a difference of losses is no more
/// accurate than the losses are. About `1e-10` is rounding.
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn gradient_deviation(problem: &Problem, weights: &Weights) -> f64 {
    let mut gradient = Gradient::new(problem);
    let mut slope = vec![0.0; problem.len()];
    let loss = gradient.evaluate(weights.values(), &mut slope);
    let mut point = weights.values().to_vec();
    let mut difference = |i: usize, slope: f64| {
        let middle = point[i];
        let mut at = |value: f64| {
            point[i] = value;
            gradient.loss(&point)
        };
        let (above, below) = (at(middle + DIFFERENCE_STEP), at(middle - DIFFERENCE_STEP));
        point[i] = middle;
        (slope - (above - below) / (2.0 * DIFFERENCE_STEP)).abs()
    };
    let worst = largest(slope.iter().enumerate().map(|(i, &slope)| difference(i, slope)));
    relative(worst, largest(slope.iter().map(|slope| slope.abs()).chain([loss])))
}

/// Euler's identity `sum_l <W_l, dL/dW_l> = <E, sum_k k f_k>`, where `f_k` is the part of `A_K` of degree k in the
/// weights and `E = dL/dA_K`. Relative to the sum of the absolute values of the terms on both sides.
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn euler_deviation(problem: &Problem, weights: &Weights) -> f64 {
    let (loss, gradient) = Gradient::at(problem, weights);
    let map = EndToEnd::new(problem.net(), weights);
    let error = problem.target().error(map.map());
    let left: Vec<f64> = (1..=problem.depth()).map(|l| weights.layer(l).dot(&gradient.layer(l))).collect();
    let parts = map.homogeneous_parts();
    let right: Vec<f64> = parts.iter().enumerate().map(|(degree, part)| degree as f64 * error.dot(part)).collect();
    let size: f64 = left.iter().chain(&right).map(|x| x.abs()).sum();
    relative((left.iter().sum::<f64>() - right.iter().sum::<f64>()).abs(), size * headroom(problem, loss))
}

/// `||dL/dW||² = eᵀ N e` with the tangent kernel `N = J Jᵀ` and `e = vec(dL/dA_K)`: the speed at which gradient flow on
/// the weights loses loss. Relative to the left side.
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn kernel_deviation(problem: &Problem, weights: &Weights) -> f64 {
    let (loss, gradient) = Gradient::at(problem, weights);
    let map = EndToEnd::new(problem.net(), weights);
    let error = DVector::from_column_slice(problem.target().error(map.map()).as_slice());
    let square: f64 = (1..=problem.depth()).map(|l| gradient.layer(l).norm_squared()).sum();
    let kernel = error.dot(&(map.tangent_kernel() * &error));
    relative((square - kernel).abs(), square * headroom(problem, loss))
}

/// `N(0) = kappa0 I`: the largest entry of the tangent kernel at zero weights less kappa0 times the identity, at a
/// width d. Absolute; exactly 0 for a layout, whose path counts are integers. Learned shares are taken at zero logits.
///
/// # Panics
///
/// For a width of 0.
pub fn initial_kernel_deviation(net: &LinearNet, width: usize) -> f64 {
    assert!(width > 0, "a width of at least 1");
    // A zero matrix of positive width is a target.
    let target = Target::whitened(DMatrix::zeros(width, width)).unwrap_or_else(|error| unreachable!("{error}"));
    let zeros = Problem::new(net.clone(), target).zeros();
    let kernel = EndToEnd::new(net, &zeros).tangent_kernel();
    let kappa0 = net.coefficients(&zeros).pure_paths().kappa0();
    (kernel - DMatrix::identity(width * width, width * width) * kappa0).amax()
}

/// How much larger the error could be: the factor, at least 1, from the error at a loss to one of the target's scale.
fn headroom(problem: &Problem, loss: f64) -> f64 {
    if loss > 0.0 { (problem.target().scale() / loss).sqrt().max(1.0) } else { 1.0 }
}

/// The larger of the relative deviations of a second loss and a second gradient from those of an instance.
fn deviation(problem: &Problem, (loss, gradient): (f64, &Weights), (other_loss, other): (f64, &Weights)) -> f64 {
    let losses = relative((loss - other_loss).abs(), loss.max(problem.target().scale()));
    largest([losses, distance(gradient.values(), other.values()) / headroom(problem, loss)])
}

/// A deviation relative to a size; 0 where both are 0, infinite where something is not a number.
fn relative(deviation: f64, size: f64) -> f64 {
    match deviation / size {
        ratio if ratio.is_finite() => ratio,
        _ if deviation == 0.0 && size == 0.0 => 0.0,
        _ => f64::INFINITY,
    }
}

/// The norm of the difference of two vectors relative to the larger of their norms.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(x, y)| x - y));
    relative(difference, norm(&mut a.iter().copied()).max(norm(&mut b.iter().copied())))
}
