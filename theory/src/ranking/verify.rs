//! The paper's empirical claims about layouts, and what holds.

use connection_layout::Layout;
use nalgebra::DMatrix;
use rayon::prelude::*;

use super::chains::{ChainMinimum, chains};
use super::measure::Spread;
use super::medians::{COLUMNS, MEDIAN_TIME, MEDIANS, MedianRow, WIDE_TARGETS, flow_times};
use super::ranked::{Class, Ranking};
use super::settings::RankingSettings;
use crate::flow::{Descent, DescentSettings, FlowSettings, GradientFlow, Optimizer, Tolerance};
use crate::network::{EndToEnd, Problem};
use crate::theorems::measure::{largest, smallest};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// How many statements are checked.
#[cfg(test)]
pub(super) const FINDINGS: usize = 18;

fn finding(source: Source, statement: &str, measured: String, bound: &str, verdict: Verdict) -> Finding {
    Finding { section: 4, source, statement: statement.to_owned(), measured, bound: bound.to_owned(), verdict }
}

/// A time, or that it is beyond the time of the flow.
fn time(value: f64) -> String {
    if value.is_infinite() {
        format!("> {MEDIAN_TIME}")
    } else if value < 20.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// Steps with the noun.
fn steps(value: f64) -> String {
    if value == 1.0 { "1 step".to_owned() } else { format!("{value} steps") }
}

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    verify_on(seed, 1)
}

/// The same on one of `thrift` instances, at least one.
pub(super) fn verify_on(seed: u64, thrift: u64) -> Vec<Finding> {
    let mut findings: Vec<Finding> = MEDIANS.iter().map(|row| medians(row, seed, thrift)).collect();
    findings.push(by_determinant(seed, 201 / thrift));
    findings.push(near_identity(seed, 101 / thrift));
    findings.extend(full_ranking(&THREE, (9 / thrift).max(1), seed));
    findings.extend(full_ranking(&FOUR, (3 / thrift).max(1), seed));
    findings.push(chain_minimum(seed));
    findings.push(chain_rates());
    findings.extend(chain_winners(seed));
    findings
}

/// The times of a layout; none where it, or the settings, cannot be: a verdict of them must fail.
fn times(settings: &RankingSettings, notation: &str) -> Vec<f64> {
    let layout = Layout::parse(notation, settings.depth);
    layout.ok().and_then(|layout| flow_times(settings, &layout).ok()).unwrap_or_default()
}

/// The median; not a number when there are none.
fn median_of(numbers: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(numbers).map_or(f64::NAN, |spread| spread.median)
}

/// A row of the table of median times.
fn medians(row: &MedianRow, seed: u64, thrift: u64) -> Finding {
    // The intervals of a wide row are for one number of targets.
    let instances = if row.wide.is_some() { WIDE_TARGETS } else { 101 / thrift };
    let measured = COLUMNS.map(|(depth, width)| {
        let settings =
            RankingSettings { instances, flow_time: MEDIAN_TIME, ..RankingSettings::new(depth, width, seed) };
        median_of(times(&settings, row.layout))
    });
    let agree = measured.iter().enumerate().all(|(column, &median)| row.agrees(column, median));
    let stated = row.medians.map(time).join(", ");
    let bound = match row.wide {
        Some(intervals) => {
            intervals.map(|(low, high)| if low == high { time(low) } else { format!("{low:.0}-{high:.0}") }).join(", ")
        }
        None => format!("{stated} (5%)"),
    };
    let statement = match row.wide {
        Some(_) => format!("median time, {}: {stated} at K d = 3 5, 3 10, 4 5", row.layout),
        None => format!("median time, {}: K d = 3 5, 3 10, 4 5", row.layout),
    };
    let measured = format!("{}; {instances} targets", measured.map(time).join(", "));
    finding(Source::Measured, &statement, measured, &bound, Verdict::holds_if(agree))
}

/// The two groups of the cascade.
fn by_determinant(seed: u64, instances: u64) -> Finding {
    let settings = RankingSettings { instances, flow_time: MEDIAN_TIME, ..RankingSettings::new(3, 5, seed) };
    let times = times(&settings, "cascade");
    let of_sign = |positive: bool| {
        let determinant = |instance: u64| settings.instance(instance).0.determinant();
        let group = (0..settings.instances).zip(&times).filter(|(i, _)| (determinant(*i) > 0.0) == positive);
        median_of(group.map(|(_, &time)| time))
    };
    let (positive, negative) = (of_sign(true), of_sign(false));
    finding(
        Source::Measured,
        "cascade, K = 3, d = 5: det Y < 0 is the slow half",
        format!("median {} and {}, {} targets", time(positive), time(negative), times.len()),
        "det Y > 0 at least 3 x faster",
        Verdict::holds_if(times.len() as u64 == instances && negative > 3.0 * positive),
    )
}

