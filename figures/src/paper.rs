//! `docs/paper.toml`: the paper's numbers, and for each the log that ours come from.

use std::{collections::HashSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// What it is cited as.
    pub paper: String,
    /// Tables of numbers.
    #[serde(rename = "table")]
    pub tables: Vec<PaperTable>,
    /// Everything else that the paper says in numbers or sentences.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// The findings of the theory.
    pub theory: Theory,
}

/// A table of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// A short name.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where the paper has it.
    pub source: String,
    /// What our numbers of it must not be compared with.
    #[serde(default)]
    pub note: String,
    /// Its columns.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// Which way a number is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A loss.
    Lower,
    /// A score.
    Higher,
}

/// A column of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The unit of its numbers.
    #[serde(default)]
    pub unit: String,
    /// Which way they are better.
    pub better: Better,
    /// The field of a report's arms that is ours.
    pub metric: Option<String>,
    /// What that field is multiplied by to get the unit.
    #[serde(default = "one")]
    pub factor: f64,
    /// What the paper trained.
    pub scale: Option<Scale>,
    /// What is missing for the number itself.
    pub gap: Option<String>,
}

fn one() -> f64 {
    1.0
}

/// A row of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// A number for each column.
    pub values: Vec<f64>,
    /// The log that ours are in.
    pub log: Option<String>,
    /// The arm of that log.
    pub arm: Option<String>,
    /// The row that the difference is taken to.
    pub against: Option<String>,
    /// What the paper trained.
    pub scale: Option<Scale>,
    /// What is missing for the numbers themselves.
    pub gap: Option<String>,
}

/// How large a run of the paper is. What is not given does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Parameters of the model.
    pub parameters: Option<f64>,
    /// Optimizer steps.
    pub steps: Option<f64>,
    /// Steps of all environments together.
    pub environment_steps: Option<f64>,
}

/// Something that the paper says outside its tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// What it says.
    pub what: String,
    /// Where.
    pub source: String,
    /// The number, if it is one.
    pub paper: Option<f64>,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// What the paper trained.
    pub scale: Option<Scale>,
    /// What is missing for the claim itself.
    pub gap: String,
    /// What would show it.
    pub evidence: Evidence,
}

/// What would show a claim. Each names a log and what of it counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Evidence {
    /// The share of steps that an arm saves on the way to the baseline's last value of a curve.
    SavedSteps {
        /// The log.
        log: String,
        /// The arm.
        arm: String,
        /// What it is measured against.
        baseline: String,
        /// The metric of `metrics.jsonl`.
        curve: String,
    },
    /// How many times as few steps it needs.
    SpeedUp {
        /// The log.
        log: String,
        /// The arm.
        arm: String,
        /// What it is measured against.
        baseline: String,
        /// The metric of `metrics.jsonl`.
        curve: String,
    },
    /// What an arm adds to the time or memory of a step at every shape of `overhead.json`; those of the paper count.
    Overhead {
        /// The log.
        log: String,
        /// The arm.
        arm: String,
        /// Of what.
        of: Resource,
    },
    /// An arm that is at least as good as another but for a margin.
    AtLeast {
        /// The log.
        log: String,
        /// The arm.
        arm: String,
        /// The other one.
        baseline: String,
        /// The field of the report's arms, higher is better.
        metric: String,
        /// Relative to the baseline's mean.
        margin: f64,
    },
    /// What leaving out a block changes, in the first half of the blocks against the second.
    EarlyLate {
        /// The log.
        log: String,
        /// The group of models.
        group: String,
    },
}

impl Evidence {
    /// The log that it is in.
    #[must_use]
    pub fn log(&self) -> &str {
        match self {
            Self::SavedSteps { log, .. }
            | Self::SpeedUp { log, .. }
            | Self::Overhead { log, .. }
            | Self::AtLeast { log, .. }
            | Self::EarlyLate { log, .. } => log,
        }
    }
}

/// What a step costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Seconds.
    Time,
    /// Bytes at its peak.
    Memory,
}

/// The findings of the theory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Theory {
    /// The log with `findings.csv`.
    pub log: String,
    /// What makes it.
    pub gap: String,
}

/// Reads the file.
///
/// # Errors
/// If it cannot be read, or its tables are not whole; the message says where.
pub fn read(path: &Path) -> Result<Paper> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| format!("{} does not hold together", path.display()))
}

fn parse(text: &str) -> Result<Paper> {
    let paper: Paper = toml::from_str(text)?;
    let mut ids = HashSet::new();
    for id in paper.tables.iter().map(|t| &t.id).chain(paper.claims.iter().map(|c| &c.id)) {
        ensure!(ids.insert(id), "two entries have the id {id:?}");
    }
    for table in &paper.tables {
        for row in &table.rows {
            let place = format!("table {:?}, row {:?}", table.id, row.name);
            let (have, need) = (row.values.len(), table.columns.len());
            ensure!(have == need, "{place}: {have} values for {need} columns");
            ensure!(row.values.iter().all(|value| value.is_finite()), "{place}: a value is not finite");
            ensure!(row.log.is_some() == row.arm.is_some(), "{place}: give both a log and an arm, or neither");
            if let Some(against) = &row.against {
                ensure!(table.rows.iter().any(|other| other.name == *against), "{place}: no row is called {against:?}");
            }
            for column in &table.columns {
                let gap = row.gap.as_ref().or(column.gap.as_ref());
                ensure!(gap.is_some_and(|gap| !gap.is_empty()), "{place}, column {:?}: name the gap", column.name);
            }
        }
    }
    for claim in &paper.claims {
        ensure!(!claim.gap.is_empty(), "claim {:?}: name the gap", claim.id);
        if matches!(claim.evidence, Evidence::Overhead { .. }) {
            ensure!(claim.paper.is_some(), "claim {:?}: an overhead needs a number to stay below", claim.id);
        }
    }
    Ok(paper)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEORY: &str = "[theory]\nlog = \"theory\"\ngap = \"run it\"\n";

    fn table(row: &str) -> String {
        format!(
            "paper = \"x\"\nclaim = []\n{THEORY}[[table]]\nid = \"t\"\ntitle = \"T\"\nsource = \"s\"\n[[table.column]]\nname = \"c\"\n\
             better = \"lower\"\n[[table.row]]\nname = \"r\"\n{row}"
        )
    }

    #[test]
    fn the_papers_numbers_are_all_there() {
        let paper = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/paper.toml"))).unwrap();
        let numbers: usize = paper.tables.iter().map(|table| table.rows.len() * table.columns.len()).sum();
        // 16 perplexities, 20 scores; savings, speed-up, time, memory, depth, late layers.
        assert_eq!((numbers, paper.claims.len()), (36, 6));
    }

    #[test]
    fn what_is_not_whole_is_refused_with_its_place() {
        for (row, message) in [
            ("values = [1.0, 2.0]\ngap = \"g\"", "2 values for 1 columns"),
            ("values = [1.0]", "name the gap"),
            ("values = [1.0]\ngap = \"g\"\nlog = \"l\"", "both a log and an arm"),
            ("values = [1.0]\ngap = \"g\"\nagainst = \"q\"", "no row is called \"q\""),
            ("values = [nan]\ngap = \"g\"", "not finite"),
            ("values = [1.0]\ngap = \"g\"\nverdict = \"reproduced\"", "unknown field `verdict`"),
        ] {
            let error = format!("{:#}", parse(&table(row)).unwrap_err());
            assert!(error.contains(message), "{error}");
        }
        assert!(parse(&table("values = [1.0]\ngap = \"g\"")).is_ok());
    }
}
