//! Symmetries of the loss: reading a network backwards, and rotating inputs and outputs together.

use connection_layout::{Coefficients, Direction};
use nalgebra::DMatrix;

use super::deviation;
use crate::network::{Connections, Gradient, LinearNet, Problem, Scope, Softmax, Target, Weights};

/// The instance read backwards: shortcut `j:i` becomes `(K-i):(K-j)`, `W_l` becomes `W_{K+1-l}ᵀ`, and `Y` becomes `Yᵀ`.
/// Its map is the transposed one. A softmax over sources becomes one over targets, with the logits of the shortcuts.
///
/// `None` where that is no instance: on data that is not whitened, and for a hidden-only softmax, whose reverse would
/// have no shortcut out of the input.
pub fn reversed(problem: &Problem, weights: &Weights) -> Option<(Problem, Weights)> {
    let depth = problem.depth();
    if problem.target().gram().is_some() {
        return None;
    }
    let backwards = |of: &Coefficients| {
        Coefficients::from_fn(depth, |source, target| of.get(depth - target, depth - source).unwrap_or(0.0)).ok()
    };
    let (connections, logits) = match problem.net().connections() {
        Connections::Fixed(coefficients) => (Connections::Fixed(backwards(coefficients)?), None),
        Connections::Learned(Softmax { scope: Scope::HiddenOnly, .. }) => return None,
        Connections::Learned(softmax) => {
            let direction = match softmax.direction {
                Direction::Incoming => Direction::Outgoing,
                Direction::Outgoing => Direction::Incoming,
            };
            // With the output included there is one logit a shortcut, in the order of coefficients.
            let mut logits = weights.logits().iter().copied();
            let logits = Coefficients::from_fn(depth, |_, _| logits.next().unwrap_or(0.0)).ok()?;
            (Connections::Learned(Softmax { direction, ..*softmax }), Some(backwards(&logits)?))
        }
    };
    let target = Target::whitened(problem.target().map().transpose()).ok()?;
    let problem = Problem::new(LinearNet::new(depth, connections).ok()?, target);
    let layers: Vec<DMatrix<f64>> = (1..=depth).rev().map(|layer| weights.layer(layer).transpose()).collect();
    let mut weights = problem.weights(&layers).ok()?;
    let logits = logits.iter().flat_map(Coefficients::iter).map(|(_, logit)| logit);
    weights.logits_mut().iter_mut().zip(logits).for_each(|(to, from)| *to = from);
    Some((problem, weights))
}

/// The larger of the relative differences in loss and in gradient (in norm, brought back) between an instance and the
/// one read backwards; `None` as [`reversed`].
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn reversal_deviation(problem: &Problem, weights: &Weights) -> Option<f64> {
    let (mirror, point) = reversed(problem, weights)?;
    let (loss, gradient) = Gradient::at(problem, weights);
    let (mirror_loss, mirror_gradient) = Gradient::at(&mirror, &point);
    // Reading backwards twice is the identity, on gradients as on weights.
    let (_, back) = reversed(&mirror, &mirror_gradient)?;
    Some(deviation(problem, (loss, &gradient), (mirror_loss, &back)))
}

/// The instance in another basis, the same for inputs and outputs: `W_l` becomes `Q W_l Qᵀ`, the data become `Q X` and
/// `Q Y`, so that `A*` becomes `Q A* Qᵀ`. Logits stay.
///
/// `None` where Q has another shape or the data cannot be rotated; Q has to be orthogonal.
pub fn rotated(problem: &Problem, weights: &Weights, q: &DMatrix<f64>) -> Option<(Problem, Weights)> {
    let d = problem.width();
    if q.shape() != (d, d) {
        return None;
    }
    let turn = |matrix: &DMatrix<f64>| q * matrix * q.transpose();
    let target = problem.target();
    let rotated = match target.gram() {
        None => Target::whitened(turn(target.map())).ok()?,
        Some(gram) => {
            // Any X with the same X Xᵀ has the same loss; the symmetric root is one. Directions that the data do not
            // span come out as small numbers of either sign, and are cut off.
            let mut eigen = turn(gram).symmetric_eigen();
            let cut = 1e-12 * eigen.eigenvalues.amax();
            eigen.eigenvalues.iter_mut().for_each(|value| *value = if *value > cut { value.sqrt() } else { 0.0 });
            let inputs = eigen.recompose();
            Target::from_data(&inputs, &(turn(target.map()) * &inputs)).ok()?
        }
    };
    let problem = Problem::new(problem.net().clone(), rotated);
    let mut point = weights.clone();
    (1..=problem.depth()).for_each(|layer| point.set_layer(layer, &turn(&weights.layer(layer).into_owned())));
    Some((problem, point))
}

/// The larger of the relative differences in loss and in gradient (in norm, brought back) between an instance and the
/// one rotated by Q; `None` as [`rotated`].
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn rotation_deviation(problem: &Problem, weights: &Weights, q: &DMatrix<f64>) -> Option<f64> {
    let (turned, point) = rotated(problem, weights, q)?;
    let (loss, gradient) = Gradient::at(problem, weights);
    let (turned_loss, turned_gradient) = Gradient::at(&turned, &point);
    let (_, back) = rotated(&turned, &turned_gradient, &q.transpose())?;
    Some(deviation(problem, (loss, &gradient), (turned_loss, &back)))
}
