//! Exponential bounds `L(t) <= L(0) exp(-rate t)`, and how a flow keeps them.

use super::measure::{arrived, largest, smallest};
use crate::flow::{FlowOutcome, FlowSettings, GradientFlow, Point, Tolerance, Trajectory};
use crate::network::{Gradient, Problem, Weights};

/// The bound `L(0) exp(-rate t)` on the excess loss at time t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialBound {
    /// The excess loss at time 0.
    pub first: f64,
    /// The rate; that of the loss, twice the rate of the error.
    pub rate: f64,
}

impl ExponentialBound {
    /// The bound at a time.
    pub fn at(self, time: f64) -> f64 {
        self.first * (-self.rate * time).exp()
    }

    /// `ln (L / bound)` at a point: at most 0 where the bound holds.
    pub fn log_ratio(self, point: Point) -> f64 {
        (point.loss / self.first).ln() + self.rate * point.time
    }
}

/// The decay of the excess loss along one gradient flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Decay {
    trajectory: Trajectory,
    outcome: FlowOutcome,
}

impl Decay {
    /// What `||E||` may exceed its bound by, relative to `||E(0)||`, through the error of the solver.
    ///
    /// Relative to the bound itself, that error grows as the loss falls: where the bound is an equality,
    /// `ln (L / bound)` is some 5e-5 at the end.
    pub const ERROR_TOLERANCE: f64 = 1e-9;

    /// What a local rate may fall short of its bound by, relatively, through rounding.
    pub const RATE_TOLERANCE: f64 = 1e-9;

    /// The time at which a flow ends.
    pub const UNTIL_TIME: f64 = 100.0;

    /// Follows the flow of a problem to 1e-12 of its first loss or to time 100, whichever comes first, and shows the
    /// weights of every step to `observe`.
    ///
    /// Steps have the accuracy of [`Tolerance::FINE`], relative to the first error where that is below 1.
    pub fn follow(problem: &Problem, start: &Weights, observe: impl FnMut(Point, &[f64])) -> Self {
        let first = Gradient::new(problem).loss(start.values());
        let mut tolerance = Tolerance::FINE;
        let error = (2.0 * first).sqrt();
        tolerance.relative *= error.clamp(1e-2, 1.0);
        tolerance.absolute *= error.clamp(1e-9, 1.0);
        let settings = FlowSettings {
            until_loss: 1e-12 * first,
            until_time: Self::UNTIL_TIME,
            tolerance,
            ..FlowSettings::default()
        };
        Self::with(problem, start, settings, observe)
    }

    fn with(
        problem: &Problem,
        start: &Weights,
        settings: FlowSettings,
        mut observe: impl FnMut(Point, &[f64]),
    ) -> Self {
        let mut trajectory = Trajectory::default();
        let outcome = GradientFlow::new(problem, settings).run(start, |point, weights| {
            trajectory.push(point);
            observe(point, weights);
        });
        Self { trajectory, outcome }
    }

    /// The steps of the solver.
    pub fn points(&self) -> &[Point] {
        self.trajectory.points()
    }

    /// How the flow ended.
    pub fn outcome(&self) -> &FlowOutcome {
        &self.outcome
    }

    /// Whether the flow got to its loss or to its time. What is measured along one that did not is not a number.
    pub fn arrived(&self) -> bool {
        arrived(&self.outcome, Self::UNTIL_TIME)
    }

    /// The loss at the end; not a number for a flow that did not get there.
    pub fn last_loss(&self) -> f64 {
        if self.arrived() { self.outcome.loss } else { f64::NAN }
    }

    /// The first loss; not a number for a flow that did not get to its end.
    fn first_loss(&self) -> f64 {
        self.points().first().filter(|_| self.arrived()).map_or(f64::NAN, |point| point.loss)
    }

    /// The time at which the loss is first at most `level`; `None` if the flow ended before.
    pub fn time_to(&self, level: f64) -> Option<f64> {
        self.trajectory.time_to(level)
    }

    /// The smallest local rate `-L'/L` along the flow; infinite for a flow that starts at loss 0.
    ///
    /// The slope is exact at every step, so this does not inherit the error of the solver.
    pub fn lowest_rate(&self) -> f64 {
        if !self.arrived() {
            return f64::NAN;
        }
        smallest(self.points().iter().filter(|p| p.loss > 0.0).map(|p| -p.slope / p.loss))
    }

    /// The largest `ln (L(t) / bound(t))` along the flow: at most 0 where the bound holds.
    pub fn worst_log_ratio(&self, rate: f64) -> f64 {
        let first = self.first_loss();
        if first == 0.0 {
            return 0.0;
        }
        let bound = ExponentialBound { first, rate };
        largest(self.points().iter().map(|&point| bound.log_ratio(point)))
    }

    /// The largest excess of `||E(t)||` over `||E(0)|| exp(-rate t / 2)`, relative to `||E(0)||`.
    pub fn worst_excess(&self, rate: f64) -> f64 {
        let first = self.first_loss();
        if first == 0.0 {
            return 0.0;
        }
        largest(self.points().iter().map(|p| (p.loss / first).sqrt() - (-0.5 * rate * p.time).exp()))
    }

    /// Whether the flow got to its end, with `L(t) <= L(0) exp(-rate t)` and `L' <= -rate L` at every step.
    pub fn keeps(&self, rate: f64) -> bool {
        self.lowest_rate() >= rate * (1.0 - Self::RATE_TOLERANCE) && self.worst_excess(rate) <= Self::ERROR_TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use connection_layout::Layout;
    use nalgebra::DMatrix;

    use super::*;

    #[test]
    fn an_exact_exponential_keeps_its_rate_and_no_other() {
        let problem = Problem::whitened(&Layout::parse("0:2", 3).unwrap(), DMatrix::identity(2, 2) * 3.0).unwrap();
        let decay = Decay::follow(&problem, &problem.zeros(), |_, _| ());
        assert!((decay.lowest_rate() - 2.0).abs() < 1e-12, "{}", decay.lowest_rate());
        assert!(decay.keeps(2.0) && !decay.keeps(2.0 + 1e-6), "{}", decay.worst_excess(2.0));
        assert_eq!(decay.outcome().ending, crate::flow::Ending::Reached);
        assert!((decay.worst_log_ratio(2.1) - 0.1 * decay.points().last().unwrap().time).abs() < 1e-3);
    }

    #[test]
    fn a_flow_that_starts_at_its_end_keeps_every_rate() {
        let problem = Problem::whitened(&Layout::parse("0:2", 3).unwrap(), DMatrix::zeros(2, 2)).unwrap();
        assert!(Decay::follow(&problem, &problem.zeros(), |_, _| ()).keeps(1e3));
    }

    #[test]
    fn a_flow_that_ran_out_of_steps_keeps_no_rate() {
        let problem = Problem::whitened(&Layout::parse("0:2", 3).unwrap(), DMatrix::identity(2, 2)).unwrap();
        let settings = FlowSettings { most_steps: 3, until_time: Decay::UNTIL_TIME, ..FlowSettings::default() };
        let decay = Decay::with(&problem, &problem.zeros(), settings, |_, _| ());
        assert!(!decay.arrived() && !decay.keeps(0.0));
        assert!([decay.lowest_rate(), decay.worst_log_ratio(2.0), decay.last_loss()].iter().all(|x| x.is_nan()));
    }
}
