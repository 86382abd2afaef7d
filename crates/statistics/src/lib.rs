//! What a comparison of runs may claim.
//!
//! Two arms are trained with the same seeds; one ends lower. This crate says by how much and how sure that is: a
//! [`Summary`] of each arm, the [`paired_difference`] over seeds, the [t-tests](TTest) for pairs and for independent samples,
//! [signed ranks](signed_ranks) where a normal distribution is not to be supposed, and [bootstrap](Resamples) intervals of
//! any statistic. Two curves are held against each other [at equal steps, at equal seconds](curves) and by what one needs to
//! get where the other ends. It knows plain numbers only, and where their source gives the same values (scipy 1.17),
//! tests hold them against it.
//!
//! ```
//! use statistics::{Alternative, TTest};
//!
//! let (ancre, cascade) = ([1.63, 1.62, 1.64], [1.71, 1.69, 1.72]);
//! let test = TTest::paired(&ancre, &cascade, Alternative::TwoSided)?;
//! assert!(test.estimate < 0.0 && test.p_value < 0.01);
//! # Ok::<(), statistics::StatisticsError>(())
//! ```

mod alternative;
mod bootstrap;
pub mod curves;
mod error;
mod paired;
mod quantile;
mod summary;
mod t_test;
mod wilcoxon;

pub use alternative::{Alternative, Interval};
pub use bootstrap::{Replicates, Resamples};
pub use error::StatisticsError;
pub use paired::{PairedDifference, paired_difference};
pub use quantile::{median, quantile};
pub use summary::{Summary, mean, sample_sd};
pub use t_test::TTest;
pub use wilcoxon::{Method, SignedRanks, Zeros, signed_ranks};