/// A law of targets for which the paper's ranking is the other way around.
fn near_identity(seed: u64, instances: u64) -> Finding {
    let law = TargetLaw::NearIdentity;
    let settings = RankingSettings { law, instances, flow_time: MEDIAN_TIME, ..RankingSettings::new(3, 5, seed) };
    let (cascade, single) = (median_of(times(&settings, "cascade")), median_of(times(&settings, "0:2")));
    finding(
        Source::Measured,
        "0:2 beats the cascade; Y = I + G/2, K = 3, d = 5",
        format!("median {} and {}, {instances} targets", time(single), time(cascade)),
        "0:2 faster",
        Verdict::refuted_if(cascade < single),
    )
}

/// What is claimed of the layouts of a depth.
struct Claim {
    depth: usize,
    /// The layout that the paper found best.
    layout: &'static str,
    /// The median time of the fastest layout.
    fastest: f64,
    /// Whether the layout takes the fewest steps of gradient descent; if not, it takes at least twice as many.
    fewest: bool,
}

const THREE: Claim = Claim { depth: 3, layout: "0:2", fastest: 1.37, fewest: true };
const FOUR: Claim = Claim { depth: 4, layout: "0:2+2:3", fastest: 0.40, fewest: false };

/// What a ranking says about a claim; infinite and empty where nothing was measured.
struct Standing {
    layouts: usize,
    /// The fastest time under flow, and the number of shortcuts of that layout.
    fastest: (f64, usize),
    /// Ranks of the claimed layout under flow and under descent.
    ranks: (usize, usize),
    /// Steps of the claimed layout, at its best rate, and that rate.
    steps: (f64, f64),
    /// The fewest steps, and a layout that takes them.
    fewest: (f64, String),
}

impl Standing {
    fn of(claim: &Claim, settings: &RankingSettings) -> Option<Self> {
        let ranking = Ranking::measure(settings, |_| ()).ok()?;
        let class = ranking.class_of(&Layout::parse(claim.layout, claim.depth).ok()?)?;
        let (first, by_steps) = (ranking.classes().first()?, ranking.by_descent());
        let name = |class: &Class| class.members.first().map(|&member| ranking.entries()[member].layout.clone());
        let best = by_steps.first()?;
        Some(Self {
            layouts: ranking.entries().len(),
            fastest: (first.summary.flow.median, name(first)?.len()),
            ranks: (class.flow_rank, class.descent_rank),
            steps: (class.summary.fewest_steps(), settings.rates[class.summary.best_rate?]),
            fewest: (best.summary.fewest_steps(), name(best)?.to_string()),
        })
    }
}

