//! `report.json`: stable names for other programs.

use serde::Serialize;

use super::{ArmRun, QUARTERS, Report};

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
        arms: report.runs.iter().map(|run| arm(report, run)).collect(),
    }
}

fn arm(report: &Report, run: &ArmRun) -> JsonArm {
    let baseline = report.baseline_of(run);
    JsonArm {
        name: run.arm.clone(),
        seed: run.seed,
        quarters_nats_per_byte: QUARTERS.map(|share| run.nats_per_byte(share)),
        quarters_perplexity: QUARTERS.map(|share| run.perplexity(share)),
        quarters_bits_per_byte: QUARTERS.map(|share| run.bits_per_byte(share)),
        final_nats_per_byte: run.final_nats_per_byte(),
        final_loss: run.loss(1.0),
        final_perplexity: run.perplexity(1.0),
        final_bits_per_byte: run.bits_per_byte(1.0),
        final_authors_loss: run.final_authors_loss,
        difference_to_baseline: baseline.map(|b| run.final_nats_per_byte() - b.final_nats_per_byte()),
        steps_to_baseline: report.steps_to_baseline(run),
        tokens_per_second: run.tokens_per_second,
        step_seconds: run.step_seconds,
        step_time_ratio: report.step_time_ratio(run),
        peak_memory_bytes: run.summary.peak_memory_bytes,
        parameters: run.summary.parameters,
        connection_parameters: run.summary.connection_parameters,
        stream_growth: run.final_growth,
        diverged: run.summary.diverged.clone(),
        entropies: run.summary.entropies.clone(),
        coefficients: run.summary.coefficients.clone(),
    }
}
