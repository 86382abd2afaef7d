//! What zero weights are for a layout, and how long it takes to leave them.
//!
//! With `alpha_l` pure-shortcut paths from the input to node l-1 and `beta_l` from node l to the output, the end-to-end
//! map changes by `sum_l alpha_l beta_l dW_l` at zero weights. The neural tangent kernel there is `kappa0 I` with
//! `kappa0 = sum_l (alpha_l beta_l)²`: see [`initial_kernel_deviation`](super::identities::initial_kernel_deviation).
//!
//! If `kappa0 = 0`, zero weights are a saddle. Its order rho is the fewest weight layers on a path from the input to
//! the output. Weights of size eps leave it
//!
//! - for rho = 2 in a time `ln(1/eps) / c` with c the largest negative curvature at zero, for the linearised flow grows as
//!   `exp(c t)` (measured);
//! - for rho >= 3 in a time of the order of `eps^-(rho - 2)`, for a weight obeys `w' ~ w^(rho-1)` (measured).

use connection_layout::Layout;
use nalgebra::DMatrix;
use rayon::prelude::*;
use thiserror::Error;

use super::measure::{largest, median, smallest};
use crate::flow::{FlowSettings, GradientFlow, Tolerance};
use crate::network::{Gradient, Problem, TargetError};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// Zero weights are no saddle: the layout has a pure path around some layer.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{layout} leaves zero weights at once: kappa0 is {kappa0}, and a saddle needs 0")]
pub struct NoSaddle {
    /// The layout.
    pub layout: Layout,
    /// Its kappa0.
    pub kappa0: f64,
}

/// A layout for which zero weights are a saddle, whatever the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Saddle {
    layout: Layout,
    order: usize,
}

impl Saddle {
    /// Checks that `kappa0 = 0`.
    ///
    /// # Errors
    ///
    /// [`NoSaddle`] when it is positive.
    pub fn new(layout: Layout) -> Result<Self, NoSaddle> {
        let kappa0 = layout.pure_paths().kappa0();
        if kappa0 > 0.0 {
            return Err(NoSaddle { layout, kappa0 });
        }
        let order = layout.saddle_order();
        Ok(Self { layout, order })
    }

