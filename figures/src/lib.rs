//! The paper's numbers beside ours: `docs/reproduction.md` and `docs/figures/reproduction/`, made of `docs/paper.toml` and of the
//! run logs that are committed under `docs/logs/`. Nothing is trained here.
//!
//! [`paper`] has the paper's numbers and names for each the log that ours come from; [`logs`] reads what experiments write;
//! [`evidence`] takes a number, its spread and its difference from a baseline out of a log; [`verdict`] is the rule that
//! says what follows; [`comparison`] holds arms against each other at equal steps and seconds; [`reproduction`] writes the page and [`charts`] draw the figures; [`add`] brings a run directory
//! into `docs/logs/`; [`output`] puts files in their place, or says which ones would change.

pub mod add;
pub mod charts;
pub mod cli;
pub mod comparison;
pub mod evidence;
pub mod logs;
pub mod output;
pub mod paper;
pub mod reproduction;
pub mod verdict;