/// Where the layout that the paper found best stands among all of its depth.
fn full_ranking(claim: &Claim, instances: u64, seed: u64) -> [Finding; 3] {
    let Claim { depth, layout, fastest, fewest } = *claim;
    let settings = RankingSettings { instances, ..RankingSettings::new(depth, 5, seed) };
    let standing = Standing::of(claim, &settings);
    let text = |text: &dyn Fn(&Standing) -> String| standing.as_ref().map_or("not measured".to_owned(), text);
    let is = |condition: &dyn Fn(&Standing) -> bool| standing.as_ref().is_some_and(condition);
    [
        finding(
            Source::Measured,
            &format!("fastest of all under flow, K = {depth}, d = 5"),
            text(&|s| format!("{} with {} shortcuts", time(s.fastest.0), s.fastest.1)),
            &format!("{fastest:.2} (10%)"),
            Verdict::holds_if(is(&|s| (s.fastest.0 / fastest - 1.0).abs() < 0.1)),
        ),
        finding(
            Source::Paper,
            &format!("{layout} is the fastest under flow, K = {depth}"),
            text(&|s| format!("rank {} of {}, {instances} targets", s.ranks.0, s.layouts)),
            "rank 1",
            Verdict::refuted_if(is(&|s| s.ranks.0 > s.layouts / 4)),
        ),
        finding(
            Source::Paper,
            &format!("{layout} takes the fewest GD steps, best rates, K = {depth}"),
            text(&|s| format!("rank {}: {} at rate {}", s.ranks.1, steps(s.steps.0), s.steps.1)),
            &text(&|s| format!("{}: {}", s.fewest.1, steps(s.fewest.0))),
            if fewest {
                Verdict::holds_if(is(&|s| s.ranks.1 == 1 && s.steps.0.is_finite()))
            } else {
                Verdict::refuted_if(is(&|s| s.steps.0 >= 2.0 * s.fewest.0))
            },
        ),
    ]
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
    let worst = largest((0..=3).map(|blocks| worst(blocks).unwrap_or(f64::NAN)));
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

/// The steps of gradient descent of every chain of a depth, with its layout and its number m: the fewest first. `None`
/// where something cannot be measured.
///
/// The pool is that of [`chains`]; the rate is 1.5 over the sharpness of the chain with m = 1, which is stable for m <=
/// 1 and not for m >= 2. A chain that does not get there takes infinitely many.
fn chain_steps(depth: usize, target: &DMatrix<f64>, weights: &[DMatrix<f64>]) -> Option<Vec<(f64, usize, String)>> {
    let one = ChainMinimum::new(1, target.clone().singular_values().as_slice())?;
    let optimizer = Optimizer::gradient_descent(1.5 / one.sharpness());
    let runs = chains(depth).ok()?.into_iter().map(|(layout, blocks)| {
        let problem = Problem::whitened(&layout, target.clone()).ok()?;
        let start = problem.weights(weights.get(..depth)?).ok()?;
        let settings = DescentSettings::new(optimizer, 1e-6 * problem.target().scale(), 5000);
        let reached = Descent::new(&problem).run(&start, &settings, |_, _, _| ()).reached();
        Some((reached.map_or(f64::INFINITY, |steps| steps as f64), blocks, layout.to_string()))
    });
    let mut runs: Vec<_> = runs.collect::<Option<_>>()?;
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(runs)
}

/// Which chains win under gradient descent at depth 3 and 4.
fn chain_winners(seed: u64) -> Vec<Finding> {
    let (d, targets) = (8, 20);
    let runs: Vec<_> = (0..targets)
        .into_par_iter()
        .map(|instance| {
            let mut draw = Draw::new(seed, 600 + instance);
            let target = draw.target(TargetLaw::Gaussian, d);
            let weights: Vec<_> = (0..4).map(|_| draw.gaussian(d, 0.01 / (d as f64).sqrt())).collect();
            [3, 4].map(|depth| chain_steps(depth, &target, &weights).unwrap_or_default())
        })
        .collect();
    // Targets on which each of the winners takes fewer steps than every other chain.
    let wins = |depth: usize, winner: &[&str]| {
        let won = |runs: &[Vec<(f64, usize, String)>; 2]| {
            let (best, others): (Vec<_>, Vec<_>) = runs[depth - 3].iter().partition(|r| winner.contains(&r.2.as_str()));
            let (worst, next) = (largest(best.iter().map(|r| r.0)), smallest(others.iter().map(|r| r.0)));
            best.len() == winner.len() && !others.is_empty() && worst < next
        };
        runs.iter().filter(|both| won(both)).count()
    };
    let apart = |both: &[Vec<(f64, usize, String)>; 2]| {
        let steps_of = |name: &str| both[1].iter().find(|run| run.2 == name).map_or(f64::NAN, |run| run.0);
        (steps_of("0:2+2:3") - steps_of("0:1+1:3")).abs()
    };
    let (three, four) = (wins(3, &["0:2"]), wins(4, &["0:2+2:3", "0:1+1:3"]));
    let apart: Vec<f64> = runs.iter().map(apart).collect();
    let (ties, furthest) = (apart.iter().filter(|&&steps| steps == 0.0).count(), largest(apart.iter().copied()));
    let steps_range = |depth: usize, place: usize| {
        let steps: Vec<f64> = runs.iter().filter_map(|both| both[depth - 3].get(place).map(|run| run.0)).collect();
        format!("{}-{}", smallest(steps.iter().copied()), largest(steps.iter().copied()))
    };
    let all = targets as usize;
    vec![
        finding(
            Source::Measured,
            "chains, K = 3, GD at 1.5/max N(m=1): 0:2 is the fewest",
            format!("{three} of {targets} targets, {} steps", steps_range(3, 0)),
            "all targets",
            Verdict::holds_if(three == all),
        ),
        finding(
            Source::Measured,
            "chains, K = 4, same rate: 0:2+2:3 and 0:1+1:3 (m=1)",
            format!("{four} of {targets}, {} steps; 0:3 {}", steps_range(4, 0), steps_range(4, 2)),
            "both ahead of 0:3, all targets",
            Verdict::holds_if(four == all),
        ),
        finding(
            Source::Measured,
            "0:2+2:3 ties with 0:1+1:3, up to a step",
            format!("equal on {ties} of {targets}, at most {furthest} apart"),
            "at most 1 step",
            Verdict::holds_if(furthest <= 1.0),
        ),
    ]
}
