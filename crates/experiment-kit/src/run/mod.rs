//! One run of one arm: made, continued, and read back.

mod begin;
mod memory;
mod newest;
mod summary;
mod under_way;

pub use begin::{RunTrainer, Start, begin, begin_or_continue, new_run, with_stored_tau};
pub use memory::{StepMemory, cores, on_cpu, workers};
pub use newest::{Newest, newest};
pub use summary::ArmSummary;
pub(crate) use under_way::UnderWay;
pub use under_way::train;
