//! The parts of a report on a comparison: runs as their logs tell them, sums over curves and seeds, tables and the page that
//! they stand on, figures, files.
//!
//! Everything is computed from logs and summaries, so that a report can be made again without training.

mod figures;
mod files;
mod page;
mod runs;
pub mod table;

pub use figures::{Drawn, connections_map, has_coefficients, with_arms};
pub use files::write;
pub use page::{Page, Written, seeds};
pub use runs::{Curve, RunLogs, Runs};
