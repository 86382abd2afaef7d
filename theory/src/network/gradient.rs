//! Loss and gradient of a problem: the inner loop of everything that trains.

use nalgebra::{Const, Dyn};
use pulp::{Arch, NullaryFnOnce};

use super::matmul::Width;
use super::problem::Problem;
use super::weights::Weights;

/// Evaluates loss and gradient of one problem, `3 K - 3` matrix products a time.
///
/// All memory is allocated once. Widths 1 to 8 run on code that was compiled for the width; the CPU's widest vector
/// instructions are chosen at run time and do not change a bit of the result.
///
/// ```
/// use connection_layout::Layout;
/// use nalgebra::DMatrix;
/// use theory::network::{Gradient, Problem};
///
/// let layout = Layout::parse("0:2", 3)?;
/// let problem = Problem::whitened(&layout, DMatrix::identity(4, 4))?;
/// let weights = problem.zeros();
/// let mut slope = vec![0.0; problem.len()];
/// // At zero weights the map is zero, and only the last layer sees the input: its slope is -Y.
/// let loss = Gradient::new(&problem).evaluate(weights.values(), &mut slope);
/// assert_eq!(loss, 2.0);
/// assert_eq!(slope[..32], [0.0; 32]);
/// assert_eq!(slope[32..36], [-1.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gradient {
    problem: Problem,
    arch: Arch,
    kernel: fn(&mut Self, &[f64], Option<&mut [f64]>) -> f64,
    /// `A_0..A_K` and the derivatives `G_0..G_K` with respect to them; `A_0` and `G_0` are not used.
    states: Vec<f64>,
    slopes: Vec<f64>,
    scratch: Vec<f64>,
    coefficients: Vec<f64>,
    coefficient_slopes: Vec<f64>,
}

