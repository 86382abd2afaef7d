//! The adaptive Runge-Kutta pair of Dormand and Prince, of order 5(4), without allocation in its steps.
//!
//! J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", J. Comp. Appl. Math. 6 (1980). Step
//! sizes follow a proportional-integral controller (Hairer, Nørsett and Wanner, "Solving Ordinary Differential
//! Equations I", II.4). The crates for this clone their state in every stage; a test holds this one against one of
//! them.

use thiserror::Error;

/// How accurate a step has to be: its error estimate stays below `absolute + relative * |y|` in every component, in the
/// root mean square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the component.
    pub relative: f64,
    /// For components near zero.
    pub absolute: f64,
}

impl Tolerance {
    /// For rankings: times to a threshold come out to five digits or better.
    pub const RANKING: Self = Self { relative: 1e-7, absolute: 1e-10 };
    /// For slopes and conservation laws.
    pub const FINE: Self = Self { relative: 1e-10, absolute: 1e-13 };
}

/// Why a step cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StepError {
    /// No step, however small, gives finite numbers of the accuracy asked for.
    #[error("the step size fell below the resolution of time: the solution leaves the range of numbers here")]
    TooSmall,
}

const STAGES: usize = 7;
/// Where stages evaluate: row s has the weights of the stages before stage s + 1. The last row is the solution.
const A: [&[f64]; STAGES - 1] = [
    &[1.0 / 5.0],
    &[3.0 / 40.0, 9.0 / 40.0],
    &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
    &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
    &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
    &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
];
/// The difference between the solutions of order 5 and 4.
const ERROR: [f64; STAGES] =
    [71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0];

/// Integrates `dy/dt = f(y)`; the field does not depend on time.
#[derive(Clone, Debug)]
pub struct DormandPrince {
    tolerance: Tolerance,
    time: f64,
    state: Vec<f64>,
    next: Vec<f64>,
    /// The slopes of the seven stages, one after another; the first is that at `state`.
    slopes: Vec<f64>,
    step: f64,
    last_error: f64,
    evaluations: usize,
    steps: usize,
}

impl DormandPrince {
    /// Starts at time 0.
    pub fn new(tolerance: Tolerance, start: &[f64], mut field: impl FnMut(&[f64], &mut [f64])) -> Self {
        let n = start.len();
        let mut slopes = vec![0.0; STAGES * n];
        field(start, &mut slopes[..n]);
        let scaled = |x: &[f64]| norm(x.iter().zip(start).map(|(x, y)| x / scale(tolerance, *y)), n);
        let (size, speed) = (scaled(start), scaled(&slopes[..n]));
        // A hundredth of the time in which the state would change by its own size; the controller corrects it.
        let step = if size < 1e-5 || speed < 1e-5 || !speed.is_finite() { 1e-6 } else { 0.01 * size / speed };
        let next = start.to_vec();
        Self {
            tolerance,
            time: 0.0,
            state: start.to_vec(),
            next,
            slopes,
            step,
            last_error: 1e-4,
            evaluations: 1,
            steps: 0,
        }
    }

    /// The time reached.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// The state there.
    pub fn state(&self) -> &[f64] {
        &self.state
    }

    /// The slope there.
    pub fn slope(&self) -> &[f64] {
        &self.slopes[..self.state.len()]
    }

    /// How often the field was evaluated.
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// How many steps were taken.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Takes one step of the size that the tolerance allows, but not beyond `end`. The field is evaluated last at the new
    /// state.
    ///
    /// # Errors
    ///
    /// [`StepError`] when no step is small enough. The state is then as it was.
    pub fn advance(&mut self, end: f64, mut field: impl FnMut(&[f64], &mut [f64])) -> Result<(), StepError> {
        let n = self.state.len();
        loop {
            let last = self.time + self.step >= end;
            let step = if last { end - self.time } else { self.step };
            if step.is_nan() || step <= 1e-15 * self.time.max(f64::MIN_POSITIVE) {
                return Err(StepError::TooSmall);
            }
            for (stage, weights) in A.iter().enumerate() {
                let (known, slope) = self.slopes.split_at_mut((stage + 1) * n);
                combine(&mut self.next, &self.state, step, known, weights);
                field(&self.next, &mut slope[..n]);
            }
            self.evaluations += STAGES - 1;
            let error = self.error(step);
            // An infinite or undefined estimate counts as a large one.
            if error <= 1.0 {
                let factor = 0.9 * error.max(1e-10).powf(-0.17) * self.last_error.powf(0.04);
                // A step that was cut at the end says nothing about a longer one.
                if !last {
                    self.step = step * factor.clamp(0.2, 10.0);
                }
                self.last_error = error.max(1e-4);
                self.time = if last { end } else { self.time + step };
                std::mem::swap(&mut self.state, &mut self.next);
                self.slopes.copy_within((STAGES - 1) * n.., 0);
                self.steps += 1;
                return Ok(());
            }
            self.step = step * if error.is_finite() { (0.9 * error.powf(-0.2)).clamp(0.1, 0.9) } else { 0.1 };
        }
    }

