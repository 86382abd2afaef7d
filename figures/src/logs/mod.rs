//! Committed logs: the folders of `docs/logs/`.
//!
//! A log holds what its program wrote, some of it thinned: a comparison has `config.toml`, `report.json` and, for each run under
//! `arms/`, `metrics.jsonl`, `timing.jsonl` and `summary.json`; the overhead has `overhead.json`; the theory `findings.csv`
//! and curves. Each has a `log.toml` that says where it comes from. Readers take what is there: a field that is missing is a
//! number that is not known.

mod records;
mod report;
mod tables;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use records::{Record, merged_times, read_records, series, thinned, write_records};
pub use report::{Arm, Report};
pub use tables::{Finding, Line, read_findings, read_lines, write_lines};

/// Where a log comes from: its `log.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// What was run, in a few words with its sizes.
    pub what: String,
    /// The command that made it.
    pub command: String,
    /// The commit of the code.
    pub commit: String,
    /// The machine, if it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

/// A committed log.
#[derive(Clone, Debug)]
pub struct Log {
    /// The name of its folder.
    pub name: String,
    /// Where it comes from.
    pub provenance: Provenance,
    folder: PathBuf,
}

/// The name of the file that makes a folder a log.
pub const PROVENANCE: &str = "log.toml";

impl Log {
    /// The log of this name; none if it is not there.
    ///
    /// # Errors
    /// If it is there and does not say where it comes from.
    pub fn find(logs: &Path, name: &str) -> Result<Option<Self>> {
        let folder = logs.join(name);
        if !folder.is_dir() {
            return Ok(None);
        }
        let path = folder.join(PROVENANCE);
        let read = || -> Result<Provenance> { Ok(toml::from_str(&fs::read_to_string(&path)?)?) };
        let provenance = read()
            .with_context(|| format!("cannot read {}, which every log has: `figures add` writes it", path.display()))?;
        Ok(Some(Self { name: name.to_owned(), provenance, folder }))
    }

    /// All logs in a folder, by name.
    ///
    /// # Errors
    /// As [`find`](Self::find), and if the folder cannot be read.
    pub fn all(logs: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(logs).with_context(|| format!("cannot read {}", logs.display()))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names.iter().filter_map(|name| Self::find(logs, name).transpose()).collect()
    }

    /// A file of the log.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file as JSON; none if it is not there.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn json(&self, name: &str) -> Result<Option<Value>> {
        let path = self.file(name);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let value = serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(value))
    }

    /// The report of a comparison; none if the log is of another kind.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn report(&self) -> Result<Option<Report>> {
        Ok(self.json("report.json")?.and_then(|value| Report::of(&value)))
    }

    /// A metric of a run against steps, from its `metrics.jsonl`; empty if there is none.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn curve(&self, arm: &Arm, metric: &str) -> Result<Vec<(f64, f64)>> {
        let Some(run) = self.run_folder(arm) else { return Ok(Vec::new()) };
        Ok(series(&read_records(&run.join("metrics.jsonl"))?, metric))
    }

    /// Seconds since the start of a run against steps, evaluation and saving left out; empty if the log has no times.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn clock(&self, arm: &Arm) -> Result<Vec<(f64, f64)>> {
        let Some(path) = self.run_folder(arm).map(|run| run.join("timing.jsonl")).filter(|path| path.is_file()) else {
            return Ok(Vec::new());
        };
        let mut seconds = 0.0;
        let records = read_records(&path)?;
        let times = records.iter().filter(|record| record.kind == "timing").filter_map(|record| {
            seconds += record.get("seconds")?;
            Some((record.step, seconds))
        });
        Ok(times.collect())
    }

    /// The folder of a run under `arms/`: that whose summary names the arm and the seed.
    fn run_folder(&self, arm: &Arm) -> Option<PathBuf> {
        let (name, depth) = match arm.name.split_once(", depth ") {
            Some((name, depth)) => (name, Some(format!("-depth{depth}-"))),
            None => (arm.name.as_str(), None),
        };
        let mut runs: Vec<PathBuf> = fs::read_dir(self.folder.join("arms")).ok()?.flatten().map(|e| e.path()).collect();
        runs.sort();
        runs.into_iter().find(|run| {
            let file_name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let summary = fs::read_to_string(run.join("summary.json")).ok();
            let summary: Option<Value> = summary.and_then(|text| serde_json::from_str(&text).ok());
            depth.as_ref().is_none_or(|depth| file_name.contains(depth))
                && summary.is_some_and(|summary| summary["arm"] == name && summary["seed"] == arm.seed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_its_arm_depth_and_seed() {
        let logs = tempfile::tempdir().unwrap();
        let run = |name: &str, arm: &str, seed: u64, loss: f64| {
            let folder = logs.path().join("x/arms").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("summary.json"), format!("{{\"arm\":\"{arm}\",\"seed\":{seed}}}")).unwrap();
            let line = format!("{{\"step\":10,\"kind\":\"evaluation\",\"loss\":{loss}}}\n");
            fs::write(folder.join("metrics.jsonl"), line).unwrap();
        };
        run("ancre-depth16-seed0", "ancre", 0, 1.0);
        run("ancre-depth64-seed0", "ancre", 0, 2.0);
        run("ancre-depth64-seed1", "ancre", 1, 3.0);
        assert!(Log::find(logs.path(), "y").unwrap().is_none());
        let error = format!("{:#}", Log::find(logs.path(), "x").unwrap_err());
        assert!(error.contains("log.toml"), "{error}");
        fs::write(logs.path().join("x/log.toml"), "what = \"w\"\ncommand = \"c\"\ncommit = \"d\"\n").unwrap();
        let log = Log::find(logs.path(), "x").unwrap().unwrap();
        let value = serde_json::json!({"arms": [{"name": "ancre, depth 64", "seed": 1}]});
        let report = Report::of(&value).unwrap();
        assert_eq!(log.curve(&report.arms[0], "loss").unwrap(), [(10.0, 3.0)]);
        assert!(log.clock(&report.arms[0]).unwrap().is_empty() && log.report().unwrap().is_none());
    }
}
