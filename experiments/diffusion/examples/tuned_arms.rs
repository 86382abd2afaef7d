//! Which arm is best when each has its own best learning rate and temperature? Reads comparisons that differ in those, as
//! `recipes/small-scale.sh` makes them, and prints a table:
//!
//!     cargo run -p experiments-diffusion --example tuned_arms -- [--tune-seeds N] runs/sweep/*
//!
//! Each arm's learning rate and temperature are those of the lowest mean loss over the first N seeds (default: all); the
//! differences to the baseline are then paired over the seeds that were not used for choosing, or over all where N is all.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use command_line::{Failure, say};
use experiment_kit::{
    compare::{self, Comparison},
    report::{
        RunLogs, Runs,
        statistics::paired_difference,
        table::{numbers, summary},
    },
};
use experiments_diffusion::{settings::Settings, task::metric};
use plotting::{fixed, mean, signed, significant};

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

fn gather(directories: &[PathBuf]) -> Result<BTreeMap<Key, Cell>> {
    let mut cells = BTreeMap::<Key, Cell>::new();
    for directory in directories {
        let comparison: Comparison<Settings> =
            compare::read(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let runs = Runs::read(directory, &comparison, metric::LOSS)?;
        for (arm, name) in comparison.arms.iter().zip(&runs.arms) {
            let tau = if arm.uses_tau() { comparison.run.model.tau.to_string() } else { "-".to_owned() };
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

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut tune = None;
    if arguments.peek().is_some_and(|first| first == "--tune-seeds") {
        arguments.next();
        let count = arguments.next().and_then(|text| text.parse::<usize>().ok());
        tune = Some(
            count.filter(|count| *count > 0).context("--tune-seeds takes a number above 0").map_err(Failure::Usage)?,
        );
    }
    let directories: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if directories.is_empty() {
        return Err(Failure::Usage(anyhow::anyhow!("give the directories of comparisons")));
    }
    let cells = gather(&directories)?;
    say(all_cells(&cells));
    say(best_cells(&cells, tune)?);
    Ok(())
}

/// Every cell: mean and spread over its seeds.
fn all_cells(cells: &BTreeMap<Key, Cell>) -> String {
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

/// Each arm at its best, beside the baseline at its best.
fn best_cells(cells: &BTreeMap<Key, Cell>, tune: Option<usize>) -> Result<String> {
    let mut seeds: Vec<u64> = cells.values().flat_map(|cell| cell.losses.keys().copied()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let (tuning, testing) = match tune {
        Some(count) if count < seeds.len() => seeds.split_at(count),
        _ => (seeds.as_slice(), seeds.as_slice()),
    };
    let mut best = BTreeMap::<&str, (&Key, &Cell, f64)>::new();
    for (key, cell) in cells {
        let loss = mean(&at(cell, tuning));
        let entry = best.entry(&key.0);
        let better = |(_, _, other): &(&Key, &Cell, f64)| loss < *other;
        match entry {
            std::collections::btree_map::Entry::Vacant(entry) if loss.is_finite() => {
                _ = entry.insert((key, cell, loss))
            }
            std::collections::btree_map::Entry::Occupied(mut entry) if better(entry.get()) => {
                entry.insert((key, cell, loss));
            }
            _ => {}
        }
    }
    let Some((_, baseline, _)) = best.get("cascade") else { bail!("there is no cascade to compare with") };
    let baseline = at(baseline, testing);
    let mut table = numbers(
        ["arm", "best lr", "best tau", "loss", "difference", "p", "pairs"],
        ["", "", "", "MSE", "MSE, ± sd", "", ""],
    );
    for (arm, ((_, lr, tau), cell, _)) in &best {
        let losses = at(cell, testing);
        let paired = paired_difference(&losses, &baseline);
        let known: Vec<f64> = losses.into_iter().filter(|loss| loss.is_finite()).collect();
        let is_baseline = *arm == "cascade";
        table.push([
            (*arm).to_owned(),
            lr.clone(),
            tau.clone(),
            summary(&known, 5),
            if is_baseline { "-".to_owned() } else { format!("{} ± {}", signed(paired.mean, 5), fixed(paired.sd, 5)) },
            paired.p_value.filter(|_| !is_baseline).map_or_else(|| "-".to_owned(), |p| significant(p, 2)),
            paired.pairs.to_string(),
        ]);
    }
    Ok(format!("chosen on seeds {tuning:?}, compared on seeds {testing:?}\n{}", table.to_text()))
}

fn main() -> ExitCode {
    command_line::end(run())
}
