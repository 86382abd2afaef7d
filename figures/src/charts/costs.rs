//! What connections cost, and what each block of a model does.

use anyhow::Result;
use plotting::{BarChart, Bars, LineChart, Series, Spread};
use serde_json::Value;

use super::Gallery;
use crate::logs::Log;

pub(super) fn draw(log: &Log, gallery: &mut Gallery<'_>) -> Result<()> {
    if let Some(chart) = log.json("overhead.json")?.and_then(|record| overhead(log, &record)) {
        let caption = format!("Time of the forward and backward pass against the cascade, {}", log.name);
        gallery.save(&chart, "time", format!("{}-time", log.name), caption)?;
    }
    if let Some(chart) = log.json("report.json")?.and_then(|report| depth(log, &report)) {
        let caption = format!("What leaving out a block changes, {}", log.name);
        gallery.save(&chart, "late-layers", format!("{}-blocks", log.name), caption)?;
    }
    Ok(())
}

/// Bars for each arm but the first, in groups of shapes.
fn overhead(log: &Log, record: &Value) -> Option<BarChart> {
    let shapes = record["shapes"].as_array().filter(|shapes| !shapes.is_empty())?;
    let arms = |shape: &Value| shape["arms"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for arm in shapes.iter().flat_map(|shape| arms(shape).into_iter().skip(1)) {
        let name = arm["arm"].as_str().unwrap_or_default().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut chart = BarChart::new("Time against the cascade")
        .subtitle(format!(
            "forward and backward pass, median of paired ratios with a 95% interval; {}",
            log.provenance.machine
        ))
        .y_label("ratio")
        .baseline(1.0)
        .print_values(3)
        .groups(shapes.iter().map(|shape| shape["shape"].as_str().unwrap_or("?")));
    for name in &names {
        let ratio = |shape: &Value| {
            arms(shape).into_iter().find(|arm| arm["arm"] == *name).map(|arm| arm["gradient_ratio"].clone())
        };
        let ratios: Vec<Value> = shapes.iter().map(|shape| ratio(shape).unwrap_or_default()).collect();
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let values = ratios.iter().map(|ratio| number(&ratio["value"]));
        let intervals = ratios.iter().map(|ratio| [0, 1].map(|end| number(&ratio["interval"][end])));
        chart = chart.bars(Bars::new(name.clone(), values).intervals(intervals));
    }
    let width = 160 + 70 * (names.len() * shapes.len()).max(10);
    Some(chart.with_size(width.min(2400) as u32, 440))
}

/// A line for each group of models: the change of the hidden state when a block is left out.
fn depth(log: &Log, report: &Value) -> Option<LineChart> {
    let groups = report["groups"].as_array().filter(|groups| !groups.is_empty())?;
    let mut chart = LineChart::new("Change of the last hidden state when a block is left out")
        .subtitle(&log.provenance.what)
        .x_label("block")
        .x_whole()
        .y_label("relative change");
    for group in groups {
        let hidden = |model: &Value| -> Vec<f64> {
            let blocks = model["blocks"].as_array().into_iter().flatten();
            blocks.map(|block| block["hidden"].as_f64().unwrap_or(f64::NAN)).collect()
        };
        let models: Vec<Vec<f64>> = group["models"].as_array().into_iter().flatten().map(hidden).collect();
        let Some(first) = models.first() else { continue };
        let blocks: Vec<f64> = (1..=first.len()).map(|block| block as f64).collect();
        let name = group["name"].as_str().unwrap_or("?");
        chart = chart.series(match models.as_slice() {
            [one] => Series::line(name, blocks.iter().copied().zip(one.iter().copied())),
            several => Series::mean_of_runs(name, &blocks, several, Spread::StdDev),
        });
    }
    Some(chart)
}
