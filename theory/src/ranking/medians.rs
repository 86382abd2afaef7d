//! Median times of gradient flow of a few layouts, and how far a measured one may be from them.

use connection_layout::Layout;
use rayon::prelude::*;

use super::measure::Speed;
use super::settings::{RankingError, RankingSettings};

/// Depth K and width d of the columns of [`MEDIANS`].
pub const COLUMNS: [(usize, usize); 3] = [(3, 5), (3, 10), (4, 5)];
/// The time at which flows are given up where medians are measured; a median beyond it is infinite.
pub const MEDIAN_TIME: f64 = 600.0;
/// How many targets the intervals of [`MEDIANS`] are for.
pub const WIDE_TARGETS: u64 = 401;

/// The median time of gradient flow of a layout, for each of [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRow {
    /// The layout in the notation, at any depth.
    pub layout: &'static str,
    /// The medians; infinite beyond [`MEDIAN_TIME`].
    pub medians: [f64; 3],
    /// Where times differ by orders of magnitude between targets: the intervals in which the median of
    /// [`WIDE_TARGETS`] targets lies with a probability of 99.9%, by [`interval`]. `None` for a narrow distribution.
    pub wide: Option<[(f64, f64); 3]>,
}

/// Median times to a relative loss of 1e-6 from weights of deviation .01, for `Y ~ N(0, 1/d)`: over 10001 instances at
/// depth 3, and 2001 at depth 4, but for the cascade at depth 4: over 1001. `cargo run --release -p theory --example
/// flow_medians` measures them. The intervals of wide rows are quantiles of 1501 targets at depth 3 and of 1001 at depth
/// 4, and as exact as these. At depth 4 the median of 0:1 is about 1900, beyond [`MEDIAN_TIME`].
///
/// Of the wide rows, the cascade has its median between two groups: at depth 3 and width 5, targets of positive
/// determinant take about 28 in the median, those of negative one about 170. A median over 5 targets was found to be
/// anything from 8 to beyond 200, and one over 101 targets anything from 48 to 125.
pub const MEDIANS: [MedianRow; 5] = [
    MedianRow { layout: "0:K-1", medians: [6.85, 6.77, 6.91], wide: None },
    MedianRow {
        layout: "0:1",
        medians: [53.3, 90.7, f64::INFINITY],
        wide: Some([(44.5, 61.5), (79.1, 107.8), (f64::INFINITY, f64::INFINITY)]),
    },
    MedianRow {
        layout: "cascade",
        medians: [81.8, 143.6, 217.8],
        wide: Some([(61.3, 107.0), (112.8, 198.7), (106.6, 366.4)]),
    },
    MedianRow { layout: "hidden-cascade", medians: [4.06, 4.07, 3.83], wide: None },
    MedianRow { layout: "0:2+2:3", medians: [7.20, 7.14, 4.49], wide: None },
];

impl MedianRow {
    /// Whether a median that was measured agrees with the one of a column: within 5%, or in a wide row within its
    /// interval. `false` for a column that is none.
    pub fn agrees(&self, column: usize, median: f64) -> bool {
        match (self.wide, self.medians.get(column)) {
            (Some(intervals), Some(_)) => intervals[column].0 <= median && median <= intervals[column].1,
            (None, Some(stated)) => (median / stated - 1.0).abs() <= 0.05,
            _ => false,
        }
    }
}

/// The interval in which the median of `count` numbers lies with a probability of 99.9%, for a law that is known by a
/// sample. With the sample's own size as `count` it is the interval that covers the median of the law with 99.9%
/// confidence. It comes from order statistics and so is right for any law. `None` for an empty sample or a count of 0.
pub fn interval(sample: &[f64], count: u64) -> Option<(f64, f64)> {
    if sample.is_empty() || count == 0 {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The number of values below the median of the law is binomial: count/2 with deviation sqrt(count)/2. 3.29
    // deviations hold 99.9% of it.
    let (n, share) = (sorted.len() as f64, 3.29 / (2.0 * (count as f64).sqrt()));
    let low = (n * (0.5 - share)).floor().max(0.0) as usize;
    let high = ((n * (0.5 + share)).ceil() as usize).min(sorted.len() - 1);
    Some((sorted[low], sorted[high]))
}

/// The times of gradient flow of a layout on every instance of the settings, whose rates and pool do not matter.
///
/// # Errors
///
/// [`RankingError`] for settings that make no sense, or a layout of another depth than theirs.
pub fn flow_times(settings: &RankingSettings, layout: &Layout) -> Result<Vec<f64>, RankingError> {
    settings.check()?;
    let flow = RankingSettings { rates: Vec::new(), depth: layout.depth(), ..settings.clone() };
    let times = (0..flow.instances).into_par_iter().map(|instance| {
        let (target, weights) = flow.instance(instance);
        Ok(Speed::measure(&flow, layout, &target, &weights)?.flow)
    });
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_of_the_law() {
        // 0.5 for numbers that are uniform on 0..1: missed once in a thousand times, so in 20000 about 20 times.
        let missed = (0..20_000)
            .filter(|&instance| {
                let mut draw = crate::Draw::new(3, instance);
                let numbers: Vec<f64> = (0..101).map(|_| draw.uniform(0.0, 1.0)).collect();
                let (low, high) = interval(&numbers, 101).unwrap();
                !(low..=high).contains(&0.5)
            })
            .count();
        assert!((3..45).contains(&missed), "{missed}");
    }

    #[test]
    fn the_interval_for_fewer_numbers_is_wider() {
        let law: Vec<f64> = (0..10_000).map(f64::from).collect();
        // 1/2 +- 3.29 / (2 sqrt 401) = .5 +- .0821.
        assert_eq!(interval(&law, WIDE_TARGETS), Some((4178.0, 5822.0)));
        assert_eq!(interval(&law, 1), Some((0.0, 9999.0)));
        assert_eq!((interval(&[], 5), interval(&law, 0)), (None, None));
    }

    #[test]
    fn a_median_that_is_off_does_not_agree() {
        let narrow = MedianRow { layout: "0:2", medians: [7.0; 3], wide: None };
        assert!(narrow.agrees(0, 7.2) && !narrow.agrees(0, 7.5) && !narrow.agrees(0, f64::INFINITY));
        assert!(!narrow.agrees(0, f64::NAN) && !narrow.agrees(3, 7.0));
        let wide = MedianRow { wide: Some([(5.0, 9.0); 3]), ..narrow };
        assert!(wide.agrees(1, 5.0) && wide.agrees(1, 9.0) && !wide.agrees(1, 9.1) && !wide.agrees(1, 4.9));
        assert!(!wide.agrees(1, f64::NAN) && !wide.agrees(1, f64::INFINITY));
    }

    #[test]
    fn stated_medians_agree_with_themselves() {
        for row in MEDIANS {
            for (column, &stated) in row.medians.iter().enumerate() {
                assert!(row.agrees(column, stated), "{row:?}");
                // A third and three times the time must not pass for it, nor a time for what takes longer than any.
                let others = if stated.is_finite() { [stated / 3.0, 3.0 * stated] } else { [MEDIAN_TIME, f64::NAN] };
                assert!(others.iter().all(|&other| !row.agrees(column, other)), "{row:?}");
            }
        }
    }
}
