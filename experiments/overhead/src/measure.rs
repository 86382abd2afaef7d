//! Rounds: each arm makes a sample in each of them, in a shuffled order.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use ancre::Arm;
use anyhow::{Context, Result, bail};
use rand::seq::SliceRandom;
use training::{memory, progress::Progress};

use crate::{
    shape::Shape,
    statistics::median,
    step::{Sample, Training},
    workload::{self, Plan, Size},
};

/// What is to be measured of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The shape.
    pub shape: Shape,
    /// The arms; the first is what the others are compared with.
    pub arms: Vec<Arm>,
    /// How much goes through the model in a step.
    pub size: Size,
    /// Seconds of measuring; there are at least [`LEAST_ROUNDS`] rounds, unless `rounds` says how many.
    pub seconds: f64,
    /// Exactly so many rounds.
    pub rounds: Option<usize>,
}

/// So many rounds have an interval that is not simply the smallest and largest value.
pub const LEAST_ROUNDS: usize = 9;

/// Steps before the first round: the optimizer makes its moments, the allocator finds its buffers.
const WARM_UP: usize = 2;

/// A sample lasts about so long; for small models it is the median of several steps.
const SAMPLE_SECONDS: f64 = 0.1;

/// What was seen of one arm.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The arm.
    pub arm: Arm,
    /// What is known of its steps.
    pub plan: Plan,
    /// One sample a round.
    pub samples: Vec<Sample>,
    /// The samples of the cascade in the same rounds.
    pub baseline: Vec<Sample>,
    /// Bytes of weights and moments.
    pub resident: usize,
    /// Bytes at the peak of a step beyond them.
    pub transient: usize,
}

/// What was seen of a shape.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The shape.
    pub shape: Shape,
    /// The arms, the baseline first. Arms that do not fit into memory together were measured in groups, each with the baseline.
    pub arms: Vec<Seen>,
    /// Arms that the model refuses, with the reason.
    pub refused: Vec<(Arm, String)>,
    /// Steps of a sample.
    pub steps: usize,
}

/// Measures.
///
/// # Errors
/// If the model refuses the baseline, if it does not fit into memory, or if a step fails.
pub fn measure(request: &Request, progress: &Progress) -> Result<Measurement> {
    let Request { shape, ref arms, size, .. } = *request;
    let Some((baseline, others)) = arms.split_first() else { bail!("no arm to measure") };
    let first = workload::plan(shape, baseline, size).with_context(|| shape.to_string())?;
    let (mut plans, mut refused) = (Vec::new(), Vec::new());
    for arm in others {
        match workload::plan(shape, arm, size) {
            Ok(plan) => plans.push((arm.clone(), plan)),
            Err(error) => refused.push((arm.clone(), command_line::message(&error))),
        }
    }
    let mut result = Measurement { shape, arms: Vec::new(), refused, steps: 0 };
    let groups = groups(&first, plans)?;
    let share = request.seconds / groups.len().max(1) as f64;
    for group in groups {
        let mut measured = vec![(baseline.clone(), first.clone())];
        measured.extend(group);
        let seen = rounds(request, measured, share, progress, &mut result.steps)?;
        // The baseline of the first group stands for all.
        let from = usize::from(!result.arms.is_empty());
        result.arms.extend(seen.into_iter().skip(from));
    }
    Ok(result)
}

/// The arms that fit into memory together with the baseline; at least one a group.
fn groups(baseline: &Plan, plans: Vec<(Arm, Plan)>) -> Result<Vec<Vec<(Arm, Plan)>>> {
    let available = memory::Ram::now().map_or(u64::MAX, |ram| ram.available / 10 * 8);
    let mut plan = memory::MemoryEstimate::new();
    let both = baseline.resident_bytes().saturating_mul(if plans.is_empty() { 1 } else { 2 });
    plan.add("weights, gradients and moments of two arms", both);
    plan.check(available, "a smaller --shapes")?;
    let (mut groups, mut held) = (vec![Vec::new()], baseline.resident_bytes());
    for (arm, plan) in plans {
        let more = plan.resident_bytes();
        if held.saturating_add(more) > available {
            groups.push(Vec::new());
            held = baseline.resident_bytes();
        }
        held = held.saturating_add(more);
        if let Some(last) = groups.last_mut() {
            last.push((arm, plan));
        }
    }
    Ok(groups)
}

