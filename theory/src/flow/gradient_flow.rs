//! Gradient flow on the weights and logits of a problem.

use super::dormand_prince::{DormandPrince, Tolerance};
use super::trajectory::{Point, Trajectory};
use super::{Ending, NOISE_FLOOR};
use crate::network::{Gradient, Problem, Weights};

/// How far and how exactly a flow is followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSettings {
    /// Ends when the excess loss is at most this; 0 for never.
    pub until_loss: f64,
    /// Ends at this time.
    pub until_time: f64,
    /// Ends after this many steps of the solver.
    pub most_steps: usize,
    /// Accuracy.
    pub tolerance: Tolerance,
    /// `d theta/dt = -speed * dL/d theta`: how fast logits move relative to weights.
    pub logit_speed: f64,
    /// Whether to end at the noise floor. Without it the flow goes on to the time asked for.
    pub stop_at_noise: bool,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self {
            until_loss: 0.0,
            until_time: 200.0,
            most_steps: 200_000,
            tolerance: Tolerance::RANKING,
            logit_speed: 1.0,
            stop_at_noise: true,
        }
    }
}

/// How a flow ended.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// Why it ended.
    pub ending: Ending,
    /// The time at which it ended: with [`Ending::Reached`], when the loss was first at most the one asked for.
    pub time: f64,
    /// The excess loss at the last step.
    pub loss: f64,
    /// The weights at the last step.
    pub weights: Weights,
    /// Steps of the solver.
    pub steps: usize,
    /// Evaluations of the gradient.
    pub evaluations: usize,
}

impl FlowOutcome {
    /// The time to the loss that was asked for, if it was reached.
    pub fn reached(&self) -> Option<f64> {
        (self.ending == Ending::Reached).then_some(self.time)
    }
}

/// The flow of one problem.
///
/// ```
/// use connection_layout::Layout;
/// use nalgebra::DMatrix;
/// use theory::flow::{FlowSettings, GradientFlow};
/// use theory::network::Problem;
///
/// // From zero weights, 0:2 has L(t) = L(0) exp(-2 t).
/// let problem = Problem::whitened(&Layout::parse("0:2", 3)?, DMatrix::from_element(2, 2, 0.5))?;
/// let settings = FlowSettings { until_loss: 1e-6 * problem.target().scale(), ..FlowSettings::default() };
/// let outcome = GradientFlow::new(&problem, settings).run(&problem.zeros(), |_, _| ());
/// let time = outcome.reached().unwrap();
/// assert!((time - 1e6_f64.ln() / 2.0).abs() < 1e-4, "{time}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GradientFlow {
    gradient: Gradient,
    settings: FlowSettings,
}

impl GradientFlow {
    /// Prepares the flow of a problem.
    pub fn new(problem: &Problem, settings: FlowSettings) -> Self {
        Self { gradient: Gradient::new(problem), settings }
    }

    /// Follows the flow, and shows the start and the end of every step to `observe` together with the weights there.
    ///
    /// # Panics
    ///
    /// When the weights are those of another problem.
    pub fn run(&mut self, start: &Weights, mut observe: impl FnMut(Point, &[f64])) -> FlowOutcome {
        let Self { gradient, settings } = self;
        let problem = gradient.problem().clone();
        let weights = problem.depth() * problem.width() * problem.width();
        let mut loss = 0.0;
        let mut field = |state: &[f64], out: &mut [f64]| {
            loss = gradient.evaluate(state, out);
            out[..weights].iter_mut().for_each(|x| *x = -*x);
            out[weights..].iter_mut().for_each(|x| *x *= -settings.logit_speed);
            loss
        };
        let mut first = 0.0;
        let mut solver = DormandPrince::new(settings.tolerance, start.values(), |y, out| first = field(y, out));
        let mut point =
            Point { time: 0.0, loss: first, slope: loss_slope(solver.slope(), weights, settings.logit_speed) };
        observe(point, solver.state());
        let floor = if settings.stop_at_noise { NOISE_FLOOR * first } else { 0.0 };
        let (ending, time) = loop {
            if let Some(ending) = ended(point, floor, solver.steps(), settings) {
                break (ending, point.time);
            }
            let mut reached = 0.0;
            let advanced = solver.advance(settings.until_time, |y, out| reached = field(y, out));
            if advanced.is_err() {
                break (Ending::Diverged, point.time);
            }
            let slope = loss_slope(solver.slope(), weights, settings.logit_speed);
            let next = Point { time: solver.time(), loss: reached, slope };
            observe(next, solver.state());
            if next.loss <= settings.until_loss && point.loss > settings.until_loss {
                let time = if next.loss > 0.0 { point.crossing(next, settings.until_loss) } else { next.time };
                point = next;
                break (Ending::Reached, time);
            }
            point = next;
        };
        let values = solver.state().to_vec();
        FlowOutcome {
            ending,
            time,
            loss: point.loss,
            weights: Weights::from_values(problem.depth(), problem.width(), values),
            steps: solver.steps(),
            evaluations: solver.evaluations(),
        }
    }

    /// Follows the flow and keeps the loss of every step.
    pub fn trajectory(&mut self, start: &Weights) -> (FlowOutcome, Trajectory) {
        let mut trajectory = Trajectory::default();
        let outcome = self.run(start, |point, _| trajectory.push(point));
        (outcome, trajectory)
    }
}

fn ended(point: Point, floor: f64, steps: usize, settings: &FlowSettings) -> Option<Ending> {
    if !point.loss.is_finite() {
        Some(Ending::Diverged)
    } else if point.loss <= settings.until_loss {
        Some(Ending::Reached)
    } else if point.loss <= floor {
        Some(Ending::NoiseFloor)
    } else if point.time >= settings.until_time || steps >= settings.most_steps {
        Some(Ending::Limit)
    } else {
        None
    }
}

/// `dL/dt` from the velocities: minus the squared gradient of the weights, and of the logits times their speed.
fn loss_slope(velocity: &[f64], weights: usize, logit_speed: f64) -> f64 {
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let logits = if logit_speed == 0.0 { 0.0 } else { square(&velocity[weights..]) / logit_speed };
    -square(&velocity[..weights]) - logits
}
