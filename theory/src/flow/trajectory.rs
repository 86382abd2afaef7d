//! The loss along a run as a function of time.

/// The loss at one time of a gradient flow, with its exact slope `dL/dt`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Time.
    pub time: f64,
    /// Excess loss.
    pub loss: f64,
    /// `dL/dt`, which is minus the squared norm of the gradient where all parameters have speed 1.
    pub slope: f64,
}

impl Point {
    /// The logarithm of the loss, and its slope.
    fn logarithm(self) -> (f64, f64) {
        (self.loss.ln(), self.slope / self.loss)
    }

    /// The time between two points at which the loss passes `level`, by cubic Hermite interpolation of `ln L`.
    ///
    /// The slopes are exact, so the error is of fourth order in the step, as that of the solver's own dense output.
    pub(super) fn crossing(self, next: Self, level: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.between(next, middle) > level.ln() { low = middle } else { high = middle }
        }
        self.time + high * (next.time - self.time)
    }

    /// `ln L` at a share of the way to the next point.
    fn between(self, next: Self, share: f64) -> f64 {
        let step = next.time - self.time;
        let ((from, leave), (to, arrive)) = (self.logarithm(), next.logarithm());
        let (s, r) = (share, 1.0 - share);
        from * r * r * (1.0 + 2.0 * s) + to * s * s * (3.0 - 2.0 * s) + step * s * r * (leave * r - arrive * s)
    }
}

/// The points of a run, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trajectory {
    points: Vec<Point>,
}

impl Trajectory {
    /// Adds a point; its time is not smaller than that of the last one.
    pub fn push(&mut self, point: Point) {
        debug_assert!(self.points.last().is_none_or(|last| last.time <= point.time));
        self.points.push(point);
    }

    /// The steps of the solver.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The loss at a time within the run, interpolated; `None` outside of it.
    pub fn loss_at(&self, time: f64) -> Option<f64> {
        let after = self.points.partition_point(|p| p.time < time);
        let next = self.points.get(after)?;
        if next.time == time {
            return Some(next.loss);
        }
        let point = self.points[after.checked_sub(1)?];
        Some(point.between(*next, (time - point.time) / (next.time - point.time)).exp())
    }

    /// The first time at which the loss is at most `level`; `None` if it stays above.
    pub fn time_to(&self, level: f64) -> Option<f64> {
        let index = self.points.iter().position(|p| p.loss <= level)?;
        let next = self.points[index];
        Some(if index == 0 { next.time } else { self.points[index - 1].crossing(next, level) })
    }

    /// The slope `d ln L / d ln t` between two times of the run.
    pub fn log_log_slope(&self, from: f64, to: f64) -> Option<f64> {
        Some((self.loss_at(to)? / self.loss_at(from)?).ln() / (to / from).ln())
    }

    /// The rate `-d ln L / dt` between two times of the run.
    pub fn rate(&self, from: f64, to: f64) -> Option<f64> {
        Some((self.loss_at(from)? / self.loss_at(to)?).ln() / (to - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trajectory(loss: impl Fn(f64) -> (f64, f64), times: impl Iterator<Item = f64>) -> Trajectory {
        let mut trajectory = Trajectory::default();
        for time in times {
            let (loss, slope) = loss(time);
            trajectory.push(Point { time, loss, slope });
        }
        trajectory
    }

    #[test]
    fn an_exponential_is_interpolated_exactly() {
        let run = trajectory(|t| (3.0 * (-2.0 * t).exp(), -6.0 * (-2.0 * t).exp()), (0..5).map(f64::from));
        assert!((run.loss_at(2.7).unwrap() / (3.0 * (-5.4_f64).exp()) - 1.0).abs() < 1e-12);
        assert!((run.time_to(3e-3).unwrap() - 1000_f64.ln() / 2.0).abs() < 1e-12);
        assert!((run.rate(0.5, 3.5).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!((run.loss_at(4.1), run.loss_at(-0.1), run.time_to(1e-9)), (None, None, None));
        assert_eq!((run.loss_at(0.0), run.time_to(5.0)), (Some(3.0), Some(0.0)));
    }

    #[test]
    fn a_power_law_has_its_slope() {
        let run =
            trajectory(|t| ((1.0 + t).powi(-2), -2.0 * (1.0 + t).powi(-3)), (0..2000).map(|i| f64::from(i) / 10.0));
        let slope = run.log_log_slope(100.0, 199.0).unwrap();
        assert!((slope + 2.0).abs() < 0.02, "{slope}");
    }
}
