//! Section 5 checked on fresh instances.

use connection_layout::{Direction, NamedLayout};
use rayon::prelude::*;
use statistics::median;

use super::{
    Row, Run, SETTLED, UNTIL_TIME, Variant, WIDTH, best_single_shortcut, fixed_time, range, rescaling_deviation,
    sorted, variant,
};
use crate::flow::Optimizer;
use crate::network::Scope;
use crate::theorems::measure::largest;
use crate::{Finding, Source, Verdict};

const INSTANCES: u64 = 8;

/// Checks section 5 on fresh instances: which variants are fast, what they find, and what the temperature means.
pub fn verify(seed: u64) -> Vec<Finding> {
    use Direction::{Incoming, Outgoing};
    use Scope::{HiddenOnly, WithOutput};
    let row = |depth, scope, direction, tau, speed| {
        Row::new(variant((depth, scope, direction, tau, speed)), seed, INSTANCES, UNTIL_TIME)
    };
    let mut findings = Vec::new();
    for (depth, direction) in [(3, Incoming), (4, Incoming), (3, Outgoing), (4, Outgoing)] {
        findings.extend(hidden_only(&row(depth, HiddenOnly, direction, 0.01, 1.0), seed));
    }
    for direction in [Incoming, Outgoing] {
        findings.extend(with_output(&row(3, WithOutput, direction, 0.01, 1.0), seed));
    }
    let mixed = row(3, WithOutput, Incoming, 1.0, 1.0);
    findings.push(stays_mixed(&mixed, seed));
    findings.push(slow_logits(&mixed, &row(3, WithOutput, Incoming, 0.01, 1e-4)));
    findings.extend(temperature(seed));
    findings
}

fn finding(source: Source, statement: impl Into<String>, measured: String, bound: &str, verdict: Verdict) -> Finding {
    Finding { section: 5, source, statement: statement.into(), measured, bound: bound.into(), verdict }
}

fn short(variant: &Variant) -> String {
    let direction = if variant.softmax.direction == Direction::Incoming { "per target" } else { "per source" };
    format!("K={}, tau {}, {direction}", variant.depth(), variant.softmax.tau)
}

fn hidden_only(row: &Row, seed: u64) -> [Finding; 2] {
    let depth = row.variant.depth();
    // One an instance: what cannot be measured stays in its place, and nothing is ahead of it.
    let best = |i| best_single_shortcut(depth, row.variant.width, seed, i).map_or(f64::NAN, |(time, _)| time);
    let best: Vec<f64> = (0..INSTANCES).into_par_iter().map(best).collect();
    let ahead = row.runs.iter().zip(&best).filter(|(run, best)| run.reached().is_some_and(|t| t <= **best)).count();
    let all = row.runs.len();
    let times = format!("{ahead} of {all}: {} against {}", range(&row.times()), range(&sorted(best.into_iter())));
    let cascade = NamedLayout::HiddenCascade.at_depth(depth).ok();
    let found = row.runs.iter().filter(|r| Some(r.found.layout()) == cascade && !r.found.is_mixed()).count();
    let name = short(&row.variant);
    [
        finding(
            Source::Measured,
            format!("hidden-only ({name}) beats every single shortcut"),
            times,
            "time to 1e-10, each seed",
            Verdict::holds_if(ahead as u64 == INSTANCES),
        ),
        finding(
            Source::Measured,
            format!("hidden-only ({name}) finds the hidden cascade"),
            format!("{found} of {all}, rate {}", range(&row.rates())),
            "all seeds",
            Verdict::holds_if(cascade.is_some() && found as u64 == INSTANCES),
        ),
    ]
}

fn single_times(seed: u64) -> Vec<f64> {
    let layout = NamedLayout::InputToLastHidden.at_depth(3).unwrap_or_else(|e| unreachable!("{e}"));
    (0..INSTANCES).into_par_iter().map(|i| fixed_time(&layout, WIDTH, seed, i, UNTIL_TIME)).collect()
}

fn with_output(row: &Row, seed: u64) -> [Finding; 2] {
    let single = single_times(seed);
    let slow: Vec<&Run> = row.runs.iter().zip(&single).filter(|(r, t)| r.time > 2.0 * **t).map(|(r, _)| r).collect();
    let all = row.runs.len() as u64 == INSTANCES && single.iter().all(|time| time.is_finite());
    let cascade = NamedLayout::Cascade.at_depth(row.variant.depth()).ok();
    let settled = slow.iter().filter(|run| Some(run.found.layout()) == cascade).count();
    let (name, times) = (short(&row.variant), row.times());
    [
        finding(
            Source::Measured,
            format!("with output ({name}) is as fast as 0:2"),
            format!("{} of {} slow: {}, median {:.0}", slow.len(), row.runs.len(), range(&times), median(&times)),
            "slow: over twice 0:2's time",
            Verdict::refuted_if(all && !slow.is_empty()),
        ),
        finding(
            Source::Measured,
            format!("its slow runs sit at the full cascade ({name})"),
            format!("{settled} of {}, rate {}", slow.len(), range(&row.rates())),
            "all slow runs",
            // Of no slow run at all this would say nothing.
            Verdict::holds_if(all && cascade.is_some() && !slow.is_empty() && settled == slow.len()),
        ),
    ]
}

