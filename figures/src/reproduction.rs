//! `docs/reproduction.md`: every number of the paper with ours beside it, at which scale, how it was made, and what follows.

use std::{collections::BTreeSet, fmt::Write, path::Path};

use anyhow::Result;
use plotting::{Align, Table, significant};

use crate::{
    charts::Drawn,
    comparison,
    evidence::{self, Entry},
    logs::{Finding, Log},
    output::FIGURES,
    paper::Paper,
    verdict::{LEVEL, TOLERANCE, Verdict},
};

/// The page.
///
/// # Errors
/// If a log is damaged.
pub fn page(paper: &Paper, logs: &Path, figures: &[Drawn]) -> Result<String> {
    let all = Log::all(logs)?;
    let (mut text, mut entries) = (String::new(), Vec::new());
    for table in &paper.tables {
        let lines = evidence::table(table, logs)?;
        text += &section(&table.title, &table.source, &table.note, &lines, &all);
        text += &pictures(figures, |drawn| drawn.part == table.id);
        entries.extend(lines);
    }
    let lines = evidence::claims(&paper.claims, logs)?;
    let sources: BTreeSet<&str> = paper.claims.iter().map(|claim| claim.source.as_str()).collect();
    text += &section("Claims", &sources.into_iter().collect::<Vec<_>>().join("; "), "", &lines, &all);
    text += &pictures(figures, |drawn| paper.claims.iter().any(|claim| claim.id == drawn.part));
    entries.extend(lines);
    text += &theory(paper, logs)?;
    text += &pictures(figures, |drawn| drawn.part == "theory");
    text += &comparisons(&all)?;
    text += &provenance(&all);
    Ok(head(paper, &entries) + &text)
}

fn head(paper: &Paper, entries: &[Entry]) -> String {
    let mut counts = Table::new(["verdict", "numbers", "what it means"]).align(1, Align::Right);
    let meaning = |verdict: Verdict| match verdict {
        Verdict::Reproduced => format!(
            "at the paper's scale: the number within {}%, a difference with the paper's sign and p < {LEVEL}, a bound kept",
            100.0 * TOLERANCE
        ),
        Verdict::SignReproduced => {
            format!("at a smaller scale: the difference has the paper's sign with p < {LEVEL}, or the bound is kept")
        }
        Verdict::NotAtThisScale => {
            "run at a smaller scale, where it does not show, or where the number itself says nothing".to_owned()
        }
        Verdict::NotDecided => "run at the paper's scale, and the interval holds the bound".to_owned(),
        Verdict::NotReproduced => "run at the paper's scale, and it does not hold".to_owned(),
        Verdict::NotRun => "no log backs it".to_owned(),
    };
    for verdict in Verdict::ALL {
        let count = entries.iter().filter(|entry| entry.verdict == verdict).count();
        counts.push([verdict.to_string(), count.to_string(), meaning(verdict)]);
    }
    format!(
        "<!-- Made by `cargo run -p figures` of paper.toml and logs/. Change those. -->\n\n# Reproduction\n\n\
         The numbers of the paper ({}) beside ours. What is called the paper's is the paper's; ours are of the logs that are \
         named, which are committed with the commit and the command that made them. Verdicts are computed.\n\n{}\n\
         Ours is a mean over seeds with its standard deviation. Differences are paired by seed; p is of a two-sided paired \
         t-test, and there is none for a single seed.\n",
        paper.paper,
        counts.to_markdown()
    )
}

