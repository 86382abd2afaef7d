//! The program: arguments, then settings, then the work, and messages for people.

mod args;
mod commands;
mod request;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use args::{Cli, Command};

/// How a command ended, if not well.
enum Failure {
    /// The arguments or settings make no sense: exit code 2.
    Usage(anyhow::Error),
    /// The work failed: exit code 1.
    Work(anyhow::Error),
    /// The user stopped it; everything is saved: exit code 130.
    Interrupted,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Work(error)
    }
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => commands::compare(&cli.compare),
        Some(Command::Compare(args)) => commands::compare(&args),
        Some(Command::Train(args)) => commands::train(&args),
        Some(Command::Evaluate(args)) => commands::evaluate(&args),
        Some(Command::Generate(args)) => commands::generate(&args),
        Some(Command::Export(args)) => commands::export(&args),
        Some(Command::Presets) => commands::presets(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => complain(&error, 2),
        Err(Failure::Work(error)) => complain(&error, 1),
        Err(Failure::Interrupted) => ExitCode::from(130),
    }
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    // Nobody may be left to read it.
    let _ = writeln!(std::io::stderr(), "error: {}", message(error));
    ExitCode::from(code)
}

/// The error with its causes, each said once: many messages hold that of their cause already.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("disk full").context("cannot write x: disk full").context("arm ancre");
        assert_eq!(message(&error), "arm ancre: cannot write x: disk full");
    }
}
