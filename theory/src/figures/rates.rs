//! The two laws of convergence: powers of time under 0:1, exponentials whose rate grows like alpha squared.

use std::path::Path;

use anyhow::Result;
use plotting::{Figure, LineChart, Saved, Scale, Series};

use crate::flow::Trajectory;
use crate::theorems::{sublinear, zero_init};

/// Loss against time on log axes under 0:1, with the slope that theory gives, and 0:K-1 from the same start.
pub(super) fn slopes(folder: &Path, name: &str) -> Result<Saved> {
    let rows = sublinear::slope_table();
    let epsilon = rows.first().map_or(0.0, |row| row.epsilon);
    let mut chart = LineChart::new("0:1 is a power of time, 0:K-1 an exponential")
        .subtitle(format!(
            "width 1, target 0, W_1 = 0, the other weights {epsilon}; slopes on [1e4, 1e5], limit -(K-1)/(K-2)"
        ))
        .x_label("time")
        .y_label("loss")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .x_range(0.1, 1e5)
        .y_range(1e-12, 0.3)
        .with_size(900, 520);
    for (index, row) in rows.iter().enumerate() {
        let curve = |run: &Trajectory| {
            run.points().iter().filter(|p| p.time > 0.0).map(|p| (p.time, p.loss)).collect::<Vec<_>>()
        };
        let label = format!("0:1, K = {}: slope {:.3} (limit {:.3})", row.depth, row.slope, row.limit);
        chart = chart.series(Series::line(label, curve(&row.sublinear)).arm(index).dash(plotting::Dash::Solid));
        let label = format!("0:{}, K = {}: rate {:.2}", row.depth - 1, row.depth, row.rate);
        chart = chart.series(Series::line(label, curve(&row.exponential)).arm(index).dash(plotting::Dash::Dots));
    }
    chart.save(folder, name).map_err(Into::into)
}

/// The rate of every fast hidden-only layout of four layers from zero weights.
pub(super) fn alpha_squared(seed: u64, folder: &Path, name: &str) -> Result<Saved> {
    let depth = 5;
    let rates = zero_init::rates_by_alpha(seed, depth);
    let most = rates.iter().map(|rate| rate.alpha).fold(1.0, f64::max);
    let bound = (0..=60).map(|i| most.powf(f64::from(i) / 60.0)).map(|alpha| (alpha, 2.0 * alpha * alpha));
    LineChart::new("From zero weights the rate is at least 2 alpha²")
        .subtitle(format!(
            "all {} fast hidden-only layouts of {depth} layers, width 4, one Gaussian target, seed {seed}",
            rates.len()
        ))
        .x_label("alpha, the number of pure-shortcut paths from the input to the last hidden node")
        .y_label("rate")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .with_size(840, 480)
        .series(Series::line("2 alpha²", bound).arm(0))
        .series(
            Series::scatter("rate kept from the first step on", rates.iter().map(|rate| (rate.alpha, rate.kept)))
                .arm(2),
        )
        .series(Series::scatter("mean rate down to 1e-6", rates.iter().map(|rate| (rate.alpha, rate.mean))).arm(6))
        .save(folder, name)
        .map_err(Into::into)
}
