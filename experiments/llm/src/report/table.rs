//! The tables of a report: quality, then cost.

use plotting::{Align, Table, fixed, mean, mean_sd, signed};

use super::{ArmRun, Report};

/// The tables for a terminal.
pub fn text(report: &Report) -> String {
    let [quality, cost] = tables(report);
    format!("{}\n{}\n{}\n{}", heading(report), quality.to_text(), "Cost", cost.to_text())
}

/// The tables as Markdown.
pub fn markdown(report: &Report) -> String {
    let [quality, cost] = tables(report);
    let figures = "![Held-out loss](figures/loss.png)\n\n![Learned connections](figures/connections.png)\n";
    format!(
        "# Comparison\n\n{}\n\n{}\n## Cost\n\n{}\n{figures}",
        heading(report),
        quality.to_markdown(),
        cost.to_markdown()
    )
}

fn heading(report: &Report) -> String {
    let run = &report.comparison.run;
    let seeds = report.comparison.seeds;
    format!(
        "Held-out loss after shares of {} steps of {} x {} tokens; {} layers of width {}; {}",
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

fn tables(report: &Report) -> [Table; 2] {
    let several = report.comparison.seeds > 1;
    let mut quality =
        Table::new(["arm", "25%", "50%", "75%", "100%", "difference", "steps to baseline", "perplexity", "bits/byte"])
            .units(["", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "nats/byte", "share", "per token", ""]);
    let mut cost = Table::new(["arm", "tokens/s", "step time", "peak memory", "memory", "connection parameters"])
        .units(["", "", "ratio", "", "ratio", ""]);
    let baseline = report.comparison.baseline().to_string();
    let baseline_memory = mean_of(&report.of_arm(&baseline), |run| run.summary.peak_memory_bytes as f64);
    for arm in report.arms() {
        let runs = report.of_arm(&arm);
        let is_baseline = arm == baseline;
        let differences: Vec<f64> = runs
            .iter()
            .filter_map(|run| Some(run.final_nats_per_byte() - report.baseline_of(run)?.final_nats_per_byte()))
            .collect();
        let difference = match differences.as_slice() {
            _ if is_baseline => "-".to_owned(),
            [one] => signed(*one, 4),
            _ if several => mean_sd(&differences, 4),
            _ => "-".to_owned(),
        };
        let mut row = vec![arm.clone()];
        row.extend([0.25, 0.5, 0.75, 1.0].map(|share| over_seeds(&runs, 4, |run| run.at_share(share))));
        row.extend([
            difference,
            steps_share(report, &runs),
            over_seeds(&runs, 3, |run| run.final_perplexity),
            over_seeds(&runs, 4, |run| run.final_bits_per_byte),
        ]);
        quality.push(row);

        let peak = mean_of(&runs, |run| run.summary.peak_memory_bytes as f64);
        cost.push([
            arm.clone(),
            over_seeds(&runs, 0, |run| run.tokens_per_second),
            over_seeds(&runs, 3, |run| report.step_time_ratio(run).unwrap_or(f64::NAN)),
            if peak > 0.0 { plotting::bytes(peak as u64) } else { "-".to_owned() },
            if peak > 0.0 { fixed(peak / baseline_memory, 3) } else { "-".to_owned() },
            runs.first().map_or_else(String::new, |run| run.summary.connection_parameters.to_string()),
        ]);
    }
    [quality.align(0, Align::Left), cost.align(0, Align::Left)]
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