/// A part of the page: its entries, and the logs that they name.
fn section(title: &str, source: &str, note: &str, entries: &[Entry], all: &[Log]) -> String {
    let mut table = Table::new([
        "number",
        "paper",
        "ours",
        "minus baseline",
        "p",
        "seeds",
        "log",
        "verdict",
        "missing for the number itself",
    ]);
    for column in 0..9 {
        table = table.align(column, if (1..=5).contains(&column) { Align::Right } else { Align::Left });
    }
    let mut used = BTreeSet::new();
    for entry in entries {
        let (what, paper) = (entry.what.clone(), entry.paper.clone());
        let (verdict, gap) = (entry.verdict.to_string(), entry.gap.clone());
        table.push(match &entry.ours {
            None => [what, paper, "-".into(), "-".into(), "-".into(), "-".into(), "-".into(), verdict, gap],
            Some(ours) => {
                used.insert(ours.log.as_str());
                let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
                let p = ours.p.map_or_else(|| "-".to_owned(), |p| significant(p, 2));
                let gap = if entry.verdict == Verdict::Reproduced { String::new() } else { gap };
                let link = format!("[{0}](#{0})", ours.log);
                let seeds = ours.seeds.to_string();
                [what, paper, ours.text.clone(), or_dash(&ours.difference), p, seeds, link, verdict, gap]
            }
        });
    }
    let note = if note.is_empty() { String::new() } else { format!(" {note}") };
    let mut text = format!("\n## {title}\n\nPaper: {source}.{note}\n\n{}", table.to_markdown());
    for log in all.iter().filter(|log| used.contains(log.name.as_str())) {
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "\nOurs, {}: {}; commit {}.\n\n    {}\n",
            log.name,
            log.provenance.what,
            short(&log.provenance.commit),
            log.provenance.command
        );
    }
    text
}

fn pictures(figures: &[Drawn], of: impl Fn(&Drawn) -> bool) -> String {
    let line = |drawn: &Drawn| format!("\n![{}]({FIGURES}/{}.png)\n", drawn.caption, drawn.name);
    figures.iter().filter(|drawn| of(drawn)).map(line).collect()
}

/// The findings about the paper's own statements.
fn theory(paper: &Paper, logs: &Path) -> Result<String> {
    let Some((log, findings)) = evidence::theory(paper, logs)? else {
        return Ok(format!("\n## Theory\n\nNot run: {}.\n", paper.theory.gap));
    };
    let mut table = Table::new(["section", "statement of the paper", "measured", "expected", "verdict"]);
    for column in 0..5 {
        table = table.align(column, Align::Left);
    }
    let verdict = |finding: &Finding| match finding.verdict.as_str() {
        "holds" => Verdict::Reproduced.to_string(),
        "refuted" => "refuted, with a counter-example".to_owned(),
        _ => Verdict::NotReproduced.to_string(),
    };
    for finding in &findings {
        let section = finding.section.to_string();
        // A bar would end the cell.
        let cell = |text: &str| text.replace('|', "\\|");
        table.push([
            section,
            cell(&finding.statement),
            cell(&finding.measured),
            cell(&finding.expected),
            verdict(finding),
        ]);
    }
    Ok(format!(
        "\n## Theory\n\nStatements that the paper makes about linear networks, on random instances; the sections are those of \
         [theory.md](theory.md). They need no other scale. Log: [{0}](#{0}).\n\n{1}",
        log.name,
        table.to_markdown()
    ))
}

/// Equal steps and equal seconds, for every log with curves.
fn comparisons(all: &[Log]) -> Result<String> {
    let mut text = String::new();
    for log in all {
        let Some(report) = log.report()? else { continue };
        let Some(table) = comparison::table(log, &report)? else { continue };
        let _ = write!(
            text,
            "\n### {}: arms minus {}\n\n{}\n\n{}",
            log.name,
            report.baseline,
            log.provenance.what,
            table.to_markdown()
        );
    }
    if text.is_empty() {
        return Ok(text);
    }
    Ok(format!(
        "\n## Arms at equal steps and at equal seconds\n\nThe last held-out loss that both have, after as many steps, and after as \
         many seconds of training (evaluation and saving left out), paired by seed; and the share of the baseline's steps and \
         seconds after which an arm reaches the baseline's last loss. Values between evaluations lie on straight lines.\n{text}"
    ))
}

/// Where the logs come from.
fn provenance(all: &[Log]) -> String {
    let mut text = "\n## Logs\n\nEach is a folder of [logs](logs/README.md); `cargo run -p figures -- add RUN_DIRECTORY NAME` makes one.\n"
        .to_owned();
    for log in all {
        let what = &log.provenance;
        let machine = if what.machine.is_empty() { String::new() } else { format!("\n\n{}.", what.machine) };
        let _ = write!(
            text,
            "\n### {}\n\n{}; commit {}.{machine}\n\n    {}\n",
            log.name, what.what, what.commit, what.command
        );
    }
    text
}

/// A commit as git shortens it.
fn short(commit: &str) -> String {
    let (hash, mark) = commit.split_once('-').map_or((commit, ""), |(hash, _)| (hash, " (changed since)"));
    format!("{}{mark}", hash.get(..10).unwrap_or(hash))
}
