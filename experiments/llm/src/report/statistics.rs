//! Small sums over curves and seeds.

/// The value of a curve at `x`, by straight lines between its points; not a number before the first, constant after the
/// last.
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
pub fn at_share(curve: &[(f64, f64)], share: f64) -> f64 {
    curve.last().map_or(f64::NAN, |&(end, _)| interpolate(curve, share * end))
}

/// Where a falling curve first comes down to `level`, by straight lines between its points.
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

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: [(f64, f64); 3] = [(10.0, 3.0), (20.0, 2.0), (40.0, 1.0)];

    #[test]
    fn curves_are_read_by_straight_lines() {
        let at = |x| interpolate(&CURVE, x);
        assert_eq!([at(10.0), at(15.0), at(30.0), at(99.0)], [3.0, 2.5, 1.5, 1.0]);
        assert!(at(9.0).is_nan(), "nothing is known before the first evaluation");
        assert!(interpolate(&[], 1.0).is_nan());
    }

    #[test]
    fn the_first_step_at_a_level_lies_between_evaluations() {
        assert_eq!(first_reach(&CURVE, 2.5), Some(15.0));
        assert_eq!(first_reach(&CURVE, 1.0), Some(40.0));
        assert_eq!(first_reach(&CURVE, 5.0), Some(10.0));
        assert_eq!(first_reach(&CURVE, 0.5), None);
    }
}
