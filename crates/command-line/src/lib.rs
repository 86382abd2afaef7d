//! What the programs say to people: messages, exit codes, lines that outlive their reader, files that replace nothing.
//!
//! A program's commands end with a [`Failure`] or well, and [`end`] makes the exit code of it:
//!
//! ```
//! use command_line::{Failure, end};
//!
//! fn work() -> Result<(), Failure> {
//!     Err(Failure::Usage(anyhow::anyhow!("--steps 0: give a positive number")))
//! }
//!
//! // On the standard error output: "error: --steps 0: give a positive number".
//! assert_eq!(end(work()), std::process::ExitCode::from(2));
//! ```

mod failure;
mod file;
mod lines;

pub use failure::{Failure, complain, end, message};
pub use file::write_new;
pub use lines::{note, say};