fn stays_mixed(row: &Row, seed: u64) -> Finding {
    // A single shortcut that was never timed is no number: no time is short against it.
    let ratio = |(run, single): (&Run, f64)| if single.is_finite() { run.time / single } else { f64::NAN };
    let worst = largest(row.runs.iter().zip(single_times(seed)).map(ratio));
    let decision = largest(row.runs.iter().map(|run| run.found.decision()));
    let all = row.runs.len() as u64 == INSTANCES && row.unfinished() == 0;
    finding(
        Source::Measured,
        format!("with output ({}) stays mixed, as fast as 0:2", short(&row.variant)),
        format!("{}, {worst:.2} of 0:2's, share {decision:.2}", range(&row.times())),
        "1.1 of 0:2's, share < .9",
        Verdict::holds_if(all && worst <= 1.1 && decision <= SETTLED),
    )
}

fn slow_logits(unit: &Row, slow: &Row) -> Finding {
    let pairs = unit.runs.iter().zip(&slow.runs);
    let worst = largest(pairs.map(|(a, b)| (a.time / b.time - 1.0).abs()));
    // Two runs that are given up at the same time agree on nothing.
    let all = [unit, slow].iter().all(|row| row.runs.len() as u64 == INSTANCES && row.unfinished() == 0);
    finding(
        Source::Proved,
        "flow: tau .01 with logit speed tau² = tau 1",
        format!("times differ by {worst:.0e}, {} seeds", unit.runs.len()),
        "5e-5",
        Verdict::holds_if(all && worst < 5e-5),
    )
}

fn temperature(seed: u64) -> [Finding; 3] {
    let tiny = f64::MIN_POSITIVE;
    let descent = Optimizer::GradientDescent { rate: 0.05, logit_rate: 1e-4 };
    let adam = |epsilon| Optimizer::Adam { rate: 0.01, logit_rate: 1e-3, betas: (0.9, 0.999), epsilon };
    // 2^-7 is the power of two next to .01.
    let worst = |optimizer| {
        let deviation = |i| {
            let scope = if i % 2 == 0 { Scope::HiddenOnly } else { Scope::WithOutput };
            let direction = if i % 4 < 2 { Direction::Incoming } else { Direction::Outgoing };
            let (problem, start) = variant((3 + i as usize % 3, scope, direction, 1.0 / 128.0, 1.0)).instance(seed, i);
            rescaling_deviation(&problem, &start, optimizer, 200).unwrap_or(f64::NAN)
        };
        largest((0..12).into_par_iter().map(deviation).collect::<Vec<_>>())
    };
    let (descent, exact, usual) = (worst(descent), worst(adam(tiny)), worst(adam(1e-8)));
    [
        finding(
            Source::Proved,
            "GD(tau, r) is GD(1, r/tau²), 200 steps",
            format!("{descent:.0e} at tau 2^-7, 12 nets"),
            "exact",
            Verdict::holds_if(descent == 0.0),
        ),
        finding(
            Source::Proved,
            "Adam(tau, r) is Adam(1, r/tau), epsilon 0+",
            format!("{exact:.0e} at tau 2^-7, 12 nets"),
            "exact",
            Verdict::holds_if(exact == 0.0),
        ),
        finding(
            Source::Proved,
            "the same for Adam's usual epsilon 1e-8",
            format!("off by {usual:.0e}"),
            "not exact",
            Verdict::refuted_if(usual > 0.0 && usual.is_finite()),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_comes_out() {
        let findings = verify(1);
        assert_eq!(findings.len(), 17);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let variant = variant((3, Scope::WithOutput, Direction::Incoming, 1.0, 1.0));
        let never = Row::new(variant.clone(), 1, INSTANCES, 0.1);
        assert_eq!(never.unfinished() as u64, INSTANCES);
        assert_eq!(slow_logits(&never, &never).verdict, Verdict::Fails);
        assert_eq!(stays_mixed(&never, 1).verdict, Verdict::Fails);
        let none = Row { variant, runs: Vec::new() };
        assert_eq!(slow_logits(&none, &none).verdict, Verdict::Fails);
        let findings = [hidden_only(&none, 1), with_output(&none, 1)];
        assert!(findings.iter().flatten().all(|finding| finding.verdict == Verdict::Fails));
    }
}
