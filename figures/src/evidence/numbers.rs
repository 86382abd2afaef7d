//! The cells of a table: an absolute number each, and the difference to its baseline where the table has one.

use std::path::Path;

use anyhow::Result;
use statistics::paired_difference;

use super::{Measured, at_scale, difference_text, over_seeds};
use crate::{
    logs::Log,
    paper::{Better, Column, PaperTable, Row},
    verdict::{Seen, Sign},
};

/// Our number for a cell; none if no log has it.
pub(super) fn measured(
    table: &PaperTable,
    row: &Row,
    column: &Column,
    paper: f64,
    logs: &Path,
) -> Result<Option<Measured>> {
    let (Some(name), Some(arm), Some(metric)) = (&row.log, &row.arm, &column.metric) else { return Ok(None) };
    let Some(log) = Log::find(logs, name)? else { return Ok(None) };
    let Some(report) = log.report()? else { return Ok(None) };
    let values: Vec<f64> = report.values(arm, metric).into_iter().map(|value| column.factor * value).collect();
    let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let Some(first) = report.of_arm(arm).next().filter(|_| !known.is_empty()) else { return Ok(None) };
    let scale = row.scale.as_ref().or(column.scale.as_ref());
    let mut measured = Measured {
        text: over_seeds(&values, &column.unit),
        difference: String::new(),
        p: None,
        seeds: known.len(),
        log: name.clone(),
        seen: Seen {
            number: Some((statistics::mean(&known), paper)),
            sign: None,
            at_scale: at_scale(scale, &report, first),
        },
    };
    let other = row.against.as_ref().and_then(|against| table.rows.iter().find(|row| row.name == *against));
    // Runs of another log have other data or settings.
    if let Some(other) = other.filter(|other| other.log == row.log).and_then(|other| other.arm.as_ref()) {
        let (ours, baseline) = report.pairs(arm, other, metric);
        let scaled = |values: Vec<f64>| values.into_iter().map(|v| column.factor * v).collect::<Vec<_>>();
        let difference = paired_difference(&scaled(ours), &scaled(baseline));
        let expected = if column.better == Better::Lower { -1.0 } else { 1.0 };
        measured.difference = difference_text(&difference, &column.unit);
        measured.p = difference.p_value;
        measured.seen.sign = Some(Sign::Difference { expected, measured: difference.mean, p: difference.p_value });
    }
    Ok(Some(measured))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::verdict::{Verdict, verdict};

    const TABLE: &str = "id = \"t\"\ntitle = \"T\"\nsource = \"s\"\n\
        [[column]]\nname = \"60M\"\nbetter = \"lower\"\nmetric = \"loss\"\ngap = \"g\"\nscale = { parameters = 1e6, steps = 100 }\n\
        [[row]]\nname = \"full\"\nvalues = [2.0]\nlog = \"l\"\narm = \"cascade\"\n\
        [[row]]\nname = \"ours\"\nvalues = [1.8]\nlog = \"l\"\narm = \"ancre\"\nagainst = \"full\"\n";

    fn log(folder: &Path, parameters: f64, steps: u32, losses: [[f64; 3]; 2]) {
        let folder = folder.join("l");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("log.toml"), "what = \"w\"\ncommand = \"c\"\ncommit = \"d\"\n").unwrap();
        let arm = |name: &str, losses: [f64; 3]| -> Vec<String> {
            let run = |(seed, loss): (usize, &f64)| {
                let loss = if loss.is_nan() { "null".to_owned() } else { loss.to_string() };
                format!("{{\"name\":\"{name}\",\"seed\":{seed},\"parameters\":{parameters},\"loss\":{loss}}}")
            };
            losses.iter().enumerate().map(run).collect()
        };
        let runs = [arm("cascade", losses[0]), arm("ancre", losses[1])].concat().join(",");
        fs::write(
            folder.join("report.json"),
            format!("{{\"baseline\":\"cascade\",\"steps\":{steps},\"arms\":[{runs}]}}"),
        )
        .unwrap();
    }

    fn check(parameters: f64, steps: u32, losses: [[f64; 3]; 2]) -> (String, Verdict) {
        let folder = tempfile::tempdir().unwrap();
        log(folder.path(), parameters, steps, losses);
        let table: PaperTable = toml::from_str(TABLE).unwrap();
        let [_, ours] = table.rows.as_slice() else { panic!("two rows") };
        let measured = measured(&table, ours, &table.columns[0], 1.8, folder.path()).unwrap().unwrap();
        (format!("{} | {}", measured.text, measured.difference), verdict(Some(&measured.seen)))
    }

    #[test]
    fn a_log_of_the_papers_scale_can_reproduce_a_number() {
        let losses = [[2.0, 2.1, 1.9], [1.8, 1.91, 1.69]];
        assert_eq!(check(1e6, 100, losses), ("1.800 ± 0.110 | -0.200 ± 0.010".to_owned(), Verdict::Reproduced));
        assert_eq!(check(1e6, 50, losses).1, Verdict::SignReproduced, "too short");
        assert_eq!(check(2e5, 100, losses).1, Verdict::SignReproduced, "too small");
        assert_eq!(check(2e5, 100, [losses[1], losses[0]]).1, Verdict::NotAtThisScale);
        assert_eq!(check(1e6, 100, [losses[1], losses[0]]).1, Verdict::NotReproduced);
    }

    #[test]
    fn a_run_that_diverged_is_left_out_and_said() {
        let (text, verdict) = check(1e6, 50, [[2.0, 2.1, 1.9], [1.8, f64::NAN, f64::NAN]]);
        assert_eq!((text.as_str(), verdict), ("1.800 (1 of 3 seeds) | -0.200", Verdict::NotAtThisScale));
    }

    #[test]
    fn without_a_log_there_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let table: PaperTable = toml::from_str(TABLE).unwrap();
        assert_eq!(measured(&table, &table.rows[0], &table.columns[0], 2.0, folder.path()).unwrap(), None);
    }
}
