//! The figures that every comparison has: a metric against steps, and the learned connections.

use std::path::{Path, PathBuf};

use plotting::{Figure, HeatMap, LineChart, Panel, PlotError, Saved, Series, Spread};

use super::{Curve, RunLogs, Runs};

/// Panels that one figure of connections holds.
const MAX_PANELS: usize = 6;

/// The figures of a report, as they are drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The files.
    pub paths: Vec<PathBuf>,
    /// What the figures could not show.
    pub warnings: Vec<String>,
}

impl Drawn {
    /// Draws a figure as `FOLDER/NAME.png` and `FOLDER/NAME.svg`.
    ///
    /// # Errors
    /// If it cannot be drawn or a file cannot be written.
    pub fn save(&mut self, figure: &impl Figure, folder: &Path, name: &str) -> Result<(), PlotError> {
        let Saved { png, svg, warnings } = figure.save(folder, name)?;
        self.paths.extend([png, svg]);
        self.warnings.extend(warnings);
        Ok(())
    }

    /// The figures as images in Markdown that stands beside their folder `figures`.
    pub fn markdown(&self) -> String {
        let names = self.paths.iter().filter(|path| path.extension().is_some_and(|e| e == "png"));
        let names = names.filter_map(|path| path.file_name()?.to_str());
        names.map(|name| format!("\n![{name}](figures/{name})\n")).collect()
    }
}

/// The chart with a line for each arm: the curve of its one run, or the mean of its seeds with a band of one standard
/// deviation. Runs that diverged are left out; an arm keeps its colour whatever others show.
#[must_use]
pub fn with_arms(mut chart: LineChart, all: &Runs, metric: &str) -> LineChart {
    for (i, arm) in all.arms.iter().enumerate() {
        let runs = all.of_arm(arm).into_iter().filter(|run| !run.has_diverged());
        let curves: Vec<Curve> = runs.map(|run| run.curve(metric)).collect();
        let series = match curves.as_slice() {
            [] => continue,
            [one] => Series::line(arm, one.iter().copied()),
            several => {
                let steps: Vec<f64> = several[0].iter().map(|&(step, _)| step).collect();
                let values: Vec<Vec<f64>> =
                    several.iter().map(|curve| curve.iter().map(|&(_, value)| value).collect()).collect();
                Series::mean_of_runs(arm, &steps, &values, Spread::StdDev)
            }
        };
        chart = chart.series(series.arm(i));
    }
    chart
}

/// Whether a run has learned coefficients to show.
pub fn has_coefficients(run: &RunLogs) -> bool {
    run.summary.connection_parameters > 0 && !run.summary.coefficients.is_empty()
}

/// The coefficients of the arms that learn them, one panel a run, with a warning if there are more than fit; none if no
/// arm learns any. `unit` is what connections follow, `layer` or `block`.
pub fn connections_map(all: &Runs, subtitle: &str, unit: &str) -> Option<(HeatMap, Option<String>)> {
    let learned: Vec<&RunLogs> = all.runs.iter().filter(|run| has_coefficients(run)).collect();
    let count = learned.len();
    if count == 0 {
        return None;
    }
    let mut map = HeatMap::new("Learned connections")
        .subtitle(subtitle)
        .x_label("source state i")
        .y_label(format!("{unit} l"))
        .value_label("weight");
    for run in learned.into_iter().take(MAX_PANELS) {
        let rows = &run.summary.coefficients;
        let title = if all.seeds > 1 { format!("{}, seed {}", run.arm, run.seed) } else { run.arm.clone() };
        let panel = Panel::of_rows(title, rows)
            .row_labels((1..=rows.len()).map(|l| l.to_string()))
            .column_labels((0..rows.len()).map(|i| i.to_string()));
        map = map.panel(panel);
    }
    let more = format!("the figure of the connections shows {MAX_PANELS} of {count} runs; report.json has all");
    Some((map, (count > MAX_PANELS).then_some(more)))
}
