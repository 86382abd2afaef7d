//! The tables of a report: quality, then cost.

use experiment_kit::report::{
    Drawn, Page, RunLogs, seeds,
    table::{cost, difference, numbers, over_seeds, steps_share},
};
use plotting::Table;

use super::{QUARTERS, Report, bits_per_byte, nats_per_byte, perplexity};
use crate::task::metric;

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
        "{} steps of {} x {} tokens; {} layers of width {}; {}; {}",
        run.training.steps,
        run.data.batch,
        run.data.context,
        report.comparison.depth_names(),
        run.model.width,
        super::rate(run),
        seeds(&report.comparison)
    )
}

/// How to read the tables.
fn notes(report: &Report) -> Vec<String> {
    let data = &report.comparison.run.data;
    let sample = match data.evaluation_tokens {
        0 => "all held-out text".to_owned(),
        tokens => format!("about {} held-out tokens, the same for all", plotting::si(tokens as f64)),
    };
    let mut notes = vec![
        format!("Loss on {sample}; values between evaluations lie on straight lines."),
        format!(
            "Difference: final nats/byte minus that of {} with the same seed. Steps to baseline: when its final loss is reached.",
            report.comparison.baseline_name()
        ),
        "Step time: median, relative to the baseline's; memory: weights, moments and the largest training step."
            .to_owned(),
    ];
    notes.extend(report.runs.divergences());
    notes
}

/// The tables with their titles.
fn tables(report: &Report) -> Vec<(&'static str, Table)> {
    let quarters = |unit: &'static str, decimals: usize, value: &dyn Fn(&RunLogs, f64) -> f64| {
        let mut table = numbers(["arm", "25%", "50%", "75%", "100%"], ["", unit, unit, unit, unit]);
        for arm in &report.runs.arms {
            let runs = report.runs.of_arm(arm);
            let mut row = vec![arm.clone()];
            row.extend(QUARTERS.map(|share| over_seeds(&runs, decimals, |run| value(run, share))));
            table.push(row);
        }
        table
    };
    vec![
        ("Held-out loss at shares of the steps", loss_table(report)),
        ("Perplexity", quarters("per token", 3, &perplexity)),
        ("Bits per byte", quarters("bits/byte", 3, &bits_per_byte)),
        ("Cost", cost(&report.runs, "tokens/s")),
    ]
}

fn loss_table(report: &Report) -> Table {
    // Narrow enough for a terminal, with the spread beside each number too.
    let decimals = if report.comparison.seeds > 1 { 3 } else { 4 };
    let steps = report.comparison.run.training.steps;
    let mut table = numbers(
        ["arm", "25%", "50%", "75%", "100%", "difference", "to baseline"],
        ["", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "share of steps"],
    );
    for arm in &report.runs.arms {
        let runs = report.runs.of_arm(arm);
        let [difference, _] = difference(&report.runs, arm, decimals, |run| nats_per_byte(run, 1.0));
        let mut row = vec![arm.clone()];
        row.extend(QUARTERS.map(|share| over_seeds(&runs, decimals, |run| nats_per_byte(run, share))));
        row.extend([difference, steps_share(&report.runs, &runs, metric::NATS_PER_BYTE, steps)]);
        table.push(row);
    }
    table
}
