//! Programs that read comparisons which differ in learning rates and temperatures, and tell which setting of each arm is best.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Parser;
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

/// Which setting of each arm is best? Reads comparisons that differ in their settings.
///
/// Without a flag: a table of every setting of every arm.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// The flags of each arm's best setting, a line an arm
    #[arg(long, conflicts_with = "paired")]
    best: bool,
    /// Each arm at its best against the others, paired over the seeds that both have
    #[arg(long)]
    paired: bool,
    /// Directories of comparisons
    #[arg(required = true, value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
}

impl<C> Tables<C> {
    /// The program: `[--best | --paired] DIRECTORY...`.
    pub fn end(self) -> ExitCode {
        command_line::end(self.answer(&Arguments::parse()).map(say).map_err(Failure::Work))
    }

    fn answer(self, arguments: &Arguments) -> Result<String> {
        let cells = (self.gather)(&arguments.directories)?;
        match (arguments.best, arguments.paired) {
            (true, _) => Ok((self.best)(&cells).join("\n")),
            (_, true) => (self.paired)(&cells),
            _ => Ok((self.every)(&cells)),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_flag_says_which_table() {
        let tables = Tables::<usize> {
            gather: |directories| Ok(directories.len()),
            every: |count| format!("{count} directories"),
            best: |_| vec!["--lr 1".to_owned(), "--lr 2".to_owned()],
            paired: |_| Err(anyhow!("nothing to compare with")),
        };
        let parse = |arguments: &[&str]| Arguments::try_parse_from([&["tables"], arguments].concat());
        let ask = |arguments: &[&str]| tables.answer(&parse(arguments).unwrap());
        assert_eq!(ask(&["a", "b"]).unwrap(), "2 directories");
        assert_eq!(ask(&["--best", "a"]).unwrap(), "--lr 1\n--lr 2");
        assert_eq!(ask(&["--paired", "a"]).unwrap_err().to_string(), "nothing to compare with");
        for wrong in [&["--best"][..], &[], &["--worst", "a"], &["--best", "--paired", "a"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--help"]).unwrap_err().to_string().contains("--paired"));
    }
}
