//! `theory verify` and `theory figures`.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use plotting::{Align, Table};

use super::Failure;
use super::args::{FiguresArgs, VerifyArgs};
use super::output::NewDirectory;
use crate::statements::STATEMENTS;
use crate::{Finding, Verdict, figures};

pub(super) fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    // Before the work: a place that cannot be written is known at once.
    let directory =
        if args.no_figures { None } else { Some(NewDirectory::begin(args.out.as_deref()).map_err(Failure::Usage)?) };
    let (findings, mut printed) = check_all(args.seed);
    let failed = findings.iter().filter(|f| f.verdict == Verdict::Fails).count();
    let refuted = findings.iter().filter(|f| f.verdict == Verdict::Refuted).count();
    let holds = findings.len() - refuted - failed;
    let mut text = format!(
        "{} statements: {holds} hold, {refuted} over-claims are refuted as docs/theory.md says, {failed} fail (seed {})\n",
        findings.len(),
        args.seed
    );
    if let Some(directory) = directory {
        let path = directory.staging().join("findings.csv");
        std::fs::write(path, csv(&findings)?).context("cannot write findings.csv")?;
        draw(&directory.staging().join("figures"), args.seed)?;
        text += &format!("wrote {}\n", directory.finish()?.display());
    }
    printed = printed.and_then(|()| io::stdout().lock().write_all(text.as_bytes()));
    if failed > 0 {
        return Err(Failure::Statement);
    }
    printed.context("output").map_err(Failure::Work)
}

pub(super) fn figures(args: &FiguresArgs) -> Result<(), Failure> {
    let directory = NewDirectory::begin(args.out.as_deref()).map_err(Failure::Usage)?;
    draw(directory.staging(), args.seed)?;
    writeln!(io::stdout(), "wrote {}", directory.finish()?.display()).context("output")?;
    Ok(())
}

/// Checks the groups of statements one after another, each on all cores, and prints it as soon as it is done.
///
/// All are checked even when the output cannot be written, as when its reader has gone; the first error comes back too.
fn check_all(seed: u64) -> (Vec<Finding>, io::Result<()>) {
    let bar = progress(STATEMENTS.len() as u64, "checking");
    let (mut findings, mut printed) = (Vec::new(), Ok(()));
    for group in STATEMENTS {
        let found = (group.verify)(seed);
        let text = table(group.title, &found);
        printed = printed.and_then(|()| bar.suspend(|| io::stdout().lock().write_all(text.as_bytes())));
        findings.extend(found);
        bar.inc(1);
    }
    bar.finish_and_clear();
    (findings, printed)
}

fn table(title: &str, findings: &[Finding]) -> String {
    let mut table = Table::new([title, "measured", "expected", "verdict"]);
    for column in 0..4 {
        table = table.align(column, Align::Left);
    }
    for f in findings {
        table.push([f.statement.clone(), f.measured.clone(), f.bound.clone(), f.verdict.to_string()]);
    }
    format!("{}\n", table.to_text())
}

fn csv(findings: &[Finding]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["section", "source", "statement", "measured", "expected", "verdict"])?;
    for f in findings {
        let (section, source, verdict) = (f.section.to_string(), f.source.to_string(), f.verdict.to_string());
        writer.write_record([&section, &source, &f.statement, &f.measured, &f.bound, &verdict])?;
    }
    Ok(writer.into_inner().map_err(|error| error.into_error())?)
}

fn draw(folder: &Path, seed: u64) -> Result<()> {
    let bar = progress(figures::FIGURES.len() as u64, "drawing");
    for figure in figures::FIGURES {
        let saved = (figure.draw)(seed, folder).with_context(|| format!("figure {}", figure.name))?;
        for warning in saved.warnings {
            bar.suspend(|| eprintln!("figure {}: {warning}", figure.name));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// A bar for work that takes seconds; silent where the error output is no terminal.
pub(super) fn progress(length: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {elapsed}");
    let bar = ProgressBar::new(length).with_message(what);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
