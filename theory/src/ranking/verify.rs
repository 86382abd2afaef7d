//! The paper's empirical claims about layouts, and what holds.

use connection_layout::Layout;
use nalgebra::DMatrix;
use rayon::prelude::*;

use super::chains::{ChainMinimum, chains};
use super::medians::{COLUMNS, MEDIANS, Median, flow_times};
use super::ranked::Ranking;
use super::settings::RankingSettings;
use crate::flow::{Descent, DescentSettings, FlowSettings, GradientFlow, Optimizer, Tolerance};
use crate::network::{EndToEnd, Problem};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

fn finding(source: Source, statement: &str, measured: String, bound: &str, verdict: Verdict) -> Finding {
    Finding { section: 4, source, statement: statement.to_owned(), measured, bound: bound.to_owned(), verdict }
}

/// A time, or that it is beyond the time of the flow.
fn time(value: f64) -> String {
    if value.is_infinite() {
        "> 200".to_owned()
    } else if value < 20.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    verify_on(seed, 1)
}

/// The same on one of `thrift` instances, at least one.
pub(super) fn verify_on(seed: u64, thrift: u64) -> Vec<Finding> {
    let mut findings = medians(seed, thrift);
    findings.extend(by_determinant(seed, 201 / thrift));
    findings.extend(near_identity(seed, 101 / thrift));
    for (depth, claimed, instances) in [(3, "0:2", 9), (4, "0:2+2:3", 3)] {
        findings.extend(full_ranking(
            depth,
            claimed,
            RankingSettings { instances: (instances / thrift).max(1), ..RankingSettings::new(depth, 5, seed) },
        ));
    }
    findings.push(chain_minimum(seed));
    findings.push(chain_rates());
    findings.push(chain_winners(seed));
    findings
}

/// The table of median times.
fn medians(seed: u64, thrift: u64) -> Vec<Finding> {
    let row = |row: &super::medians::MedianRow| {
        let measured = COLUMNS.iter().map(|&(depth, width)| {
            let instances = if row.wide { 401 } else { 101 } / thrift;
            let settings = RankingSettings { instances, ..RankingSettings::new(depth, width, seed) };
            let layout = Layout::parse(row.layout, depth).ok()?;
            Median::of(&flow_times(&settings, &layout).ok()?)
        });
        let measured: Vec<Median> = measured.collect::<Option<_>>()?;
        let agree = measured.iter().zip(row.medians).all(|(median, stated)| median.agrees(stated, 0.05));
        let times: Vec<String> = measured.iter().map(|median| time(median.spread.median)).collect();
        let stated: Vec<String> = row.medians.iter().map(|&median| time(median)).collect();
        Some(finding(
            Source::Measured,
            &format!("median time, {}: K d = 3 5, 3 10, 4 5", row.layout),
            format!("{}; {} targets", times.join(", "), measured[0].count),
            &format!("{}{}", stated.join(", "), if row.wide { " (99.9%)" } else { " (5%)" }),
            Verdict::holds_if(agree),
        ))
    };
    MEDIANS.iter().filter_map(row).collect()
}

/// The two groups of the cascade.
fn by_determinant(seed: u64, instances: u64) -> Option<Finding> {
    let settings = RankingSettings { instances, ..RankingSettings::new(3, 5, seed) };
    let times = flow_times(&settings, &Layout::parse("cascade", 3).ok()?).ok()?;
    let of_sign = |positive: bool| {
        let determinant = |instance: u64| settings.instance(instance).0.determinant();
        let group = (0..settings.instances).zip(&times).filter(|(i, _)| (determinant(*i) > 0.0) == positive);
        Median::of(&group.map(|(_, &time)| time).collect::<Vec<_>>()).map(|median| median.spread.median)
    };
    let (positive, negative) = (of_sign(true)?, of_sign(false)?);
    Some(finding(
        Source::Measured,
        "cascade, K = 3, d = 5: det Y < 0 is the slow half",
        format!("median {} and {}, {instances} targets", time(positive), time(negative)),
        "det Y > 0 at least 3 x faster",
        Verdict::holds_if(negative > 3.0 * positive),
    ))
}

/// A law of targets for which the paper's ranking is the other way around.
fn near_identity(seed: u64, instances: u64) -> Option<Finding> {
    let law = TargetLaw::NearIdentity;
    let settings = RankingSettings { law, instances, ..RankingSettings::new(3, 5, seed) };
    let median =
        |text: &str| Some(Median::of(&flow_times(&settings, &Layout::parse(text, 3).ok()?).ok()?)?.spread.median);
    let (cascade, single) = (median("cascade")?, median("0:2")?);
    Some(finding(
        Source::Paper,
        "0:2 beats the cascade; Y = I + G/2, K = 3, d = 5",
        format!("median {} and {}, {instances} targets", time(single), time(cascade)),
        "0:2 faster",
        Verdict::refuted_if(cascade < single),
    ))
}

