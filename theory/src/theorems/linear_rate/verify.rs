//! Section 1 checked on fresh instances.

use connection_layout::Layout;
use rayon::prelude::*;

use super::{LinearRate, ProductPath, opposed_layers, opposed_limit, rate};
use crate::network::{Problem, Weights};
use crate::theorems::measure::{largest, smallest};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    let cases: Vec<(u64, usize, usize, f64)> = [3, 4, 5, 6]
        .into_iter()
        .flat_map(|depth| (1..=6).flat_map(move |d| [0.3, 1.0, 2.0, 3.5].map(|target| (depth, d, target))))
        .zip(0..)
        .map(|((depth, d, target), instance)| (instance, depth, d, target))
        .collect();
    let runs: Vec<_> = cases
        .par_iter()
        .map(|&(instance, depth, d, target)| {
            let mut draw = Draw::new(seed, instance);
            let problem = instance_of(&mut draw, depth, d, target);
            let certified = largest_certified(&problem, &draw.weights(&problem, (d as f64).sqrt().recip()));
            // Any weights: no certificate, but the rate along the path has to hold.
            let any = draw.weights(&problem, 0.4 * (d as f64).sqrt().recip());
            (certified, ProductPath::follow(&problem, &any).ok())
        })
        .collect();
    let certified: Vec<_> = runs.iter().filter_map(|run| run.0.as_ref()).collect();
    let slack = smallest(certified.iter().map(|(c, path)| path.decay.lowest_rate() / c.rate()));
    let share = largest(certified.iter().map(|(c, path)| path.largest_product() / c.lambda()));
    let kept = certified.len() == cases.len() && certified.iter().all(|(c, path)| path.decay.keeps(c.rate()));
    let paths: Vec<_> =
        runs.iter().filter_map(|run| run.1.as_ref()).filter_map(|p| p.rate().map(|rate| (p, rate))).collect();
    let path_slack = smallest(paths.iter().map(|(p, rate)| p.decay.lowest_rate() / rate));
    // Those whose supremum is 1 or more are no instances; those that did not get to their end are a failure.
    let ended = runs.iter().all(|run| run.1.as_ref().is_some_and(|path| path.decay.arrived()));
    let path_kept = ended && paths.len() >= 48 && paths.iter().all(|(p, rate)| p.decay.keeps(*rate));
    let mut findings = vec![
        Finding {
            section: 1,
            source: Source::Paper,
            statement: "0:K-1, small weights: L <= L(0) e^(-2(1-lambda)^2 t)".into(),
            measured: format!("least rate / bound {slack:.4}, {} runs", certified.len()),
            bound: ">= 1".into(),
            verdict: Verdict::holds_if(kept),
        },
        Finding {
            section: 1,
            source: Source::Proved,
            statement: "0:K-1, small weights: |M(t)| < lambda for ever".into(),
            measured: format!("largest |M| / lambda {share:.3}"),
            bound: "< 1".into(),
            verdict: Verdict::holds_if(certified.len() == cases.len() && share < 1.0),
        },
        Finding {
            section: 1,
            source: Source::Proved,
            statement: "0:K-1, any weights with lambda = sup |M(t)| < 1".into(),
            measured: format!("least rate / bound {path_slack:.4}, {} runs", paths.len()),
            bound: ">= 1".into(),
            verdict: Verdict::holds_if(path_kept),
        },
    ];
    findings.extend(refuted_variant());
    findings
}

/// A target of Frobenius norm `size`.
pub(super) fn instance_of(draw: &mut Draw, depth: usize, d: usize, size: f64) -> Problem {
    let layout = Layout::new(depth, [(0, depth - 1)]).unwrap_or_else(|error| unreachable!("{error}"));
    let target = draw.target(TargetLaw::Gaussian, d);
    let target = &target * (size / target.norm());
    Problem::whitened(&layout, target).unwrap_or_else(|error| unreachable!("{error}"))
}

/// The flow from weights in a given direction that are nearly as large as the certificate allows.
pub(super) fn largest_certified(problem: &Problem, direction: &Weights) -> Option<(LinearRate, ProductPath)> {
    (0..400).find_map(|halvings| {
        let mut weights = direction.clone();
        let scale = 0.9_f64.powi(halvings);
        weights.values_mut().iter_mut().for_each(|w| *w *= scale);
        let certificate = LinearRate::new(problem, &weights).ok()?;
        Some((certificate, ProductPath::follow(problem, &weights).ok()?))
    })
}

fn refuted_variant() -> Vec<Finding> {
    let violation = |scale: f64, output: f64, target: f64| {
        let (problem, weights) = opposed_layers(scale, output, target).ok()?;
        let path = ProductPath::follow(&problem, &weights).ok()?;
        Some((path.decay.worst_log_ratio(rate(scale * scale)), path))
    };
    let at = |scale: f64| violation(scale, -scale, 1.0).map_or(f64::NAN, |v| v.0);
    let (small, large) = (at(0.2), at(0.5));
    // For target 0 the final rate is known, and the violation grows without bound.
    let ends = [0.2, 0.5].map(|scale: f64| {
        let limit = opposed_limit(scale, scale).map_or(f64::NAN, rate);
        let last = violation(scale, scale, 0.0).and_then(|v| {
            let decay = v.1.decay;
            decay.points().last().filter(|_| decay.arrived()).map(|p| -p.slope / p.loss)
        });
        (rate(scale * scale), limit, last.unwrap_or(f64::NAN))
    });
    let found = ends.iter().all(|(claimed, limit, last)| (last / limit - 1.0).abs() < 1e-4 && limit < claimed);
    vec![
        Finding {
            section: 1,
            source: Source::Proved,
            statement: "0:2 with lambda = |W2(0) W1(0)| (W = s, -s, -s; Y = 1)".into(),
            measured: format!("ln L/bound: {small:.1e} s=.2, {large:.1e} s=.5"),
            bound: "<= 0".into(),
            verdict: Verdict::refuted_if(small > 5e-4 && large > 0.1),
        },
        Finding {
            section: 1,
            source: Source::Proved,
            statement: "0:2 with lambda = |W2(0) W1(0)| (W = s, -s, s; Y = 0)".into(),
            measured: format!("final rate {:.3} s=.2, {:.3} s=.5", ends[0].2, ends[1].2),
            bound: format!(">= {:.3}, {:.3}", ends[0].0, ends[1].0),
            verdict: Verdict::refuted_if(found),
        },
    ]
}
