//! Test support: what the tests of an experiment program do with it from outside. They start it, expect it to refuse bad
//! input with one clear message, and kill it at any moment to see that a resumed run ends with the same bytes as one that was
//! not stopped.
//!
//! This crate is for tests: its functions panic with a message instead of returning errors.

mod kills;
mod resumes;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

pub use kills::{Killed, killed_comparison, killed_run};
pub use resumes::resumed_arms;

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

    /// Runs it until it writes a line with `marker` to the standard error output, presses Ctrl-C, and gives the arguments with
    /// which it says that it goes on.
    #[track_caller]
    pub fn interrupted(self, folder: &Path, arguments: &[&str], marker: &str) -> Vec<String> {
        let mut child = self.start(folder, arguments);
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
        let mut seen: Vec<String> = Vec::new();
        while seen.last().is_none_or(|line| !line.contains(marker)) {
            seen.push(lines.next().unwrap_or_else(|| panic!("{arguments:?} ended without `{marker}`: {seen:?}")));
        }
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success(), "{arguments:?}");
        seen.extend(lines);
        let status = child.wait().expect("the program ends");
        assert_eq!(status.code(), Some(130), "{arguments:?}: {seen:?}");
        let advice = seen.iter().find_map(|line| line.split_once("go on with: ")?.1.split_once(" -- "));
        let (_, advice) = advice.unwrap_or_else(|| panic!("{arguments:?} does not say how to go on: {seen:?}"));
        advice.split_whitespace().map(str::to_owned).collect()
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