/// Where the layout that the paper found best stands among all of its depth.
fn full_ranking(depth: usize, claimed: &str, settings: RankingSettings) -> Vec<Finding> {
    let (Ok(ranking), Ok(layout)) = (Ranking::measure(&settings, |_| ()), Layout::parse(claimed, depth)) else {
        return Vec::new();
    };
    let (Some(class), Some(first)) = (ranking.class_of(&layout), ranking.classes().first()) else {
        return Vec::new();
    };
    let (count, instances) = (ranking.entries().len(), settings.instances);
    let best = &ranking.entries()[first.members[0]];
    let by_steps = ranking.by_descent();
    let fewest = by_steps[0];
    let single = &ranking.entries()[fewest.members[0]];
    let rate = class.summary.best_rate.map_or(f64::NAN, |rate| settings.rates[rate]);
    let mut findings = vec![
        finding(
            Source::Measured,
            &format!("fastest of all under flow, K = {depth}, d = {}", settings.width),
            format!("{} with {} shortcuts", time(first.summary.flow.median), best.layout.len()),
            if depth == 3 { "1.37 (10%)" } else { "0.40 (10%)" },
            Verdict::holds_if((first.summary.flow.median / if depth == 3 { 1.37 } else { 0.40 } - 1.0).abs() < 0.1),
        ),
        finding(
            Source::Paper,
            &format!("{claimed} is the fastest under flow, K = {depth}"),
            format!("rank {} of {count}, {instances} targets", class.flow_rank),
            "rank 1",
            Verdict::refuted_if(class.flow_rank > count / 4),
        ),
    ];
    let statement = format!("{claimed} takes the fewest GD steps, best rates, K = {depth}");
    let measured = format!("rank {}: {} steps at rate {rate}", class.descent_rank, class.summary.fewest_steps());
    let bound = format!("{}: {} steps", single.layout, fewest.summary.fewest_steps());
    let verdict = if depth == 3 {
        Verdict::holds_if(class.descent_rank == 1)
    } else {
        Verdict::refuted_if(class.summary.fewest_steps() >= 2.0 * fewest.summary.fewest_steps())
    };
    findings.push(finding(Source::Paper, &statement, measured, &bound, verdict));
    findings
}

/// The closed form of the minimum of a chain against the one that training finds.
fn chain_minimum(seed: u64) -> Finding {
    let worst = |blocks: usize| {
        let target = Draw::new(seed, 500 + blocks as u64).target(TargetLaw::Gaussian, 5);
        let problem = Problem::whitened(&Layout::parse("hidden-cascade", blocks + 1).ok()?, target).ok()?;
        let settings = FlowSettings { tolerance: Tolerance::FINE, ..FlowSettings::default() };
        let end = GradientFlow::new(&problem, settings).run(&problem.zeros(), |_, _| ()).weights;
        let minimum = ChainMinimum::new(blocks, problem.target().singular_values().as_slice())?;
        let measured = EndToEnd::new(problem.net(), &end).kernel_spectrum();
        Some((measured - minimum.kernel_spectrum()).amax() / minimum.sharpness())
    };
    let worst = (0..=3).map(worst).try_fold(0.0, |largest, next| Some(f64::max(largest, next?))).unwrap_or(f64::NAN);
    finding(
        Source::Proved,
        "kernel at the minimum of a chain, m = 0..3, d = 5",
        format!("relative {worst:.1e}"),
        "1e-5",
        Verdict::holds_if(worst < 1e-5),
    )
}

/// The largest stable rates at the singular value of the paper's example.
fn chain_rates() -> Finding {
    let stated = [2.0, 0.48, 0.25, 0.16];
    let rates = [0, 1, 2, 3].map(|m| ChainMinimum::new(m, &[2.01]).map_or(f64::NAN, |minimum| minimum.largest_rate()));
    let list = rates.map(|rate| format!("{rate:.3}")).join(", ");
    finding(
        Source::Proved,
        "largest stable rates at sigma = 2.01, m = 0..3",
        list,
        "2, .48, .25, .16",
        Verdict::holds_if(rates.iter().zip(stated).all(|(rate, stated)| (rate - stated).abs() < 0.005)),
    )
}

/// The number m of the chain that takes the fewest steps of gradient descent, and how many steps. `None` when no chain
/// gets there.
///
/// The pool is that of [`chains`]; the rate is 1.5 over the sharpness of the chain with m = 1, which is stable for m <=
/// 1 and not for m >= 2.
fn chain_winner(depth: usize, target: &DMatrix<f64>, weights: &[DMatrix<f64>]) -> Option<(usize, usize)> {
    let one = ChainMinimum::new(1, target.clone().singular_values().as_slice())?;
    let optimizer = Optimizer::gradient_descent(1.5 / one.sharpness());
    let runs = chains(depth).ok()?.into_iter().filter_map(|(layout, blocks)| {
        let problem = Problem::whitened(&layout, target.clone()).ok()?;
        let start = problem.weights(&weights[..depth]).ok()?;
        let settings = DescentSettings::new(optimizer, 1e-6 * problem.target().scale(), 5000);
        Some((Descent::new(&problem).run(&start, &settings, |_, _, _| ()).reached()?, blocks))
    });
    runs.min().map(|(steps, blocks)| (blocks, steps))
}

/// Which chains win under gradient descent at depth 3 and 4.
fn chain_winners(seed: u64) -> Finding {
    let d = 8;
    let winners: Vec<[Option<(usize, usize)>; 2]> = (0..20)
        .into_par_iter()
        .map(|instance| {
            let mut draw = Draw::new(seed, 600 + instance);
            let target = draw.target(TargetLaw::Gaussian, d);
            let weights: Vec<_> = (0..4).map(|_| draw.gaussian(d, 0.01 / (d as f64).sqrt())).collect();
            [3, 4].map(|depth| chain_winner(depth, &target, &weights))
        })
        .collect();
    let won = |depth: usize, blocks: usize| {
        winners.iter().filter(|both| both[depth - 3].is_some_and(|(winner, _)| winner == blocks)).count()
    };
    let (three, four) = (won(3, 0), won(4, 1));
    finding(
        Source::Measured,
        "chains, GD at 1.5/sharpness(m=1): 0:2, then 0:2+2:3 (m=1)",
        format!("{three} and {four} of 20 targets"),
        "20 and 20",
        Verdict::holds_if((three, four) == (20, 20)),
    )
}
