//! Loss against time for layouts of three and of four layers, as in the paper's first figures.

use std::path::Path;

use anyhow::Result;
use connection_layout::Layout;
use plotting::{LineChart, Saved, Scale};
use rayon::prelude::*;

use super::save_with_data;
use crate::flow::{FlowSettings, GradientFlow};
use crate::network::Problem;
use crate::{Draw, TargetLaw};

const WIDTH: usize = 8;
/// Deviation of the initial weights, entry by entry.
const INIT: f64 = 0.01;

/// All hidden-only layouts of three layers, and the full cascade.
pub(super) fn three_layers(seed: u64, folder: &Path, name: &str) -> Result<Saved> {
    let layouts = Layout::all_hidden_only(3)?.map(|layout| (layout.to_string(), layout));
    let layouts = layouts.chain([("0:1+1:2+2:3 (cascade)".to_owned(), Layout::parse("cascade", 3)?)]).collect();
    draw(seed, layouts, 30.0, folder, name)
}

/// The layouts of four layers that the text speaks of.
pub(super) fn four_layers(seed: u64, folder: &Path, name: &str) -> Result<Saved> {
    let names =
        ["none", "0:1", "0:2", "0:3", "0:2+2:3", "0:1+1:3", "hidden-cascade", "cascade", "hidden-dense", "dense"];
    let layouts: Result<Vec<_>, _> = names.iter().map(|n| Layout::parse(n, 4).map(|l| ((*n).to_owned(), l))).collect();
    draw(seed, layouts?, 30.0, folder, name)
}

fn draw(seed: u64, layouts: Vec<(String, Layout)>, end: f64, folder: &Path, name: &str) -> Result<Saved> {
    let depth = layouts[0].1.depth();
    let curves = layouts.into_par_iter().map(|(name, layout)| (name, curve(seed, &layout, end))).collect();
    let chart = LineChart::new(format!("Gradient flow of linear networks of {depth} layers"))
        .subtitle(format!("width {WIDTH}, target N(0, 1/{WIDTH}), weights N(0, {INIT}²), seed {seed}"))
        .x_label("time")
        .y_label("excess loss relative to that of zero weights")
        .y_scale(Scale::Log)
        .y_range(1e-10, 4.0)
        .x_range(0.0, end)
        .with_size(900, 520);
    save_with_data(chart, curves, folder, name)
}

/// The relative loss along the flow; target and weights are the same for every layout of a depth.
fn curve(seed: u64, layout: &Layout, end: f64) -> Vec<(f64, f64)> {
    let mut draw = Draw::new(seed, 0);
    let Ok(problem) = Problem::whitened(layout, draw.target(TargetLaw::Gaussian, WIDTH)) else { return Vec::new() };
    let start = draw.weights(&problem, INIT);
    let scale = problem.target().scale();
    let settings = FlowSettings { until_loss: 1e-11 * scale, until_time: end, ..FlowSettings::default() };
    let (_, trajectory) = GradientFlow::new(&problem, settings).trajectory(&start);
    trajectory.points().iter().map(|point| (point.time, point.loss / scale)).collect()
}
