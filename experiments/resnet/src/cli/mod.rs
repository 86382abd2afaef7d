//! The program: arguments, then settings, then the work, and messages for people.

mod args;
mod commands;
mod program;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use program::ContrastiveProgram;

use crate::classify::ClassifyProgram;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => experiment_cli::compare::<ContrastiveProgram>(&cli.compare),
        Some(Command::Compare(args)) => experiment_cli::compare::<ContrastiveProgram>(&args),
        Some(Command::Train(args)) => experiment_cli::train::<ContrastiveProgram>(&args),
        Some(Command::Classify(args)) => experiment_cli::compare::<ClassifyProgram>(&args),
        Some(Command::TrainClassifier(args)) => experiment_cli::train::<ClassifyProgram>(&args),
        Some(Command::Tasks(args)) => commands::tasks(&args),
        Some(Command::Presets) => commands::presets(),
    };
    command_line::end(outcome)
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