    /// All saddles of a depth, none above the depth that is enumerated.
    pub fn all(depth: usize) -> Vec<Self> {
        Layout::all(depth).into_iter().flatten().filter_map(|layout| Self::new(layout).ok()).collect()
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The order rho, at least 2.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The exponent p of the escape time `eps^-p`: rho - 2, where 0 stands for a logarithm.
    pub fn exponent(&self) -> f64 {
        self.order as f64 - 2.0
    }

    /// The largest negative curvature c of the loss at zero weights for a target; 0 for orders above 2.
    ///
    /// The gradient of the quadratic part of the loss is taken by central differences, then the spectrum: `K d²`
    /// evaluations and a decomposition of that size.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for a matrix that is no target.
    pub fn growth_rate(&self, target: &DMatrix<f64>) -> Result<f64, TargetError> {
        let problem = Problem::whitened(&self.layout, target.clone())?;
        let mut gradient = Gradient::new(&problem);
        let (n, step) = (problem.len(), 1e-4);
        let (mut point, mut plus, mut minus) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut curvature = DMatrix::zeros(n, n);
        for column in 0..n {
            point[column] = step;
            gradient.evaluate(&point, &mut plus);
            point[column] = -step;
            gradient.evaluate(&point, &mut minus);
            point[column] = 0.0;
            for row in 0..n {
                curvature[(row, column)] = (plus[row] - minus[row]) / (2.0 * step);
            }
        }
        let curvature = (&curvature + curvature.transpose()) * 0.5;
        Ok((-curvature.symmetric_eigenvalues().min()).max(0.0))
    }

    /// The time at which gradient flow from Gaussian weights of deviation eps has taken a tenth off the loss of zero
    /// weights; `None` when it has not by `until_time`.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for a matrix that is no target.
    pub fn escape_time(
        &self,
        target: &DMatrix<f64>,
        eps: f64,
        draw: &mut Draw,
        until_time: f64,
    ) -> Result<Option<f64>, TargetError> {
        let problem = Problem::whitened(&self.layout, target.clone())?;
        let until_loss = 0.9 * Gradient::new(&problem).loss(problem.zeros().values());
        let start = draw.weights(&problem, eps);
        // Small weights have to be followed as exactly as large ones.
        let tolerance = Tolerance { relative: 1e-7, absolute: 1e-7 * eps };
        let settings = FlowSettings { until_loss, until_time, tolerance, ..FlowSettings::default() };
        Ok(GradientFlow::new(&problem, settings).run(&start, |_, _| ()).reached())
    }

    /// The escape exponent between two scales of weights, `ln(T(small) / T(large)) / ln(large / small)`, with T the
    /// median over `instances` instances of a seed; each has the same target and directions of weights at both scales.
    ///
    /// `None` when more than half of the runs did not escape.
    pub fn measured_exponent(&self, large: f64, small: f64, width: usize, seed: u64, instances: u64) -> Option<f64> {
        let [slow, fast] = [small, large].map(|eps| {
            let times = (0..instances).map(|instance| {
                let mut draw = Draw::new(seed, instance);
                let target = draw.target(TargetLaw::Gaussian, width);
                self.escape_time(&target, eps, &mut draw, 1e9).ok().flatten().unwrap_or(f64::INFINITY)
            });
            median(times)
        });
        let exponent = (slow / fast).ln() / (large / small).ln();
        exponent.is_finite().then_some(exponent)
    }
}

/// Checks the statements on fresh instances: the escape from every saddle of depth 3 and 4.
pub fn verify(seed: u64) -> Vec<Finding> {
    let finding = |source, statement: &str, measured, bound: &str, verdict| {
        Finding::new(3, source, statement, measured, bound, verdict)
    };
    let saddles: Vec<Saddle> = [3, 4].into_iter().flat_map(Saddle::all).collect();
    let of_order = |order| saddles.iter().filter(move |saddle| saddle.order() == order).cloned().collect::<Vec<_>>();

    let second = of_order(2);
    let errors: Vec<f64> = second
        .par_iter()
        .enumerate()
        .map(|(index, saddle)| {
            let mut draw = Draw::new(seed, index as u64);
            let target = draw.target(TargetLaw::Gaussian, 4);
            let rate = saddle.growth_rate(&target).unwrap_or(f64::NAN);
            let [slow, fast] = [1e-12, 1e-6]
                .map(|eps| saddle.escape_time(&target, eps, &mut draw.clone(), 1e5).ok().flatten().unwrap_or(f64::NAN));
            ((slow - fast) * rate / 1e6_f64.ln() - 1.0).abs()
        })
        .collect();
    let escaped = errors.iter().filter(|error| error.is_finite()).count();
    let worst = largest(errors);
    let mut findings = vec![finding(
        Source::Measured,
        "escape in ln(1/eps) / largest curvature, rho = 2",
        format!("within {:.1}%, {escaped} of {} layouts", 100.0 * worst, second.len()),
        "5%",
        Verdict::holds_if(worst < 0.05 && !second.is_empty()),
    )];
    for (order, scales) in [(3, (1e-2, 1e-3)), (4, (1e-1, 1e-2))] {
        let saddles = of_order(order);
        let exponents: Vec<f64> =
            saddles.par_iter().filter_map(|saddle| saddle.measured_exponent(scales.0, scales.1, 4, seed, 21)).collect();
        let (low, high) = (smallest(exponents.iter().copied()), largest(exponents.iter().copied()));
        let expected = order as f64 - 2.0;
        let off = largest([expected - low, high - expected]);
        findings.push(finding(
            Source::Measured,
            &format!("escape in eps^-(rho - 2), rho = {order}"),
            format!("exponents {low:.3} to {high:.3}, {} of {}", exponents.len(), saddles.len()),
            &format!("{expected} within 0.1"),
            Verdict::holds_if(off < 0.1 && !saddles.is_empty() && exponents.len() == saddles.len()),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saddles_of_each_order() {
        let count = |depth, order| Saddle::all(depth).iter().filter(|saddle| saddle.order() == order).count();
        assert_eq!([2, 3].map(|order| count(3, order)), [6, 2]);
        assert_eq!([2, 3, 4].map(|order| count(4, order)), [48, 8, 2]);
        let error = Saddle::new(Layout::parse("0:2", 3).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "0:2 leaves zero weights at once: kappa0 is 1, and a saddle needs 0");
    }

    #[test]
    fn growth_rates_by_hand() {
        // W_3 W_2 (I + W_1): the quadratic part is -<Y, W_3 W_2>, whose largest curvature is the first singular value.
        let target = DMatrix::from_diagonal(&nalgebra::dvector![3.0, 1.0]);
        let rate =
            |text, depth| Saddle::new(Layout::parse(text, depth).unwrap()).unwrap().growth_rate(&target).unwrap();
        assert!((rate("0:1", 3) - 3.0).abs() < 1e-7);
        // Twice as many paths, twice the curvature; and none of second order.
        assert!((rate("0:1+0:2+1:2", 4) - 6.0).abs() < 1e-6);
        assert!(rate("none", 3) < 1e-3);
    }

    #[test]
    fn statements_hold() {
        let findings = verify(2);
        assert_eq!(findings.len(), 3);
        for finding in findings {
            assert_eq!(finding.verdict, Verdict::Holds, "{finding:?}");
        }
    }
}
