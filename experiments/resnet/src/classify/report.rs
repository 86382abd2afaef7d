//! The report of a comparison of classifiers: tables, `report.json` and figures.

use std::path::Path;

use anyhow::Result;
use experiment_kit::{
    compare::Comparison,
    report::{
        self as kit_report, Drawn, Page, RunLogs, Runs, Written, connections_map, seeds,
        table::{cost, difference, numbers, over_seeds, summary},
        with_arms,
    },
};
use plotting::{LineChart, Scale, Table, fixed, mean};
use serde::Serialize;
use statistics::curves::first_reach;
use training::run_directory::RunPaths;

use super::{Settings, metric};
use crate::model::Network;

/// A comparison whose runs are all finished.
pub struct Report {
    comparison: Comparison<Settings>,
    runs: Runs,
}

/// One run of one arm, as `report.json` has it. Numbers that are not known are `null`.
#[derive(Serialize)]
struct JsonArm {
    name: String,
    seed: u64,
    final_training_loss: f64,
    final_held_out_loss: f64,
    final_accuracy: f64,
    steps_to_target: Option<f64>,
    seconds_to_target: Option<f64>,
    training_curve: Vec<(f64, f64)>,
    step_seconds: f64,
    step_time_ratio: Option<f64>,
    parameters: u64,
    connection_parameters: usize,
    diverged: Option<String>,
    coefficients: Vec<Vec<f64>>,
}

/// The whole report.
#[derive(Serialize)]
struct JsonReport {
    /// Grows when a field changes its meaning.
    format: u32,
    images: String,
    network: String,
    lr: f64,
    tau: f64,
    target_loss: f64,
    baseline: String,
    arms: Vec<JsonArm>,
}

impl Report {
    /// Reads the runs of a comparison.
    ///
    /// # Errors
    /// If a run is missing, unfinished, or its logs are damaged.
    pub fn read(directory: &Path, comparison: &Comparison<Settings>) -> Result<Self> {
        let runs = Runs::read(directory, comparison, metric::LOSS)?;
        Ok(Self { comparison: comparison.clone(), runs })
    }

