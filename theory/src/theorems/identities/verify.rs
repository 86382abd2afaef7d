//! Section 6 checked on fresh instances.

use connection_layout::{Direction, Layout};
use nalgebra::DMatrix;
use rayon::prelude::*;

use super::{
    balance_drift, conserved_nodes, euler_deviation, gradient_deviation, initial_kernel_deviation, kernel_deviation,
    largest, reversal_deviation, rotation_deviation,
};
use crate::network::{Connections, LinearNet, Problem, Scope, Softmax, Target, Weights};
use crate::theorems::measure::{median, smallest};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

const INSTANCES: u64 = 240;

/// Checks every identity of section 6 on fresh instances: depths 2 to 6, widths 1 to 6, layouts of any density, and
/// each kind of learned softmax.
pub fn verify(seed: u64) -> Vec<Finding> {
    let mut findings = Vec::from(pointwise(seed));
    findings.push(initial_kernel(seed));
    findings.extend(conservation(seed));
    findings
}

/// A random instance. Every fourth has fixed coefficients, the others a softmax; every third has general data.
fn instance(seed: u64, number: u64) -> (Problem, Weights, Draw) {
    let mut draw = Draw::new(seed, number);
    let (depth, d) = (2 + draw.below(5), 1 + draw.below(6));
    let connections = match number % 4 {
        0 => Connections::from(&draw.layout(depth, number.is_multiple_of(8))),
        kind => {
            let direction = if kind == 1 { Direction::Outgoing } else { Direction::Incoming };
            let scope = if kind == 3 { Scope::HiddenOnly } else { Scope::WithOutput };
            Connections::Learned(Softmax { direction, tau: draw.uniform(0.1, 1.0), scope })
        }
    };
    let target = match number % 3 {
        0 => {
            let inputs = wide(&mut draw, d);
            Target::from_data(&inputs, &wide(&mut draw, d))
        }
        _ => Target::whitened(draw.target(TargetLaw::Gaussian, d)),
    };
    // The depth, the temperature and the normal numbers are legal.
    let net = LinearNet::new(depth, connections).unwrap_or_else(|error| unreachable!("{error}"));
    let problem = Problem::new(net, target.unwrap_or_else(|error| unreachable!("{error}")));
    let mut weights = draw.weights(&problem, 0.5);
    weights.logits_mut().iter_mut().for_each(|logit| *logit = 0.2 * draw.normal());
    (problem, weights, draw)
}

/// A d x 2d matrix of normal numbers of variance 1/(2d), whose covariance is the identity on average.
fn wide(draw: &mut Draw, d: usize) -> DMatrix<f64> {
    let deviation = (2.0 * d as f64).sqrt().recip();
    let (left, right) = (draw.gaussian(d, deviation), draw.gaussian(d, deviation));
    DMatrix::from_fn(d, 2 * d, |i, j| if j < d { left[(i, j)] } else { right[(i, j - d)] })
}

/// An instance of a layout on whitened data.
fn of_layout(layout: &Layout, target: DMatrix<f64>) -> Problem {
    // Targets here are drawn, and finite.
    Problem::whitened(layout, target).unwrap_or_else(|error| unreachable!("{error}"))
}

fn finding(source: Source, statement: &str, measured: String, bound: &str, verdict: Verdict) -> Finding {
    Finding { section: 6, source, statement: statement.into(), measured, bound: bound.into(), verdict }
}

/// One finding for the largest of some deviations.
fn at_most(source: Source, statement: &str, deviations: &[f64], tolerance: f64) -> Finding {
    let worst = largest(deviations.iter().copied());
    let measured = format!("{worst:.0e}, {} instances", deviations.len());
    let bound = if tolerance == 0.0 { "exact".into() } else { format!("{tolerance:.0e}") };
    finding(source, statement, measured, &bound, Verdict::holds_if(worst <= tolerance && !deviations.is_empty()))
}

fn over(seed: u64, deviation: impl Fn(&Problem, &Weights, &mut Draw) -> Option<f64> + Sync) -> Vec<f64> {
    let one = |number| {
        let (problem, weights, mut draw) = instance(seed, number);
        deviation(&problem, &weights, &mut draw)
    };
    (0..INSTANCES).into_par_iter().filter_map(one).collect()
}

