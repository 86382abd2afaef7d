//! Two learning curves held against each other: at equal steps, at equal seconds, and by what one needs to get where the
//! other ends.
//!
//! A curve is a list of points `(x, y)` with x in order, such as held-out loss against steps or, after [`against_seconds`],
//! against the clock. Between points it is a straight line; before its first nothing is known, and after its last it stays.

/// The value of a curve at `x`, by straight lines between its points; not a number before the first, constant after the
/// last.
#[must_use]
pub fn interpolate(curve: &[(f64, f64)], x: f64) -> f64 {
    let Some(&(first_x, first_y)) = curve.first() else { return f64::NAN };
    if x <= first_x {
        return if x == first_x { first_y } else { f64::NAN };
    }
    for pair in curve.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        if x <= x1 {
            return if x1 > x0 { y0 + (y1 - y0) * (x - x0) / (x1 - x0) } else { y1 };
        }
    }
    curve[curve.len() - 1].1
}

/// The value of a curve at a share of its length; not a number for an empty one.
#[must_use]
pub fn at_share(curve: &[(f64, f64)], share: f64) -> f64 {
    curve.last().map_or(f64::NAN, |&(end, _)| interpolate(curve, share * end))
}

/// Where a falling curve first comes down to `level`, by straight lines between its points.
#[must_use]
pub fn first_reach(curve: &[(f64, f64)], level: f64) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for &(x, y) in curve {
        if y <= level {
            return Some(match before {
                Some((x0, y0)) if y0 > y => x0 + (x - x0) * (y0 - level) / (y0 - y),
                _ => x,
            });
        }
        before = Some((x, y));
    }
    None
}

/// A curve against steps as one against seconds: `clock` has the seconds since the start at steps, in order, and starts at
/// `(0, 0)` by itself. Points beyond the clock's last step are left out.
#[must_use]
pub fn against_seconds(curve: &[(f64, f64)], clock: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Some(&(end, _)) = clock.last() else { return Vec::new() };
    let clock: Vec<(f64, f64)> =
        [(0.0, 0.0)].into_iter().chain(clock.iter().copied().filter(|&(step, _)| step > 0.0)).collect();
    let timed = curve.iter().filter(|&&(step, _)| step <= end);
    timed.map(|&(step, value)| (interpolate(&clock, step), value)).filter(|(seconds, _)| seconds.is_finite()).collect()
}

/// Two falling curves over the same abscissa.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Race {
    /// The last x that both have.
    pub at: f64,
    /// The values there, of the candidate and of the baseline.
    pub values: [f64; 2],
    /// Where the candidate first comes down to the baseline's last value, as a share of the baseline's length; none if it does
    /// not.
    pub share: Option<f64>,
}

impl Race {
    /// The candidate's value minus the baseline's, at the last x that both have: equal steps, or equal seconds.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.values[0] - self.values[1]
    }

    /// The share of steps (or seconds) saved: below 0 where it takes longer, none if it does not get there.
    #[must_use]
    pub fn saved(&self) -> Option<f64> {
        self.share.map(|share| 1.0 - share)
    }

    /// How many times as fast the candidate gets there.
    #[must_use]
    pub fn speed_up(&self) -> Option<f64> {
        self.share.filter(|&share| share > 0.0).map(|share| 1.0 / share)
    }
}

/// Holds a falling curve against a baseline: both against steps, or both against seconds. None if one is empty, or they have
/// no part of the abscissa in common.
#[must_use]
pub fn race(candidate: &[(f64, f64)], baseline: &[(f64, f64)]) -> Option<Race> {
    let (&(candidate_end, _), &(baseline_end, goal)) = (candidate.last()?, baseline.last()?);
    let at = candidate_end.min(baseline_end);
    let values = [candidate, baseline].map(|curve| interpolate(curve, at));
    let share = first_reach(candidate, goal).map(|x| x / baseline_end).filter(|share| share.is_finite());
    values.iter().all(|value| !value.is_nan()).then_some(Race { at, values, share })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CURVE: [(f64, f64); 3] = [(10.0, 3.0), (20.0, 2.0), (40.0, 1.0)];

    #[test]
    fn curves_are_read_by_straight_lines() {
        let at = |x| interpolate(&CURVE, x);
        assert_eq!([at(10.0), at(15.0), at(30.0), at(99.0)], [3.0, 2.5, 1.5, 1.0]);
        assert!(at(9.0).is_nan(), "nothing is known before the first evaluation");
        assert!(interpolate(&[], 1.0).is_nan());
        assert_eq!(at_share(&CURVE, 0.75), 1.5);
    }

    #[test]
    fn the_first_step_at_a_level_lies_between_evaluations() {
        assert_eq!(first_reach(&CURVE, 2.5), Some(15.0));
        assert_eq!(first_reach(&CURVE, 1.0), Some(40.0));
        assert_eq!(first_reach(&CURVE, 5.0), Some(10.0));
        assert_eq!(first_reach(&CURVE, 0.5), None);
    }

    #[test]
    fn a_faster_curve_saves_steps_and_a_slower_one_does_not() {
        let fast: Vec<(f64, f64)> = CURVE.iter().map(|&(x, y)| (x, y - 0.5)).collect();
        let race = race(&fast, &CURVE).unwrap();
        // From 1.5 at 20 to .5 at 40 it passes 1 at 30.
        assert_eq!((race.at, race.difference(), race.share), (40.0, -0.5, Some(0.75)));
        assert_eq!((race.saved(), race.speed_up()), (Some(0.25), Some(4.0 / 3.0)));
        let back = super::race(&CURVE, &fast).unwrap();
        assert_eq!((back.saved(), back.difference()), (None, 0.5));
        assert_eq!(super::race(&[], &CURVE), None);
        assert_eq!(super::race(&[(1.0, 2.0)], &CURVE), None, "nothing in common");
    }

    #[test]
    fn what_is_slow_loses_at_equal_seconds_what_it_gains_at_equal_steps() {
        let quick = against_seconds(&CURVE, &[(20.0, 2.0), (40.0, 4.0)]);
        assert_eq!(quick, [(1.0, 3.0), (2.0, 2.0), (4.0, 1.0)]);
        let better: Vec<(f64, f64)> = CURVE.iter().map(|&(x, y)| (x, y - 0.1)).collect();
        let slow = against_seconds(&better, &[(40.0, 8.0)]);
        let race = race(&slow, &quick).unwrap();
        assert_eq!(race.at, 4.0);
        assert!((race.values[0] - 1.9).abs() < 1e-12 && race.difference() > 0.0);
        assert!(against_seconds(&CURVE, &[(20.0, 2.0)]).len() == 2 && against_seconds(&CURVE, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn a_curve_reaches_what_it_shows(steps in prop::collection::vec((0.1..5.0_f64, 0.0..1.0_f64), 2..30), share in 0.0..1.0_f64) {
            let (mut x, mut y) = (0.0, 10.0);
            let curve: Vec<(f64, f64)> = steps.iter().map(|&(dx, dy)| { x += dx; y -= dy; (x, y) }).collect();
            let level = curve[0].1 + share * (y - curve[0].1);
            let reached = first_reach(&curve, level).unwrap();
            prop_assert!((interpolate(&curve, reached) - level).abs() < 1e-9);
        }
    }
}
