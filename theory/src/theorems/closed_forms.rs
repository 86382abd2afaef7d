//! Flows that are known in closed form, for any data.

use connection_layout::Layout;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::hypothesis::{self, HypothesisError};
use super::measure::{arrived, largest, smallest};
use crate::flow::{FlowSettings, GradientFlow, Tolerance, Trajectory};
use crate::network::{LinearNet, Problem, Target, Weights};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// The loss of `0:K-1`, K >= 3, when two of the layers `W_1..W_{K-1}` start at zero.
///
/// The product `W_{K-1} ... W_1` then has no slope and stays at zero; only `W_K` moves, by `W_K' = -(W_K - A*) S` with
/// `S = X Xᵀ`. With eigenvalues `s_k` and eigenvectors `v_k` of S,
/// `L(t) = 1/2 sum_k s_k ||(W_K(0) - A*) v_k||² exp(-2 s_k t)`; on whitened inputs `L(0) exp(-2 t)`. Every `W_K(0)` and
/// every target are allowed.
///
/// ```
/// use connection_layout::Layout;
/// use nalgebra::DMatrix;
/// use theory::network::Problem;
/// use theory::theorems::closed_forms::FrozenProduct;
///
/// let problem = Problem::whitened(&Layout::parse("0:2", 3)?, DMatrix::identity(2, 2))?;
/// let flow = FrozenProduct::new(&problem, &problem.zeros())?;
/// assert!((flow.loss(1.5) - (-3.0_f64).exp()).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FrozenProduct {
    /// `s_k`.
    rates: DVector<f64>,
    /// `||(W_K(0) - A*) v_k||²`.
    errors: DVector<f64>,
}

impl FrozenProduct {
    /// The closed form for these weights.
    ///
    /// # Errors
    ///
    /// [`HypothesisError`] for another layout, weights of another problem, and fewer than two zero layers below the
    /// last.
    pub fn new(problem: &Problem, weights: &Weights) -> Result<Self, HypothesisError> {
        let layout = hypothesis::layout_of(problem)?;
        let (depth, d) = (layout.depth(), problem.width());
        hypothesis::expect_at_least("the depth", depth as f64, 3.0)?;
        hypothesis::expect_layout(&layout, [(0, depth - 1)], "0:K-1 with K >= 3")?;
        hypothesis::expect_shape(problem, weights)?;
        let zeros = (1..depth).filter(|&layer| weights.layer(layer).iter().all(|w| *w == 0.0)).count();
        hypothesis::expect_at_least("the number of zero layers below the last", zeros as f64, 2.0)?;
        let error = weights.layer(depth) - problem.target().map();
        let gram = problem.target().gram().cloned().unwrap_or_else(|| DMatrix::identity(d, d));
        let eigen = gram.symmetric_eigen();
        let errors = DVector::from_iterator(d, (0..d).map(|k| (&error * eigen.eigenvectors.column(k)).norm_squared()));
        Ok(Self { rates: eigen.eigenvalues, errors })
    }

    /// The excess loss at time t.
    pub fn loss(&self, time: f64) -> f64 {
        let modes = self.rates.iter().zip(self.errors.iter());
        0.5 * modes.map(|(s, e)| s * e * (-2.0 * s * time).exp()).sum::<f64>()
    }

    /// A rate that the excess loss keeps, `2 s` with s the smallest eigenvalue of `X Xᵀ` above 1e-12 of the largest.
    pub fn rate(&self) -> f64 {
        let floor = 1e-12 * largest(self.rates.iter().copied());
        2.0 * smallest(self.rates.iter().copied().filter(|s| *s > floor))
    }
}

/// The loss of a chain without shortcuts for target 0, from balanced weights `W_l = eps Q_l Q_{l-1}ᵀ` with orthogonal
/// `Q_0..Q_K`: all d singular values of the map are `w^K` with `w' = -w^(2K-1)`, `w(0) = eps`.
///
/// For K >= 2 `L(t) = 1/2 d eps^(2K) (1 + (2K-2) eps^(2K-2) t)^(-K/(K-1))`, for K = 1 `1/2 d eps² exp(-2 t)`.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancedChain {
    epsilon: f64,
    factors: Vec<DMatrix<f64>>,
}

