//! The figures of a report: success and distance against steps, learned connections.

use std::{fs, io::Write, path::Path};

use anyhow::Result;
use experiment_kit::{
    compare::run_path,
    report::{Drawn, connections_map, with_arms},
};
use plotting::{LineChart, Scale, Series, Spread};
use training::run_directory::{RunPaths, atomic_write};

use super::{Report, block_drop};
use crate::{
    contrastive::metric,
    run::{FROM_ABOVE, SIDE},
};

/// Draws the figures into a folder.
pub fn draw(report: &Report, folder: &Path) -> Result<Drawn> {
    let mut drawn = Drawn::default();
    let label = "share of episodes, actions drawn from the policy";
    drawn.save(&chart(report, "Success at any time", label, metric::SAMPLED_SUCCESS), folder, "success")?;
    drawn.save(
        &chart(report, "Time at the goal", "steps of an episode, the policy's mean action", metric::TIME_AT_GOAL),
        folder,
        "time-at-goal",
    )?;
    if let Some(chart) = blocks(report) {
        drawn.save(&chart, folder, "blocks")?;
    }
    if let Some((figure, warning)) = connections_map(&report.runs, &format!("actor; {}", scale(report)), "block") {
        drawn.save(&figure, folder, "connections")?;
        drawn.warnings.extend(warning);
    }
    episodes(report, folder, &mut drawn)?;
    Ok(drawn)
}

/// The pictures of episodes of each arm's first seed, under the name of the arm.
fn episodes(report: &Report, folder: &Path, drawn: &mut Drawn) -> Result<()> {
    for variant in report.comparison.variants() {
        let run = run_path(&report.directory, &variant, report.comparison.run.seed);
        let arm = run.file_name().and_then(|name| name.to_str()).unwrap_or("arm");
        for name in [FROM_ABOVE, SIDE] {
            // A run that diverged has none, and agents without bodies have none from the side.
            let Ok(picture) = fs::read(RunPaths::new(&run).figures().join(format!("{name}.png"))) else { continue };
            let path = folder.join(format!("{name}-{arm}.png"));
            atomic_write(&path, |file| file.write_all(&picture))?;
            drawn.paths.push(path);
        }
    }
    Ok(())
}

fn scale(report: &Report) -> String {
    let run = &report.comparison.run;
    format!(
        "{}, depth {}, width {}, {} updates of {} transitions",
        run.task.name,
        report.comparison.depth_names(),
        run.model.width,
        run.training.steps,
        run.data.batch
    )
}

/// What each block does for the policy; none where no run tells.
fn blocks(report: &Report) -> Option<LineChart> {
    let mut chart = LineChart::new("Change of the policy when a block is left out")
        .subtitle(format!("{}; {}", scale(report), seeds(report)))
        .x_label("block")
        .x_whole()
        .y_label("relative change of the mean action, log scale")
        .y_scale(Scale::Log);
    let mut any = false;
    for (i, arm) in report.runs.arms.iter().enumerate() {
        let drops: Vec<Vec<f64>> =
            report.runs.of_arm(arm).into_iter().map(block_drop).filter(|drop| !drop.is_empty()).collect();
        let Some(first) = drops.first() else { continue };
        let blocks: Vec<f64> = (1..=first.len()).map(|block| block as f64).collect();
        let series = match drops.as_slice() {
            [one] => Series::line(arm, blocks.iter().copied().zip(one.iter().copied())),
            several => Series::mean_of_runs(arm, &blocks, several, Spread::StdDev),
        };
        chart = chart.series(series.arm(i));
        any = true;
    }
    any.then_some(chart)
}

fn seeds(report: &Report) -> String {
    match report.comparison.seeds {
        1 => format!("seed {}", report.comparison.run.seed),
        n => format!("mean of {n} seeds, band: one standard deviation"),
    }
}

fn chart(report: &Report, title: &str, label: &str, metric: &str) -> LineChart {
    let subtitle = format!("{}; {}", scale(report), seeds(report));
    let chart = LineChart::new(title).subtitle(subtitle).x_label("update").x_whole().y_label(label);
    with_arms(chart, &report.runs, metric)
}
