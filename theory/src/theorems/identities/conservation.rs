//! What gradient flow conserves at a node.

use connection_layout::Layout;
use nalgebra::DMatrix;

use super::{largest, relative};
use crate::flow::{Ending, FlowSettings, GradientFlow, Tolerance};
use crate::network::{LinearNet, Problem, Weights};

/// The hidden nodes n at which gradient flow keeps the [`balance`] of every instance: those whose outgoing shortcuts
/// are among `n:n+1` and whose incoming ones are among `n-1:n`.
///
/// There `dL/dW_n = G_n A_{n-1}ᵀ` and `dL/dW_{n+1} = G_{n+1} A_nᵀ` with `G_n = (W_{n+1} + c I)ᵀ G_{n+1}` and `A_n =
/// (W_n + c' I) A_{n-1}`, so that `(W_{n+1} + c I)ᵀ dL/dW_{n+1} = dL/dW_n (W_n + c' I)ᵀ`. Any further shortcut at the
/// node breaks one of the two.
pub fn conserved_nodes(layout: &Layout) -> Vec<usize> {
    let conserved = |node: &usize| {
        layout.targets(*node).all(|target| target == node + 1) && layout.sources(*node).all(|source| source == node - 1)
    };
    (1..layout.depth()).filter(conserved).collect()
}

/// `(W_{n+1} + c I)ᵀ (W_{n+1} + c I) - (W_n + c' I) (W_n + c' I)ᵀ` with c the coefficient of `n:n+1` and c' that of
/// `n-1:n` (0 where there is none), d x d; `None` unless n is a hidden node, from 1 to K-1.
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn balance(net: &LinearNet, weights: &Weights, node: usize) -> Option<DMatrix<f64>> {
    let [before, after] = with_shortcuts(net, weights, node)?;
    Some(after.transpose() * &after - &before * before.transpose())
}

/// `W_n + c' I` and `W_{n+1} + c I`.
fn with_shortcuts(net: &LinearNet, weights: &Weights, node: usize) -> Option<[DMatrix<f64>; 2]> {
    if !(1..net.depth()).contains(&node) {
        return None;
    }
    let coefficients = net.coefficients(weights);
    let identity = DMatrix::identity(weights.width(), weights.width());
    Some([node, node + 1].map(|layer| {
        let coefficient = coefficients.get(layer - 1, layer).unwrap_or(0.0);
        weights.layer(layer) + &identity * coefficient
    }))
}

/// How far gradient flow moves the [`balance`] of a node until a time: the largest distance from its start (Frobenius),
/// relative to the sum of the two squares at the start. Followed with [`Tolerance::FINE`]; not a number when the flow did
/// not get to that time; `None` unless n is a hidden node, from 1 to K-1.
///
/// # Panics
///
/// When the weights are those of another problem.
pub fn balance_drift(problem: &Problem, start: &Weights, node: usize, time: f64) -> Option<f64> {
    let settings =
        FlowSettings { until_time: time, tolerance: Tolerance::FINE, stop_at_noise: false, ..FlowSettings::default() };
    drift_under(problem, start, node, settings)
}

fn drift_under(problem: &Problem, start: &Weights, node: usize, settings: FlowSettings) -> Option<f64> {
    let first = balance(problem.net(), start, node)?;
    let size = with_shortcuts(problem.net(), start, node)?.iter().map(|m| m.norm_squared()).sum();
    let (mut worst, mut point) = (0.0_f64, start.clone());
    let outcome = GradientFlow::new(problem, settings).run(start, |_, values| {
        point.values_mut().copy_from_slice(values);
        if let Some(now) = balance(problem.net(), &point, node) {
            worst = largest([worst, (now - &first).norm()]);
        }
    });
    // What a flow that stopped on the way keeps says nothing about the time that was asked for.
    let complete = outcome.ending == Ending::Limit && outcome.time >= settings.until_time;
    Some(if complete { relative(worst, size) } else { f64::NAN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draw, TargetLaw};

    #[test]
    fn a_flow_that_stops_on_the_way_has_no_drift() {
        let mut draw = Draw::new(2, 0);
        let problem = Problem::whitened(&Layout::parse("none", 3).unwrap(), draw.target(TargetLaw::Gaussian, 3));
        let problem = problem.unwrap();
        let start = draw.weights(&problem, 0.5);
        let settings = FlowSettings { until_time: 2.0, stop_at_noise: false, ..FlowSettings::default() };
        let drift = |settings| drift_under(&problem, &start, 1, settings).unwrap();
        assert!(drift(settings) < 1e-5);
        assert!(drift(FlowSettings { most_steps: 3, ..settings }).is_nan());
        assert_eq!(balance_drift(&problem, &start, 0, 2.0), None);
        assert_eq!(balance_drift(&problem, &start, 3, 2.0), None);
    }
}
