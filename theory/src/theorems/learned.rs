//! ANCRe, the learned softmax over shortcuts, on linear networks (section 5): how fast it is and which layout it finds.
//!
//! What comes out hangs on whether shortcuts may end in the output node ([`Scope`]). Hidden-only, the softmax settles
//! on the hidden cascade within the first units of time and the loss then falls at a linear rate, ahead of every single
//! shortcut. With the output included and a cold softmax it mostly settles on the full cascade, which is slow; a
//! softmax whose logits move more slowly, by a high temperature or by a low rate of their own, stays mixed and is fast
//! again.

use std::collections::BTreeMap;
use std::fmt;

use connection_layout::{Coefficients, Direction, Layout};
use rayon::prelude::*;
use statistics::median;
use thiserror::Error;

use crate::flow::{Ending, FlowSettings, GradientFlow, Trajectory};
use crate::network::{Connections, LinearNet, Problem, ProblemError, Scope, Softmax, Target, Weights};
use crate::{Draw, TargetLaw};

mod found;
mod rescaling;
mod verify;

pub use found::{Found, SETTLED};
pub use rescaling::{flow_rescaling_deviation, rescaling_deviation};
pub use verify::verify;

/// The relative loss that times are measured to.
pub const THRESHOLD: f64 = 1e-10;
/// The relative loss from which the rate is measured, down to [`THRESHOLD`]: the second half of the way.
pub const RATE_FROM: f64 = 1e-5;
/// The width of the networks in the table of section 5.
pub const WIDTH: usize = 8;
const UNTIL_TIME: f64 = 500.0;

/// Why a variant cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum VariantError {
    /// Depth or temperature.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A width of 0.
    #[error("a width of 0 is not possible: a layer has at least one unit")]
    Width,
    /// A logit speed that is negative or not finite.
    #[error("a logit speed of {0} is not possible: give a finite number, 0 or larger")]
    LogitSpeed(f64),
}

/// One way to train ANCRe by gradient flow: depth, width, softmax, and how fast logits move relative to weights.
///
/// Instances have `Y ~ N(0, 1/d)` on whitened inputs, weights of standard deviation `.01 / sqrt(d)`, and zero logits.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    net: LinearNet,
    softmax: Softmax,
    width: usize,
    logit_speed: f64,
}

impl Variant {
    /// A variant of K = `depth` layers of width d.
    ///
    /// # Errors
    ///
    /// [`VariantError`] for an illegal depth, width, temperature or speed.
    pub fn new(depth: usize, width: usize, softmax: Softmax, logit_speed: f64) -> Result<Self, VariantError> {
        if width == 0 {
            return Err(VariantError::Width);
        }
        if !(logit_speed >= 0.0 && logit_speed.is_finite()) {
            return Err(VariantError::LogitSpeed(logit_speed));
        }
        let net = LinearNet::new(depth, Connections::Learned(softmax))?;
        Ok(Self { net, softmax, width, logit_speed })
    }

    /// The softmax.
    pub fn softmax(&self) -> Softmax {
        self.softmax
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        self.net.depth()
    }

    /// How fast logits move relative to weights.
    pub fn logit_speed(&self) -> f64 {
        self.logit_speed
    }

    /// Instance number `instance` of a seed, with its start. All variants of a depth and width share target and
    /// weights.
    pub fn instance(&self, seed: u64, instance: u64) -> (Problem, Weights) {
        start(self.net.clone(), self.width, seed, instance)
    }

    /// Follows the flow of an instance to the relative loss [`THRESHOLD`], or to `until_time`.
    pub fn run(&self, seed: u64, instance: u64, until_time: f64) -> Run {
        let (problem, start) = self.instance(seed, instance);
        let settings = settings(&problem, until_time, self.logit_speed);
        let (outcome, trajectory) = GradientFlow::new(&problem, settings).trajectory(&start);
        Run {
            time: outcome.time,
            ending: outcome.ending,
            rate: tail_rate(&trajectory, problem.target().scale()),
            steps: outcome.steps,
            found: Found::new(problem.net(), problem.net().coefficients(&outcome.weights)),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = if self.softmax.scope == Scope::HiddenOnly { "hidden-only" } else { "with output" };
        let direction = if self.softmax.direction == Direction::Incoming { "incoming" } else { "outgoing" };
        write!(f, "{scope}, {direction}, tau {}, K={}", self.softmax.tau, self.depth())?;
        if self.logit_speed == 1.0 { Ok(()) } else { write!(f, ", speed {}", self.logit_speed) }
    }
}

/// What became of one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// When the flow ended; the time to the threshold where that was reached.
    pub time: f64,
    /// Why it ended.
    pub ending: Ending,
    /// `-d ln L / dt`, from relative loss [`RATE_FROM`] to [`THRESHOLD`]; `None` where the threshold was not reached.
    pub rate: Option<f64>,
    /// Steps of the solver. A softmax that balances between two shortcuts at a low temperature is stiff and takes many.
    pub steps: usize,
    /// The coefficients at the end.
    pub found: Found,
}

