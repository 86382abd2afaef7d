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
use experiment_cli::sweep::Tables;
use experiment_kit::{
    compare::{self, Comparison},
    report::{
        Runs,
        table::{numbers, summary},
    },
};
use experiments_resnet::classify::{Settings, metric};
use plotting::{mean, significant};
use statistics::{curves::first_reach, paired_difference};

/// Arm, learning rate, temperature (none for arms without one).
type Key = (String, String, String);

/// The runs of a cell by seed: steps to the target if it is reached, seconds of a step.
type Cell = BTreeMap<u64, (Option<f64>, f64)>;

type Cells = BTreeMap<Key, Cell>;

fn gather(directories: &[PathBuf]) -> Result<Cells> {
    let mut cells = Cells::new();
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

fn every(cells: &Cells) -> String {
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
    table.to_text()
}

/// The cell of each arm where all seeds reach the target in the fewest steps.
fn best(cells: &Cells) -> BTreeMap<&str, (&Key, &Cell)> {
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
fn paired(cells: &Cells) -> Result<String> {
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
    Ok(table.to_text())
}

fn flags(cells: &Cells) -> Vec<String> {
    let of = |(arm, ((_, lr, tau), _)): (&str, (&Key, &Cell))| {
        let tau = if tau == "-" { String::new() } else { format!(" --tau {tau}") };
        format!("--arms={arm} --lr {lr}{tau}")
    };
    best(cells).into_iter().map(of).collect()
}

fn main() -> ExitCode {
    Tables { gather, every, best: flags, paired }.end()
}
