//! Loss and gradient of a problem: the inner loop of everything that trains.

use nalgebra::{Const, DMatrix, Dyn};
use pulp::{Arch, Simd, WithSimd};

use super::matmul::{self, Width, combine, dot, subtract};
use super::problem::Problem;
use super::weights::Weights;

/// Evaluates loss and gradient of one problem, `3 K - 2` matrix products a time.
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
    /// All matrices from here on are padded. `W_1..W_K` and their transposes.
    weights: Vec<f64>,
    transposes: Vec<f64>,
    /// `A_0..A_K` and the derivatives `G_0..G_K` with respect to them; `G_0` is not used.
    states: Vec<f64>,
    slopes: Vec<f64>,
    scratch: Vec<f64>,
    target: Vec<f64>,
    gram: Option<Vec<f64>>,
    /// For each node, its incoming edges with the places of their sources among the states.
    incoming: Vec<Vec<(usize, usize)>>,
    /// For each node, its outgoing edges with the places of their targets among the slopes after its own.
    outgoing: Vec<Vec<(usize, usize)>>,
    coefficients: Vec<f64>,
    coefficient_slopes: Vec<f64>,
}

impl Gradient {
    /// Allocates what evaluations need.
    pub fn new(problem: &Problem) -> Self {
        let (d, edges) = (problem.width(), problem.net().wiring().edges.len());
        let (stride, depth) = (matmul::stride(d), problem.depth());
        let size = d * stride;
        let padded = |matrix: &DMatrix<f64>| {
            let mut padded = vec![0.0; size];
            padded
                .chunks_mut(stride)
                .zip(matrix.as_slice().chunks(d))
                .for_each(|(to, from)| to[..d].copy_from_slice(from));
            padded
        };
        let mut states = vec![0.0; (depth + 1) * size];
        states[..size].copy_from_slice(&padded(&DMatrix::identity(d, d)));
        let mut incoming = vec![Vec::new(); depth + 1];
        let mut outgoing = vec![Vec::new(); depth + 1];
        for (index, edge) in problem.net().wiring().edges.iter().enumerate() {
            incoming[edge.target].push((index, edge.source * size));
            outgoing[edge.source].push((index, (edge.target - edge.source - 1) * size));
        }
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
            weights: vec![0.0; depth * size],
            transposes: vec![0.0; depth * size],
            states,
            slopes: vec![0.0; (depth + 1) * size],
            scratch: vec![0.0; size],
            target: padded(problem.target().map()),
            gram: problem.target().gram().map(padded),
            incoming,
            outgoing,
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
    fn run<S: Simd, W: Width>(&mut self, simd: S, width: W, weights: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (compact, depth) = (width.get() * width.get(), self.problem.depth());
        let (matrices, logits) = weights.split_at(depth * compact);
        self.problem.net().wiring().coefficients(logits, &mut self.coefficients);
        width.pad(simd, matrices, &mut self.weights);
        self.forward(simd, width);
        let loss = self.output_slope(simd, width);
        if let Some(gradient) = gradient {
            for (from, to) in matrices.chunks_exact(compact).zip(self.transposes.chunks_exact_mut(width.size())).skip(1)
            {
                width.pad_transposed(from, to);
            }
            self.backward(simd, width, gradient);
        }
        loss
    }

    #[inline(always)]
    fn forward<S: Simd, W: Width>(&mut self, simd: S, width: W) {
        let size = width.size();
        for layer in 1..=self.problem.depth() {
            let (earlier, state) = self.states.split_at_mut(layer * size);
            let state = &mut state[..size];
            let weight = &self.weights[(layer - 1) * size..][..size];
            combine(simd, &self.incoming[layer], &self.coefficients, earlier, state);
            width.multiply::<S, false, true>(simd, weight, &earlier[(layer - 1) * size..], state);
        }
    }

    /// Writes the derivative with respect to the end-to-end map and returns the loss.
    #[inline(always)]
    fn output_slope<S: Simd, W: Width>(&mut self, simd: S, width: W) -> f64 {
        let size = width.size();
        let last = self.problem.depth() * size;
        let slope = &mut self.slopes[last..][..size];
        subtract(simd, &self.states[last..][..size], &self.target, slope);
        let Some(gram) = &self.gram else { return 0.5 * dot(simd, slope, slope) };
        self.scratch.copy_from_slice(slope);
        width.multiply::<S, false, false>(simd, &self.scratch, gram, slope);
        0.5 * dot(simd, &self.scratch, slope)
    }

    #[inline(always)]
    fn backward<S: Simd, W: Width>(&mut self, simd: S, width: W, gradient: &mut [f64]) {
        let (compact, size) = (width.get() * width.get(), width.size());
        let depth = self.problem.depth();
        let wiring = self.problem.net().wiring();
        for layer in (1..=depth).rev() {
            let (earlier, later) = self.slopes.split_at_mut(layer * size);
            let slope = &later[..size];
            if wiring.learned.is_some() {
                for edge in wiring.incoming[layer].clone() {
                    let state = &self.states[wiring.edges[edge].source * size..][..size];
                    self.coefficient_slopes[edge] = dot(simd, slope, state);
                }
            }
            let out = &mut gradient[(layer - 1) * compact..][..compact];
            if layer == 1 {
                width.compact(simd, slope, out);
                break;
            }
            let before = (layer - 1) * size;
            width.multiply::<S, true, false>(simd, slope, &self.states[before..], &mut self.scratch);
            width.compact(simd, &self.scratch, out);
            let next = &mut earlier[before..][..size];
            combine(simd, &self.outgoing[layer - 1], &self.coefficients, later, next);
            width.multiply::<S, false, true>(simd, &self.transposes[before..], slope, next);
        }
        wiring.logit_gradient(&self.coefficients, &self.coefficient_slopes, &mut gradient[depth * compact..]);
    }
}

/// One evaluation, compiled once for each instruction set. A closure would not be certain to be inlined.
struct Evaluation<'a, W> {
    gradient_of: &'a mut Gradient,
    width: W,
    weights: &'a [f64],
    gradient: Option<&'a mut [f64]>,
}

impl<W: Width> WithSimd for Evaluation<'_, W> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        self.gradient_of.run(simd, self.width, self.weights, self.gradient)
    }
}
