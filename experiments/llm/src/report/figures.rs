//! The figures of a report: loss against steps for all arms, and the learned connections.

use std::path::Path;

use anyhow::Result;
use experiment_kit::report::{Drawn, connections_map, with_arms};
use plotting::LineChart;

use super::Report;
use crate::task::metric;

/// Draws the figures into a folder.
pub fn draw(report: &Report, folder: &Path) -> Result<Drawn> {
    let mut drawn = Drawn::default();
    drawn.save(&loss(report), folder, "loss")?;
    if let Some((figure, warning)) = connections_map(&report.runs, &scale(report), "layer") {
        drawn.save(&figure, folder, "connections")?;
        drawn.warnings.extend(warning);
    }
    Ok(drawn)
}

fn scale(report: &Report) -> String {
    let run = &report.comparison.run;
    format!(
        "{} layers, width {}, {} steps of {} x {} tokens, {}",
        report.comparison.depth_names(),
        run.model.width,
        run.training.steps,
        run.data.batch,
        run.data.context,
        super::rate(run)
    )
}

fn loss(report: &Report) -> LineChart {
    let seeds = match report.comparison.seeds {
        1 => format!("seed {}", report.comparison.run.seed),
        n => format!("mean of {n} seeds, band: one standard deviation"),
    };
    let chart = LineChart::new("Held-out loss")
        .subtitle(format!("{}; {seeds}", scale(report)))
        .x_label("step")
        .y_label("nats per byte")
        // The first evaluations lie far above the rest.
        .clip_start(0.05);
    with_arms(chart, &report.runs, metric::NATS_PER_BYTE)
}
