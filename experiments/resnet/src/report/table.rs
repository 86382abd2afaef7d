//! The tables of a report: how well goals are reached, what the networks look like inside, cost.

use experiment_kit::report::{
    Drawn, Page, seeds,
    table::{cost, difference, numbers, over_seeds},
};
use plotting::{Table, sample_sd};

use super::{LAST, Report, last, late};
use crate::contrastive::metric;

/// The tables for a terminal.
pub fn text(report: &Report) -> String {
    page(report).to_text()
}

/// The tables as Markdown, with the figures that were drawn.
pub fn markdown(report: &Report, figures: &Drawn) -> String {
    page(report).to_markdown(figures)
}

fn page(report: &Report) -> Page {
    Page { heading: heading(report), tables: tables(report), notes: notes(report) }
}

fn heading(report: &Report) -> String {
    let run = &report.comparison.run;
    format!(
        "{}: {} updates of {} transitions; depth {}, width {}; {}",
        run.task.name,
        run.training.steps,
        run.data.batch,
        report.comparison.depth_names(),
        run.model.width,
        seeds(&report.comparison)
    )
}

/// How to read the tables.
fn notes(report: &Report) -> Vec<String> {
    let run = &report.comparison.run;
    let mut notes = vec![
        format!(
            "Mean of the last {} evaluations of {} episodes. Success: share of episodes with a step at the goal; drawn: with \
             actions drawn from the policy as while training; mean: with its mean action, as the paper evaluates. At goal: \
             steps of an episode there, which the paper plots; that, the distance and the falls are of the mean action, too.",
            report.runs.runs.iter().map(|run| run.curve(metric::SUCCESS).len()).max().unwrap_or(0).min(LAST),
            run.evaluation.episodes
        ),
        format!(
            "Difference: success with drawn actions minus that of {} with the same seed, p from a paired t-test.",
            report.comparison.baseline_name()
        ),
        "Growth: size of the actor's last state relative to its first. Action: mean size of the entries of the policy's mean \
         action, 1 is saturated. Policy entropy: in nats, of the drawn action. Connection entropy: of the softmax of a connection, \
         mean over the three networks; 0 takes one state only. Gradient: norm over the connections' parameters, of the actor and \
         both encoders, at the end."
            .to_owned(),
        format!(
            "Falls: share of episodes that ended early. Environment steps: of all environments together, with the {} of each \
             before the first update.",
            run.collection.prefill
        ),
        "Step time: median, relative to the baseline's; memory: weights, moments, and the largest training step."
            .to_owned(),
    ];
    notes.extend(report.runs.divergences());
    notes
}

/// The tables with their titles.
fn tables(report: &Report) -> Vec<(&'static str, Table)> {
    vec![("Goals", goals(report)), ("Inside", inside(report)), ("Cost", cost(&report.runs, "transitions/s"))]
}

fn goals(report: &Report) -> Table {
    let mut table = numbers(
        ["arm", "success", "success", "at goal", "final distance", "falls", "difference", "p", "environment steps"],
        ["", "drawn", "mean", "steps", "m", "share", "share", "", ""],
    );
    for arm in &report.runs.arms {
        let runs = report.runs.of_arm(arm);
        let [difference, p] = difference(&report.runs, arm, 3, |run| late(run, metric::SAMPLED_SUCCESS));
        table.push([
            arm.clone(),
            over_seeds(&runs, 3, |run| late(run, metric::SAMPLED_SUCCESS)),
            over_seeds(&runs, 3, |run| late(run, metric::SUCCESS)),
            over_seeds(&runs, 1, |run| late(run, metric::TIME_AT_GOAL)),
            over_seeds(&runs, 2, |run| late(run, metric::FINAL_DISTANCE)),
            over_seeds(&runs, 3, |run| late(run, metric::FAILURES)),
            difference,
            p,
            runs.first().map_or_else(String::new, |run| plotting::si(last(run, metric::ENVIRONMENT_STEPS))),
        ]);
    }
    table
}

fn inside(report: &Report) -> Table {
    let mut table = numbers(
        ["arm", "growth", "action", "policy entropy", "connection entropy", "actor", "state-action", "goal"],
        ["", "ratio", "size", "nats", "nats", "gradient", "gradient", "gradient"],
    );
    for arm in &report.runs.arms {
        let runs = report.runs.of_arm(arm);
        let gradient = |network: &str| {
            let norms: Vec<f64> = runs
                .iter()
                .map(|run| last(run, &format!("{}{network}", metric::THETA_GRADIENT)))
                .filter(|norm| norm.is_finite())
                .collect();
            match norms.as_slice() {
                [] => "-".to_owned(),
                [one] => format!("{one:.1e}"),
                several => format!("{:.1e} ± {:.0e}", plotting::mean(several), sample_sd(several)),
            }
        };
        table.push([
            arm.clone(),
            over_seeds(&runs, 2, |run| last(run, metric::STREAM_GROWTH)),
            over_seeds(&runs, 2, |run| last(run, metric::SATURATION)),
            over_seeds(&runs, 2, |run| last(run, metric::ENTROPY)),
            over_seeds(&runs, 2, |run| last(run, metric::CONNECTION_ENTROPY)),
            gradient("actor"),
            gradient("state_action"),
            gradient("goal"),
        ]);
    }
    table
}
