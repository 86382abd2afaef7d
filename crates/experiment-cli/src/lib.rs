//! What the command lines of the experiment programs share, on top of [`experiment_kit`].
//!
//! A program has flags of its own beside the shared ones, so it puts [`RunOptions`] into its own arguments of a run, and
//! says with [`RunFlags`] what its own flags mean. [`CompareArgs`] and [`TrainArgs`] are then the arguments of its
//! subcommands, and [`request`] makes settings of them: a preset or what is stored, then a file, flags, and `--set`.
//!
//! With [`TrainingProgram`] it says how data is loaded and what an experiment is made of; [`compare()`] and [`train()`]
//! are then the subcommands, from arguments to the last line that is printed. [`export()`] writes the weights of a run.
//! [`sweep`] is for examples that compare arms, each at its best setting.
//!
//! What is the program's own stays there: its subcommands, examples in help texts, presets, flags about data.

mod args;
mod commands;
mod program;
pub mod request;
pub mod sweep;

pub use args::{CompareArgs, ExportOptions, RunFlags, RunOptions, TrainArgs};
pub use commands::{compare, export, metrics_table, train};
pub use program::TrainingProgram;