impl BalancedChain {
    /// The chain with factors `Q_0..Q_K`.
    ///
    /// # Errors
    ///
    /// [`HypothesisError::OutOfRange`] for fewer than two factors, an eps that is not positive, and factors that are
    /// not orthogonal or not of one width.
    pub fn new(epsilon: f64, factors: Vec<DMatrix<f64>>) -> Result<Self, HypothesisError> {
        hypothesis::expect_at_least("the number of factors", factors.len() as f64, 2.0)?;
        hypothesis::expect_above("eps", epsilon, 0.0)?;
        hypothesis::expect_below("eps", epsilon, f64::INFINITY)?;
        let d = factors[0].nrows();
        hypothesis::expect_at_least("the width", d as f64, 1.0)?;
        for factor in &factors {
            hypothesis::expect_orthonormal(factor, d, true)?;
        }
        Ok(Self { epsilon, factors })
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        self.factors.len() - 1
    }

    /// The chain with target 0.
    pub fn problem(&self) -> Problem {
        let (depth, d) = (self.depth(), self.factors[0].nrows());
        let layout = Layout::none(depth).unwrap_or_else(|error| unreachable!("{error}"));
        Problem::whitened(&layout, DMatrix::zeros(d, d)).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The balanced weights.
    pub fn weights(&self) -> Weights {
        let mut weights = self.problem().zeros();
        for (layer, pair) in self.factors.windows(2).enumerate() {
            weights.set_layer(layer + 1, &(&pair[1] * pair[0].transpose() * self.epsilon));
        }
        weights
    }

    /// The loss at time t.
    pub fn loss(&self, time: f64) -> f64 {
        let (d, excess) = (self.factors[0].nrows() as f64, self.depth() as f64 - 1.0);
        let square = self.epsilon * self.epsilon;
        let decay = if excess == 0.0 {
            (-2.0 * time).exp()
        } else {
            (1.0 + 2.0 * excess * square.powf(excess) * time).powf(-(excess + 1.0) / excess)
        };
        0.5 * d * square.powf(excess + 1.0) * decay
    }
}

/// The largest difference between `||E||` along a flow up to a time and its closed form, relative to the larger of its
/// first value and the norm of the target; `||E||² = 2 L` with the excess loss L. Not a number if the flow did not get to
/// that time or to the noise floor.
pub fn deviation(problem: &Problem, weights: &Weights, until_time: f64, loss: impl Fn(f64) -> f64) -> f64 {
    let Some(trajectory) = follow(problem, weights, until_time) else { return f64::NAN };
    let first = trajectory.points().first().map_or(0.0, |p| p.loss);
    let scale = first.max(problem.target().scale()).sqrt();
    largest(trajectory.points().iter().map(|p| (p.loss.sqrt() - loss(p.time).sqrt()).abs() / scale))
}

/// The losses up to a time or the noise floor; `None` if the flow did not get there.
fn follow(problem: &Problem, weights: &Weights, until_time: f64) -> Option<Trajectory> {
    let settings = FlowSettings {
        until_time,
        tolerance: Tolerance { relative: 1e-12, absolute: 1e-14 },
        ..FlowSettings::default()
    };
    let (outcome, trajectory) = GradientFlow::new(problem, settings).trajectory(weights);
    arrived(&outcome, until_time).then_some(trajectory)
}

/// What whitened data of n > d samples do to the loss; not a number where a flow did not get to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhitenedData {
    /// The largest difference between the excess losses of the data and of the target `Y Xᵀ` on identity inputs, at 20
    /// points of the latter's flow, relative to the first loss.
    pub excess: f64,
    /// The difference between the floor of the data and `1/2 (||Y||² - ||Y Xᵀ||²)`, relative.
    pub floor: f64,
    /// The largest difference between the times at which both flows reach 1e-1, ..., 1e-8 of the first loss, relative.
    /// Levels that neither reaches by time 100 are left out; not a number if only one does, or if all are left out.
    pub times: f64,
}

