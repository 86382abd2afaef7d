//! What the experiment programs share: everything between a command line and a report that does not depend on what is
//! learned.
//!
//! A program says what it trains by implementing [`Experiment`]: its [`RunSettings`], its model (which is [`Connected`]:
//! it holds the connections that are compared), and its [`Task`](training::trainer::Task). From there on, data flows one
//! way:
//!
//! 1. [`layers`] lays a file and flags over a preset, and [`request`] makes of it a comparison or a single run: new, or
//!    the one in a directory.
//! 2. [`on_device!`] chooses the backend.
//! 3. [`run`] begins, continues and reads back one run; [`compare`] makes several, side by side. Each leaves an
//!    [`ArmSummary`](run::ArmSummary) beside its logs.
//! 4. [`report`] reads summaries and logs, and has the parts that reports are made of.
//!
//! [`checks`] has what all settings are checked for, and [`state_dict`] reads and writes weights under the names of the
//! authors' code.
//!
//! This crate knows no data, no model and no library of command lines.

pub mod checks;
pub mod compare;
pub mod device;
mod experiment;
pub mod layers;
pub mod report;
pub mod request;
pub mod run;
mod settings;
pub mod state_dict;
mod variant;

pub use experiment::{CONNECTIONS, Connected, Ended, Experiment, Program};
pub use settings::RunSettings;
pub use variant::Variant;

/// For [`on_device!`], whose caller need not depend on these.
#[doc(hidden)]
pub use {burn as __burn, training as __training};