impl Gradient {
    /// Allocates what evaluations need.
    pub fn new(problem: &Problem) -> Self {
        let (size, edges) = (problem.width() * problem.width(), problem.net().wiring().edges.len());
        let kernel = match problem.width() {
            1 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<1>, w, out),
            2 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<2>, w, out),
            3 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<3>, w, out),
            4 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<4>, w, out),
            5 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<5>, w, out),
            6 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<6>, w, out),
            7 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<7>, w, out),
            8 => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Const::<8>, w, out),
            _ => |g: &mut Self, w: &[f64], out: Option<&mut [f64]>| g.dispatch(Dyn(g.problem.width()), w, out),
        };
        Self {
            problem: problem.clone(),
            arch: Arch::new(),
            kernel,
            states: vec![0.0; (problem.depth() + 1) * size],
            slopes: vec![0.0; (problem.depth() + 1) * size],
            scratch: vec![0.0; size],
            coefficients: vec![0.0; edges],
            coefficient_slopes: vec![0.0; edges],
        }
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The excess loss at a point, and its gradient into `gradient`; both ordered as [`Weights::values`].
    ///
    /// # Panics
    ///
    /// When either slice is not of length [`Problem::len`].
    pub fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        assert_eq!(weights.len(), self.problem.len(), "numbers of the weights");
        assert_eq!(gradient.len(), self.problem.len(), "numbers of the gradient");
        (self.kernel)(self, weights, Some(gradient))
    }

    /// The excess loss at a point.
    ///
    /// # Panics
    ///
    /// When the slice is not of length [`Problem::len`].
    pub fn loss(&mut self, weights: &[f64]) -> f64 {
        assert_eq!(weights.len(), self.problem.len(), "numbers of the weights");
        (self.kernel)(self, weights, None)
    }

    /// Loss and gradient as new values, where speed does not matter.
    pub fn at(problem: &Problem, weights: &Weights) -> (f64, Weights) {
        let mut gradient = vec![0.0; problem.len()];
        let loss = Self::new(problem).evaluate(weights.values(), &mut gradient);
        (loss, Weights::from_values(problem.depth(), problem.width(), gradient))
    }

    fn dispatch<W: Width>(&mut self, width: W, weights: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let arch = self.arch;
        arch.dispatch(Evaluation { gradient_of: self, width, weights, gradient })
    }

    #[inline(always)]
    fn run<W: Width>(&mut self, width: W, weights: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let size = width.get() * width.get();
        let logits = &weights[self.problem.depth() * size..];
        self.problem.net().wiring().coefficients(logits, &mut self.coefficients);
        self.forward(width, weights);
        let loss = self.output_slope(width);
        if let Some(gradient) = gradient {
            self.backward(width, weights, gradient);
        }
        loss
    }

    #[inline(always)]
    fn forward<W: Width>(&mut self, width: W, weights: &[f64]) {
        let (d, size) = (width.get(), width.get() * width.get());
        let wiring = self.problem.net().wiring();
        for layer in 1..=self.problem.depth() {
            let (earlier, state) = self.states.split_at_mut(layer * size);
            let state = &mut state[..size];
            let weight = &weights[(layer - 1) * size..][..size];
            if layer == 1 {
                state.copy_from_slice(weight);
            } else {
                width.multiply::<false, false>(weight, &earlier[(layer - 1) * size..], state);
            }
            for edge in wiring.incoming[layer].clone() {
                let coefficient = self.coefficients[edge];
                match wiring.edges[edge].source {
                    0 => (0..d).for_each(|i| state[i * d + i] += coefficient),
                    source => add(coefficient, &earlier[source * size..][..size], state),
                }
            }
        }
    }

    /// Writes the derivative with respect to the end-to-end map and returns the loss.
    #[inline(always)]
    fn output_slope<W: Width>(&mut self, width: W) -> f64 {
        let size = width.get() * width.get();
        let last = self.problem.depth() * size;
        let (map, slope) = (&self.states[last..][..size], &mut self.slopes[last..][..size]);
        let target = self.problem.target();
        for ((slope, map), best) in slope.iter_mut().zip(map).zip(target.map().as_slice()) {
            *slope = map - best;
        }
        let Some(gram) = target.gram() else { return 0.5 * dot(slope, slope) };
        self.scratch.copy_from_slice(slope);
        width.multiply::<false, false>(&self.scratch, gram.as_slice(), slope);
        0.5 * dot(&self.scratch, slope)
    }

    #[inline(always)]
    fn backward<W: Width>(&mut self, width: W, weights: &[f64], gradient: &mut [f64]) {
        let (d, size) = (width.get(), width.get() * width.get());
        let depth = self.problem.depth();
        let wiring = self.problem.net().wiring();
        let learned = wiring.learned.is_some();
        self.slopes[..depth * size].fill(0.0);
        for layer in (1..=depth).rev() {
            let (earlier, slope) = self.slopes.split_at_mut(layer * size);
            let slope = &slope[..size];
            let weight = &weights[(layer - 1) * size..][..size];
            let out = &mut gradient[(layer - 1) * size..][..size];
            for edge in wiring.incoming[layer].clone() {
                let source = wiring.edges[edge].source;
                if learned {
                    self.coefficient_slopes[edge] = match source {
                        0 => (0..d).map(|i| slope[i * d + i]).sum(),
                        _ => dot(slope, &self.states[source * size..][..size]),
                    };
                }
                if source > 0 {
                    add(self.coefficients[edge], slope, &mut earlier[source * size..][..size]);
                }
            }
            if layer == 1 {
                out.copy_from_slice(slope);
            } else {
                let before = (layer - 1) * size;
                width.multiply::<true, false>(slope, &self.states[before..], out);
                width.transpose(weight, &mut self.scratch);
                width.multiply::<false, true>(&self.scratch, slope, &mut earlier[before..][..size]);
            }
        }
        wiring.logit_gradient(&self.coefficients, &self.coefficient_slopes, &mut gradient[depth * size..]);
    }
}

/// One evaluation, compiled once for each instruction set. A closure would not be certain to be inlined.
struct Evaluation<'a, W> {
    gradient_of: &'a mut Gradient,
    width: W,
    weights: &'a [f64],
    gradient: Option<&'a mut [f64]>,
}

impl<W: Width> NullaryFnOnce for Evaluation<'_, W> {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        self.gradient_of.run(self.width, self.weights, self.gradient)
    }
}

/// `y += a x`
#[inline(always)]
fn add(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// The sum of products, in eight interleaved sums so that it can be vectorised.
#[inline(always)]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (x_chunks, y_chunks) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest: f64 = x_chunks.remainder().iter().zip(y_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in x_chunks.zip(y_chunks) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}
