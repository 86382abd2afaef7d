//! How a command ended, as a message and an exit code.

use std::process::ExitCode;

use crate::note;

/// How a command ended, if not well.
#[derive(Debug)]
pub enum Failure {
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

/// The exit code of a command, after its message if it failed.
pub fn end(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => complain(&error, 2),
        Err(Failure::Work(error)) => complain(&error, 1),
        Err(Failure::Interrupted) => ExitCode::from(130),
    }
}

/// Says what went wrong on the standard error output; returns the exit code.
pub fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    note(format_args!("error: {}", message(error)));
    ExitCode::from(code)
}

/// The error with its causes, each said once: many messages hold that of their cause already.
pub fn message(error: &anyhow::Error) -> String {
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
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("disk full").context("cannot write x: disk full").context("arm ancre");
        assert_eq!(message(&error), "arm ancre: cannot write x: disk full");
    }

    #[test]
    fn each_end_has_its_exit_code() {
        let error = || anyhow::anyhow!("a message");
        assert_eq!(end(Ok(())), ExitCode::SUCCESS);
        assert_eq!(end(Err(Failure::Usage(error()))), ExitCode::from(2));
        assert_eq!(end(Err(error().into())), ExitCode::from(1));
        assert_eq!(end(Err(Failure::Interrupted)), ExitCode::from(130));
    }
}
