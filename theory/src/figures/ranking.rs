//! Every layout of four layers: gradient flow against gradient descent.

use std::path::Path;

use anyhow::Result;
use connection_layout::Layout;
use plotting::{Figure, LineChart, Marker, Saved, Scale, Series};

use crate::ranking::{Ranking, RankingSettings};

const DEPTH: usize = 4;
const WIDTH: usize = 5;

/// Layouts that are named in the figure.
const NAMED: [&str; 6] = ["0:3", "0:2+2:3", "hidden-cascade", "hidden-dense", "dense", "cascade"];

/// The time of gradient flow against the fewest steps of gradient descent, a point a layout.
pub(super) fn ranking(seed: u64, folder: &Path, name: &str) -> Result<Saved> {
    let settings = RankingSettings { instances: 3, ..RankingSettings::new(DEPTH, WIDTH, seed) };
    let ranking = Ranking::measure(&settings, |_| ())?;
    let place = |layout: &Layout| {
        let summary = &ranking.entry(layout)?.summary;
        let point = (summary.flow.median, summary.fewest_steps());
        (point.0.is_finite() && point.1.is_finite()).then_some(point)
    };
    let group = |keep: &dyn Fn(&Layout) -> bool| -> Vec<(f64, f64)> {
        ranking.entries().iter().filter(|entry| keep(&entry.layout)).filter_map(|entry| place(&entry.layout)).collect()
    };
    let groups: [(&str, Vec<(f64, f64)>); 4] = [
        ("hidden-only, alpha >= 1", group(&Layout::is_fast)),
        ("into the output, kappa0 > 0", group(&|l| !l.is_hidden_only() && l.saddle_order() == 1)),
        ("saddle of order 2", group(&|l| l.saddle_order() == 2)),
        ("saddle of order 3 or 4", group(&|l| l.saddle_order() > 2)),
    ];
    let shown: usize = groups.iter().map(|(_, points)| points.len()).sum();
    let mut chart = LineChart::new(format!("All {} layouts of {DEPTH} layers", ranking.entries().len()))
        .subtitle(format!(
            "width {WIDTH}, medians of {} seeds from {seed}; {} that did not get there by time {} and step {} are not shown",
            settings.instances, ranking.entries().len() - shown, settings.flow_time, settings.most_steps
        ))
        .x_label("time of gradient flow to a relative loss of 1e-6")
        .y_label("steps of gradient descent at the best of nine rates")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .with_size(940, 560);
    // What comes first lies on top.
    for (index, text) in NAMED.iter().enumerate() {
        let layout = Layout::parse(text, DEPTH)?;
        let Some(point) = place(&layout) else { continue };
        let rank = ranking.entry(&layout).map_or(0, |entry| ranking.classes()[entry.class].flow_rank);
        let marker = Marker::ALL[1 + index % 4];
        let series = Series::scatter(format!("{text} (flow rank {rank})"), [point]);
        chart = chart.series(series.color(plotting::arm_color([1, 3, 0, 1, 3, 0][index])).marker(marker));
    }
    for ((name, points), arm) in groups.into_iter().zip([2, 5, 4, 0]).filter(|((_, points), _)| !points.is_empty()) {
        chart =
            chart.series(Series::scatter(format!("{name} ({})", points.len()), points).arm(arm).marker(Marker::Circle));
    }
    chart.save(folder, name).map_err(Into::into)
}
