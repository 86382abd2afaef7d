//! Tables of arms: cells over seeds, and the table of costs.

use plotting::{Align, Table, fixed, mean, mean_sd, signed, significant};
use statistics::paired_difference;

use super::{RunLogs, Runs};

/// A table whose first column is text and whose others are numbers.
pub fn numbers<const N: usize>(columns: [&str; N], units: [&str; N]) -> Table {
    let table = Table::new(columns).units(units).align(0, Align::Left);
    (1..N).fold(table, |table, column| table.align(column, Align::Right))
}

/// Values of several seeds as a cell: their mean, with the standard deviation where there are several; `-` for none.
pub fn summary(values: &[f64], decimals: usize) -> String {
    match values {
        [] => "-".to_owned(),
        [one] => fixed(*one, decimals),
        several => mean_sd(several, decimals),
    }
}

/// A value over the runs of an arm, as [`summary`]; runs where it is not known, as after one that diverged, are left out and
/// counted.
pub fn over_seeds(runs: &[&RunLogs], decimals: usize, value: impl Fn(&RunLogs) -> f64) -> String {
    let values: Vec<f64> = runs.iter().map(|run| value(run)).filter(|v| v.is_finite()).collect();
    let text = summary(&values, decimals);
    match values.len() {
        0 => text,
        known if known == runs.len() => text,
        known => format!("{text} ({known} of {})", runs.len()),
    }
}

/// Steps at which a falling metric reaches the baseline's final value, as a share of all, over seeds; says how many seeds
/// get there if not all do.
pub fn steps_share(all: &Runs, runs: &[&RunLogs], metric: &str, steps: usize) -> String {
    let share = |run: &&RunLogs| Some(all.steps_to_baseline(run, metric)? / steps as f64);
    let shares: Vec<f64> = runs.iter().filter_map(share).collect();
    match (shares.len(), runs.len()) {
        (0, _) => "not reached".to_owned(),
        (reached, all) if reached == all => summary(&shares, 2),
        (reached, all) => format!("{} ({reached} of {all})", fixed(mean(&shares), 2)),
    }
}

/// Speed and memory of the arms, relative to the baseline's. `rate` names what
/// [`RunLogs::tokens_per_second`] counts, such as "tokens/s".
pub fn cost(all: &Runs, rate: &str) -> Table {
    let mut table = numbers(
        ["arm", rate, "step time", "peak memory", "memory", "connection parameters"],
        ["", "", "ratio", "", "ratio", ""],
    );
    let memory = |runs: &[&RunLogs]| -> Vec<f64> {
        runs.iter().filter_map(|run| run.summary.peak_memory_bytes).map(|bytes| bytes as f64).collect()
    };
    for arm in &all.arms {
        let baseline_memory = memory(&all.of_arm(all.baseline_name(arm)));
        let runs = all.of_arm(arm);
        let peak = memory(&runs);
        let (bytes, ratio) = match (peak.is_empty(), baseline_memory.is_empty()) {
            (true, _) => ("-".to_owned(), "-".to_owned()),
            (false, true) => (plotting::bytes(mean(&peak) as u64), "-".to_owned()),
            (false, false) => (plotting::bytes(mean(&peak) as u64), fixed(mean(&peak) / mean(&baseline_memory), 3)),
        };
        table.push([
            arm.clone(),
            over_seeds(&runs, 0, |run| run.tokens_per_second),
            over_seeds(&runs, 3, |run| all.step_time_ratio(run).unwrap_or(f64::NAN)),
            bytes,
            ratio,
            runs.first().map_or_else(String::new, |run| run.summary.connection_parameters.to_string()),
        ]);
    }
    table
}

/// A final value of an arm minus that of the baseline with the same seed, and the p-value of the
/// [paired t-test](paired_difference) over seeds, as two cells; `-` for the baseline itself and where nothing is known.
pub fn difference(all: &Runs, arm: &str, decimals: usize, value: impl Fn(&RunLogs) -> f64) -> [String; 2] {
    let none = || "-".to_owned();
    if arm == all.baseline_name(arm) {
        return [none(), none()];
    }
    let runs = all.of_arm(arm);
    let values: Vec<f64> = runs.iter().map(|run| value(run)).collect();
    let baseline: Vec<f64> = runs.iter().map(|run| all.baseline_of(run).map_or(f64::NAN, &value)).collect();
    let differences: Vec<f64> = values.iter().zip(&baseline).map(|(a, b)| a - b).filter(|d| d.is_finite()).collect();
    match differences.as_slice() {
        [one] => [signed(*one, decimals), none()],
        several => {
            let p = paired_difference(&values, &baseline).p_value;
            [summary(several, decimals), p.map_or_else(none, |p| significant(p, 2))]
        }
    }
}