    fn error(&self, step: f64) -> f64 {
        let n = self.state.len();
        let components = (0..n).map(|i| {
            let error: f64 = ERROR.iter().enumerate().map(|(stage, e)| e * self.slopes[stage * n + i]).sum();
            step * error / scale(self.tolerance, self.state[i].abs().max(self.next[i].abs()))
        });
        norm(components, n)
    }
}

fn scale(tolerance: Tolerance, y: f64) -> f64 {
    tolerance.absolute + tolerance.relative * y.abs()
}

fn norm(components: impl Iterator<Item = f64>, n: usize) -> f64 {
    (components.map(|x| x * x).sum::<f64>() / n.max(1) as f64).sqrt()
}

/// `out = state + step * sum of the weighted slopes`
fn combine(out: &mut [f64], state: &[f64], step: f64, slopes: &[f64], weights: &[f64]) {
    let n = state.len();
    out.copy_from_slice(state);
    for (stage, weight) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
        let factor = step * weight;
        for (out, slope) in out.iter_mut().zip(&slopes[stage * n..][..n]) {
            *out += factor * slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pendulum, which no closed form of the method knows.
    fn pendulum(y: &[f64], out: &mut [f64]) {
        (out[0], out[1]) = (y[1], -y[0].sin());
    }

    fn at(end: f64, relative: f64) -> (Vec<f64>, usize) {
        let tolerance = Tolerance { relative, absolute: relative };
        let mut solver = DormandPrince::new(tolerance, &[1.0, 0.0], pendulum);
        while solver.time() < end {
            solver.advance(end, pendulum).unwrap();
        }
        assert_eq!(solver.time(), end);
        (solver.state().to_vec(), solver.evaluations())
    }

    #[test]
    fn the_order_is_five() {
        let exact = at(10.0, 1e-13).0;
        let error = |tolerance| (at(10.0, tolerance).0[0] - exact[0]).abs();
        let (coarse, fine) = (error(1e-6), error(1e-9));
        assert!(coarse < 1e-5 && fine < 1e-8, "{coarse:e} {fine:e}");
        // A thousandth of the tolerance costs the fifth root of a thousand in steps: 4, and 10 for order 3.
        let ratio = at(10.0, 1e-9).1 as f64 / at(10.0, 1e-6).1 as f64;
        assert!((3.2..5.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn it_agrees_with_an_independent_solver() {
        struct Pendulum;
        impl ode_solvers::System<f64, ode_solvers::Vector2<f64>> for Pendulum {
            fn system(&self, _: f64, y: &ode_solvers::Vector2<f64>, dy: &mut ode_solvers::Vector2<f64>) {
                pendulum(y.as_slice(), dy.as_mut_slice());
            }
        }
        let start = ode_solvers::Vector2::new(1.0, 0.0);
        // Its dense output is wrong at the last point (version 0.6.2), so that the steps themselves are kept.
        let steps = ode_solvers::OutputType::Sparse;
        let mut other = ode_solvers::Dopri5::from_param(
            Pendulum, 0.0, 10.0, 0.1, start, 1e-11, 1e-11, 0.9, 0.04, 0.2, 10.0, 10.0, 0.0, 100_000, 1000, steps,
        );
        other.integrate().unwrap();
        let (ours, theirs) = (at(10.0, 1e-11).0, other.y_out().last().unwrap());
        assert!((ours[0] - theirs[0]).abs() < 1e-9 && (ours[1] - theirs[1]).abs() < 1e-9, "{ours:?} {theirs:?}");
    }

    /// A slow decay towards a level that jumps at time 1: the step that meets the jump is far too long.
    fn jump(y: &[f64], out: &mut [f64]) {
        let level = 1.0 / (1.0 + (-400.0 * (y[0] - 1.0)).exp());
        (out[0], out[1]) = (1.0, level - y[1]);
    }

    #[test]
    fn a_step_that_is_too_long_is_taken_again() {
        let run = |relative| {
            let tolerance = Tolerance { relative, absolute: relative };
            let mut solver = DormandPrince::new(tolerance, &[0.0, 1.0], jump);
            while solver.time() < 2.0 {
                solver.advance(2.0, jump).unwrap();
            }
            (solver.state()[1], solver.evaluations() - (STAGES - 1) * solver.steps() - 1)
        };
        let ((coarse, rejected), (fine, _)) = (run(1e-8), run(1e-12));
        assert!(rejected > 0, "no step was rejected");
        assert!((coarse - fine).abs() < 1e-7, "{coarse} {fine}");
    }

    #[test]
    fn a_solution_that_leaves_the_numbers_is_an_error() {
        // y' = y² from 1 is 1 / (1 - t).
        let square = |y: &[f64], out: &mut [f64]| out[0] = y[0] * y[0];
        let mut solver = DormandPrince::new(Tolerance::RANKING, &[1.0], square);
        let error = (0..100_000).find_map(|_| solver.advance(2.0, square).err());
        assert_eq!(error, Some(StepError::TooSmall));
        assert!((solver.time() - 1.0).abs() < 1e-6);
    }
}