fn rounds(
    request: &Request,
    arms: Vec<(Arm, Plan)>,
    seconds: f64,
    progress: &Progress,
    steps: &mut usize,
) -> Result<Vec<Seen>> {
    let shape = request.shape;
    let bar = progress.task(&format!("{shape}: warming up"), arms.len() * (WARM_UP + 2));
    let (mut trainings, mut transient): (Vec<Box<dyn Training>>, _) = (Vec::new(), Vec::new());
    for (arm, _) in &arms {
        let mut training = workload::training(shape, arm, request.size).with_context(|| format!("{shape}, {arm}"))?;
        bar.advance(1);
        for _ in 0..WARM_UP {
            training.step().with_context(|| format!("{shape}, {arm}"))?;
            bar.advance(1);
        }
        transient.push(training.peak().with_context(|| format!("{shape}, {arm}"))?);
        bar.advance(1);
        trainings.push(training);
    }
    if *steps == 0 {
        let step = trainings[0].step().with_context(|| shape.to_string())?.step;
        *steps = (SAMPLE_SECONDS / step.max(1e-6)).ceil().clamp(1.0, 1000.0) as usize;
    }
    bar.finish();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); arms.len()];
    let mut order: Vec<usize> = (0..arms.len()).collect();
    let begun = Instant::now();
    let limit = Duration::from_secs_f64(seconds);
    // In thousandths of the whole, as the number of rounds is not known.
    let bar = progress.task(&format!("{shape}: {} arms", arms.len()), 1000);
    let mut shown = 0;
    for round in 0.. {
        let done = match request.rounds {
            Some(rounds) => round as f64 / rounds as f64,
            None => (begun.elapsed().as_secs_f64() / limit.as_secs_f64().max(1e-9)).min(if round < LEAST_ROUNDS {
                round as f64 / LEAST_ROUNDS as f64
            } else {
                1.0
            }),
        };
        let thousandths = (1000.0 * done.min(1.0)) as usize;
        bar.advance(thousandths - shown);
        shown = thousandths;
        if done >= 1.0 {
            break;
        }
        order.shuffle(&mut training::seed::stream(0, "order of arms", round as u64));
        for &index in &order {
            let sample = sample(trainings[index].as_mut(), *steps);
            samples[index].push(sample.with_context(|| format!("{shape}, {}", arms[index].0))?);
        }
    }
    bar.finish();
    let baseline = samples[0].clone();
    let all = arms.into_iter().zip(samples).zip(trainings.iter().zip(transient));
    let seen = all.map(|(((arm, plan), samples), (training, transient))| Seen {
        arm,
        plan,
        samples,
        baseline: baseline.clone(),
        resident: training.resident_bytes(),
        transient,
    });
    Ok(seen.collect())
}

/// The medians of some steps in a row.
fn sample(training: &mut dyn Training, steps: usize) -> Result<Sample> {
    let made: Vec<Sample> = (0..steps.max(1)).map(|_| training.step()).collect::<Result<_>>()?;
    let of = |value: fn(&Sample) -> f64| median(&made.iter().map(value).collect::<Vec<_>>());
    Ok(Sample { gradient: of(|s| s.gradient), step: of(|s| s.step) })
}

/// The arms without those that stand twice.
pub fn distinct(arms: impl IntoIterator<Item = Arm>) -> Vec<Arm> {
    let mut seen = BTreeSet::new();
    arms.into_iter().filter(|arm| seen.insert(arm.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(parameters: u64) -> Plan {
        let smoke = "llm-smoke".parse().unwrap();
        Plan { parameters, ..workload::plan(smoke, &Arm::Cascade, Size { rows: None }).unwrap() }
    }

    #[test]
    fn arms_that_do_not_fit_together_are_measured_in_groups() {
        let available = memory::Ram::now().unwrap().available / 10 * 8;
        let third = plan(available / 16 * 3 / 10);
        let arms = ["ancre", "naive", "scalars"].map(|arm| (arm.parse().unwrap(), third.clone()));
        let groups = groups(&third, arms.to_vec()).unwrap();
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert!(super::groups(&plan(available), arms.to_vec()).is_err());
    }
}
