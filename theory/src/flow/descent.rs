//! Discrete training: gradient descent and Adam.

use super::{Ending, NOISE_FLOOR};
use crate::network::{Gradient, Problem, Weights};

/// An update rule; logits have a rate of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// `W -= rate * dL/dW`.
    GradientDescent {
        /// Rate of the weights.
        rate: f64,
        /// Rate of the logits.
        logit_rate: f64,
    },
    /// Adam (Kingma and Ba 2015) with bias correction; `epsilon` is added to the root of the second moment.
    Adam {
        /// Rate of the weights.
        rate: f64,
        /// Rate of the logits.
        logit_rate: f64,
        /// Decay of the first and the second moment.
        betas: (f64, f64),
        /// Keeps the quotient finite.
        epsilon: f64,
    },
}

impl Optimizer {
    /// Gradient descent with one rate for everything.
    pub fn gradient_descent(rate: f64) -> Self {
        Self::GradientDescent { rate, logit_rate: rate }
    }

    /// Adam with one rate for everything, moments .9 and .999 and epsilon 1e-8.
    pub fn adam(rate: f64) -> Self {
        Self::Adam { rate, logit_rate: rate, betas: (0.9, 0.999), epsilon: 1e-8 }
    }
}

/// How far a descent goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DescentSettings {
    /// The update rule.
    pub optimizer: Optimizer,
    /// Ends when the excess loss is at most this; 0 for never.
    pub until_loss: f64,
    /// Ends after this many steps.
    pub most_steps: usize,
    /// Counts as diverged when the loss is this many times the larger of the first loss and the target's scale.
    pub diverged_at: f64,
}

impl DescentSettings {
    /// A run of at most `most_steps` steps until the loss is at most `until_loss`.
    pub fn new(optimizer: Optimizer, until_loss: f64, most_steps: usize) -> Self {
        Self { optimizer, until_loss, most_steps, diverged_at: 1e4 }
    }
}

/// How a descent ended.
#[derive(Clone, Debug, PartialEq)]
pub struct DescentOutcome {
    /// Why it ended.
    pub ending: Ending,
    /// The steps taken.
    pub steps: usize,
    /// The excess loss after them.
    pub loss: f64,
    /// The weights after them.
    pub weights: Weights,
}

impl DescentOutcome {
    /// The steps to the loss that was asked for, if it was reached.
    pub fn reached(&self) -> Option<usize> {
        (self.ending == Ending::Reached).then_some(self.steps)
    }
}

/// Discrete training of one problem, without allocation in its steps.
#[derive(Clone, Debug)]
pub struct Descent {
    gradient: Gradient,
    weights: Vec<f64>,
    slope: Vec<f64>,
    moments: (Vec<f64>, Vec<f64>),
}

impl Descent {
    /// Prepares the training of a problem.
    pub fn new(problem: &Problem) -> Self {
        let zeros = vec![0.0; problem.len()];
        let moments = (zeros.clone(), zeros.clone());
        Self { gradient: Gradient::new(problem), weights: zeros.clone(), slope: zeros, moments }
    }

    /// Trains from `start`, and shows each loss with the number of steps taken before it and the weights to `observe`.
    ///
    /// # Panics
    ///
    /// When the weights are those of another problem.
    pub fn run(
        &mut self,
        start: &Weights,
        settings: &DescentSettings,
        mut observe: impl FnMut(usize, f64, &[f64]),
    ) -> DescentOutcome {
        assert_eq!(start.values().len(), self.weights.len(), "numbers of the weights");
        self.weights.copy_from_slice(start.values());
        self.moments.0.fill(0.0);
        self.moments.1.fill(0.0);
        let first = self.gradient.loss(&self.weights);
        let bound = settings.diverged_at * first.max(self.gradient.problem().target().scale());
        let mut steps = 0;
        let (ending, loss) = loop {
            let loss = self.gradient.evaluate(&self.weights, &mut self.slope);
            observe(steps, loss, &self.weights);
            // First: an infinite loss would also compare as reached when the loss asked for is infinite.
            if !loss.is_finite() || loss > bound {
                break (Ending::Diverged, loss);
            } else if loss <= settings.until_loss {
                break (Ending::Reached, loss);
            } else if loss <= NOISE_FLOOR * first {
                break (Ending::NoiseFloor, loss);
            } else if steps == settings.most_steps {
                break (Ending::Limit, loss);
            }
            steps += 1;
            self.update(&settings.optimizer, steps);
        };
        let weights = Weights::from_values(start.depth(), start.width(), self.weights.clone());
        DescentOutcome { ending, steps, loss, weights }
    }

