//! `report.json`: stable names for other programs.

use experiment_kit::report::RunLogs;
use serde::Serialize;

use super::{QUARTERS, Report, bits_per_byte, loss, nats_per_byte, perplexity};
use crate::task::metric;

/// The whole report.
#[derive(Serialize)]
pub struct JsonReport {
    /// Grows when a field changes its meaning.
    format: u32,
    baseline: String,
    steps: usize,
    seeds: Vec<u64>,
    arms: Vec<JsonArm>,
}

/// One run of one arm.
#[derive(Serialize)]
struct JsonArm {
    name: String,
    seed: u64,
    /// At 25, 50, 75 and 100% of the steps, as the next two.
    quarters_nats_per_byte: [f64; 4],
    quarters_perplexity: [f64; 4],
    quarters_bits_per_byte: [f64; 4],
    final_nats_per_byte: f64,
    final_loss: f64,
    final_perplexity: f64,
    final_bits_per_byte: f64,
    final_authors_loss: f64,
    difference_to_baseline: Option<f64>,
    /// `null` where the run does not get there.
    steps_to_baseline: Option<f64>,
    tokens_per_second: f64,
    step_seconds: f64,
    step_time_ratio: Option<f64>,
    /// `null` where it is not known.
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
    JsonReport {
        format: 1,
        baseline: report.comparison.baseline().to_string(),
        steps: report.comparison.run.training.steps,
        seeds: report.comparison.seed_range().collect(),
        arms: report.runs.runs.iter().map(|run| arm(report, run)).collect(),
    }
}

fn arm(report: &Report, run: &RunLogs) -> JsonArm {
    let baseline = report.runs.baseline_of(run);
    JsonArm {
        name: run.arm.clone(),
        seed: run.seed,
        quarters_nats_per_byte: QUARTERS.map(|share| nats_per_byte(run, share)),
        quarters_perplexity: QUARTERS.map(|share| perplexity(run, share)),
        quarters_bits_per_byte: QUARTERS.map(|share| bits_per_byte(run, share)),
        final_nats_per_byte: nats_per_byte(run, 1.0),
        final_loss: loss(run, 1.0),
        final_perplexity: perplexity(run, 1.0),
        final_bits_per_byte: bits_per_byte(run, 1.0),
        final_authors_loss: run.last(metric::AUTHORS_LOSS),
        difference_to_baseline: baseline.map(|b| nats_per_byte(run, 1.0) - nats_per_byte(b, 1.0)),
        steps_to_baseline: report.runs.steps_to_baseline(run, metric::NATS_PER_BYTE),
        tokens_per_second: run.tokens_per_second,
        step_seconds: run.step_seconds,
        step_time_ratio: report.runs.step_time_ratio(run),
        peak_memory_bytes: run.summary.peak_memory_bytes,
        parameters: run.summary.parameters,
        connection_parameters: run.summary.connection_parameters,
        stream_growth: run.last(metric::STREAM_GROWTH),
        diverged: run.summary.diverged.clone(),
        entropies: run.summary.entropies.clone(),
        coefficients: run.summary.coefficients.clone(),
    }
}
