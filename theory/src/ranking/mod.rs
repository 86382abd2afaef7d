//! Every layout of a depth, ranked by how fast it trains.

pub mod chains;
mod measure;
pub mod medians;
mod ranked;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod verify;

pub use measure::{Speed, Spread};
pub use ranked::{Class, Entry, Ranking, Summary};
pub use settings::{LARGEST_WIDTH, MOST_LAYOUTS, MOST_RUNS, MOST_STEPS, Pool, RATES, RankingError, RankingSettings};
pub use verify::verify;
