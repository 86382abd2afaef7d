//! Bootstrap intervals: how a statistic varies when its sample is drawn again from itself.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    Interval, StatisticsError,
    error::{check, check_level},
    quantile, sample_sd,
};

/// Which values make up each resample of a sample, drawn with replacement.
///
/// ```
/// use statistics::{Resamples, mean};
///
/// let times = [2.1, 1.9, 2.4, 2.0, 7.5];
/// let resamples = Resamples::draw(times.len(), 2000, 0)?;
/// let interval = resamples.of(&times, mean)?.interval(0.95)?;
/// assert!(interval.contains(3.0));
/// # Ok::<(), statistics::StatisticsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resamples {
    values: usize,
    rows: Vec<Vec<usize>>,
}

impl Resamples {
    /// `count` resamples of a sample of `values` values. The same seed gives the same ones everywhere.
    ///
    /// # Errors
    /// If the sample is empty, or there are fewer than two resamples.
    pub fn draw(values: usize, count: usize, seed: u64) -> Result<Self, StatisticsError> {
        if values == 0 {
            return Err(StatisticsError::TooFew { have: 0, need: 1 });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // In 64 bits, so that it does not depend on the size of a machine's words.
        let mut place = || rng.random_range(0..values as u64) as usize;
        Self::from_rows(values, (0..count).map(|_| (0..values).map(|_| place()).collect()).collect())
    }

    /// Given resamples, each a list of places in a sample of `values` values.
    ///
    /// # Errors
    /// If there are fewer than two, or one names a place that is not there.
    pub fn from_rows(values: usize, rows: Vec<Vec<usize>>) -> Result<Self, StatisticsError> {
        if rows.len() < 2 {
            return Err(StatisticsError::TooFew { have: rows.len(), need: 2 });
        }
        match rows.iter().flatten().find(|&&index| index >= values) {
            Some(&index) => Err(StatisticsError::Index { index, values }),
            None => Ok(Self { values, rows }),
        }
    }

    /// A statistic on the sample and on its resamples.
    ///
    /// # Errors
    /// If the sample has another length, or a value is not finite.
    pub fn of(&self, sample: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Result<Replicates, StatisticsError> {
        self.fits(sample)?;
        let values = self.rows.iter().map(|row| statistic(&pick(sample, row))).collect();
        Ok(Replicates { estimate: statistic(sample), values })
    }

    /// A statistic of two independent samples, the second with as many resamples of its own.
    ///
    /// # Errors
    /// If a sample has another length than its resamples, these differ in number, or a value is not finite.
    pub fn of_two(
        &self,
        sample: &[f64],
        others: &Self,
        other: &[f64],
        statistic: impl Fn(&[f64], &[f64]) -> f64,
    ) -> Result<Replicates, StatisticsError> {
        self.fits(sample)?;
        others.fits(other)?;
        if self.rows.len() != others.rows.len() {
            return Err(StatisticsError::Lengths { first: self.rows.len(), second: others.rows.len() });
        }
        let rows = self.rows.iter().zip(&others.rows);
        let values = rows.map(|(row, other_row)| statistic(&pick(sample, row), &pick(other, other_row))).collect();
        Ok(Replicates { estimate: statistic(sample, other), values })
    }

    fn fits(&self, sample: &[f64]) -> Result<(), StatisticsError> {
        if sample.len() != self.values {
            return Err(StatisticsError::Lengths { first: sample.len(), second: self.values });
        }
        check(sample, 1)
    }
}

fn pick(sample: &[f64], row: &[usize]) -> Vec<f64> {
    row.iter().map(|&index| sample[index]).collect()
}

/// A statistic on a sample and on its resamples.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicates {
    /// On the sample itself.
    pub estimate: f64,
    /// On each resample.
    pub values: Vec<f64>,
}

impl Replicates {
    /// The percentile interval: the middle part of the replicates, such as .95 of them.
    ///
    /// # Errors
    /// If the level is not between 0 and 1.
    pub fn interval(&self, level: f64) -> Result<Interval, StatisticsError> {
        check_level(level)?;
        let tail = (1.0 - level) / 2.0;
        Ok(Interval { low: quantile(&self.values, tail), high: quantile(&self.values, 1.0 - tail) })
    }

    /// Standard deviation of the replicates.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        sample_sd(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mean, median};

    #[test]
    fn the_same_seed_gives_the_same_resamples() {
        let draw = |seed| Resamples::draw(7, 20, seed).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        // What the generator gives must not change with its release, or published intervals would.
        assert_eq!(Resamples::draw(5, 2, 0).unwrap().rows, [[3, 2, 3, 0, 4], [2, 4, 4, 4, 0]]);
    }

    #[test]
    fn the_standard_error_of_a_mean_is_the_known_one() {
        let sample: Vec<f64> = (0..40).map(|i| f64::from(i % 10)).collect();
        let replicates = Resamples::draw(40, 20_000, 3).unwrap().of(&sample, mean).unwrap();
        let expected = (8.25_f64 / 40.0).sqrt();
        assert!((replicates.standard_error() / expected - 1.0).abs() < 0.03, "{}", replicates.standard_error());
        let interval = replicates.interval(0.95).unwrap();
        assert!((interval.high - 4.5 - 1.96 * expected).abs() < 0.05, "{interval:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Resamples::draw(0, 5, 0), Err(StatisticsError::TooFew { have: 0, need: 1 }));
        assert_eq!(Resamples::draw(5, 1, 0), Err(StatisticsError::TooFew { have: 1, need: 2 }));
        let rows = vec![vec![0], vec![3]];
        assert_eq!(Resamples::from_rows(2, rows), Err(StatisticsError::Index { index: 3, values: 2 }));
        let resamples = Resamples::draw(3, 5, 0).unwrap();
        assert_eq!(resamples.of(&[1.0], mean), Err(StatisticsError::Lengths { first: 1, second: 3 }));
        assert!(matches!(
            resamples.of(&[1.0, f64::NAN, 2.0], median),
            Err(StatisticsError::NotFinite { index: 1, .. })
        ));
        assert_eq!(resamples.of(&[1.0, 2.0, 3.0], mean).unwrap().interval(0.0), Err(StatisticsError::Level(0.0)));
    }
}
