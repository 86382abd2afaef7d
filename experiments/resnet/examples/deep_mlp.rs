//! Steps and seconds to the target loss of every arm at every learning rate and temperature, from comparisons of classifiers
//! as `recipes/deep-mlp.sh` makes them:
//!
//!     cargo run -p experiments-resnet --example deep_mlp -- runs/deep-mlp/tune-*           # every cell
//!     cargo run -p experiments-resnet --example deep_mlp -- --best runs/deep-mlp/tune-*    # flags of each arm's best cell
//!     cargo run -p experiments-resnet --example deep_mlp -- --paired runs/deep-mlp/test*   # the arms against the cascade
//!
//! The best cell of an arm is where all seeds get there in the fewest steps. Cells are to be chosen on other seeds than they are
//! compared on.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use command_line::{Failure, say};
use experiment_kit::{
    compare::{self, Comparison},
    report::{
        Runs,
        table::{numbers, summary},
    },
};
use experiments_resnet::classify::{Settings, metric};
use plotting::{Table, mean, significant};
use statistics::{curves::first_reach, paired_difference};

/// Arm, learning rate, temperature (none for arms without one).
type Key = (String, String, String);

/// The runs of a cell by seed: steps to the target if it is reached, seconds of a step.
type Cell = BTreeMap<u64, (Option<f64>, f64)>;

fn gather(directories: &[PathBuf]) -> Result<BTreeMap<Key, Cell>> {
    let mut cells = BTreeMap::<Key, Cell>::new();
    for directory in directories {
        let comparison: Comparison<Settings> =
            compare::read(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let runs = Runs::read(directory, &comparison, metric::LOSS)?;
        let settings = &comparison.run;
        for (variant, name) in comparison.variants().iter().zip(&runs.arms) {
            let tau = if variant.arm.uses_tau() { settings.model.tau.to_string() } else { "-".to_owned() };
            let cell = cells.entry((name.clone(), settings.training.lr.to_string(), tau)).or_default();
            for run in runs.of_arm(name) {
                let reached = first_reach(&run.curve(metric::TRAINING_LOSS), settings.evaluation.target_loss);
                cell.insert(run.seed, (reached.filter(|_| !run.has_diverged()), run.step_seconds));
            }
        }
    }
    Ok(cells)
}

fn steps(cell: &Cell) -> Vec<f64> {
    cell.values().filter_map(|(steps, _)| *steps).collect()
}

fn seconds(cell: &Cell) -> Vec<f64> {
    cell.values().filter_map(|(steps, step)| Some((*steps)? * step)).collect()
}

fn every(cells: &BTreeMap<Key, Cell>) -> Table {
    let columns = ["arm", "lr", "tau", "reached", "to target", "to target"];
    let mut table = numbers(columns, ["", "", "", "seeds", "steps", "seconds"]);
    for ((arm, lr, tau), cell) in cells {
        table.push([
            arm.clone(),
            lr.clone(),
            tau.clone(),
            format!("{} of {}", steps(cell).len(), cell.len()),
            summary(&steps(cell), 0),
            summary(&seconds(cell), 2),
        ]);
    }
    table
}

/// The cell of each arm where all seeds reach the target in the fewest steps.
fn best(cells: &BTreeMap<Key, Cell>) -> BTreeMap<&str, (&Key, &Cell)> {
    let mut best = BTreeMap::<&str, (&Key, &Cell)>::new();
    for (key, cell) in cells.iter().filter(|(_, cell)| steps(cell).len() == cell.len()) {
        let faster = |other: &Cell| mean(&steps(cell)) < mean(&steps(other));
        if best.get(key.0.as_str()).is_none_or(|(_, other)| faster(other)) {
            best.insert(&key.0, (key, cell));
        }
    }
    best
}

/// Every cell beside the cascade, paired over the seeds that both have; a seed that does not reach the target is left out.
fn paired(cells: &BTreeMap<Key, Cell>) -> Result<Table> {
    let baseline = cells.iter().find(|((arm, ..), _)| arm == "cascade").map(|(_, cell)| cell);
    let Some(baseline) = baseline else { bail!("there is no cascade to compare with") };
    let columns = ["arm", "lr", "tau", "reached", "to target", "to target", "steps less the cascade's", "p"];
    let mut table = numbers(columns, ["", "", "", "seeds", "steps", "seconds", "", ""]);
    for ((arm, lr, tau), cell) in cells {
        let at = |cell: &Cell, seed: &u64| cell.get(seed).and_then(|(steps, _)| *steps).unwrap_or(f64::NAN);
        let pairs = |of: &Cell| cell.keys().map(|seed| at(of, seed)).collect::<Vec<f64>>();
        let apart = paired_difference(&pairs(cell), &pairs(baseline));
        let known = arm != "cascade" && apart.pairs > 1;
        table.push([
            arm.clone(),
            lr.clone(),
            tau.clone(),
            format!("{} of {}", steps(cell).len(), cell.len()),
            summary(&steps(cell), 0),
            summary(&seconds(cell), 2),
            if known { format!("{:+.0} ± {:.0}", apart.mean, apart.sd) } else { "-".to_owned() },
            apart.p_value.filter(|_| known).map_or_else(|| "-".to_owned(), |p| significant(p, 2)),
        ]);
    }
    Ok(table)
}

fn run() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().filter(|first| first.starts_with("--")).cloned();
    arguments.drain(..usize::from(mode.is_some()));
    if arguments.is_empty() {
        return Err(Failure::Usage(anyhow::anyhow!("give the directories of comparisons")));
    }
    let directories: Vec<PathBuf> = arguments.into_iter().map(PathBuf::from).collect();
    let cells = gather(&directories)?;
    match mode.as_deref() {
        None => say(every(&cells).to_text()),
        Some("--best") => {
            for (arm, (key, _)) in best(&cells) {
                let tau = if key.2 == "-" { String::new() } else { format!(" --tau {}", key.2) };
                say(format!("--arms={arm} --lr {}{tau}", key.1));
            }
        }
        Some("--paired") => say(paired(&cells)?.to_text()),
        Some(other) => return Err(Failure::Usage(anyhow::anyhow!("{other} is not known: --best or --paired"))),
    }
    Ok(())
}

fn main() -> ExitCode {
    command_line::end(run())
}
