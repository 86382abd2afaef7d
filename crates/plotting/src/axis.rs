//! An axis: which part of the data it spans, and where a number lies on it.

use crate::ticks::{self, Ticks};
use crate::{PlotError, Scale};

/// Numbers beyond this are treated like infinity: differences of two of them would overflow.
const LARGEST: f64 = 1e300;
/// Positive numbers below this count as zero on a log axis.
const SMALLEST: f64 = 1e-300;

/// Whether `value` can be placed on an axis of this scale.
pub(crate) fn usable(value: f64, scale: Scale) -> bool {
    match scale {
        Scale::Linear => value.abs() <= LARGEST,
        Scale::Log => (SMALLEST..=LARGEST).contains(&value),
    }
}

/// A range of numbers on a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    scale: Scale,
    /// Ends in the coordinates of the scale: log10 on a log axis.
    low: f64,
    high: f64,
}

impl Axis {
    /// Spans `values`, each of them usable, widened by the share `padding` on both sides. No value: zero to one.
    pub(crate) fn spanning(values: impl IntoIterator<Item = f64>, scale: Scale, padding: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            let value = coordinate(value, scale);
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let size = low.abs().max(high.abs());
        // Below this width neighbouring numbers could not be told apart, so the data counts as constant.
        if high - low <= 1e-11 * size || high - low < SMALLEST {
            let around = match scale {
                Scale::Log => 0.5,
                Scale::Linear if size < SMALLEST => 1.0,
                Scale::Linear => 0.05 * size,
            };
            (low, high) = (low - around, high + around);
        } else {
            let margin = padding * (high - low);
            // Data that is nowhere negative gets no negative ticks.
            let floor = if scale == Scale::Linear && low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
            (low, high) = ((low - margin).max(floor), high + margin);
        }
        Self { scale, low, high }
    }

    /// Spans exactly the range that the caller asked for.
    pub(crate) fn given(
        (low, high): (f64, f64),
        scale: Scale,
        figure: &str,
        axis: &'static str,
    ) -> Result<Self, PlotError> {
        let fail = |reason| Err(PlotError::Range { figure: figure.to_owned(), axis, low, high, reason });
        if low.is_nan() || high.is_nan() || low.abs() > LARGEST || high.abs() > LARGEST {
            return fail("both ends must be finite and below 1e300");
        }
        if scale == Scale::Log && low < SMALLEST {
            return fail("a log axis needs positive ends");
        }
        let (from, to) = (coordinate(low, scale), coordinate(high, scale));
        if to - from <= 1e-11 * from.abs().max(to.abs()) || to - from < SMALLEST {
            return fail("the lower end must be below the upper one by more than rounding");
        }
        Ok(Self { scale, low: from, high: to })
    }

    /// Position of a usable value: 0 at the lower end, 1 at the upper one, bounded far outside of them.
    pub(crate) fn position(&self, value: f64) -> f64 {
        self.at(coordinate(value, self.scale))
    }

    /// Position of a coordinate of the scale, such as that of a tick.
    pub(crate) fn at(&self, coordinate: f64) -> f64 {
        ((coordinate - self.low) / (self.high - self.low)).clamp(-1e4, 1e4)
    }

    /// Marks, at most about `most` with label.
    pub(crate) fn ticks(&self, most: usize) -> Ticks {
        match self.scale {
            Scale::Linear => ticks::linear(self.low, self.high, most),
            Scale::Log => ticks::logarithmic(self.low, self.high, most),
        }
    }
}

fn coordinate(value: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => value.log10(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn constant_data_gets_a_range_around_it() {
        for value in [0.0, 3.0, -2e-9, 1e300, 5e-324, -1e300] {
            let axis = Axis::spanning([value, value], Scale::Linear, 0.05);
            assert!((axis.position(value) - 0.5).abs() < 1e-9, "{value}: {axis:?}");
            assert!(!axis.ticks(5).labelled.is_empty(), "{value}: {axis:?}");
        }
        let axis = Axis::spanning([1e-300], Scale::Log, 0.05);
        assert!((axis.position(1e-300) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn padding_does_not_reach_below_zero_for_data_that_does_not() {
        let axis = Axis::spanning([0.01, 1.0], Scale::Linear, 0.05);
        assert_eq!(axis.position(0.0), 0.0);
        assert!(Axis::spanning([-0.01, 1.0], Scale::Linear, 0.05).position(-0.01) > 0.0);
    }

    #[test]
    fn ranges_that_span_nothing_are_refused_with_the_reason() {
        for (range, scale, reason) in [
            ((1.0, 1.0), Scale::Linear, "below the upper"),
            ((2.0, 1.0), Scale::Linear, "below the upper"),
            ((f64::NAN, 1.0), Scale::Linear, "finite"),
            ((0.0, f64::INFINITY), Scale::Linear, "finite"),
            ((0.0, 1.0), Scale::Log, "positive"),
        ] {
            let message = Axis::given(range, scale, "loss", "y").unwrap_err().to_string();
            assert!(message.contains(reason) && message.contains("loss"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn every_spanned_value_lies_on_the_axis(values in prop::collection::vec(-1e300..1e300_f64, 1..20), log: bool) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let values: Vec<f64> = values.into_iter().map(|v| if log { v.abs() } else { v }).collect();
            prop_assume!(values.iter().all(|&v| usable(v, scale)));
            let axis = Axis::spanning(values.iter().copied(), scale, 0.04);
            for value in values {
                prop_assert!((0.0..=1.0).contains(&axis.position(value)), "{value}: {axis:?}");
            }
            for tick in axis.ticks(6).labelled {
                prop_assert!((-1e-6..=1.0 + 1e-6).contains(&axis.at(tick.at)), "{tick:?}: {axis:?}");
            }
        }
    }
}
