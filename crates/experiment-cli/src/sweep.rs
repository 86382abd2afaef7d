//! Programs that read comparisons which differ in learning rates and temperatures, and tell which setting of each arm is best.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, anyhow};
use command_line::{Failure, say};

/// What such a program says of the cells `C` of a sweep: what was run of each arm at each setting.
#[derive(Clone, Copy, Debug)]
pub struct Tables<C> {
    /// Reads directories of comparisons.
    pub gather: fn(&[PathBuf]) -> Result<C>,
    /// A table of all cells.
    pub every: fn(&C) -> String,
    /// The flags of each arm's best cell; nothing of an arm that has none.
    pub best: fn(&C) -> Vec<String>,
    /// A table of comparisons between arms, paired over seeds; an error if there is nothing to compare with.
    pub paired: fn(&C) -> Result<String>,
}

impl<C> Tables<C> {
    /// The program: `[--best | --paired] DIRECTORY...`.
    pub fn end(self) -> ExitCode {
        command_line::end(self.answer(std::env::args().skip(1).collect()).map(say))
    }

    fn answer(self, mut arguments: Vec<String>) -> Result<String, Failure> {
        let mode = arguments.first().filter(|first| first.starts_with("--")).cloned();
        arguments.drain(..usize::from(mode.is_some()));
        if arguments.is_empty() {
            return Err(Failure::Usage(anyhow!("give the directories of comparisons")));
        }
        let cells = || (self.gather)(&arguments.iter().map(PathBuf::from).collect::<Vec<_>>());
        Ok(match mode.as_deref() {
            None => (self.every)(&cells()?),
            Some("--best") => (self.best)(&cells()?).join("\n"),
            Some("--paired") => (self.paired)(&cells()?)?,
            Some(other) => return Err(Failure::Usage(anyhow!("{other} is not known: --best or --paired"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_says_which_table() {
        let tables = Tables::<usize> {
            gather: |directories| Ok(directories.len()),
            every: |count| format!("{count} directories"),
            best: |_| vec!["--lr 1".to_owned(), "--lr 2".to_owned()],
            paired: |_| Err(anyhow!("nothing to compare with")),
        };
        let ask = |arguments: &[&str]| tables.answer(arguments.iter().map(|&a| a.to_owned()).collect());
        assert_eq!(ask(&["a", "b"]).unwrap(), "2 directories");
        assert_eq!(ask(&["--best", "a"]).unwrap(), "--lr 1\n--lr 2");
        assert!(matches!(ask(&["--paired", "a"]), Err(Failure::Work(_))));
        for wrong in [&["--best"][..], &[], &["--worst", "a"]] {
            assert!(matches!(ask(wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
    }
}