impl Run {
    /// The time to the threshold, if it was reached.
    pub fn reached(&self) -> Option<f64> {
        (self.ending == Ending::Reached).then_some(self.time)
    }
}

/// All runs of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The variant.
    pub variant: Variant,
    /// One run an instance.
    pub runs: Vec<Run>,
}

impl Row {
    /// Runs instances `0..instances` of a seed, in parallel.
    pub fn new(variant: Variant, seed: u64, instances: u64, until_time: f64) -> Self {
        let runs = (0..instances).into_par_iter().map(|i| variant.run(seed, i, until_time)).collect();
        Self { variant, runs }
    }

    /// When the runs ended, ascending.
    pub fn times(&self) -> Vec<f64> {
        sorted(self.runs.iter().map(|run| run.time))
    }

    /// The rates of the runs that reached the threshold, ascending.
    pub fn rates(&self) -> Vec<f64> {
        sorted(self.runs.iter().filter_map(|run| run.rate))
    }

    /// How many runs stopped short of the threshold: their time is a lower bound.
    pub fn unfinished(&self) -> usize {
        self.runs.iter().filter(|run| run.reached().is_none()).count()
    }

    /// What was found, with the number of runs that found it.
    pub fn found(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.runs.iter().for_each(|run| *counts.entry(run.found.to_string()).or_default() += 1);
        counts
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.times();
        write!(f, "{}: time {} (median {:.2})", self.variant, range(&times), median(&times))?;
        match self.unfinished() {
            0 => {}
            n => write!(f, ", {n} unfinished")?,
        }
        write!(f, ", rate {}, found", range(&self.rates()))?;
        self.found().iter().try_for_each(|(layout, count)| write!(f, " {layout} x{count}"))
    }
}

/// The table of section 5, with further variants next to it: both directions, K = 4, and slow logits.
pub fn table(seed: u64, instances: u64) -> Vec<Row> {
    use Direction::{Incoming, Outgoing};
    use Scope::{HiddenOnly, WithOutput};
    let rows = [
        (3, HiddenOnly, Incoming, 0.01, 1.0),
        (4, HiddenOnly, Incoming, 0.01, 1.0),
        (3, WithOutput, Incoming, 0.01, 1.0),
        (3, WithOutput, Incoming, 1.0, 1.0),
        (3, WithOutput, Incoming, 0.01, 1e-2),
        (3, WithOutput, Incoming, 0.01, 1e-3),
        (3, WithOutput, Incoming, 0.01, 1e-4),
        (3, HiddenOnly, Incoming, 1.0, 1.0),
        (3, HiddenOnly, Outgoing, 0.01, 1.0),
        (4, HiddenOnly, Outgoing, 0.01, 1.0),
        (3, WithOutput, Outgoing, 0.01, 1.0),
        (3, WithOutput, Outgoing, 1.0, 1.0),
    ];
    rows.into_iter().map(|row| Row::new(variant(row), seed, instances, UNTIL_TIME)).collect()
}

/// Coefficients along the flow of instance 0 of a seed, from the start to the relative loss [`THRESHOLD`] or to time
/// 500: a few hundred points of the solver's own choosing, each with its time.
pub fn history(variant: &Variant, seed: u64, until_time: f64) -> Vec<(f64, Coefficients)> {
    const MOST: usize = 300;
    let (problem, start) = variant.instance(seed, 0);
    let mut flow = GradientFlow::new(&problem, settings(&problem, until_time, variant.logit_speed));
    let mut points = Vec::new();
    // Every `stride`-th step is kept; the stride doubles whenever too many are.
    let (mut step, mut stride) = (0, 1);
    let outcome = flow.run(&start, |point, values| {
        if step % stride == 0 {
            points.push((point.time, problem.net().coefficients(&with_values(&start, values))));
            if points.len() == 2 * MOST {
                let mut keep = false;
                points.retain(|_| {
                    keep = !keep;
                    keep
                });
                stride *= 2;
            }
        }
        step += 1;
    });
    if (step - 1) % stride != 0 {
        points.push((outcome.time, problem.net().coefficients(&outcome.weights)));
    }
    points
}

/// The time of a fixed layout to the threshold on the same instance; infinite when it is not reached by `until_time`.
pub fn fixed_time(layout: &Layout, width: usize, seed: u64, instance: u64, until_time: f64) -> f64 {
    let (problem, start) = start(LinearNet::of_layout(layout), width, seed, instance);
    let outcome = GradientFlow::new(&problem, settings(&problem, until_time, 1.0)).run(&start, |_, _| ());
    outcome.reached().unwrap_or(f64::INFINITY)
}

/// The time of the fastest layout with a single shortcut on the same instance, the output included, and that layout.
pub fn best_single_shortcut(depth: usize, width: usize, seed: u64, instance: u64) -> Option<(f64, Layout)> {
    let pairs = (1..=depth).flat_map(|target| (0..target).map(move |source| (source, target)));
    let layouts = pairs.filter_map(|pair| Layout::new(depth, [pair]).ok());
    // None that is slower than this can be the fastest: 0:K-1 takes about ln(1e10) / 2.
    let timed = layouts.map(|layout| (fixed_time(&layout, width, seed, instance, 50.0), layout));
    timed.min_by(|a, b| a.0.total_cmp(&b.0))
}

