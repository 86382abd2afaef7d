//! The tables of a report: losses, scores of the samples, cost.

use experiment_kit::report::{
    Drawn, Page, RunLogs, seeds,
    table::{cost, difference, numbers, over_seeds, steps_share},
};
use plotting::Table;

use super::{QUARTERS, Report, last, loss};
use crate::{settings::Sampler, task::metric};

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
        "{}: {} steps of {} images; {} blocks of width {}; {}",
        run.data.images,
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
            "Loss: squared error of the predicted noise on held-out images, each at {} noise levels, the same for all runs.",
            run.evaluation.noise_levels
        ),
        format!(
            "Difference: final loss minus that of {} with the same seed, p from a paired t-test. Steps to baseline: when its \
             final loss is reached.",
            report.comparison.baseline_name()
        ),
    ];
    if let Some(protocol) = report.protocol() {
        notes.push(format!(
            "Scores: {protocol}. They compare with no scores of another extractor. Samples: {}, guidance {}, averaged weights.",
            sampler(report),
            run.sampling.guidance
        ));
    }
    notes.push(
        "Step time: median, relative to the baseline's; memory: weights, moments, and the largest training step."
            .to_owned(),
    );
    notes.extend(report.runs.divergences());
    notes
}

fn sampler(report: &Report) -> String {
    let sampling = &report.comparison.run.sampling;
    let name = match sampling.sampler {
        Sampler::Ddpm => "DDPM".to_owned(),
        Sampler::Ddim => format!("DDIM with eta {}", sampling.eta),
    };
    format!("{name} on {} steps", sampling.steps)
}

/// The tables with their titles.
fn tables(report: &Report) -> Vec<(&'static str, Table)> {
    let mut tables = vec![("Held-out loss at shares of the steps", loss_table(report))];
    if report.protocol().is_some() {
        tables.push(("Scores of the samples", score_table(report)));
    }
    tables.push(("Cost", cost(&report.runs, "images/s")));
    tables
}

fn loss_table(report: &Report) -> Table {
    let steps = report.comparison.run.training.steps;
    let mut table = numbers(
        ["arm", "25%", "50%", "75%", "100%", "EMA", "difference", "p", "to baseline"],
        ["", "MSE", "MSE", "MSE", "MSE", "MSE", "MSE", "", "share of steps"],
    );
    for arm in &report.runs.arms {
        let runs = report.runs.of_arm(arm);
        let [difference, p] = difference(&report.runs, arm, 4, |run| loss(run, 1.0));
        let mut row = vec![arm.clone()];
        row.extend(QUARTERS.map(|share| over_seeds(&runs, 4, |run| loss(run, share))));
        row.push(over_seeds(&runs, 4, |run| last(run, metric::AVERAGE_LOSS)));
        row.extend([difference, p, steps_share(&report.runs, &runs, metric::LOSS, steps)]);
        table.push(row);
    }
    table
}

fn score_table(report: &Report) -> Table {
    let columns: [(&str, &str, usize); 8] = [
        ("Fréchet", metric::FRECHET, 2),
        ("spatial", metric::SPATIAL_FRECHET, 2),
        ("IS-style", metric::INCEPTION, 2),
        ("precision", metric::PRECISION, 3),
        ("recall", metric::RECALL, 3),
        ("density", metric::DENSITY, 3),
        ("coverage", metric::COVERAGE, 3),
        ("accuracy", metric::ACCURACY, 3),
    ];
    let mut table = numbers(
        ["arm", "Fréchet", "spatial", "IS-style", "precision", "recall", "density", "coverage", "accuracy"],
        ["", "distance", "distance", "", "", "", "", "", "of samples"],
    );
    for arm in &report.runs.arms {
        let runs: Vec<&RunLogs> = report.runs.of_arm(arm);
        let mut row = vec![arm.clone()];
        row.extend(columns.map(|(_, metric, decimals)| over_seeds(&runs, decimals, |run| last(run, metric))));
        table.push(row);
    }
    table
}
