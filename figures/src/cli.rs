//! The command line.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use clap::{Args, Parser, Subcommand};
use command_line::{Failure, end, note, say};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{add, charts, logs::Log, output::Made, paper, reproduction};

/// The paper's numbers beside ours: makes docs/reproduction.md and docs/figures/reproduction of docs/paper.toml and the
/// logs in docs/logs.
#[derive(Debug, Parser)]
#[command(
    name = "figures",
    version,
    after_help = "Examples:\n  figures                                   make the page and all figures again\n  \
                  figures --check                           exit with 1 if they are not what they should be\n  \
                  figures add runs/compare-cpu-1 llm-cpu    commit what a run left, thinned, as docs/logs/llm-cpu"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Folder with paper.toml and logs [default: docs of this workspace]
    #[arg(long, global = true, value_name = "DIR")]
    docs: Option<PathBuf>,
    /// Write nothing; exit with 1 and say what would change
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy what is needed of a finished run directory into docs/logs
    #[command(after_help = "Example:\n  figures add runs/theory-1 theory --what \"all statements, seed 0\" \
                            --command \"cargo run -p theory\" --commit $(git rev-parse HEAD)")]
    Add(AddArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// The directory of a finished comparison, overhead, depth or theory run
    run: PathBuf,
    /// The name of the log, as docs/paper.toml has it
    name: String,
    /// What was run, with its sizes [default: the first line of its report]
    #[arg(long, value_name = "TEXT")]
    what: Option<String>,
    /// The command that made it [default: that of its environment.json]
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
    /// The commit of the code that made it [default: that of its environment.json]
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    end(run(Cli::parse()))
}

fn run(cli: Cli) -> Result<(), Failure> {
    if cli.check && cli.command.is_some() {
        return Err(Failure::Usage(anyhow!("--check goes with no command: `figures --check`")));
    }
    let docs = cli.docs.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs"));
    match cli.command {
        Some(Command::Add(args)) => {
            let said = add::Said { what: args.what, command: args.command, commit: args.commit };
            let (folder, notes) = add::add(&args.run, &docs.join("logs"), &args.name, &said)?;
            for text in notes {
                note(format_args!("warning: {text}"));
            }
            say(format_args!("wrote {}; `cargo run -p figures` takes it up", folder.display()));
        }
        None => {
            let made = make(&docs)?;
            match cli.check {
                true => check(&made, &docs)?,
                false => {
                    let changed = made.put(&docs)?;
                    for path in &changed {
                        say(format_args!("wrote {}", path.display()));
                    }
                    if changed.is_empty() {
                        say("nothing has changed");
                    }
                }
            }
        }
    }
    Ok(())
}

/// Reads everything and makes the page and the pictures.
fn make(docs: &Path) -> Result<Made> {
    let paper = paper::read(&docs.join("paper.toml"))?;
    let logs = docs.join("logs");
    let pictures = tempfile::tempdir().context("cannot make a temporary folder for the pictures")?;
    let bar = ProgressBar::new(Log::all(&logs)?.len() as u64).with_message("drawing");
    bar.set_style(
        ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} logs {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let drawn = charts::draw(&paper, &logs, pictures.path(), || bar.inc(1));
    bar.finish_and_clear();
    let (figures, warnings) = drawn?;
    for warning in warnings {
        note(format_args!("warning: {warning}"));
    }
    Ok(Made { page: reproduction::page(&paper, &logs, &figures)?, pictures })
}

fn check(made: &Made, docs: &Path) -> Result<(), Failure> {
    let changes = made.changes(docs)?;
    if changes.is_empty() {
        say("everything is as it is made");
        return Ok(());
    }
    Err(anyhow!("{}\nrun `cargo run -p figures` and commit what it writes", changes.join("\n")).into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