fn pointwise(seed: u64) -> [Finding; 5] {
    let gradient = over(seed, |problem, weights, _| Some(gradient_deviation(problem, weights)));
    let euler = over(seed, |problem, weights, _| Some(euler_deviation(problem, weights)));
    let reversal = over(seed, |problem, weights, _| reversal_deviation(problem, weights));
    let rotation = over(seed, |problem, weights, draw| {
        let q = draw.orthogonal(problem.width());
        rotation_deviation(problem, weights, &q)
    });
    let kernel = over(seed, |problem, weights, _| Some(kernel_deviation(problem, weights)));
    [
        at_most(Source::Measured, "gradient = central differences, weights and logits", &gradient, 1e-7),
        at_most(Source::Proved, "sum <W_l, dL/dW_l> = <E, sum k f_k>", &euler, 1e-12),
        at_most(Source::Proved, "reversal j:i to (K-i):(K-j), loss and gradient", &reversal, 1e-12),
        at_most(Source::Proved, "rotation Q W Qᵀ, Q A* Qᵀ, loss and gradient", &rotation, 1e-12),
        at_most(Source::Proved, "|dL/dW|² = eᵀ N e", &kernel, 1e-12),
    ]
}

fn initial_kernel(seed: u64) -> Finding {
    let every = (1..=4).filter_map(|depth| Layout::all(depth).ok()).flatten();
    let more = (0..100).map(|number| Draw::new(seed, number).layout(5 + number as usize % 2, false));
    let layouts: Vec<Layout> = every.chain(more).collect();
    let deviations: Vec<f64> =
        layouts.par_iter().map(|layout| initial_kernel_deviation(&LinearNet::of_layout(layout), 2)).collect();
    at_most(Source::Proved, "N(0) = kappa0 I, every layout of K <= 4 and more", &deviations, 0.0)
}

fn conservation(seed: u64) -> [Finding; 2] {
    let drifts = |number| {
        let mut draw = Draw::new(seed, number);
        let (depth, d) = (2 + draw.below(5), 2 + draw.below(5));
        // A few shortcuts leave some nodes conserved.
        let layout = if number % 2 == 0 { draw.layout(depth, false) } else { sparse(&mut draw, depth) };
        let problem = of_layout(&layout, draw.target(TargetLaw::Gaussian, d));
        let start = draw.weights(&problem, 0.5);
        let conserved = conserved_nodes(&layout);
        let drift = |node| Some((conserved.contains(&node), balance_drift(&problem, &start, node, 2.0)?));
        (1..depth).filter_map(drift).collect::<Vec<_>>()
    };
    let drifts: Vec<(bool, f64)> = (0..INSTANCES).into_par_iter().flat_map_iter(drifts).collect();
    let of = |kind| drifts.iter().filter(|(conserved, _)| *conserved == kind).map(|d| d.1).collect::<Vec<_>>();
    let (kept, broken) = (of(true), of(false));
    let (median, least) = (median(broken.iter().copied()), smallest(broken.iter().copied()));
    let some = !broken.is_empty() && !broken.iter().any(|drift| drift.is_nan());
    [
        at_most(Source::Proved, "balance kept at nodes within n-1:n, n:n+1, t <= 2", &kept, 1e-9),
        finding(
            Source::Proved,
            "balance kept at every node",
            format!("others: median {median:.2}, least {least:.0e} of {}", broken.len()),
            "median > 2e-2, least > 1e-6",
            Verdict::refuted_if(some && median > 2e-2 && least > 1e-6),
        ),
    ]
}

/// About one shortcut for two layers.
fn sparse(draw: &mut Draw, depth: usize) -> Layout {
    let mut pairs: Vec<(usize, usize)> = (0..depth.div_ceil(2))
        .map(|_| {
            let target = 1 + draw.below(depth);
            (draw.below(target), target)
        })
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    // Sources lie before targets, targets within the depth, and none is twice there.
    Layout::new(depth, pairs).unwrap_or_else(|error| unreachable!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identity_holds_on_fresh_instances() {
        let findings = verify(1);
        assert_eq!(findings.len(), 8);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }
}