    /// Writes `report.md`, `report.json` and the figures into the directory of the comparison.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<Written> {
        // Tables are written even where a figure cannot be.
        let figures = self.draw(&RunPaths::new(directory).figures()).unwrap_or_else(|error| Drawn {
            paths: Vec::new(),
            warnings: vec![format!("a figure could not be drawn: {error:#}")],
        });
        let page = self.page();
        kit_report::write(directory, &page.to_markdown(&figures), &self.json())?;
        Ok(Written { text: page.to_text(), warnings: figures.warnings, figures: figures.paths })
    }

    fn scale(&self) -> String {
        let run = &self.comparison.run;
        format!(
            "{}, {} of depth {}, width {}, {} steps of {} images at a learning rate of {}",
            run.data.images,
            run.model.network,
            self.comparison.depth_names(),
            run.model.width,
            run.training.steps,
            run.data.batch,
            run.training.lr
        )
    }

    fn page(&self) -> Page {
        let target = self.comparison.run.evaluation.target_loss;
        let mut notes = vec![
            "Losses: cross-entropy in nats. Accuracy: share of held-out images taken for their class.".to_owned(),
            format!(
                "To target: until the training loss is {target}, between evaluations by a straight line; in brackets how many \
                 seeds get there. Seconds: at the median time of a step, without evaluations."
            ),
            format!(
                "Difference: final training loss minus that of {} with the same seed, p from a paired t-test.",
                self.comparison.baseline_name()
            ),
            "Step time: median, relative to the baseline's; memory: weights, moments, and the largest training step."
                .to_owned(),
        ];
        notes.extend(self.runs.divergences());
        let tables = vec![("Losses", self.losses()), ("Cost", cost(&self.runs, "images/s"))];
        Page { heading: format!("{}; {}", self.scale(), seeds(&self.comparison)), tables, notes }
    }

    fn losses(&self) -> Table {
        let mut table = numbers(
            ["arm", "training loss", "held-out loss", "accuracy", "to target", "to target", "difference", "p"],
            ["", "nats", "nats", "share", "steps", "seconds", "nats", ""],
        );
        let reached = |runs: &[&RunLogs], value: &dyn Fn(&RunLogs) -> Option<f64>, decimals: usize| {
            let values: Vec<f64> = runs.iter().filter_map(|run| value(run)).collect();
            match values.len() {
                0 => "not reached".to_owned(),
                known if known == runs.len() => summary(&values, decimals),
                known => format!("{} ({known} of {})", fixed(mean(&values), decimals), runs.len()),
            }
        };
        for arm in &self.runs.arms {
            let runs = self.runs.of_arm(arm);
            let [difference, p] = difference(&self.runs, arm, 4, |run| last(run, metric::TRAINING_LOSS));
            table.push([
                arm.clone(),
                over_seeds(&runs, 4, |run| last(run, metric::TRAINING_LOSS)),
                over_seeds(&runs, 4, |run| last(run, metric::LOSS)),
                over_seeds(&runs, 4, |run| last(run, metric::ACCURACY)),
                reached(&runs, &|run| self.steps_to_target(run), 0),
                reached(&runs, &|run| Some(self.steps_to_target(run)? * run.step_seconds), 2),
                difference,
                p,
            ]);
        }
        table
    }

    /// None for a run that diverged, whatever it reached before.
    fn steps_to_target(&self, run: &RunLogs) -> Option<f64> {
        if run.has_diverged() {
            return None;
        }
        first_reach(&run.curve(metric::TRAINING_LOSS), self.comparison.run.evaluation.target_loss)
    }

    fn draw(&self, folder: &Path) -> Result<Drawn> {
        let mut drawn = Drawn::default();
        let seeds = match self.comparison.seeds {
            1 => format!("seed {}", self.comparison.run.seed),
            n => format!("mean of {n} seeds, band: one standard deviation"),
        };
        let chart = LineChart::new("Training loss")
            .subtitle(format!("{}; {seeds}", self.scale()))
            .x_label("step")
            .y_label("nats")
            .y_scale(Scale::Log);
        drawn.save(&with_arms(chart, &self.runs, metric::TRAINING_LOSS), folder, "training-loss")?;
        let part = if self.comparison.run.model.network == Network::Mlp { "" } else { "first stage; " };
        if let Some((figure, warning)) = connections_map(&self.runs, &format!("{part}{}", self.scale()), "block") {
            drawn.save(&figure, folder, "connections")?;
            drawn.warnings.extend(warning);
        }
        Ok(drawn)
    }

    fn json(&self) -> JsonReport {
        let run = &self.comparison.run;
        JsonReport {
            format: 1,
            images: run.data.images.to_string(),
            network: run.model.network.to_string(),
            lr: run.training.lr,
            tau: run.model.tau,
            target_loss: run.evaluation.target_loss,
            baseline: self.comparison.baseline_name(),
            arms: self.runs.runs.iter().map(|run| self.json_arm(run)).collect(),
        }
    }

    fn json_arm(&self, run: &RunLogs) -> JsonArm {
        let steps = self.steps_to_target(run);
        JsonArm {
            name: run.arm.clone(),
            seed: run.seed,
            final_training_loss: last(run, metric::TRAINING_LOSS),
            final_held_out_loss: last(run, metric::LOSS),
            final_accuracy: last(run, metric::ACCURACY),
            steps_to_target: steps,
            seconds_to_target: steps.map(|steps| steps * run.step_seconds),
            training_curve: if run.has_diverged() { Vec::new() } else { run.curve(metric::TRAINING_LOSS) },
            step_seconds: run.step_seconds,
            step_time_ratio: self.runs.step_time_ratio(run),
            parameters: run.summary.parameters,
            connection_parameters: run.summary.connection_parameters,
            diverged: run.summary.diverged.clone(),
            coefficients: run.summary.coefficients.clone(),
        }
    }
}

/// The last value of a metric; of a run that diverged there is nothing to show.
fn last(run: &RunLogs, metric: &str) -> f64 {
    if run.has_diverged() { f64::NAN } else { run.last(metric) }
}
