//! The tables of a report: losses, scores of the samples, cost.

use experiment_kit::report::{
    Drawn, RunLogs,
    statistics::paired_difference,
    table::{cost, numbers, over_seeds, steps_share, summary},
};
use plotting::{Table, signed};

use super::{QUARTERS, Report, last, loss};
use crate::task::metric;

/// The tables for a terminal.
pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n", heading(report));
    for (title, table) in tables(report) {
        text += &format!("\n{title}\n{}", table.to_text());
    }
    text + "\n" + &notes(report).join("\n") + "\n"
}

/// The tables as Markdown, with the figures that were drawn.
pub fn markdown(report: &Report, figures: &Drawn) -> String {
    let mut text = format!("# Comparison\n\n{}\n", heading(report));
    for (title, table) in tables(report) {
        text += &format!("\n## {title}\n\n{}", table.to_markdown());
    }
    for note in notes(report) {
        text += &format!("\n{note}\n");
    }
    text + &figures.markdown()
}

fn heading(report: &Report) -> String {
    let run = &report.comparison.run;
    let seeds = report.comparison.seeds;
    format!(
        "{}: {} steps of {} images; {} blocks of width {}; {}",
        run.data.images,
        run.training.steps,
        run.data.batch,
        run.model.layers,
        run.model.width,
        if seeds == 1 { format!("seed {}", run.seed) } else { format!("{seeds} seeds, mean ± standard deviation") }
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
            report.comparison.baseline()
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
    format!("{:?} on {} steps", sampling.sampler, sampling.steps)
        .to_uppercase()
        .replace("ON", "on")
        .replace("STEPS", "steps")
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
        let finals: Vec<f64> = runs.iter().map(|run| loss(run, 1.0)).collect();
        let baseline: Vec<f64> = runs
            .iter()
            .map(|run| report.runs.baseline_of(run).map_or(f64::NAN, |baseline| loss(baseline, 1.0)))
            .collect();
        let paired = paired_difference(&finals, &baseline);
        let differences: Vec<f64> =
            finals.iter().zip(&baseline).map(|(a, b)| a - b).filter(|difference| difference.is_finite()).collect();
        let (difference, p) = match differences.as_slice() {
            _ if *arm == report.runs.baseline => ("-".to_owned(), "-".to_owned()),
            [one] => (signed(*one, 4), "-".to_owned()),
            several => {
                (summary(several, 4), paired.p_value.map_or_else(|| "-".to_owned(), |p| plotting::significant(p, 2)))
            }
        };
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
