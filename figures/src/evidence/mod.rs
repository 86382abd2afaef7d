//! What the logs have to say to each number and claim of the paper.

mod claims;
mod numbers;

use std::path::Path;

use anyhow::Result;
use plotting::{fixed, signed};
use statistics::PairedDifference;

use crate::{
    logs::{Arm, Finding, Log, Report, read_findings},
    paper::{Claim, Paper, PaperTable, Scale},
    verdict::{Seen, Verdict, verdict},
};

/// A line of the page: a number of the paper and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which number, or what is claimed.
    pub what: String,
    /// The paper's.
    pub paper: String,
    /// Ours, if it was run.
    pub ours: Option<Measured>,
    /// What follows.
    pub verdict: Verdict,
    /// What is missing for the paper's number itself.
    pub gap: String,
}

impl Entry {
    fn new(what: String, paper: String, ours: Option<Measured>, gap: &str) -> Self {
        let verdict = verdict(ours.as_ref().map(|measured| &measured.seen));
        Self { what, paper, ours, verdict, gap: gap.to_owned() }
    }
}

/// A number of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Mean and spread over seeds.
    pub text: String,
    /// The difference to the baseline with the same seeds, if there is one.
    pub difference: String,
    /// The p-value that goes with it.
    pub p: Option<f64>,
    /// Seeds that have a value.
    pub seeds: usize,
    /// The log.
    pub log: String,
    /// What the rule of verdicts is asked.
    pub seen: Seen,
}

/// The lines of a table.
///
/// # Errors
/// If a log is damaged.
pub fn table(table: &PaperTable, logs: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for row in &table.rows {
        for (column, &value) in table.columns.iter().zip(&row.values) {
            let ours = numbers::measured(table, row, column, value, logs)?;
            let gap = row.gap.as_ref().or(column.gap.as_ref()).map_or("", String::as_str);
            // As the paper prints it, with two decimals.
            let paper = format!("{}{}", fixed(value, 2), if column.unit == "%" { "%" } else { "" });
            entries.push(Entry::new(format!("{}, {}", row.name, column.name), paper, ours, gap));
        }
    }
    Ok(entries)
}

/// The lines of the claims.
///
/// # Errors
/// If a log is damaged.
pub fn claims(claims: &[Claim], logs: &Path) -> Result<Vec<Entry>> {
    let entry = |claim: &Claim| {
        let ours = claims::measured(claim, logs)?;
        let paper = claim.paper.map_or_else(|| "(a sentence)".to_owned(), |number| format!("{number}{}", claim.unit));
        Ok(Entry::new(claim.what.clone(), paper, ours, &claim.gap))
    };
    claims.iter().map(entry).collect()
}

/// The findings about the paper's own statements; none if there is no log.
///
/// # Errors
/// If the log is damaged.
pub fn theory(paper: &Paper, logs: &Path) -> Result<Option<(Log, Vec<Finding>)>> {
    let Some(log) = Log::find(logs, &paper.theory.log)? else { return Ok(None) };
    let path = log.file("findings.csv");
    if !path.is_file() {
        return Ok(None);
    }
    let findings = read_findings(&path)?;
    Ok(Some((log, findings.into_iter().filter(|finding| finding.source == "paper").collect())))
}

/// Whether a run of a log is as large as the paper's: parameters within a tenth, and at least as many steps. Without a scale
/// to compare with it is not.
fn at_scale(scale: Option<&Scale>, report: &Report, arm: &Arm) -> bool {
    let Some(scale) = scale else { return false };
    let steps = if report.steps.is_nan() { arm.number("steps") } else { report.steps };
    let near = scale.parameters.is_none_or(|wanted| (arm.number("parameters") / wanted - 1.0).abs() < 0.1);
    let long = scale.steps.is_none_or(|wanted| steps >= 0.99 * wanted);
    let experienced = scale.environment_steps.is_none_or(|wanted| arm.number("environment_steps") >= 0.99 * wanted);
    near && long && experienced
}

/// Values of seeds with enough digits for their size; how many of them are known, if not all.
fn over_seeds(values: &[f64], unit: &str) -> String {
    let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let unit = if unit == "%" || unit == "x" { unit } else { "" };
    let text = plotting::mean_sd(&known, decimals(&known));
    let text = if known.len() > 1 && !unit.is_empty() { format!("({text}){unit}") } else { format!("{text}{unit}") };
    if known.len() == values.len() { text } else { format!("{text} ({} of {} seeds)", known.len(), values.len()) }
}

/// A difference with its spread, signed.
fn difference_text(difference: &PairedDifference, unit: &str) -> String {
    let decimals = decimals(&[difference.mean]).max(if unit == "%" { 2 } else { 3 });
    match difference.pairs {
        0 => String::new(),
        1 => signed(difference.mean, decimals),
        _ => format!("{} ± {}", signed(difference.mean, decimals), fixed(difference.sd, decimals)),
    }
}

/// So that about four digits show.
fn decimals(values: &[f64]) -> usize {
    match statistics::mean(values).abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    }
}
