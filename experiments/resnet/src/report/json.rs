//! `report.json`: stable names for other programs.

use experiment_kit::report::RunLogs;
use serde::Serialize;

use super::{Report, block_drop, last, late};
use crate::contrastive::metric;

/// The whole report.
#[derive(Serialize)]
pub struct JsonReport {
    /// Grows when a field changes its meaning.
    format: u32,
    task: String,
    baseline: String,
    updates: usize,
    depths: Vec<usize>,
    seeds: Vec<u64>,
    arms: Vec<JsonArm>,
}

/// One run of one arm. Numbers that are not known are `null`.
#[derive(Serialize)]
struct JsonArm {
    /// With its depth where depths are compared.
    name: String,
    seed: u64,
    /// Means of the last evaluations: with the policy's mean action, and with drawn ones.
    success_any: f64,
    success_any_sampled: f64,
    time_at_goal: f64,
    final_distance: f64,
    failures: f64,
    difference_to_baseline: Option<f64>,
    /// Against updates.
    success_curve: Vec<(f64, f64)>,
    success_sampled_curve: Vec<(f64, f64)>,
    time_at_goal_curve: Vec<(f64, f64)>,
    environment_steps: f64,
    stream_growth: f64,
    action_size: f64,
    policy_entropy: f64,
    connection_entropy: f64,
    step_seconds: f64,
    step_time_ratio: Option<f64>,
    peak_memory_bytes: Option<u64>,
    parameters: u64,
    connection_parameters: usize,
    /// How much the policy's mean changes, relative to its size, when a block is left out.
    block_drop: Vec<f64>,
    /// Why the run ended early, if it did.
    diverged: Option<String>,
    entropies: Option<Vec<f64>>,
    /// Of the actor.
    coefficients: Vec<Vec<f64>>,
}

/// The report as it is stored.
pub fn report(report: &Report) -> JsonReport {
    JsonReport {
        format: 1,
        task: report.comparison.run.task.name.clone(),
        baseline: report.comparison.baseline_name(),
        updates: report.comparison.run.training.steps,
        depths: report.comparison.depths.clone(),
        seeds: report.comparison.seed_range().collect(),
        arms: report.runs.runs.iter().map(|run| arm(report, run)).collect(),
    }
}

fn arm(report: &Report, run: &RunLogs) -> JsonArm {
    let baseline = report.runs.baseline_of(run);
    let curve = |metric: &str| if run.has_diverged() { Vec::new() } else { run.curve(metric) };
    JsonArm {
        name: run.arm.clone(),
        seed: run.seed,
        success_any: late(run, metric::SUCCESS),
        success_any_sampled: late(run, metric::SAMPLED_SUCCESS),
        time_at_goal: late(run, metric::TIME_AT_GOAL),
        final_distance: late(run, metric::FINAL_DISTANCE),
        failures: late(run, metric::FAILURES),
        difference_to_baseline: baseline.map(|b| late(run, metric::SAMPLED_SUCCESS) - late(b, metric::SAMPLED_SUCCESS)),
        success_curve: curve(metric::SUCCESS),
        success_sampled_curve: curve(metric::SAMPLED_SUCCESS),
        time_at_goal_curve: curve(metric::TIME_AT_GOAL),
        environment_steps: last(run, metric::ENVIRONMENT_STEPS),
        stream_growth: last(run, metric::STREAM_GROWTH),
        action_size: last(run, metric::SATURATION),
        policy_entropy: last(run, metric::ENTROPY),
        connection_entropy: last(run, metric::CONNECTION_ENTROPY),
        step_seconds: run.step_seconds,
        step_time_ratio: report.runs.step_time_ratio(run),
        peak_memory_bytes: run.summary.peak_memory_bytes,
        parameters: run.summary.parameters,
        connection_parameters: run.summary.connection_parameters,
        block_drop: block_drop(run),
        diverged: run.summary.diverged.clone(),
        entropies: run.summary.entropies.clone(),
        coefficients: run.summary.coefficients.clone(),
    }
}
