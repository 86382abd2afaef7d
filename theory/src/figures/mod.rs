//! The figures, each a function of a seed.

mod coefficients;
mod losses;
mod ranking;
mod rates;

use std::path::Path;

use anyhow::{Context, Result};
use plotting::{Figure, LineChart, Saved, Series};

use crate::network::Scope::{HiddenOnly, WithOutput};

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct NamedFigure {
    /// File name without extension.
    pub name: &'static str,
    /// Computes the data of a seed and draws it into a folder.
    pub draw: fn(u64, &Path) -> Result<Saved>,
}

/// Every figure, in the order of `docs/theory.md`.
pub const FIGURES: &[NamedFigure] = &[
    NamedFigure { name: "loss-3-layers", draw: |seed, folder| losses::three_layers(seed, folder, "loss-3-layers") },
    NamedFigure { name: "loss-4-layers", draw: |seed, folder| losses::four_layers(seed, folder, "loss-4-layers") },
    NamedFigure { name: "slopes", draw: |_, folder| rates::slopes(folder, "slopes") },
    NamedFigure { name: "alpha-squared", draw: |seed, folder| rates::alpha_squared(seed, folder, "alpha-squared") },
    NamedFigure { name: "ranking", draw: |seed, folder| ranking::ranking(seed, folder, "ranking") },
    NamedFigure {
        name: "learned-3-layers",
        draw: |seed, folder| coefficients::coefficients(3, HiddenOnly, 1.0, seed, folder, "learned-3-layers"),
    },
    NamedFigure {
        name: "learned-4-layers",
        draw: |seed, folder| coefficients::coefficients(4, HiddenOnly, 1.0, seed, folder, "learned-4-layers"),
    },
    NamedFigure {
        name: "learned-3-layers-output",
        draw: |seed, folder| coefficients::coefficients(3, WithOutput, 0.12, seed, folder, "learned-3-layers-output"),
    },
];

/// Adds named lines to a chart and saves it, with `NAME.csv` beside the pictures: `series,x,y`, so that the figure can be made
/// again without computing.
fn save_with_data(
    mut chart: LineChart,
    lines: Vec<(String, Vec<(f64, f64)>)>,
    folder: &Path,
    name: &str,
) -> Result<Saved> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["series", "x", "y"])?;
    for (series, points) in &lines {
        for (x, y) in points {
            writer.write_record([series.as_str(), &x.to_string(), &y.to_string()])?;
        }
    }
    for (series, points) in lines {
        chart = chart.series(Series::line(series, points));
    }
    let saved = chart.save(folder, name)?;
    let path = folder.join(format!("{name}.csv"));
    std::fs::write(&path, writer.into_inner()?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(saved)
}
