//! Comparisons of arms: curves against steps and seconds, learned connections.

use anyhow::Result;
use plotting::{HeatMap, LineChart, Panel, Series, Spread};
use statistics::{curves::against_seconds, mean};

use super::Gallery;
use crate::logs::{Arm, Log, Report};

/// What can be drawn of a report: a metric of its logs or a curve that it holds itself.
struct Metric {
    /// The name in `metrics.jsonl`, or in the report.
    name: &'static str,
    /// Whether the report holds it.
    in_report: bool,
    title: &'static str,
    label: &'static str,
    /// A part of a file's name.
    file: &'static str,
    part: &'static str,
    /// Whether its first values are so high that they would flatten the rest.
    falls: bool,
}

const METRICS: [Metric; 5] = [
    Metric {
        name: "held_out_nats_per_byte",
        in_report: false,
        title: "Language models: held-out loss",
        label: "nats per byte",
        file: "loss",
        part: "c4",
        falls: true,
    },
    Metric {
        name: "held_out_mse",
        in_report: false,
        title: "Diffusion: held-out error of the predicted noise",
        label: "mean squared error",
        file: "loss",
        part: "dit",
        falls: true,
    },
    Metric {
        name: "frechet_curve",
        in_report: true,
        title: "Diffusion: Fréchet distance of samples",
        label: "distance",
        file: "frechet",
        part: "dit",
        falls: true,
    },
    Metric {
        name: "success_sampled_curve",
        in_report: true,
        title: "Reinforcement learning: success, actions drawn from the policy",
        label: "share of episodes",
        file: "success",
        part: "depth-16",
        falls: false,
    },
    Metric {
        name: "time_at_goal_curve",
        in_report: true,
        title: "Reinforcement learning: time at the goal, the policy's mean action",
        label: "steps of an episode",
        file: "time-at-goal",
        part: "depth-16",
        falls: false,
    },
];

/// Panels that a figure of connections has room for.
const PANELS: usize = 6;

pub(super) fn draw(log: &Log, report: &Report, gallery: &mut Gallery<'_>) -> Result<()> {
    for metric in &METRICS {
        let curves = Curves::read(log, report, metric)?;
        if curves.arms.is_empty() {
            continue;
        }
        let band = if curves.arms.iter().any(|(_, _, runs)| runs.len() > 1) {
            "; mean, band: one standard deviation"
        } else {
            ""
        };
        let subtitle = format!("{}{band}", log.provenance.what);
        let caption = format!("{}, {}", metric.title, log.name);
        let name = format!("{}-{}", log.name, metric.file);
        let chart = curves.against_steps(metric).subtitle(&subtitle);
        gallery.save(&chart, metric.part, name.clone(), format!("{caption}, against steps"))?;
        if let Some(chart) = curves.against_seconds(metric).filter(|_| metric.falls) {
            let chart = chart.subtitle(&subtitle);
            gallery.save(&chart, metric.part, format!("{name}-seconds"), format!("{caption}, against seconds"))?;
        }
    }
    if let Some((map, part)) = connections(log, report)? {
        let caption = format!("Learned connections, {}", log.name);
        gallery.save(&map, part, format!("{}-connections", log.name), caption)?;
    }
    Ok(())
}

/// The curves of every arm that has some, with its place among all arms: it keeps its colour whatever others show.
struct Curves {
    arms: Vec<(usize, String, Vec<Run>)>,
}

struct Run {
    curve: Vec<(f64, f64)>,
    seconds: Vec<(f64, f64)>,
}

impl Curves {
    fn read(log: &Log, report: &Report, metric: &Metric) -> Result<Self> {
        let mut arms = Vec::new();
        for (index, name) in report.names().into_iter().enumerate() {
            let mut runs = Vec::new();
            for arm in report.of_arm(name) {
                let curve = if metric.in_report { arm.curve(metric.name) } else { log.curve(arm, metric.name)? };
                if !curve.is_empty() {
                    let seconds = against_seconds(&curve, &log.clock(arm)?);
                    runs.push(Run { curve, seconds });
                }
            }
            if !runs.is_empty() {
                arms.push((index, name.to_owned(), runs));
            }
        }
        Ok(Self { arms })
    }

