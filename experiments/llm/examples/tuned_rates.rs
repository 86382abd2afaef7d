//! Which arm is best when each has its own best learning rate, rate of the embeddings and temperature? Reads comparisons that differ
//! in those, as `recipes/embedding-rate.sh` makes them:
//!
//!     cargo run -p experiments-llm --example tuned_rates -- runs/rates/tune-*            # every cell
//!     cargo run -p experiments-llm --example tuned_rates -- --best runs/rates/tune-*     # flags of each arm's best cell
//!     cargo run -p experiments-llm --example tuned_rates -- --paired runs/rates/test-*   # each arm at its best, against the others
//!
//! The best cell of an arm is that of the lowest mean loss. Cells are to be chosen on other seeds than they are compared on. Fixed
//! layouts that differ in their weight only, such as `2*0:l` and `4*0:l`, are one arm here, tuned in that weight; `0:l` stays apart.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use experiment_cli::sweep::Tables;
use experiment_kit::{
    compare::{self, Comparison},
    report::{
        Runs,
        table::{numbers, summary},
    },
};
use experiments_llm::{settings::Settings, task::metric};
use plotting::{fixed, mean, signed, significant};
use statistics::{PairedDifference, paired_difference};

/// What was tuned: the arm in full, the learning rate, the factor of the embeddings', the temperature.
type Cell = (String, String, String, String);

/// Final held-out losses by seed, in nats a byte; infinite where a run diverged.
type Losses = BTreeMap<u64, f64>;

/// Cells by the arm that is tuned in them.
type Cells = BTreeMap<String, BTreeMap<Cell, Losses>>;

fn gather(directories: &[PathBuf]) -> Result<Cells> {
    let mut cells = Cells::new();
    for directory in directories {
        let comparison: Comparison<Settings> =
            compare::read(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let runs = Runs::read(directory, &comparison, metric::NATS_PER_BYTE)?;
        let training = &comparison.run.training;
        let (_, factor) = training.optimizer.of("embed_tokens.weight");
        for (variant, name) in comparison.variants().iter().zip(&runs.arms) {
            let tau = if variant.arm.uses_tau() { comparison.run.model.tau.to_string() } else { "-".to_owned() };
            let cell = (name.clone(), training.lr.to_string(), factor.to_string(), tau);
            let tuned = match name.split_once('*') {
                Some((_, layout)) => format!("c*{layout}"),
                None => name.split(':').next().filter(|first| first.starts_with("gated")).unwrap_or(name).to_owned(),
            };
            let losses = cells.entry(tuned).or_default().entry(cell).or_default();
            for run in runs.of_arm(name) {
                let last = if run.has_diverged() { f64::INFINITY } else { run.at(metric::NATS_PER_BYTE, 1.0) };
                losses.insert(run.seed, last);
            }
        }
    }
    Ok(cells)
}

fn loss(losses: &Losses) -> f64 {
    mean(&losses.values().copied().collect::<Vec<_>>())
}

/// The best cell of each arm; an arm of which all cells diverged has none.
fn best(cells: &Cells) -> Vec<(&String, &Cell, &Losses)> {
    cells
        .iter()
        .filter_map(|(arm, cells)| {
            let finite = cells.iter().filter(|(_, losses)| loss(losses).is_finite());
            let (cell, losses) = finite.min_by(|a, b| loss(a.1).total_cmp(&loss(b.1)))?;
            Some((arm, cell, losses))
        })
        .collect()
}

fn every(cells: &Cells) -> String {
    let mut table =
        numbers(["arm", "lr", "embeddings", "tau", "seeds", "held out"], ["", "", "x lr", "", "", "nats/byte"]);
    for ((arm, lr, factor, tau), losses) in cells.values().flatten() {
        let values: Vec<f64> = losses.values().copied().collect();
        let shown = if loss(losses).is_finite() { summary(&values, 4) } else { "diverged".to_owned() };
        table.push([arm.clone(), lr.clone(), factor.clone(), tau.clone(), values.len().to_string(), shown]);
    }
    table.to_text()
}

/// Each arm at its best, and its difference to each of the others, paired over the seeds that both have.
fn paired(cells: &Cells) -> String {
    let best = best(cells);
    let mut table = numbers(
        ["arm", "lr", "embeddings", "tau", "held out", "minus", "difference", "p", "pairs"],
        ["", "", "x lr", "", "nats/byte", "", "nats/byte, ± sd", "", ""],
    );
    for (index, (_, (arm, lr, factor, tau), losses)) in best.iter().enumerate() {
        let values: Vec<f64> = losses.values().copied().collect();
        let head = [arm.clone(), lr.clone(), factor.clone(), tau.clone(), summary(&values, 4)];
        let mut rows: Vec<[String; 4]> = Vec::new();
        for (_, (other, ..), others) in best.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, cell)| cell) {
            let (ours, theirs): (Vec<f64>, Vec<f64>) =
                losses.iter().filter_map(|(seed, loss)| Some((*loss, *others.get(seed)?))).unzip();
            let PairedDifference { mean, sd, p_value, pairs, .. } = paired_difference(&ours, &theirs);
            let apart = format!("{} ± {}", signed(mean, 4), fixed(sd, 4));
            let p = p_value.map_or_else(|| "-".to_owned(), |p| significant(p, 2));
            rows.push([other.clone(), apart, p, pairs.to_string()]);
        }
        for (row, [other, apart, p, pairs]) in rows.into_iter().enumerate() {
            let [arm, lr, factor, tau, held_out] = if row == 0 { head.clone() } else { Default::default() };
            table.push([arm, lr, factor, tau, held_out, other, apart, p, pairs]);
        }
    }
    table.to_text()
}

fn flags(cells: &Cells) -> Vec<String> {
    let of = |(_, (arm, lr, factor, tau), _): (&String, &Cell, &Losses)| {
        let tau = if tau == "-" { String::new() } else { format!(" --tau {tau}") };
        format!("--arms={arm} --lr {lr} --embedding-lr {factor}{tau}")
    };
    best(cells).into_iter().map(of).collect()
}

fn main() -> ExitCode {
    Tables { gather, every, best: flags, paired: |cells| Ok(paired(cells)) }.end()
}
