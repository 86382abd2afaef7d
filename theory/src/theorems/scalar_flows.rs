//! The flow of a hidden-only layout from zero weights is that of d independent networks of width 1.
//!
//! With `Y = U diag(sigma) Vᵀ` the ansatz `W_l = V D_l Vᵀ` for l < K and `W_K = U D_K Vᵀ` with diagonal `D_l` is kept
//! by the flow: every hidden state is `V (diagonal) Vᵀ`, whatever the shortcuts are. Entry i of the diagonals is the
//! network of width 1 with the same layout and the target `sigma_i`. A shortcut into the output would add a state in
//! the basis V to one in the basis U, and breaks it.

use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::hypothesis::HypothesisError;
use super::measure::{arrived, largest, smallest};
use super::zero_init::hidden_only;
use crate::flow::{FlowSettings, GradientFlow, Tolerance};
use crate::network::{Gradient, Problem, Svd, Weights};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// The d problems of width 1 that the flow of a hidden-only layout splits into on the diagonal ansatz.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarFlows {
    problem: Problem,
    left: DMatrix<f64>,
    right: DMatrix<f64>,
    modes: Vec<Problem>,
}

impl ScalarFlows {
    /// Splits a problem along the singular vectors of its target.
    ///
    /// # Errors
    ///
    /// [`HypothesisError`] for coefficients that are not those of a layout, inputs that are not whitened, and a
    /// shortcut into the output.
    pub fn new(problem: &Problem) -> Result<Self, HypothesisError> {
        let layout = hidden_only(problem)?;
        let svd = Svd::new(problem.target().map());
        let mode = |&sigma: &f64| {
            Problem::whitened(&layout, DMatrix::from_element(1, 1, sigma))
                .unwrap_or_else(|error| unreachable!("{error}"))
        };
        let modes = svd.values.iter().map(mode).collect();
        Ok(Self { problem: problem.clone(), left: svd.left, right: svd.right, modes })
    }

    /// The problems of width 1, one a singular value.
    pub fn modes(&self) -> &[Problem] {
        &self.modes
    }

    /// The weights of the network for the weights of the modes: `V D_l Vᵀ`, and `U D_K Vᵀ` for the last layer.
    ///
    /// # Panics
    ///
    /// When there are not d modes of depth K and width 1.
    pub fn embed(&self, modes: &[Weights]) -> Weights {
        assert_eq!(modes.len(), self.modes.len(), "number of modes");
        let mut weights = self.problem.zeros();
        let depth = self.problem.depth();
        for layer in 1..=depth {
            let diagonal = DVector::from_iterator(modes.len(), modes.iter().map(|mode| mode.layer(layer)[0]));
            let left = if layer == depth { &self.left } else { &self.right };
            weights.set_layer(layer, &(left * DMatrix::from_diagonal(&diagonal) * self.right.transpose()));
        }
        weights
    }

    /// How far the gradient leaves the ansatz at these weights of the modes: the largest entry of the difference
    /// between the gradient of the network and the embedded gradients of the modes.
    ///
    /// # Panics
    ///
    /// As [`embed`](Self::embed).
    pub fn defect(&self, modes: &[Weights]) -> f64 {
        let (_, gradient) = Gradient::at(&self.problem, &self.embed(modes));
        let slopes: Vec<Weights> =
            self.modes.iter().zip(modes).map(|(problem, mode)| Gradient::at(problem, mode).1).collect();
        let expected = self.embed(&slopes);
        largest(gradient.values().iter().zip(expected.values()).map(|(g, e)| (g - e).abs()))
    }

