//! Logs of one object a line: `metrics.jsonl` and `timing.jsonl`.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How many updates had been made.
    pub step: f64,
    /// `train`, `evaluation` or `timing`.
    pub kind: String,
    line: String,
    fields: Map<String, Value>,
}

impl Record {
    /// The number of this name. What is not finite is a text in the file, and comes back as it is.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        match self.fields.get(name)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64(),
        }
    }
}

/// Reads a file. A last line that was cut off by a kill is left out.
///
/// # Errors
/// If it cannot be read, or another line is damaged.
pub fn read_records(path: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut records = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        match record(line.trim_end()) {
            Some(record) => records.push(record),
            None if !line.ends_with('\n') => {}
            None => bail!("{}, line {}: no record with `step` and `kind`", path.display(), index + 1),
        }
    }
    Ok(records)
}

fn record(line: &str) -> Option<Record> {
    let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
    let (step, kind) = (fields.get("step")?.as_f64()?, fields.get("kind")?.as_str()?.to_owned());
    Some(Record { step, kind, line: line.to_owned(), fields })
}

/// A metric against steps.
#[must_use]
pub fn series(records: &[Record], metric: &str) -> Vec<(f64, f64)> {
    records.iter().filter_map(|record| Some((record.step, record.get(metric)?))).collect()
}

/// All evaluations, and about `most` training records, evenly spread with the first and the last.
#[must_use]
pub fn thinned(records: &[Record], most: usize) -> Vec<Record> {
    let training = records.iter().filter(|record| record.kind == "train").count();
    let every = training.div_ceil(most.max(1)).max(1);
    let mut seen = 0;
    let keep = records.iter().filter(|record| {
        if record.kind != "train" {
            return true;
        }
        seen += 1;
        (seen - 1) % every == 0 || seen == training
    });
    keep.cloned().collect()
}

/// About `most` records of times, each the sum of some that follow each other.
#[must_use]
pub fn merged_times(records: &[Record], most: usize) -> Vec<Record> {
    let times: Vec<&Record> = records.iter().filter(|record| record.kind == "timing").collect();
    let together = times.len().div_ceil(most.max(1)).max(1);
    let mut merged = Vec::new();
    let mut group: Vec<&Record> = Vec::new();
    for (index, time) in times.iter().enumerate() {
        group.push(time);
        // A process that follows begins to count again; the first interval of each stays by itself, as it is its warm-up.
        let next = times.get(index + 1).and_then(|next| next.get("interval"));
        let first = time.get("interval").is_some_and(|interval| interval <= 1.0);
        if group.len() == together || first || next.is_none_or(|interval| interval <= 1.0) {
            merged.extend(sum(&group));
            group.clear();
        }
    }
    merged
}

/// Several records of times as one.
fn sum(group: &[&Record]) -> Option<Record> {
    let [first, .., last] = group else { return group.first().map(|record| (*record).clone()) };
    let total = |name: &str| group.iter().filter_map(|record| record.get(name)).sum::<f64>();
    let tokens: f64 =
        group.iter().filter_map(|record| Some(record.get("tokens_per_second")? * record.get("seconds")?)).sum();
    let (steps, seconds) = (total("steps"), total("seconds"));
    record(&format!(
        "{{\"step\":{},\"kind\":\"timing\",\"interval\":{:?},\"steps\":{steps:?},\"seconds\":{seconds:?},\"tokens_per_second\":{:?}}}",
        last.step,
        first.get("interval").unwrap_or(0.0),
        tokens / seconds
    ))
}

/// The text of a file with these records, each as it was read.
#[must_use]
pub fn write_records(records: &[Record]) -> String {
    records.iter().fold(String::new(), |mut text, record| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}", record.line);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lines: &[String]) -> Vec<Record> {
        lines.iter().map(|line| record(line).unwrap()).collect()
    }

    #[test]
    fn a_cut_last_line_is_left_out_and_a_damaged_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, "{\"step\":1,\"kind\":\"train\",\"loss\":\"NaN\"}\n{\"step\":2,\"ki").unwrap();
        let read = read_records(&path).unwrap();
        assert!(read.len() == 1 && read[0].get("loss").unwrap().is_nan());
        fs::write(&path, "{\"step\":1}\n{\"step\":2,\"kind\":\"train\"}\n").unwrap();
        let error = format!("{:#}", read_records(&path).unwrap_err());
        assert!(error.contains("metrics.jsonl, line 1"), "{error}");
    }

    #[test]
    fn thinning_keeps_evaluations_and_both_ends() {
        let lines: Vec<String> = (1..=100)
            .map(|step| {
                let kind = if step % 25 == 0 { "evaluation" } else { "train" };
                format!("{{\"step\":{step},\"kind\":\"{kind}\",\"loss\":{step}.5}}")
            })
            .collect();
        let thin = thinned(&records(&lines), 10);
        let steps = |kind: &str| thin.iter().filter(|r| r.kind == kind).map(|r| r.step).collect::<Vec<_>>();
        assert_eq!(steps("evaluation"), [25.0, 50.0, 75.0, 100.0]);
        let training = steps("train");
        assert!((10..=12).contains(&training.len()) && training[0] == 1.0 && training.last() == Some(&99.0));
        // Lines are those of the run, to the byte.
        assert!(write_records(&thin).lines().all(|line| lines.contains(&line.to_owned())));
    }

    #[test]
    fn merged_times_take_as_long_as_what_they_are_made_of() {
        let line = |step: usize, interval: usize| {
            format!(
                "{{\"step\":{step},\"kind\":\"timing\",\"interval\":{interval}.0,\"steps\":5.0,\"seconds\":0.5,\"tokens_per_second\":{}.0}}",
                100 * interval
            )
        };
        // Two processes of 20 and 10 intervals.
        let lines: Vec<String> =
            (1..=20).map(|i| line(5 * i, i)).chain((1..=10).map(|i| line(100 + 5 * i, i))).collect();
        let merged = merged_times(&records(&lines), 6);
        let total: f64 = merged.iter().map(|record| record.get("seconds").unwrap()).sum();
        assert!((total - 15.0).abs() < 1e-12 && merged.len() <= 10, "{}", merged.len());
        assert_eq!(merged.last().unwrap().step, 150.0);
        assert_eq!(merged.iter().filter(|r| r.get("interval") == Some(1.0)).count(), 2, "both warm-ups stand alone");
        let tokens: f64 = merged.iter().map(|r| r.get("tokens_per_second").unwrap() * r.get("seconds").unwrap()).sum();
        assert!((tokens - 0.5 * 100.0 * (210.0 + 55.0)).abs() < 1e-9);
    }
}
