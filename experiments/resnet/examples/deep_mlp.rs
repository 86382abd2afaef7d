//! Steps and seconds to the target loss of every arm at every learning rate and temperature, from comparisons of classifiers
//! as `recipes/deep-mlp.sh` makes them; then each arm at its best, which is where all seeds get there in the fewest steps.
//!
//!     cargo run -p experiments-resnet --example deep_mlp -- runs/deep-mlp/lr*

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use command_line::{Failure, say};
use experiment_kit::{
    compare::{self, Comparison},
    report::{
        Runs,
        statistics::{first_reach, paired_difference},
        table::{numbers, summary},
    },
};
use experiments_resnet::classify::{Settings, metric};
use plotting::{Table, mean, significant};

/// Arm, learning rate, temperature (none for arms without one).
type Key = (String, String, String);

/// The runs of a cell: seed, steps to the target if it is reached, seconds of a step.
type Cell = Vec<(u64, Option<f64>, f64)>;

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
                let steps = first_reach(&run.curve(metric::TRAINING_LOSS), settings.evaluation.target_loss);
                cell.push((run.seed, steps, run.step_seconds));
            }
        }
    }
    Ok(cells)
}

fn all_get_there(cell: &Cell) -> bool {
    cell.iter().all(|(_, steps, _)| steps.is_some())
}

fn steps(cell: &Cell) -> Vec<f64> {
    cell.iter().filter_map(|(_, steps, _)| *steps).collect()
}

fn seconds(cell: &Cell) -> Vec<f64> {
    cell.iter().filter_map(|(_, steps, step)| Some((*steps)? * step)).collect()
}

fn every(cells: &BTreeMap<Key, Cell>) -> Table {
    let mut table =
        numbers(["arm", "lr", "tau", "reached", "to target", "to target"], ["", "", "", "seeds", "steps", "seconds"]);
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

fn best(cells: &BTreeMap<Key, Cell>) -> Table {
    let mut best = BTreeMap::<&str, (&Key, &Cell)>::new();
    for (key, cell) in cells.iter().filter(|(_, cell)| all_get_there(cell)) {
        let faster = |other: &Cell| mean(&steps(cell)) < mean(&steps(other));
        if best.get(key.0.as_str()).is_none_or(|(_, other)| faster(other)) {
            best.insert(&key.0, (key, cell));
        }
    }
    let columns = ["arm", "lr", "tau", "to target", "to target", "steps less the cascade's", "p"];
    let mut table = numbers(columns, ["", "", "", "steps", "seconds", "", ""]);
    let baseline = best.get("cascade").map(|(_, cell)| steps(cell)).unwrap_or_default();
    for (arm, (key, cell)) in best {
        let apart = paired_difference(&steps(cell), &baseline);
        let known = arm != "cascade" && apart.pairs == cell.len();
        table.push([
            arm.to_owned(),
            key.1.clone(),
            key.2.clone(),
            summary(&steps(cell), 0),
            summary(&seconds(cell), 2),
            if known { format!("{:+.0} ± {:.0}", apart.mean, apart.sd) } else { "-".to_owned() },
            apart.p_value.filter(|_| known).map_or_else(|| "-".to_owned(), |p| significant(p, 2)),
        ]);
    }
    table
}

fn run() -> Result<(), Failure> {
    let directories: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if directories.is_empty() {
        return Err(Failure::Usage(anyhow::anyhow!("give the directories of comparisons")));
    }
    let cells = gather(&directories)?;
    say(every(&cells).to_text());
    say("Each arm at its best:");
    say(best(&cells).to_text());
    Ok(())
}

fn main() -> ExitCode {
    command_line::end(run())
}