    fn against_steps(&self, metric: &Metric) -> LineChart {
        let mut chart = chart(metric).x_label("step").x_whole();
        for (index, name, runs) in &self.arms {
            let steps: Vec<f64> = runs[0].curve.iter().map(|&(step, _)| step).collect();
            let values: Vec<Vec<f64>> = runs.iter().map(|run| run.curve.iter().map(|&(_, y)| y).collect()).collect();
            chart = chart.series(series(name, &steps, &values).arm(*index));
        }
        chart
    }

    /// Mean values against the mean seconds at the same steps; none where a run has no times.
    fn against_seconds(&self, metric: &Metric) -> Option<LineChart> {
        let mut chart = chart(metric).x_label("seconds, evaluation and saving left out");
        for (index, name, runs) in &self.arms {
            let points = runs.iter().map(|run| run.seconds.len()).min().filter(|&points| points > 0)?;
            let seconds: Vec<f64> =
                (0..points).map(|i| mean(&runs.iter().map(|run| run.seconds[i].0).collect::<Vec<_>>())).collect();
            let values: Vec<Vec<f64>> =
                runs.iter().map(|run| run.seconds[..points].iter().map(|&(_, y)| y).collect()).collect();
            chart = chart.series(series(name, &seconds, &values).arm(*index));
        }
        Some(chart)
    }
}

fn chart(metric: &Metric) -> LineChart {
    let chart = LineChart::new(metric.title).y_label(metric.label);
    if metric.falls { chart.clip_start(0.05) } else { chart }
}

/// One curve, or the mean of several with a band of one standard deviation.
fn series(name: &str, x: &[f64], values: &[Vec<f64>]) -> Series {
    match values {
        [one] => Series::line(name, x.iter().copied().zip(one.iter().copied())),
        several => Series::mean_of_runs(name, x, several, Spread::StdDev),
    }
}

/// The coefficients of the arms that learn them, a panel a run.
fn connections(log: &Log, report: &Report) -> Result<Option<(HeatMap, &'static str)>> {
    let rows = |arm: &Arm| arm.rows("coefficients");
    let learned: Vec<&Arm> =
        report.arms.iter().filter(|arm| arm.number("connection_parameters") > 0.0 && !rows(arm).is_empty()).collect();
    if learned.is_empty() {
        return Ok(None);
    }
    // The first metric that the log has tells which part of the page it belongs to.
    let mut part = "c4";
    for metric in &METRICS {
        let curve = if metric.in_report { learned[0].curve(metric.name) } else { log.curve(learned[0], metric.name)? };
        if !curve.is_empty() {
            part = metric.part;
            break;
        }
    }
    // Deep networks leave room for fewer panels.
    let deepest = learned.iter().map(|arm| rows(arm).len()).max().unwrap_or(0);
    let panels = if deepest > 12 { PANELS / 2 } else { PANELS };
    // The deepest ones say the most.
    let mut shown: Vec<&Arm> = learned.clone();
    shown.sort_by_key(|arm| std::cmp::Reverse(rows(arm).len()));
    let (shown, left) = shown.split_at(shown.len().min(panels));
    let more = if left.is_empty() { String::new() } else { format!("; {} of {} runs", shown.len(), learned.len()) };
    let mut map = HeatMap::new("Learned connections")
        .subtitle(format!("{}{more}", log.provenance.what))
        .x_label("source state i")
        .y_label("block l")
        .value_label("weight");
    for arm in shown {
        let rows = rows(arm);
        let panel = Panel::of_rows(format!("{}, seed {}", arm.name, arm.seed), &rows)
            .row_labels((1..=rows.len()).map(|l| l.to_string()))
            .column_labels((0..rows.len()).map(|i| i.to_string()));
        map = map.panel(panel);
    }
    Ok(Some((map, part)))
}