    fn update(&mut self, optimizer: &Optimizer, step: usize) {
        let problem = self.gradient.problem();
        let matrices = problem.depth() * problem.width() * problem.width();
        match *optimizer {
            Optimizer::GradientDescent { rate, logit_rate } => {
                for (range, rate) in [(0..matrices, rate), (matrices..self.weights.len(), logit_rate)] {
                    for (w, g) in self.weights[range.clone()].iter_mut().zip(&self.slope[range]) {
                        *w -= rate * g;
                    }
                }
            }
            Optimizer::Adam { rate, logit_rate, betas: (first, second), epsilon } => {
                let step = i32::try_from(step).unwrap_or(i32::MAX);
                let corrections = (1.0 - first.powi(step), 1.0 - second.powi(step));
                for (range, rate) in [(0..matrices, rate), (matrices..self.weights.len(), logit_rate)] {
                    for i in range {
                        let g = self.slope[i];
                        let (m, v) = (&mut self.moments.0[i], &mut self.moments.1[i]);
                        *m = first * *m + (1.0 - first) * g;
                        *v = second * *v + (1.0 - second) * g * g;
                        self.weights[i] -= rate * (*m / corrections.0) / ((*v / corrections.1).sqrt() + epsilon);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use connection_layout::Layout;
    use nalgebra::DMatrix;

    use super::*;

    fn problem() -> Problem {
        Problem::whitened(&Layout::parse("0:1", 2).unwrap(), DMatrix::identity(2, 2)).unwrap()
    }

    #[test]
    fn a_step_of_gradient_descent_by_hand() {
        // A = W2 (W1 + 1) from zero: only W2 moves, by rate * Y.
        let problem = problem();
        let settings = DescentSettings::new(Optimizer::gradient_descent(0.25), 0.0, 1);
        let outcome = Descent::new(&problem).run(&problem.zeros(), &settings, |_, _, _| ());
        assert_eq!((outcome.ending, outcome.steps), (Ending::Limit, 1));
        assert_eq!(outcome.weights.layer(2), DMatrix::identity(2, 2) * 0.25);
        assert_eq!(outcome.weights.layer(1), DMatrix::zeros(2, 2));
        assert_eq!(outcome.loss, 0.75 * 0.75);
    }

    #[test]
    fn the_first_step_of_adam_has_the_size_of_its_rate() {
        let problem = problem();
        let settings = DescentSettings::new(Optimizer::adam(0.1), 0.0, 1);
        let outcome = Descent::new(&problem).run(&problem.zeros(), &settings, |_, _, _| ());
        assert!((outcome.weights.layer(2) - DMatrix::identity(2, 2) * 0.1).amax() < 1e-8);
    }

    #[test]
    fn endings_are_told_apart() {
        let problem = problem();
        let ending = |rate, until, most| {
            let settings = DescentSettings::new(Optimizer::gradient_descent(rate), until, most);
            Descent::new(&problem).run(&problem.zeros(), &settings, |_, _, _| ()).ending
        };
        assert_eq!(ending(0.25, 1e-6, 1000), Ending::Reached);
        assert_eq!(ending(0.25, 0.0, 1000), Ending::NoiseFloor);
        assert_eq!(ending(0.25, 1e-6, 3), Ending::Limit);
        assert_eq!(ending(9.0, 1e-6, 1000), Ending::Diverged);
        let huge = Problem::whitened(&Layout::parse("0:1", 2).unwrap(), DMatrix::identity(2, 2) * 1e200).unwrap();
        let settings = DescentSettings::new(Optimizer::gradient_descent(0.1), f64::INFINITY, 10);
        assert_eq!(Descent::new(&huge).run(&huge.zeros(), &settings, |_, _, _| ()).ending, Ending::Diverged);
    }
}
