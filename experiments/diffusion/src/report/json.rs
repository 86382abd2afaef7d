//! `report.json`: stable names for other programs.

use experiment_kit::report::RunLogs;
use serde::Serialize;
use serde_json::Value;

use super::{QUARTERS, Report, last, levels, loss};
use crate::task::metric;

/// The whole report.
#[derive(Serialize)]
pub struct JsonReport {
    /// Grows when a field changes its meaning.
    format: u32,
    baseline: String,
    steps: usize,
    seeds: Vec<u64>,
    /// `null` where nothing was scored.
    protocol: Option<Value>,
    arms: Vec<JsonArm>,
}

/// One run of one arm. Numbers that are not known are `null`.
#[derive(Serialize)]
struct JsonArm {
    name: String,
    seed: u64,
    /// At 25, 50, 75 and 100% of the steps.
    quarters_mse: [f64; 4],
    final_mse: f64,
    final_mse_ema: f64,
    final_vb: f64,
    /// By noise level, little noise first.
    final_mse_levels: Vec<f64>,
    difference_to_baseline: Option<f64>,
    steps_to_baseline: Option<f64>,
    frechet_distance: f64,
    spatial_frechet_distance: f64,
    inception_score: f64,
    precision: f64,
    recall: f64,
    density: f64,
    coverage: f64,
    sample_accuracy: f64,
    /// Fréchet distance against steps.
    frechet_curve: Vec<(f64, f64)>,
    images_per_second: f64,
    step_seconds: f64,
    step_time_ratio: Option<f64>,
    peak_memory_bytes: Option<u64>,
    parameters: u64,
    connection_parameters: usize,
    stream_growth: f64,
    /// Why the run ended early, if it did.
    diverged: Option<String>,
    entropies: Option<Vec<f64>>,
    coefficients: Vec<Vec<f64>>,
}

/// The report as it is stored.
pub fn report(report: &Report) -> JsonReport {
    let protocol = report.runs.runs.iter().map(|run| run.summary.extra["protocol"].clone()).find(|p| !p.is_null());
    JsonReport {
        format: 1,
        baseline: report.comparison.baseline().to_string(),
        steps: report.comparison.run.training.steps,
        seeds: report.comparison.seed_range().collect(),
        protocol,
        arms: report.runs.runs.iter().map(|run| arm(report, run)).collect(),
    }
}

fn arm(report: &Report, run: &RunLogs) -> JsonArm {
    let baseline = report.runs.baseline_of(run);
    JsonArm {
        name: run.arm.clone(),
        seed: run.seed,
        quarters_mse: QUARTERS.map(|share| loss(run, share)),
        final_mse: loss(run, 1.0),
        final_mse_ema: last(run, metric::AVERAGE_LOSS),
        final_vb: last(run, metric::BOUND),
        final_mse_levels: levels(run, report.comparison.run.evaluation.noise_levels),
        difference_to_baseline: baseline.map(|b| loss(run, 1.0) - loss(b, 1.0)),
        steps_to_baseline: report.runs.steps_to_baseline(run, metric::LOSS),
        frechet_distance: last(run, metric::FRECHET),
        spatial_frechet_distance: last(run, metric::SPATIAL_FRECHET),
        inception_score: last(run, metric::INCEPTION),
        precision: last(run, metric::PRECISION),
        recall: last(run, metric::RECALL),
        density: last(run, metric::DENSITY),
        coverage: last(run, metric::COVERAGE),
        sample_accuracy: last(run, metric::ACCURACY),
        frechet_curve: if run.has_diverged() { Vec::new() } else { run.curve(metric::FRECHET) },
        images_per_second: run.tokens_per_second,
        step_seconds: run.step_seconds,
        step_time_ratio: report.runs.step_time_ratio(run),
        peak_memory_bytes: run.summary.peak_memory_bytes,
        parameters: run.summary.parameters,
        connection_parameters: run.summary.connection_parameters,
        stream_growth: last(run, metric::STREAM_GROWTH),
        diverged: run.summary.diverged.clone(),
        entropies: run.summary.entropies.clone(),
        coefficients: run.summary.coefficients.clone(),
    }
}
