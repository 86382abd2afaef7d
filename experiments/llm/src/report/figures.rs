//! The figures of a report: loss against steps for all arms, and the learned connections.

use std::path::{Path, PathBuf};

use anyhow::Result;
use plotting::{Figure, HeatMap, LineChart, Panel, Series, Spread};

use super::{ArmRun, Report};

/// Panels that one figure of connections holds.
const MAX_PANELS: usize = 6;

/// Draws the figures into a folder; returns their paths and what they could not show.
pub fn draw(report: &Report, folder: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut paths, mut warnings) = (Vec::new(), Vec::new());
    let mut keep = |saved: plotting::Saved| {
        paths.extend([saved.png, saved.svg]);
        warnings.extend(saved.warnings);
    };
    keep(loss(report).save(folder, "loss")?);
    if let Some(figure) = connections(report) {
        keep(figure.save(folder, "connections")?);
    }
    let learned = report.runs.iter().filter(|run| has_coefficients(run)).count();
    if learned > MAX_PANELS {
        warnings
            .push(format!("the figure of the connections shows {MAX_PANELS} of {learned} runs; report.json has all"));
    }
    Ok((paths, warnings))
}

fn scale(report: &Report) -> String {
    let run = &report.comparison.run;
    format!(
        "{} layers, width {}, {} steps of {} x {} tokens",
        run.model.layers, run.model.width, run.training.steps, run.data.batch, run.data.context
    )
}

fn loss(report: &Report) -> LineChart {
    let seeds = match report.comparison.seeds {
        1 => format!("seed {}", report.comparison.run.seed),
        n => format!("mean of {n} seeds, band: one standard deviation"),
    };
    let mut chart = LineChart::new("Held-out loss")
        .subtitle(format!("{}; {seeds}", scale(report)))
        .x_label("step")
        .y_label("nats per byte")
        // The first evaluations lie far above the rest.
        .clip_start(0.05);
    for (i, arm) in report.arms().into_iter().enumerate() {
        let runs: Vec<&ArmRun> = report.of_arm(&arm).into_iter().filter(|run| run.summary.diverged.is_none()).collect();
        if runs.is_empty() {
            continue;
        }
        let series = match runs.as_slice() {
            [one] => Series::line(arm, one.curve.iter().copied()),
            several => {
                let steps: Vec<f64> = several[0].curve.iter().map(|&(step, _)| step).collect();
                let values: Vec<Vec<f64>> =
                    several.iter().map(|run| run.curve.iter().map(|&(_, value)| value).collect()).collect();
                Series::mean_of_runs(arm, &steps, &values, Spread::StdDev)
            }
        };
        chart = chart.series(series.arm(i));
    }
    chart
}

/// Whether a run has learned coefficients to show.
fn has_coefficients(run: &ArmRun) -> bool {
    run.summary.connection_parameters > 0 && !run.summary.coefficients.is_empty()
}

/// The coefficients of the arms that learn them, one panel a run; none if no arm does.
fn connections(report: &Report) -> Option<HeatMap> {
    let learned: Vec<&ArmRun> = report.runs.iter().filter(|run| has_coefficients(run)).collect();
    if learned.is_empty() {
        return None;
    }
    let mut map = HeatMap::new("Learned connections")
        .subtitle(scale(report))
        .x_label("source state i")
        .y_label("layer l")
        .value_label("weight");
    for run in learned.into_iter().take(MAX_PANELS) {
        let rows = &run.summary.coefficients;
        let title =
            if report.comparison.seeds > 1 { format!("{}, seed {}", run.arm, run.seed) } else { run.arm.clone() };
        let panel = Panel::of_rows(title, rows)
            .row_labels((1..=rows.len()).map(|l| l.to_string()))
            .column_labels((0..rows.len()).map(|i| i.to_string()));
        map = map.panel(panel);
    }
    Some(map)
}