    /// Follows the network and its modes from zero weights, each on its own, to every one of these times.
    pub fn compare(&self, times: &[f64]) -> ScalarComparison {
        let loss_at = |problem: &Problem, time: f64| {
            let outcome = GradientFlow::new(problem, settings_to(time)).run(&problem.zeros(), |_, _| ());
            if arrived(&outcome, time) { outcome.loss } else { f64::NAN }
        };
        let scale = self.problem.target().scale();
        let difference = |&time: &f64| {
            let modes = self.modes.iter().map(|mode| loss_at(mode, time));
            (loss_at(&self.problem, time) - modes.sum::<f64>()).abs() / scale
        };
        let difference = largest(times.iter().map(difference));
        let mut slowest = f64::INFINITY;
        let until = largest(times.iter().copied());
        for mode in &self.modes {
            let mut gradient = Gradient::new(mode);
            let mut slope = vec![0.0; mode.len()];
            GradientFlow::new(mode, settings_to(until)).run(&mode.zeros(), |_, weights| {
                gradient.evaluate(weights, &mut slope);
                slowest = smallest(slope.iter().map(|s| -s).chain([slowest]));
            });
        }
        ScalarComparison { difference, slowest }
    }
}

fn settings_to(until_time: f64) -> FlowSettings {
    let tolerance = Tolerance { relative: 1e-12, absolute: 1e-14 };
    FlowSettings { until_time, tolerance, stop_at_noise: false, ..FlowSettings::default() }
}

/// How the modes of a flow compare to the whole; not a number where a flow did not get to its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalarComparison {
    /// The largest difference between the loss and the sum of the losses of the modes, relative to the first loss.
    pub difference: f64,
    /// The smallest velocity of any weight of a mode: not negative where weights only grow.
    pub slowest: f64,
}

/// Checks the statement on fresh instances; part of [`zero_init::verify`](super::zero_init::verify).
pub(super) fn finding(seed: u64) -> Finding {
    let results: Vec<(ScalarComparison, f64)> = (0..40_u64)
        .into_par_iter()
        .filter_map(|i| {
            let mut draw = Draw::new(seed, 20_000 + i);
            let layout = draw.layout(3 + i as usize % 3, true);
            let d = 1 + draw.below(5);
            let target = draw.target(TargetLaw::Gaussian, d);
            let flows = ScalarFlows::new(&Problem::whitened(&layout, target).ok()?).ok()?;
            let modes: Vec<Weights> = flows.modes().iter().map(|mode| draw.weights(mode, 0.5)).collect();
            let size = 1.0 + largest(flows.embed(&modes).values().iter().map(|w| w.abs()));
            Some((flows.compare(&[0.1, 0.4, 1.5]), flows.defect(&modes) / size))
        })
        .collect();
    let difference = largest(results.iter().map(|r| r.0.difference));
    let defect = largest(results.iter().map(|r| r.1));
    let slowest = smallest(results.iter().map(|r| r.0.slowest));
    let holds = results.len() == 40 && difference < 1e-9 && defect < 1e-11 && slowest >= -1e-12;
    Finding {
        section: 3,
        source: Source::Proved,
        statement: "hidden-only, W = 0: d scalar flows, weights only grow".into(),
        measured: format!("L {difference:.0e}, gradient {defect:.0e}, dw {:.0e}", slowest + 0.0),
        bound: "1e-9, 1e-11, >= -1e-12".into(),
        verdict: Verdict::holds_if(holds),
    }
}

#[cfg(test)]
mod tests {
    use connection_layout::Layout;

    use super::*;

    fn instance(layout: &str) -> Problem {
        let target = Draw::new(2, 0).target(TargetLaw::Gaussian, 3);
        Problem::whitened(&Layout::parse(layout, 3).unwrap(), target).unwrap()
    }

    #[test]
    fn a_shortcut_into_the_output_is_refused() {
        let message = ScalarFlows::new(&instance("0:2+0:3")).unwrap_err().to_string();
        assert!(message.contains("0:2+0:3: the statement is about layouts without"), "{message}");
    }

    #[test]
    fn off_the_ansatz_the_gradient_has_a_defect() {
        // The ansatz needs the last layer's left factor U: with V instead, the embedding is no ansatz.
        let problem = instance("0:2");
        let mut flows = ScalarFlows::new(&problem).unwrap();
        let modes: Vec<Weights> = (0..3).map(|i| Draw::new(2, 1 + i).weights(&flows.modes()[0], 0.5)).collect();
        assert!(flows.defect(&modes) < 1e-12);
        flows.left = flows.right.clone();
        assert!(flows.defect(&modes) > 1e-3);
    }
}
