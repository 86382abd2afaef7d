//! Test support: what the tests of an experiment program do with it from outside. They start it, expect it to refuse bad
//! input with one clear message, and kill it at any moment to see that a resumed run ends with the same bytes as one that was
//! not stopped.
//!
//! This crate is for tests: its functions panic with a message instead of returning errors.

mod kills;

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
};

pub use kills::{Killed, killed_comparison, killed_run};

/// A program under test: `Program(env!("CARGO_BIN_EXE_name"))`.
#[derive(Clone, Copy, Debug)]
pub struct Program(pub &'static str);

impl Program {
    /// Runs it in a folder to its end.
    pub fn run(self, folder: &Path, arguments: &[&str]) -> Output {
        Command::new(self.0).args(arguments).current_dir(folder).output().expect("the program starts")
    }

    /// Runs it, which must succeed; gives what it wrote to the standard output.
    #[track_caller]
    pub fn succeeds(self, folder: &Path, arguments: &[&str]) -> String {
        let output = self.run(folder, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs it, which must fail with this code and one message that holds every one of these words.
    #[track_caller]
    pub fn refuses(self, folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
        let output = self.run(folder, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("stack backtrace"), "{arguments:?}: {stderr}");
        let errors = stderr.lines().filter(|line| line.starts_with("error:")).count();
        assert_eq!(errors, 1, "{arguments:?}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{arguments:?} does not say `{word}`: {stderr}");
        }
    }

    /// Starts it in a folder.
    pub fn start(self, folder: &Path, arguments: &[&str]) -> Child {
        Command::new(self.0)
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }
}

/// Waits for a program that is to succeed.
#[track_caller]
fn succeed(child: Child) {
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
