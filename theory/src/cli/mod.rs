//! The program: arguments, then a checked request, then the work, and messages for people.

mod args;
mod flow;
mod output;
mod rank;
mod request;
mod verify;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use command_line::complain;

use args::{Cli, Command};

/// How a command ended, if not well.
enum Failure {
    /// The arguments make no sense: exit code 2.
    Usage(anyhow::Error),
    /// The work failed: exit code 1.
    Work(anyhow::Error),
    /// A statement does not hold; the table says which: exit code 1.
    Statement,
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
        None => verify::verify(&cli.verify),
        Some(Command::Verify(args)) => verify::verify(&args),
        Some(Command::Rank(args)) => rank::rank(&args),
        Some(Command::Flow(args)) => flow::flow(&args),
        Some(Command::Figures(args)) => verify::figures(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => complain(&error, 2),
        Err(Failure::Work(error)) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(Failure::Work(error)) => complain(&error, 1),
        Err(Failure::Statement) => ExitCode::FAILURE,
    }
}

/// Whether the reader of the output has gone, as `head` does. Files are written and statements checked before, so that
/// nothing is wrong then.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
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
