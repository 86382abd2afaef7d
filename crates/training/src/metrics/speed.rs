//! What the log of times says about the speed of a run.

use super::{Record, RecordKind};

/// The names of the values in `timing.jsonl`. An interval is what one process measured between two lines, so that no
/// interval mixes two processes.
pub(crate) mod timing {
    /// The number of the interval within its process, from 1.
    pub const INTERVAL: &str = "interval";
    /// How many steps it spans.
    pub const STEPS: &str = "steps";
    /// What these steps took, evaluation and saving left out.
    pub const SECONDS: &str = "seconds";
    /// The tokens of these steps by the seconds.
    pub const TOKENS_PER_SECOND: &str = "tokens_per_second";
}

/// How fast a run was, evaluation and saving left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Tokens a second, over all intervals that count.
    pub tokens_per_second: f64,
    /// The median over the steps, where each step takes the mean of its interval. With an even number, the mean of the
    /// two in the middle.
    pub step_seconds_median: f64,
}

/// The speed of a run from its `timing.jsonl` (see [`read_metrics`](super::read_metrics)); `None` if nothing was measured.
///
/// The first interval of each process is left out as warm-up, unless there are no others. Steps that a resumed run made
/// again count each time: they were measured each time.
pub fn speed(records: &[Record]) -> Option<Speed> {
    struct Interval {
        is_first: bool,
        steps: f64,
        seconds: f64,
        tokens: f64,
    }
    let interval = |record: &Record| {
        let [number, steps, seconds, rate] =
            [timing::INTERVAL, timing::STEPS, timing::SECONDS, timing::TOKENS_PER_SECOND].map(|name| record.get(name));
        let (steps, seconds, rate) = (steps?, seconds?, rate?);
        let measured = record.kind == RecordKind::Timing && steps >= 1.0 && seconds > 0.0 && rate >= 0.0;
        let finite = [steps, seconds, rate].into_iter().all(f64::is_finite);
        (measured && finite).then_some(Interval { is_first: number? <= 1.0, steps, seconds, tokens: rate * seconds })
    };
    let mut intervals: Vec<_> = records.iter().filter_map(interval).collect();
    if intervals.iter().any(|interval| !interval.is_first) {
        intervals.retain(|interval| !interval.is_first);
    }
    let sum = |value: fn(&Interval) -> f64| intervals.iter().map(value).sum::<f64>();
    let (tokens, seconds) = (sum(|i| i.tokens), sum(|i| i.seconds));
    let steps = intervals.iter().map(|interval| (interval.seconds / interval.steps, interval.steps)).collect();
    Some(Speed { step_seconds_median: weighted_median(steps)?, tokens_per_second: tokens / seconds })
}

/// The median of values of which each is there as often as its weight says; `None` of none.
fn weighted_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let at = values.iter().position(|(_, weight)| {
        sum += weight;
        sum >= half
    })?;
    match values.get(at + 1) {
        Some(next) if sum == half => Some((values[at].0 + next.0) / 2.0),
        _ => Some(values[at].0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line after `step` updates: number, steps, seconds, tokens a second.
    fn line(step: usize, [number, steps, seconds, rate]: [f64; 4]) -> Record {
        let values = [
            (timing::INTERVAL, number),
            (timing::STEPS, steps),
            (timing::SECONDS, seconds),
            (timing::TOKENS_PER_SECOND, rate),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        Record::new(step, RecordKind::Timing, values.into())
    }

    #[test]
    fn the_warm_up_is_left_out_and_each_interval_counts_by_its_steps() {
        let log = [
            line(1, [1.0, 1.0, 9.0, 10.0]),
            line(10, [2.0, 9.0, 18.0, 100.0]),
            line(20, [3.0, 10.0, 10.0, 200.0]),
            line(21, [4.0, 1.0, 5.0, 40.0]),
        ];
        // 20 steps count: ten of 1 s, nine of 2 s, one of 5 s; the middle is between 1 s and 2 s.
        let expected = Speed { tokens_per_second: (1800.0 + 2000.0 + 200.0) / 33.0, step_seconds_median: 1.5 };
        assert_eq!(speed(&log), Some(expected));
    }

    #[test]
    fn a_resumed_process_warms_up_again_and_its_steps_are_not_those_since_the_last_line() {
        // Killed after step 25, resumed from the checkpoint of step 18: its first line spans 2 steps, not 0.
        let log = [
            line(1, [1.0, 1.0, 9.0, 10.0]),
            line(10, [2.0, 9.0, 9.0, 100.0]),
            line(20, [3.0, 10.0, 10.0, 100.0]),
            line(20, [1.0, 2.0, 50.0, 1.0]),
            line(30, [2.0, 10.0, 30.0, 50.0]),
        ];
        let expected = Speed { tokens_per_second: (900.0 + 1000.0 + 1500.0) / 49.0, step_seconds_median: 1.0 };
        assert_eq!(speed(&log), Some(expected));
    }

    #[test]
    fn where_there_is_nothing_but_warm_up_it_counts() {
        let log = [line(1, [1.0, 1.0, 2.0, 10.0]), line(2, [1.0, 1.0, 4.0, 10.0])];
        assert_eq!(speed(&log), Some(Speed { tokens_per_second: 10.0, step_seconds_median: 3.0 }));
    }

    #[test]
    fn lines_that_measure_nothing_are_left_out() {
        assert_eq!(speed(&[]), None);
        let odd =
            [[2.0, 0.0, 1.0, 1.0], [2.0, 1.0, 0.0, 1.0], [2.0, 1.0, f64::NAN, 1.0], [2.0, 1.0, 1.0, f64::INFINITY]];
        assert_eq!(speed(&odd.map(|values| line(1, values))), None);
        let mut lines: Vec<_> = odd.map(|values| line(1, values)).into();
        lines.push(Record::new(1, RecordKind::Timing, vec![("seconds".into(), 1.0)]));
        lines.push(Record { kind: RecordKind::Train, ..line(1, [2.0, 1.0, 100.0, 1.0]) });
        lines.push(line(2, [2.0, 1.0, 3.0, 5.0]));
        assert_eq!(speed(&lines), Some(Speed { tokens_per_second: 5.0, step_seconds_median: 3.0 }));
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_all_steps(values in prop::collection::vec((0.0..9.0f64, 1usize..5), 1..9)) {
            let mut all: Vec<f64> = values.iter().flat_map(|&(value, count)| vec![value; count]).collect();
            all.sort_by(f64::total_cmp);
            let expected = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
            let weighted = values.iter().map(|&(value, count)| (value, count as f64)).collect();
            prop_assert_eq!(weighted_median(weighted), Some(expected));
        }
    }
}