/// Compares training on data `X` with orthonormal rows and outputs `Y`, both d x n, with training on the identity
/// towards `Y Xᵀ`.
///
/// # Errors
///
/// [`HypothesisError::OutOfRange`] unless the rows of X are orthonormal, and [`HypothesisError::Shape`] for data and
/// weights that do not fit the layout or each other.
pub fn compare_whitened(
    layout: &Layout,
    inputs: &DMatrix<f64>,
    outputs: &DMatrix<f64>,
    start: &Weights,
) -> Result<WhitenedData, HypothesisError> {
    let d = inputs.nrows();
    hypothesis::expect_orthonormal(inputs, d, false)?;
    let shape = |found| HypothesisError::Shape { found, needed: (layout.depth(), d) };
    let data = Target::from_data(inputs, outputs).map_err(|_| shape((layout.depth(), outputs.nrows())))?;
    let map = outputs * inputs.transpose();
    let floor = 0.5 * (outputs.norm_squared() - map.norm_squared());
    let white = Target::whitened(map).map_err(|_| shape((layout.depth(), outputs.nrows())))?;
    let floor = (data.floor() - floor).abs() / (0.5 * outputs.norm_squared());
    let net = LinearNet::of_layout(layout);
    let (data, white) = (Problem::new(net.clone(), data), Problem::new(net, white));
    hypothesis::expect_shape(&white, start)?;
    let (Some(of_data), Some(of_white)) = (follow(&data, start, 100.0), follow(&white, start, 100.0)) else {
        return Ok(WhitenedData { excess: f64::NAN, floor, times: f64::NAN });
    };
    let first = of_white.points().first().map_or(0.0, |p| p.loss);
    let end = of_white.points().last().map_or(0.0, |p| p.time).min(of_data.points().last().map_or(0.0, |p| p.time));
    let excess = largest((0..20).map(|i| {
        let time = end * f64::from(i) / 20.0;
        let pair = (of_data.loss_at(time), of_white.loss_at(time));
        if let (Some(a), Some(b)) = pair { (a - b).abs() / first } else { f64::NAN }
    }));
    let times: Vec<f64> = (1..=8)
        .filter_map(|i| {
            let level = first * 0.1_f64.powi(i);
            match (of_data.time_to(level), of_white.time_to(level)) {
                (Some(a), Some(b)) => Some((a / b - 1.0).abs()),
                (None, None) => None,
                _ => Some(f64::NAN),
            }
        })
        .collect();
    let times = if times.is_empty() { f64::NAN } else { largest(times) };
    Ok(WhitenedData { excess, floor, times })
}

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    let frozen = |general: bool| -> f64 {
        let runs: Vec<f64> = (0..30_u64)
            .into_par_iter()
            .map(|i| {
                let mut draw = Draw::new(seed, i);
                let (problem, weights) = frozen_instance(&mut draw, 3 + i as usize % 3, general);
                let flow = FrozenProduct::new(&problem, &weights);
                flow.map_or(f64::NAN, |flow| deviation(&problem, &weights, 20.0, |t| flow.loss(t)))
            })
            .collect();
        largest(runs)
    };
    let chains: Vec<f64> = (0..40_u64)
        .into_par_iter()
        .map(|i| {
            let mut draw = Draw::new(seed, 1000 + i);
            let chain = random_chain(&mut draw, 1 + i as usize % 6);
            deviation(&chain.problem(), &chain.weights(), 1e4, |t| chain.loss(t))
        })
        .collect();
    let whitened: Vec<WhitenedData> = (0..30_u64)
        .into_par_iter()
        .filter_map(|i| {
            let mut draw = Draw::new(seed, 2000 + i);
            let (layout, inputs, outputs) = data(&mut draw);
            let start =
                draw.weights(&Problem::whitened(&layout, DMatrix::zeros(inputs.nrows(), inputs.nrows())).ok()?, 0.3);
            compare_whitened(&layout, &inputs, &outputs, &start).ok()
        })
        .collect();
    let excess = largest(whitened.iter().map(|w| w.excess));
    let floor = largest(whitened.iter().map(|w| w.floor));
    let times = largest(whitened.iter().map(|w| w.times));
    let finding = |statement: &str, worst: f64, runs: usize| Finding {
        section: 6,
        source: Source::Proved,
        statement: statement.into(),
        measured: format!("off by {worst:.0e}, {runs} runs"),
        bound: "1e-9".into(),
        verdict: Verdict::holds_if(worst < 1e-9),
    };
    vec![
        finding("0:K-1, two zero layers below: L = L(0) e^(-2t)", frozen(false), 30),
        finding("the same, any X: sum of s|e|^2 e^(-2 s t) / 2", frozen(true), 30),
        finding("none, balanced, Y = 0: power -K/(K-1); e^-2t at K = 1", largest(chains.iter().copied()), chains.len()),
        Finding {
            section: 6,
            source: Source::Proved,
            statement: "X X^T = I, n > d: excess loss is that of Y X^T".into(),
            measured: format!("L {excess:.0e}, floor {floor:.0e}, t {times:.0e}, {}", whitened.len()),
            bound: "1e-9, 1e-12, 1e-6; 30 runs".into(),
            verdict: Verdict::holds_if(whitened.len() == 30 && excess < 1e-9 && floor < 1e-12 && times < 1e-6),
        },
    ]
}

