//! What the temperature means to an optimiser: a logit speed, exactly.
//!
//! With `phi = theta / tau` the shares are `softmax(phi)`, and `dL/dphi = tau dL/dtheta`. A step of gradient descent of
//! rate r on theta is therefore one of rate `r / tau²` on phi. A step of Adam does not depend on the size of the
//! gradient, up to its epsilon, and becomes one of rate `r / tau`.

use crate::flow::{Descent, DescentSettings, FlowSettings, GradientFlow, Optimizer, Tolerance};
use crate::network::{Connections, LinearNet, Problem, Softmax, Weights};

/// Trains at temperature tau, and at temperature 1 with the logit rate that should come to the same (over tau² for
/// gradient descent, over tau for Adam). The largest difference after `steps` steps, logits compared as theta / tau,
/// relative to the largest number; `None` for a problem without logits.
///
/// It is exactly 0 when tau is a power of two, with Adam if epsilon is too small to matter: scaling by a power of two
/// does not round. Epsilon must not be 0, for a logit without a rival has slope 0.
pub fn rescaling_deviation(problem: &Problem, start: &Weights, optimizer: Optimizer, steps: usize) -> Option<f64> {
    let (unit, softmax) = at_unit_temperature(problem)?;
    let tau = softmax.tau;
    let rescaled = match optimizer {
        Optimizer::GradientDescent { rate, logit_rate } => {
            Optimizer::GradientDescent { rate, logit_rate: logit_rate / (tau * tau) }
        }
        Optimizer::Adam { rate, logit_rate, betas, epsilon } => {
            Optimizer::Adam { rate, logit_rate: logit_rate / tau, betas, epsilon }
        }
    };
    let train = |problem: &Problem, start: &Weights, optimizer| {
        let settings = DescentSettings::new(optimizer, 0.0, steps);
        Descent::new(problem).run(start, &settings, |_, _, _| ()).weights
    };
    Some(difference(&over(&train(problem, start, optimizer), tau), &train(&unit, &over(start, tau), rescaled)))
}

/// The same for gradient flow: logit speed s at temperature tau against `s / tau²` at temperature 1, at a time, both
/// with [`Tolerance::FINE`]. The solver sees logits of another size and chooses other steps, so that this is not exact.
pub fn flow_rescaling_deviation(problem: &Problem, start: &Weights, logit_speed: f64, time: f64) -> Option<f64> {
    let (unit, softmax) = at_unit_temperature(problem)?;
    let tau = softmax.tau;
    let follow = |problem: &Problem, start: &Weights, logit_speed| {
        let settings = FlowSettings {
            until_time: time,
            tolerance: Tolerance::FINE,
            logit_speed,
            stop_at_noise: false,
            ..FlowSettings::default()
        };
        GradientFlow::new(problem, settings).run(start, |_, _| ()).weights
    };
    let rescaled = logit_speed / (tau * tau);
    Some(difference(&over(&follow(problem, start, logit_speed), tau), &follow(&unit, &over(start, tau), rescaled)))
}

fn at_unit_temperature(problem: &Problem) -> Option<(Problem, Softmax)> {
    let Connections::Learned(softmax) = *problem.net().connections() else { return None };
    let net = LinearNet::new(problem.depth(), Connections::Learned(Softmax { tau: 1.0, ..softmax })).ok()?;
    Some((Problem::new(net, problem.target().clone()), softmax))
}

/// The weights with logits theta turned into theta / tau.
fn over(weights: &Weights, tau: f64) -> Weights {
    let mut weights = weights.clone();
    weights.logits_mut().iter_mut().for_each(|logit| *logit /= tau);
    weights
}

fn difference(a: &Weights, b: &Weights) -> f64 {
    let pairs = a.values().iter().zip(b.values());
    let largest = a.values().iter().chain(b.values()).fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    // Not a number is the largest difference there is.
    pairs.map(|(x, y)| (x - y).abs()).fold(0.0, |m: f64, x| if x.is_nan() { f64::INFINITY } else { m.max(x) }) / largest
}

#[cfg(test)]
mod tests {
    use connection_layout::Direction;

    use super::*;
    use crate::network::{Scope, Target};
    use crate::{Draw, TargetLaw};

    fn instance(tau: f64) -> (Problem, Weights) {
        let softmax = Softmax { direction: Direction::Incoming, tau, scope: Scope::WithOutput };
        let mut draw = Draw::new(5, 0);
        let net = LinearNet::new(4, Connections::Learned(softmax)).unwrap();
        let problem = Problem::new(net, Target::whitened(draw.target(TargetLaw::Gaussian, 3)).unwrap());
        let weights = draw.weights(&problem, 0.3);
        (problem, weights)
    }

    #[test]
    fn powers_of_two_are_exact() {
        let (problem, start) = instance(1.0 / 128.0);
        let descent = Optimizer::GradientDescent { rate: 0.1, logit_rate: 1e-4 };
        assert_eq!(rescaling_deviation(&problem, &start, descent, 50), Some(0.0));
        let adam = Optimizer::Adam { rate: 0.01, logit_rate: 1e-3, betas: (0.9, 0.999), epsilon: f64::MIN_POSITIVE };
        assert_eq!(rescaling_deviation(&problem, &start, adam, 50), Some(0.0));
        let coarse = Optimizer::Adam { rate: 0.01, logit_rate: 1e-3, betas: (0.9, 0.999), epsilon: 1e-3 };
        assert!(rescaling_deviation(&problem, &start, coarse, 50).unwrap() > 1e-4);
    }

    #[test]
    fn other_temperatures_and_the_flow_agree_to_rounding() {
        let (problem, start) = instance(0.3);
        let descent = Optimizer::GradientDescent { rate: 0.1, logit_rate: 0.1 };
        assert!(rescaling_deviation(&problem, &start, descent, 50).unwrap() < 1e-12);
        assert!(flow_rescaling_deviation(&problem, &start, 1.0, 2.0).unwrap() < 1e-8);
    }

    #[test]
    fn fixed_coefficients_have_no_temperature() {
        let layout = connection_layout::Layout::parse("0:2", 3).unwrap();
        let problem = Problem::whitened(&layout, nalgebra::DMatrix::identity(2, 2)).unwrap();
        assert_eq!(rescaling_deviation(&problem, &problem.zeros(), Optimizer::adam(0.1), 1), None);
        assert_eq!(flow_rescaling_deviation(&problem, &problem.zeros(), 1.0, 1.0), None);
    }
}
