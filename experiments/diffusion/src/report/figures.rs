//! The figures of a report: loss against steps, loss by noise level, scores against steps, samples, learned connections.

use std::{fs, path::Path};

use anyhow::Result;
use experiment_kit::{
    compare::run_path,
    report::{Drawn, RunLogs, connections_map, with_arms},
};
use plotting::{LineChart, Scale, Series, Spread};
use training::run_directory::atomic_write;

use super::{Report, levels};
use crate::{run::SAMPLES, settings::PROCESS_STEPS, task::metric};

/// Draws the figures into a folder.
pub fn draw(report: &Report, folder: &Path) -> Result<Drawn> {
    let mut drawn = Drawn::default();
    drawn.save(&loss(report), folder, "loss")?;
    drawn.save(&by_level(report), folder, "noise-levels")?;
    if report.protocol().is_some() {
        drawn.save(&frechet(report), folder, "scores")?;
    }
    if let Some((figure, warning)) = connections_map(&report.runs, &scale(report), "block") {
        drawn.save(&figure, folder, "connections")?;
        drawn.warnings.extend(warning);
    }
    samples(report, folder, &mut drawn)?;
    Ok(drawn)
}

/// The picture of samples of each arm's first seed, under the name of the arm.
fn samples(report: &Report, folder: &Path, drawn: &mut Drawn) -> Result<()> {
    for variant in report.comparison.variants() {
        let run = run_path(&report.directory, &variant, report.comparison.run.seed);
        // Latents and runs without scores have none.
        let Ok(picture) = fs::read(run.join(SAMPLES)) else { continue };
        let name = run.file_name().and_then(|name| name.to_str()).unwrap_or("arm").to_owned();
        let path = folder.join(format!("samples-{name}.png"));
        atomic_write(&path, |file| std::io::Write::write_all(file, &picture))?;
        drawn.paths.push(path);
    }
    Ok(())
}

fn scale(report: &Report) -> String {
    let run = &report.comparison.run;
    format!(
        "{}, {} blocks, width {}, {} steps of {} images",
        run.data.images,
        report.comparison.depth_names(),
        run.model.width,
        run.training.steps,
        run.data.batch
    )
}

fn subtitle(report: &Report) -> String {
    let seeds = match report.comparison.seeds {
        1 => format!("seed {}", report.comparison.run.seed),
        n => format!("mean of {n} seeds, band: one standard deviation"),
    };
    format!("{}; {seeds}", scale(report))
}

fn loss(report: &Report) -> LineChart {
    let chart = LineChart::new("Held-out loss")
        .subtitle(subtitle(report))
        .x_label("step")
        .y_label("squared error of the noise")
        // The first evaluations lie far above the rest.
        .clip_start(0.1);
    with_arms(chart, &report.runs, metric::LOSS)
}

fn frechet(report: &Report) -> LineChart {
    let chart = LineChart::new("Fréchet distance of samples")
        .subtitle(subtitle(report))
        .x_label("step")
        .y_label("distance, classifier features");
    with_arms(chart, &report.runs, metric::FRECHET)
}

fn by_level(report: &Report) -> LineChart {
    let count = report.comparison.run.evaluation.noise_levels;
    let middle: Vec<f64> = (0..count).map(|i| (i as f64 + 0.5) * PROCESS_STEPS as f64 / count as f64).collect();
    let mut chart = LineChart::new("Held-out loss by noise level")
        .subtitle(subtitle(report))
        .x_label("step of the process (0: little noise, 1000: only noise)")
        .y_label("squared error of the noise")
        // It falls over three magnitudes.
        .y_scale(Scale::Log);
    for (i, arm) in report.runs.arms.iter().enumerate() {
        let runs: Vec<&RunLogs> = report.runs.of_arm(arm).into_iter().filter(|run| !run.has_diverged()).collect();
        let values: Vec<Vec<f64>> = runs.iter().map(|run| levels(run, count)).collect();
        let series = match values.as_slice() {
            [] => continue,
            [one] => Series::line(arm, middle.iter().copied().zip(one.iter().copied())),
            several => Series::mean_of_runs(arm, &middle, several, Spread::StdDev),
        };
        chart = chart.series(series.arm(i));
    }
    chart
}
