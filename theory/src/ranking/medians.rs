//! Median times of gradient flow of a few layouts, and how sure they are.

use connection_layout::Layout;
use rayon::prelude::*;

use super::measure::{Speed, Spread};
use super::settings::{RankingError, RankingSettings};

/// Depth K and width d of the columns of [`MEDIANS`].
pub const COLUMNS: [(usize, usize); 3] = [(3, 5), (3, 10), (4, 5)];

/// The median time of gradient flow of a layout, for each of [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRow {
    /// The layout in the notation, at any depth.
    pub layout: &'static str,
    /// Whether times differ by orders of magnitude between targets, so that a median takes hundreds of them.
    pub wide: bool,
    /// The medians; infinity for more than 200.
    pub medians: [f64; 3],
}

/// Median times to a relative loss of 1e-6 from weights of deviation .01, for `Y ~ N(0, 1/d)`: over 10001 instances at
/// depth 3, and 2001 at depth 4.
///
/// Of the wide rows, the cascade has its median between two groups: at depth 3 and width 5, targets of positive
/// determinant take about 28 in the median, those of negative one about 170. A median over 5 targets was found to be
/// anything from 8 to beyond 200, and one over 101 targets anything from 48 to 125.
pub const MEDIANS: [MedianRow; 5] = [
    MedianRow { layout: "0:K-1", wide: false, medians: [6.85, 6.77, 6.91] },
    MedianRow { layout: "0:1", wide: true, medians: [53.3, 90.7, f64::INFINITY] },
    MedianRow { layout: "cascade", wide: true, medians: [81.8, 143.6, f64::INFINITY] },
    MedianRow { layout: "hidden-cascade", wide: false, medians: [4.06, 4.07, 3.83] },
    MedianRow { layout: "0:2+2:3", wide: false, medians: [7.20, 7.14, 4.49] },
];

/// A median with what is known about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median and the range of the values.
    pub spread: Spread,
    /// An interval that covers the median of the law with 99.9% confidence, from order statistics and so for any law.
    pub interval: (f64, f64),
    /// The number of values.
    pub count: usize,
}

impl Median {
    /// Of some numbers; `None` when there are none.
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let spread = Spread::of(numbers.iter().copied())?;
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        // The number of values below the median of the law is binomial: n/2 with deviation sqrt(n)/2. 3.29 deviations
        // hold 99.9% of it.
        let (n, margin) = (sorted.len() as f64, 3.29 * (sorted.len() as f64).sqrt() / 2.0);
        let low = (n / 2.0 - margin).floor().max(0.0) as usize;
        let high = ((n / 2.0 + margin).ceil() as usize).min(sorted.len() - 1);
        Some(Self { spread, interval: (sorted[low], sorted[high]), count: sorted.len() })
    }

    /// Whether a stated median is within a relative tolerance of this one, or within the interval.
    pub fn agrees(&self, stated: f64, tolerance: f64) -> bool {
        let median = self.spread.median;
        median == stated
            || (median / stated - 1.0).abs() <= tolerance
            || (self.interval.0 <= stated && stated <= self.interval.1)
    }
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
                let (low, high) = Median::of(&numbers).unwrap().interval;
                !(low..=high).contains(&0.5)
            })
            .count();
        assert!((3..45).contains(&missed), "{missed}");
    }

    #[test]
    fn agreement_knows_infinity() {
        let never = f64::INFINITY;
        let median = Median::of(&[1.0, 2.0, never]).unwrap();
        assert_eq!((median.spread.median, median.interval), (2.0, (1.0, never)));
        let sharp = Median::of(&[7.0; 101]).unwrap();
        assert!(sharp.agrees(7.2, 0.05) && !sharp.agrees(7.5, 0.05) && !sharp.agrees(never, 0.05));
        assert!(Median::of(&[never; 101]).unwrap().agrees(never, 0.05));
        assert!(!Median::of(&[never; 101]).unwrap().agrees(7.0, 0.05));
        assert_eq!(Median::of(&[]), None);
    }
}
