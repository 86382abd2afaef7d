//! The coefficients of ANCRe along the flow.

use std::path::Path;

use anyhow::Result;
use connection_layout::Direction;
use plotting::{LineChart, Saved};

use super::save_with_data;
use crate::network::{Scope, Softmax};
use crate::theorems::learned::{Variant, WIDTH, history};

/// Every learned share of a variant against time.
pub(super) fn coefficients(
    depth: usize,
    scope: Scope,
    end: f64,
    seed: u64,
    folder: &Path,
    name: &str,
) -> Result<Saved> {
    let softmax = Softmax { direction: Direction::Incoming, tau: 0.01, scope };
    let variant = Variant::new(depth, WIDTH, softmax, 1.0)?;
    let points = history(&variant, seed, end);
    let scope_text = if scope == Scope::HiddenOnly { "hidden nodes only" } else { "the output included" };
    let chart = LineChart::new(format!("What ANCRe learns in {depth} layers, {scope_text}"))
        .subtitle(format!("width {WIDTH}, tau 0.01, Gaussian target, gradient flow, seed {seed}"))
        .x_label("time")
        .y_label("share p of each shortcut")
        .x_range(0.0, end)
        .y_range(-0.02, 1.02)
        .with_size(840, 460);
    let last = if scope == Scope::HiddenOnly { depth - 1 } else { depth };
    let mut lines = Vec::new();
    // Node 1 has one source, and nothing to learn.
    for target in 2..=last {
        for source in 0..target {
            let line = points.iter().map(|(time, shares)| (*time, shares.get(source, target).unwrap_or(f64::NAN)));
            lines.push((format!("{source}:{target}"), line.collect()));
        }
    }
    save_with_data(chart, lines, folder, name)
}