/// Two zero layers below the last, the others and the data Gaussian.
fn frozen_instance(draw: &mut Draw, depth: usize, general: bool) -> (Problem, Weights) {
    let d = 1 + draw.below(5);
    let layout = Layout::new(depth, [(0, depth - 1)]).unwrap_or_else(|error| unreachable!("{error}"));
    let target = if general {
        let inputs = DMatrix::from_fn(d, d + 2, |_, _| draw.normal());
        let outputs = DMatrix::from_fn(d, d + 2, |_, _| draw.normal());
        Target::from_data(&inputs, &outputs)
    } else {
        Target::whitened(draw.target(TargetLaw::Gaussian, d))
    };
    let target = target.unwrap_or_else(|error| unreachable!("{error}"));
    let problem = Problem::new(LinearNet::of_layout(&layout), target);
    let mut weights = draw.weights(&problem, 0.7);
    let (first, step) = (draw.below(depth - 1), 1 + draw.below(depth - 2));
    for layer in [first, (first + step) % (depth - 1)] {
        weights.set_layer(layer + 1, &DMatrix::zeros(d, d));
    }
    (problem, weights)
}

fn random_chain(draw: &mut Draw, depth: usize) -> BalancedChain {
    let (d, epsilon) = (1 + draw.below(5), draw.uniform(0.2, 1.3));
    let factors = (0..=depth).map(|_| draw.orthogonal(d)).collect();
    BalancedChain::new(epsilon, factors).unwrap_or_else(|error| unreachable!("{error}"))
}

