//! Which arm is best when each has its own best learning rate and temperature? Reads comparisons that differ in those, as
//! `recipes/small-scale.sh` makes them:
//!
//!     cargo run -p experiments-diffusion --example tuned_arms -- runs/sweep/tune-*                  # every cell
//!     cargo run -p experiments-diffusion --example tuned_arms -- --best runs/sweep/tune-*           # flags of each arm's best cell
//!     cargo run -p experiments-diffusion --example tuned_arms -- --paired runs/sweep/test-*         # the arms against the cascade
//!
//! The best cell of an arm is that of the lowest mean loss. Cells are to be chosen on other seeds than they are compared on.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use experiment_cli::sweep::Tables;
use experiment_kit::{
    compare::{self, Comparison},
    report::{
        RunLogs, Runs,
        table::{numbers, summary},
    },
};
use experiments_diffusion::{settings::Settings, task::metric};
use plotting::{fixed, mean, signed, significant};
use statistics::paired_difference;

/// One arm at one learning rate and temperature: its final losses by seed.
#[derive(Debug, Default)]
struct Cell {
    losses: BTreeMap<u64, f64>,
    growth: Vec<f64>,
    entropy: Vec<f64>,
    diverged: usize,
}

/// Arm, learning rate, temperature (none for arms without one), as text, in the order in which they are shown.
type Key = (String, String, String);

type Cells = BTreeMap<Key, Cell>;

fn gather(directories: &[PathBuf]) -> Result<Cells> {
    let mut cells = Cells::new();
    for directory in directories {
        let comparison: Comparison<Settings> =
            compare::read(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let runs = Runs::read(directory, &comparison, metric::LOSS)?;
        for (variant, name) in comparison.variants().iter().zip(&runs.arms) {
            let tau = if variant.arm.uses_tau() { comparison.run.model.tau.to_string() } else { "-".to_owned() };
            let cell = cells.entry((name.clone(), comparison.run.training.lr.to_string(), tau)).or_default();
            for run in runs.of_arm(name) {
                record(cell, run);
            }
        }
    }
    Ok(cells)
}

fn record(cell: &mut Cell, run: &RunLogs) {
    if run.has_diverged() {
        cell.diverged += 1;
        cell.losses.insert(run.seed, f64::INFINITY);
        return;
    }
    if cell.losses.insert(run.seed, run.at(metric::LOSS, 1.0)).is_none() {
        cell.growth.push(run.last(metric::STREAM_GROWTH));
        cell.entropy.push(run.last(metric::CONNECTION_ENTROPY));
    }
}

/// Losses of these seeds, or not a number where a seed is missing.
fn at(cell: &Cell, seeds: &[u64]) -> Vec<f64> {
    seeds.iter().map(|seed| cell.losses.get(seed).copied().unwrap_or(f64::NAN)).collect()
}

fn flags(cells: &Cells) -> Vec<String> {
    let of = |(arm, lr, tau): &Key| {
        let tau = if tau == "-" { String::new() } else { format!(" --tau {tau}") };
        format!("--arms={arm} --lr {lr}{tau}")
    };
    best_cells(cells).into_values().map(of).collect()
}

/// Every cell: mean and spread over its seeds.
fn all_cells(cells: &Cells) -> String {
    let mut table = numbers(
        ["arm", "lr", "tau", "seeds", "final loss", "growth", "entropy", "diverged"],
        ["", "", "", "", "MSE", "ratio", "nats", "runs"],
    );
    for ((arm, lr, tau), cell) in cells {
        let losses: Vec<f64> = cell.losses.values().copied().filter(|loss| loss.is_finite()).collect();
        let known: Vec<f64> = cell.entropy.iter().copied().filter(|entropy| entropy.is_finite()).collect();
        table.push([
            arm.clone(),
            lr.clone(),
            tau.clone(),
            cell.losses.len().to_string(),
            summary(&losses, 5),
            if cell.growth.is_empty() { "-".to_owned() } else { significant(mean(&cell.growth), 3) },
            if known.is_empty() { "-".to_owned() } else { fixed(mean(&known), 3) },
            cell.diverged.to_string(),
        ]);
    }
    table.to_text()
}

/// The cell of each arm with the lowest mean loss; one with a run that diverged is none.
fn best_cells(cells: &Cells) -> BTreeMap<&str, &Key> {
    let mut best = BTreeMap::<&str, (&Key, f64)>::new();
    for (key, cell) in cells {
        let losses: Vec<f64> = cell.losses.values().copied().collect();
        let loss = mean(&losses);
        if loss.is_finite() && best.get(key.0.as_str()).is_none_or(|(_, other)| loss < *other) {
            best.insert(&key.0, (key, loss));
        }
    }
    best.into_iter().map(|(arm, (key, _))| (arm, key)).collect()
}

/// Each arm at its best beside the cascade at its best, paired over seeds.
fn paired(cells: &Cells) -> Result<String> {
    let best = best_cells(cells);
    let Some(baseline) = best.get("cascade").and_then(|key| cells.get(key)) else {
        bail!("there is no cascade to compare with")
    };
    let mut table = numbers(
        ["arm", "lr", "tau", "final loss", "difference", "p", "pairs", "growth"],
        ["", "", "", "MSE", "MSE, ± sd", "", "", "ratio"],
    );
    for (key, cell) in cells.iter().filter(|(key, cell)| cell.diverged > 0 && !best.contains_key(key.0.as_str())) {
        let note = format!("{} of {} diverged", cell.diverged, cell.losses.len());
        let row = [
            key.0.clone(),
            key.1.clone(),
            key.2.clone(),
            note,
            "-".to_owned(),
            "-".to_owned(),
            "0".to_owned(),
            "-".to_owned(),
        ];
        table.push(row);
    }
    for (arm, key) in best {
        let Some(cell) = cells.get(key) else { continue };
        let seeds: Vec<u64> = cell.losses.keys().copied().collect();
        let losses = at(cell, &seeds);
        let difference = paired_difference(&losses, &at(baseline, &seeds));
        let is_baseline = arm == "cascade";
        let spread = format!("{} ± {}", signed(difference.mean, 5), fixed(difference.sd, 5));
        table.push([
            arm.to_owned(),
            key.1.clone(),
            key.2.clone(),
            summary(&losses, 5),
            if is_baseline { "-".to_owned() } else { spread },
            difference.p_value.filter(|_| !is_baseline).map_or_else(|| "-".to_owned(), |p| significant(p, 2)),
            difference.pairs.to_string(),
            significant(mean(&cell.growth), 3),
        ]);
    }
    Ok(table.to_text())
}

fn main() -> ExitCode {
    Tables { gather, every: all_cells, best: flags, paired }.end()
}
