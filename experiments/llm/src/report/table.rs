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
    text
}

/// The tables as Markdown, with the figures that were drawn.
pub fn markdown(report: &Report, figures: &[PathBuf]) -> String {
    let mut text = format!("# Comparison\n\n{}\n", heading(report));
    for (title, table) in tables(report) {
        text += &format!("\n## {title}\n\n{}", table.to_markdown());
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

/// A value over seeds: its mean, with the standard deviation where there are several.
fn over_seeds(runs: &[&ArmRun], decimals: usize, value: impl Fn(&ArmRun) -> f64) -> String {
    let values: Vec<f64> = runs.iter().map(|run| value(run)).collect();
    match values.as_slice() {
        [one] => fixed(*one, decimals),
        _ => mean_sd(&values, decimals),
    }
}

/// The tables with their titles.
fn tables(report: &Report) -> [(&'static str, Table); 3] {
    [
        ("Held-out loss at shares of the steps", loss_table(report)),
        ("Perplexity per token and bits per byte", quality_table(report)),
        ("Cost", cost_table(report)),
    ]
}

fn loss_table(report: &Report) -> Table {
    let mut table = Table::new(["arm", "25%", "50%", "75%", "100%", "difference", "steps to baseline"])
        .units(["", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "share of all"])
        .align(0, Align::Left);
    let baseline = report.comparison.baseline().to_string();
    for arm in report.arms() {
        let runs = report.of_arm(&arm);
        let differences: Vec<f64> = runs
            .iter()
            .filter_map(|run| Some(run.final_nats_per_byte() - report.baseline_of(run)?.final_nats_per_byte()))
            .collect();
        let difference = match differences.as_slice() {
            _ if arm == baseline => "-".to_owned(),
            [one] => signed(*one, 4),
            several => mean_sd(several, 4),
        };
        let mut row = vec![arm.clone()];
        row.extend(QUARTERS.map(|share| over_seeds(&runs, 4, |run| run.nats_per_byte(share))));
        row.extend([difference, steps_share(report, &runs)]);
        table.push(row);
    }
    table
}

fn quality_table(report: &Report) -> Table {
    let mut table = Table::new(["arm", "25%", "50%", "75%", "100%", "25%", "50%", "75%", "100%"])
        .units(["", "ppl", "ppl", "ppl", "ppl", "bits", "bits", "bits", "bits"])
        .align(0, Align::Left);
    for arm in report.arms() {
        let runs = report.of_arm(&arm);
        let mut row = vec![arm.clone()];
        row.extend(QUARTERS.map(|share| over_seeds(&runs, 3, |run| run.perplexity(share))));
        row.extend(QUARTERS.map(|share| over_seeds(&runs, 3, |run| run.bits_per_byte(share))));
        table.push(row);
    }
    table
}

fn cost_table(report: &Report) -> Table {
    let mut table = Table::new(["arm", "tokens/s", "step time", "peak memory", "memory", "connection parameters"])
        .units(["", "", "ratio", "", "ratio", ""])
        .align(0, Align::Left);
    let baseline = report.comparison.baseline().to_string();
    let memory = |runs: &[&ArmRun]| mean_of(runs, |run| run.summary.peak_memory_bytes as f64);
    let baseline_memory = memory(&report.of_arm(&baseline));
    for arm in report.arms() {
        let runs = report.of_arm(&arm);
        let peak = memory(&runs);
        let known = peak > 0.0 && baseline_memory > 0.0;
        table.push([
            arm.clone(),
            over_seeds(&runs, 0, |run| run.tokens_per_second),
            over_seeds(&runs, 3, |run| report.step_time_ratio(run).unwrap_or(f64::NAN)),
            if known { plotting::bytes(peak as u64) } else { "-".to_owned() },
            if known { fixed(peak / baseline_memory, 3) } else { "-".to_owned() },
            runs.first().map_or_else(String::new, |run| run.summary.connection_parameters.to_string()),
        ]);
    }
    table
}

fn mean_of(runs: &[&ArmRun], value: impl Fn(&ArmRun) -> f64) -> f64 {
    mean(&runs.iter().map(|run| value(run)).collect::<Vec<_>>())
}

/// Steps to the baseline's final loss as a share of all, over seeds; says how many seeds get there if not all do.
fn steps_share(report: &Report, runs: &[&ArmRun]) -> String {
    let steps = report.comparison.run.training.steps as f64;
    let shares: Vec<f64> = runs.iter().filter_map(|run| Some(report.steps_to_baseline(run)? / steps)).collect();
    match (shares.len(), runs.len()) {
        (0, _) => "not reached".to_owned(),
        (1, 1) => fixed(shares[0], 2),
        (reached, all) if reached == all => mean_sd(&shares, 2),
        (reached, all) => format!("{} ({reached} of {all} seeds)", fixed(mean(&shares), 2)),
    }
}