/// A fast layout, inputs with orthonormal rows and Gaussian outputs.
fn data(draw: &mut Draw) -> (Layout, DMatrix<f64>, DMatrix<f64>) {
    let (depth, d) = (3 + draw.below(2), 1 + draw.below(4));
    let n = d + 1 + draw.below(4);
    let mut layout = draw.layout(depth, true);
    if !layout.contains(0, depth - 1) {
        let shortcuts = layout.iter().map(|s| (s.source(), s.target())).chain([(0, depth - 1)]);
        layout = Layout::new(depth, shortcuts).unwrap_or_else(|error| unreachable!("{error}"));
    }
    let inputs = draw.orthogonal(n).rows(0, d).into_owned();
    let outputs = DMatrix::from_fn(d, n, |_, _| draw.normal());
    (layout, inputs, outputs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_statements_hold() {
        let findings = verify(16);
        assert_eq!(findings.len(), 4);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }

    #[test]
    fn the_statement_for_depth_three_is_as_written() {
        // L = 1/2 eps^6 (1 + 4 eps^4 t)^(-3/2) a mode, and its slope at 0 is minus the squared gradient, 3 eps^10.
        let chain = BalancedChain::new(0.5, vec![DMatrix::identity(2, 2); 4]).unwrap();
        let expected = |t: f64| 2.0 * 0.5 * 0.5_f64.powi(6) * (1.0 + 4.0 * 0.5_f64.powi(4) * t).powf(-1.5);
        assert!((chain.loss(7.0) - expected(7.0)).abs() < 1e-17);
        assert_eq!(crate::network::Gradient::at(&chain.problem(), &chain.weights()).0, expected(0.0));
        let slope = (chain.loss(1e-4) - chain.loss(0.0)) / 1e-4;
        assert!((slope / (-2.0 * 3.0 * 0.5_f64.powi(10)) - 1.0).abs() < 1e-4, "{slope}");
    }

    #[test]
    fn other_weights_and_other_forms_deviate() {
        let chain = random_chain(&mut Draw::new(6, 0), 3);
        assert!(deviation(&chain.problem(), &chain.weights(), 50.0, |t| chain.loss(1.01 * t)) > 1e-3);
        let (problem, mut weights) = frozen_instance(&mut Draw::new(6, 1), 3, false);
        let flow = FrozenProduct::new(&problem, &weights).unwrap();
        assert!((flow.rate() - 2.0).abs() < 1e-12);
        let d = problem.width();
        weights.set_layer(1, &(DMatrix::identity(d, d) * 0.5));
        weights.set_layer(2, &(DMatrix::identity(d, d) * 0.5));
        assert!(deviation(&problem, &weights, 5.0, |t| flow.loss(t)) > 1e-2);
    }

    #[test]
    fn failed_hypotheses_are_named() {
        let (problem, mut weights) = frozen_instance(&mut Draw::new(6, 2), 3, true);
        let d = problem.width();
        weights.set_layer(2, &DMatrix::identity(d, d));
        let message = FrozenProduct::new(&problem, &weights).unwrap_err().to_string();
        assert!(message.contains("zero layers below the last is 1"), "{message}");
        let skew = vec![DMatrix::from_element(1, 1, 1.1); 3];
        assert!(BalancedChain::new(0.5, skew).unwrap_err().to_string().contains("orthogonality"));
        assert!(BalancedChain::new(0.5, vec![]).is_err());
        assert!(BalancedChain::new(0.0, vec![DMatrix::identity(1, 1); 3]).is_err());
        let (layout, inputs, outputs) = data(&mut Draw::new(6, 3));
        let zeros = Problem::whitened(&layout, DMatrix::zeros(inputs.nrows(), inputs.nrows())).unwrap().zeros();
        assert!(compare_whitened(&layout, &(&inputs * 1.1), &outputs, &zeros).is_err());
        assert!(compare_whitened(&layout, &inputs, &outputs.columns(0, 1).into_owned(), &zeros).is_err());
        let deeper = Layout::none(layout.depth() + 1).unwrap();
        assert!(compare_whitened(&deeper, &inputs, &outputs, &zeros).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn flows_follow_their_forms(seed in any::<u64>(), depth in 3usize..=6, general in any::<bool>()) {
            let mut draw = Draw::new(seed, 0);
            let (problem, weights) = frozen_instance(&mut draw, depth, general);
            let flow = FrozenProduct::new(&problem, &weights).unwrap();
            prop_assert!(deviation(&problem, &weights, 10.0, |t| flow.loss(t)) < 1e-9);
            let (first, rate) = (flow.loss(0.0), flow.rate());
            prop_assert!((1..20).map(f64::from).all(|t| flow.loss(t) <= first * (-rate * t).exp() * (1.0 + 1e-9)));
            let chain = random_chain(&mut draw, depth - 1);
            prop_assert!(deviation(&chain.problem(), &chain.weights(), 1e3, |t| chain.loss(t)) < 1e-9, "{:?}", chain);
        }

        #[test]
        fn whitened_data_train_as_their_map(seed in any::<u64>()) {
            let mut draw = Draw::new(seed, 1);
            let (layout, inputs, outputs) = data(&mut draw);
            let d = inputs.nrows();
            let start = draw.weights(&Problem::whitened(&layout, DMatrix::zeros(d, d)).unwrap(), 0.3);
            let result = compare_whitened(&layout, &inputs, &outputs, &start).unwrap();
            let kept = result.excess < 1e-9 && result.floor < 1e-12 && result.times < 1e-6;
            prop_assert!(kept, "{}: {:?}", layout, result);
        }
    }
}
