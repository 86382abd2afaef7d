//! Which later step of a trajectory becomes the goal.

use std::ops::Range;

use rand::{Rng, RngExt};

/// The weight of a step as its own future, against `discount^k` of the step k ahead: it decides only where a trajectory
/// has no later step (scaling-crl).
const ITSELF: f64 = 1e-5;

/// Consecutive steps of one trajectory within a window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    trajectory: u32,
    pub steps: Range<usize>,
}

/// The runs of a window, given to which trajectory each step belongs.
pub(crate) fn runs(trajectories: impl Iterator<Item = u32>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (step, trajectory) in trajectories.enumerate() {
        match runs.last_mut() {
            Some(run) if run.trajectory == trajectory => run.steps.end += 1,
            _ => runs.push(Run { trajectory, steps: step..step + 1 }),
        }
    }
    runs
}

/// The later steps of the trajectory of one step, as ranges of offsets from it, ascending.
///
/// Trajectories whose number comes back after another one count as the same, as in scaling-crl, so there may be several
/// ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Future(Vec<Range<usize>>);

impl Future {
    /// The future of a step within the first of these runs, in place of what was here.
    pub fn read(&mut self, runs: &[Run], step: usize) {
        self.0.clear();
        let Some((own, later)) = runs.split_first() else { return };
        if step + 1 < own.steps.end {
            self.0.push(1..own.steps.end - step);
        }
        let same = later.iter().filter(|run| run.trajectory == own.trajectory);
        self.0.extend(same.map(|run| run.steps.start - step..run.steps.end - step));
    }

    fn total(&self, discount: f64) -> f64 {
        ITSELF + self.0.iter().map(|range| weight(range, discount)).sum::<f64>()
    }

    /// Draws an offset: 0 for the step itself.
    pub fn draw(&self, discount: f64, random: &mut impl Rng) -> usize {
        let mut left = random.random::<f64>() * self.total(discount);
        for range in &self.0 {
            let weight = weight(range, discount);
            if left < weight {
                return range.start + within(range.len(), discount, random.random());
            }
            left -= weight;
        }
        0
    }

    /// The probability of each offset below `window`.
    pub fn probabilities(&self, discount: f64, window: usize) -> Vec<f64> {
        let total = self.total(discount);
        let mut probabilities = vec![0.0; window];
        for range in &self.0 {
            let share = weight(range, discount) / total;
            for offset in range.clone() {
                probabilities[offset] =
                    share * discount.powi((offset - range.start) as i32) / sum(range.len(), discount);
            }
        }
        if let Some(itself) = probabilities.first_mut() {
            *itself = ITSELF / total;
        }
        probabilities
    }
}

/// Sum of `discount^k` for k below `count`.
fn sum(count: usize, discount: f64) -> f64 {
    if discount == 1.0 { count as f64 } else { (count as f64 * discount.ln()).exp_m1() / (discount - 1.0) }
}

/// Sum of `discount^k` for k in a range.
fn weight(range: &Range<usize>, discount: f64) -> f64 {
    discount.powf(range.start as f64) * sum(range.len(), discount)
}

/// The k below `count` whose share of the weights `discount^k` holds the quantile.
fn within(count: usize, discount: f64, quantile: f64) -> usize {
    let place = if discount == 1.0 {
        quantile * count as f64
    } else {
        let log = discount.ln();
        (quantile * (count as f64 * log).exp_m1()).ln_1p() / log
    };
    // Rounding may lead beyond the last one.
    (place as usize).min(count - 1)
}

/// With which probability each step of a window becomes the goal of step `step`, given to which trajectory each step
/// belongs: weight `discount^(j - step)` for later steps of the same trajectory, and 1e-5 for the step itself.
///
/// # Panics
/// Where there is no such step, or `discount` is not in (0, 1].
pub fn future_probabilities(trajectories: &[u32], step: usize, discount: f64) -> Vec<f64> {
    assert!(discount > 0.0 && discount <= 1.0, "a discount is more than 0 and at most 1, not {discount}");
    assert!(step < trajectories.len(), "step {step} of a window of {}", trajectories.len());
    let mut future = Future::default();
    future.read(&runs(trajectories[step..].iter().copied()), 0);
    let mut probabilities = vec![0.0; step];
    probabilities.extend(future.probabilities(discount, trajectories.len() - step));
    probabilities
}

#[cfg(test)]
mod tests;
