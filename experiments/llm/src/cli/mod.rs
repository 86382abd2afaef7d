//! The program: arguments, then settings, then the work, and messages for people.

mod args;
mod commands;
mod program;
mod request;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use program::LlmProgram;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => experiment_cli::compare::<LlmProgram>(&cli.compare),
        Some(Command::Compare(args)) => experiment_cli::compare::<LlmProgram>(&args),
        Some(Command::Train(args)) => experiment_cli::train::<LlmProgram>(&args),
        Some(Command::Evaluate(args)) => commands::evaluate(&args),
        Some(Command::Generate(args)) => commands::generate(&args),
        Some(Command::Depth(args)) => commands::depth(&args),
        Some(Command::Export(args)) => commands::export(&args),
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