fn start(net: LinearNet, width: usize, seed: u64, instance: u64) -> (Problem, Weights) {
    let mut draw = Draw::new(seed, instance);
    // A Gaussian matrix of positive width is finite and square.
    let target = Target::whitened(draw.target(TargetLaw::Gaussian, width)).unwrap_or_else(|e| unreachable!("{e}"));
    let problem = Problem::new(net, target);
    let weights = draw.weights(&problem, 0.01 / (width as f64).sqrt());
    (problem, weights)
}

fn settings(problem: &Problem, until_time: f64, logit_speed: f64) -> FlowSettings {
    let until_loss = THRESHOLD * problem.target().scale();
    FlowSettings { until_loss, until_time, logit_speed, ..FlowSettings::default() }
}

fn tail_rate(trajectory: &Trajectory, scale: f64) -> Option<f64> {
    // The crossings are those of the losses themselves, so that the rate needs no second interpolation.
    let (from, to) = (trajectory.time_to(RATE_FROM * scale)?, trajectory.time_to(THRESHOLD * scale)?);
    Some((RATE_FROM / THRESHOLD).ln() / (to - from))
}

fn with_values(like: &Weights, values: &[f64]) -> Weights {
    Weights::from_values(like.depth(), like.width(), values.to_vec())
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// `smallest-largest` in three digits.
fn range(sorted: &[f64]) -> String {
    let digits = |x: f64| {
        if x >= 99.95 {
            format!("{x:.0}")
        } else if x >= 9.995 {
            format!("{x:.1}")
        } else {
            format!("{x:.2}")
        }
    };
    match sorted {
        [] => "none".into(),
        [one] => digits(*one),
        [first, .., last] => format!("{}-{}", digits(*first), digits(*last)),
    }
}

/// The variant of a row of numbers that are legal.
fn variant((depth, scope, direction, tau, logit_speed): (usize, Scope, Direction, f64, f64)) -> Variant {
    Variant::new(depth, WIDTH, Softmax { direction, tau, scope }, logit_speed).unwrap_or_else(|e| unreachable!("{e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cold(depth: usize, scope: Scope) -> Variant {
        variant((depth, scope, Direction::Incoming, 0.01, 1.0))
    }

    #[test]
    fn hidden_only_outruns_the_single_shortcut_and_finds_the_cascade() {
        for (depth, found) in [(3, "[0:1]+1:2"), (4, "[0:1]+1:2+2:3")] {
            let row = Row::new(cold(depth, Scope::HiddenOnly), 11, 3, UNTIL_TIME);
            assert_eq!(row.unfinished(), 0);
            assert_eq!(row.found(), BTreeMap::from([(found.into(), 3)]));
            for (instance, run) in row.runs.iter().enumerate() {
                let (best, layout) = best_single_shortcut(depth, WIDTH, 11, instance as u64).unwrap();
                // 0:K-1 and its mirror image 1:K tie.
                assert!(["0:2", "1:3", "0:3", "1:4"].contains(&layout.to_string().as_str()), "{layout}");
                // From weights this small 0:K-1 has rate 2 throughout.
                assert!((best / 10.0 - 10_f64.ln() / 2.0).abs() < 0.02, "{best}");
                assert!(run.time < 0.8 * best && run.rate.unwrap() > 2.0, "{run:?}");
            }
        }
    }

    #[test]
    fn a_history_is_thin_and_runs_from_uniform_shares_to_the_end() {
        for depth in [3, 4] {
            let variant = cold(depth, Scope::HiddenOnly);
            let history = history(&variant, 0, UNTIL_TIME);
            let (first, last) = (&history[0], &history[history.len() - 1]);
            assert!((50..=600).contains(&history.len()), "{}", history.len());
            assert!(history.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!((first.0, first.1.row(2)), (0.0, [0.5, 0.5].as_slice()));
            let run = variant.run(0, 0, UNTIL_TIME);
            assert_eq!((&last.1, depth), (run.found.coefficients(), depth));
        }
        // A stiff one: more steps than points.
        let variant = variant((3, Scope::WithOutput, Direction::Outgoing, 0.01, 1.0));
        let history = history(&variant, 0, UNTIL_TIME);
        assert!(variant.run(0, 0, UNTIL_TIME).steps > 1000 && (300..=601).contains(&history.len()));
    }

    #[test]
    fn impossible_variants_are_refused() {
        let softmax = Softmax { direction: Direction::Incoming, tau: 0.01, scope: Scope::HiddenOnly };
        let message = |depth, width, softmax, speed| {
            Variant::new(depth, width, softmax, speed).map(|v| v.to_string()).unwrap_err().to_string()
        };
        assert!(message(0, 8, softmax, 1.0).contains("depth of 0"));
        assert!(message(3, 0, softmax, 1.0).contains("width of 0"));
        assert!(message(3, 8, softmax, -1.0).contains("speed of -1"));
        assert!(message(3, 8, Softmax { tau: 0.0, ..softmax }, 1.0).contains("temperature"));
    }
}
