//! How fast one layout trains on one instance, and medians over instances.

use connection_layout::Layout;
use nalgebra::DMatrix;

use super::settings::{RankingError, RankingSettings};
use crate::flow::{Descent, DescentSettings, FlowSettings, GradientFlow, Optimizer};
use crate::network::Problem;

/// How fast a layout reached the loss on one instance; infinity where it did not.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// The time of gradient flow.
    pub flow: f64,
    /// The steps of gradient descent, one number a rate.
    pub steps: Vec<f64>,
}

impl Speed {
    /// Trains a layout on an instance.
    ///
    /// # Errors
    ///
    /// [`RankingError::Target`] for a target that is none.
    ///
    /// # Panics
    ///
    /// When the weights are not one matrix of the target's shape for each layer of the layout.
    pub fn measure(
        settings: &RankingSettings,
        layout: &Layout,
        target: &DMatrix<f64>,
        weights: &[DMatrix<f64>],
    ) -> Result<Self, RankingError> {
        let problem = Problem::whitened(layout, target.clone())?;
        let start = problem.weights(weights).unwrap_or_else(|error| panic!("{error}"));
        let until_loss = settings.relative_loss * problem.target().scale();
        let flow = FlowSettings { until_loss, until_time: settings.flow_time, ..FlowSettings::default() };
        let flow = GradientFlow::new(&problem, flow).run(&start, |_, _| ()).reached().unwrap_or(f64::INFINITY);
        let mut descent = Descent::new(&problem);
        let steps = settings.rates.iter().map(|&rate| {
            let optimizer = Optimizer::gradient_descent(rate);
            let outcome =
                descent.run(&start, &DescentSettings::new(optimizer, until_loss, settings.most_steps), |_, _, _| ());
            outcome.reached().map_or(f64::INFINITY, |steps| steps as f64)
        });
        Ok(Self { flow, steps: steps.collect() })
    }
}

/// The median of some numbers, and the range they lie in. Infinity stands for a run that did not get there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median; with an even number of values the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of some numbers; `None` when there are none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: statistics::median(&sorted), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_count_what_was_not_reached() {
        let median = |numbers: &[f64]| Spread::of(numbers.iter().copied()).map(|s| s.median);
        let never = f64::INFINITY;
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[never, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(median(&[never, never, 2.0, 4.0]), Some(never));
        assert_eq!(median(&[never, never]), Some(never));
        assert_eq!(Spread::of([2.0, never, 1.0]), Some(Spread { median: 2.0, min: 1.0, max: never }));
    }

    #[test]
    fn a_linear_problem_has_its_closed_form() {
        // From zero weights 0:2 at depth 3 only moves W_3: L = L(0) exp(-2 t), and a step of rate r multiplies the
        // error by 1 - r.
        let settings = RankingSettings { rates: vec![1.0, 0.5, 2.5], ..RankingSettings::new(3, 2, 0) };
        let layout = Layout::parse("0:2", 3).unwrap();
        let target = DMatrix::from_row_slice(2, 2, &[1.0, 0.5, -0.5, 1.0]);
        let speed = Speed::measure(&settings, &layout, &target, &vec![DMatrix::zeros(2, 2); 3]).unwrap();
        assert!((speed.flow - 1e6_f64.ln() / 2.0).abs() < 1e-4, "{speed:?}");
        assert_eq!(speed.steps, [1.0, 10.0, f64::INFINITY]);
    }
}
