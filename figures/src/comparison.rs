//! Arms at equal steps and at equal seconds, whatever the paper says of them.

use anyhow::Result;
use plotting::{Align, Table, fixed, mean_sd, signed, significant};
use statistics::{
    PairedDifference,
    curves::{Race, against_seconds, race},
    paired_difference,
};

use crate::logs::{Log, Report};

/// Falling metrics of `metrics.jsonl`, with their unit.
const LOSSES: [(&str, &str); 2] = [("held_out_nats_per_byte", "nats/byte"), ("held_out_mse", "MSE")];

/// The table of a log: each arm against the baseline. None if the log has no falling curve, or only one arm.
///
/// # Errors
/// If the log is damaged.
pub fn table(log: &Log, report: &Report) -> Result<Option<Table>> {
    for (metric, unit) in LOSSES {
        let mut table = Table::new([
            "arm",
            "at equal steps",
            "p",
            "steps to the baseline's last",
            "at equal seconds",
            "p",
            "seconds to the baseline's last",
        ])
        .units(["", unit, "", "share", unit, "", "share"])
        .align(0, Align::Left);
        for column in 1..7 {
            table = table.align(column, Align::Right);
        }
        for name in report.names().into_iter().filter(|name| *name != report.baseline) {
            let (mut steps, mut seconds) = (Vec::new(), Vec::new());
            for arm in report.of_arm(name) {
                let Some(baseline) = report.of_arm(&report.baseline).find(|other| other.seed == arm.seed) else {
                    continue;
                };
                let [ours, other] = [log.curve(arm, metric)?, log.curve(baseline, metric)?];
                steps.extend(race(&ours, &other));
                let timed = [against_seconds(&ours, &log.clock(arm)?), against_seconds(&other, &log.clock(baseline)?)];
                seconds.extend(race(&timed[0], &timed[1]));
            }
            if !steps.is_empty() {
                let cells = [vec![name.to_owned()], cells(&steps), cells(&seconds)].concat();
                table.push(cells);
            }
        }
        if !table.is_empty() {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// The difference over seeds, its p-value, and the share at which the baseline's last value is reached.
fn cells(races: &[Race]) -> Vec<String> {
    let (ours, other): (Vec<f64>, Vec<f64>) = races.iter().map(|race| (race.values[0], race.values[1])).unzip();
    let PairedDifference { pairs, mean, sd, p_value } = paired_difference(&ours, &other);
    let difference = match pairs {
        0 => "-".to_owned(),
        1 => signed(mean, 4),
        _ => format!("{} ± {}", signed(mean, 4), fixed(sd, 4)),
    };
    let shares: Vec<f64> = races.iter().filter_map(|race| race.share).collect();
    let reached = match (shares.len(), races.len()) {
        (_, 0) => "-".to_owned(),
        (0, _) => "not reached".to_owned(),
        (reached, all) if reached == all => mean_sd(&shares, 2),
        (reached, all) => format!("{} ({reached} of {all})", mean_sd(&shares, 2)),
    };
    vec![difference, p_value.map_or_else(|| "-".to_owned(), |p| significant(p, 2)), reached]
}
