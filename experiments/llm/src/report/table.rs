//! The tables of a report: quality, then cost.

use std::path::PathBuf;

use plotting::{Align, Table, fixed, mean, mean_sd, signed};

use super::{ArmRun, QUARTERS, Report};

/// The tables for a terminal.
pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n", heading(report));
    for (title, table) in tables(report) {
        text += &format!("\n{title}\n{}", table.to_text());
    }
    text + "\n" + &notes(report).join("\n") + "\n"
}

/// The tables as Markdown, with the figures that were drawn.
pub fn markdown(report: &Report, figures: &[PathBuf]) -> String {
    let mut text = format!("# Comparison\n\n{}\n", heading(report));
    for (title, table) in tables(report) {
        text += &format!("\n## {title}\n\n{}", table.to_markdown());
    }
    for note in notes(report) {
        text += &format!("\n{note}\n");
    }
    for figure in figures.iter().filter(|path| path.extension().is_some_and(|e| e == "png")) {
        if let Some(name) = figure.file_name().and_then(|name| name.to_str()) {
            text += &format!("\n![{name}](figures/{name})\n");
        }
    }
    text
}

fn heading(report: &Report) -> String {
    let run = &report.comparison.run;
    let seeds = report.comparison.seeds;
    format!(
        "{} steps of {} x {} tokens; {} layers of width {}; {}",
        run.training.steps,
        run.data.batch,
        run.data.context,
        run.model.layers,
        run.model.width,
        if seeds == 1 { format!("seed {}", run.seed) } else { format!("{seeds} seeds, mean ± standard deviation") }
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
            report.comparison.baseline()
        ),
        "Step time: median, relative to the baseline's; memory: weights, moments and the largest training step."
            .to_owned(),
    ];
    for run in &report.runs {
        if let Some(reason) = &run.summary.diverged {
            notes.push(format!("{}, seed {}: {reason}", run.arm, run.seed));
        }
    }
    notes
}

/// A value over seeds: its mean, with the standard deviation where there are several; `-` where it is not known.
fn over_seeds(runs: &[&ArmRun], decimals: usize, value: impl Fn(&ArmRun) -> f64) -> String {
    let values: Vec<f64> = runs.iter().map(|run| value(run)).filter(|v| v.is_finite()).collect();
    summary(&values, decimals)
}

fn summary(values: &[f64], decimals: usize) -> String {
    match values {
        [] => "-".to_owned(),
        [one] => fixed(*one, decimals),
        several => mean_sd(several, decimals),
    }
}

/// A table whose first column is text and whose others are numbers.
fn numbers<const N: usize>(columns: [&str; N], units: [&str; N]) -> Table {
    let table = Table::new(columns).units(units).align(0, Align::Left);
    (1..N).fold(table, |table, column| table.align(column, Align::Right))
}

/// The tables with their titles.
fn tables(report: &Report) -> Vec<(&'static str, Table)> {
    let quarters = |unit: &'static str, decimals: usize, value: &dyn Fn(&ArmRun, f64) -> f64| {
        let mut table = numbers(["arm", "25%", "50%", "75%", "100%"], ["", unit, unit, unit, unit]);
        for arm in report.arms() {
            let runs = report.of_arm(&arm);
            let mut row = vec![arm.clone()];
            row.extend(QUARTERS.map(|share| over_seeds(&runs, decimals, |run| value(run, share))));
            table.push(row);
        }
        table
    };
    vec![
        ("Held-out loss at shares of the steps", loss_table(report)),
        ("Perplexity", quarters("per token", 3, &|run, share| run.perplexity(share))),
        ("Bits per byte", quarters("bits/byte", 3, &|run, share| run.bits_per_byte(share))),
        ("Cost", cost_table(report)),
    ]
}

fn loss_table(report: &Report) -> Table {
    // Narrow enough for a terminal, with the spread beside each number too.
    let decimals = if report.comparison.seeds > 1 { 3 } else { 4 };
    let mut table = numbers(
        ["arm", "25%", "50%", "75%", "100%", "difference", "to baseline"],
        ["", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "share of steps"],
    );
    let baseline = report.comparison.baseline().to_string();
    for arm in report.arms() {
        let runs = report.of_arm(&arm);
        let differences: Vec<f64> = runs
            .iter()
            .filter_map(|run| Some(run.final_nats_per_byte() - report.baseline_of(run)?.final_nats_per_byte()))
            .filter(|difference| difference.is_finite())
            .collect();
        let difference = match differences.as_slice() {
            _ if arm == baseline => "-".to_owned(),
            [one] => signed(*one, decimals),
            several => summary(several, decimals),
        };
        let mut row = vec![arm.clone()];
        row.extend(QUARTERS.map(|share| over_seeds(&runs, decimals, |run| run.nats_per_byte(share))));
        row.extend([difference, steps_share(report, &runs)]);
        table.push(row);
    }
    table
}

fn cost_table(report: &Report) -> Table {
    let mut table = numbers(
        ["arm", "tokens/s", "step time", "peak memory", "memory", "connection parameters"],
        ["", "", "ratio", "", "ratio", ""],
    );
    let baseline = report.comparison.baseline().to_string();
    let memory = |runs: &[&ArmRun]| -> Vec<f64> {
        runs.iter().filter_map(|run| run.summary.peak_memory_bytes).map(|bytes| bytes as f64).collect()
    };
    let baseline_memory = memory(&report.of_arm(&baseline));
    for arm in report.arms() {
        let runs = report.of_arm(&arm);
        let peak = memory(&runs);
        let (bytes, ratio) = match (peak.is_empty(), baseline_memory.is_empty()) {
            (true, _) => ("-".to_owned(), "-".to_owned()),
            (false, true) => (plotting::bytes(mean(&peak) as u64), "-".to_owned()),
            (false, false) => (plotting::bytes(mean(&peak) as u64), fixed(mean(&peak) / mean(&baseline_memory), 3)),
        };
        table.push([
            arm.clone(),
            over_seeds(&runs, 0, |run| run.tokens_per_second),
            over_seeds(&runs, 3, |run| report.step_time_ratio(run).unwrap_or(f64::NAN)),
            bytes,
            ratio,
            runs.first().map_or_else(String::new, |run| run.summary.connection_parameters.to_string()),
        ]);
    }
    table
}

/// Steps to the baseline's final loss as a share of all, over seeds; says how many seeds get there if not all do.
fn steps_share(report: &Report, runs: &[&ArmRun]) -> String {
    let steps = report.comparison.run.training.steps as f64;
    let shares: Vec<f64> = runs.iter().filter_map(|run| Some(report.steps_to_baseline(run)? / steps)).collect();
    match (shares.len(), runs.len()) {
        (0, _) => "not reached".to_owned(),
        (reached, all) if reached == all => summary(&shares, 2),
        (reached, all) => format!("{} ({reached} of {all})", fixed(mean(&shares), 2)),
    }
}
