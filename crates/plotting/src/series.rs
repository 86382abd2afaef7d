//! The parts of a line chart: series with their bands, and reference lines.

use crate::axis::usable;
use crate::style::{Color, Dash, Marker, REFERENCE, Scale, arm_color, arm_dash, arm_marker};
use crate::{mean, sample_sd};

/// What the band around the mean of several runs shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// From the lowest to the highest run.
    MinMax,
    /// One sample standard deviation on both sides of the mean.
    StdDev,
}

/// A named line, or a cloud of points, of a [`LineChart`](crate::LineChart).
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) band: Vec<(f64, f64, f64)>,
    pub(crate) color: Option<Color>,
    pub(crate) dash: Option<Dash>,
    pub(crate) marker: Option<Marker>,
    pub(crate) arm: Option<usize>,
    pub(crate) is_line: bool,
    pub(crate) width: f64,
}

impl Series {
    /// A line through `(x, y)` points in the order given. A point that is not finite, or not positive on a log axis,
    /// breaks the line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().collect(),
            band: Vec::new(),
            color: None,
            dash: None,
            marker: None,
            arm: None,
            is_line: true,
            width: 1.8,
        }
    }

    /// Points `(x, y)` without a line.
    pub fn scatter(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { is_line: false, ..Self::line(name, points) }
    }

    /// A thin grey line that data is compared with, such as a slope on log axes.
    pub fn guide(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { color: Some(REFERENCE), dash: Some(Dash::Short), width: 1.2, ..Self::line(name, points) }
    }

    /// The mean of several runs at the common abscissae `x` with a band of their spread. A run that is shorter than `x`
    /// counts as far as it goes; where `x` has no run left, the line ends.
    pub fn mean_of_runs(name: impl Into<String>, x: &[f64], runs: &[Vec<f64>], spread: Spread) -> Self {
        let mut series = Self::line(name, []);
        for (i, &x) in x.iter().enumerate() {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(i).copied()).collect();
            if values.is_empty() {
                break;
            }
            let center = mean(&values);
            series.points.push((x, center));
            if values.len() > 1 {
                let (low, high) = match spread {
                    Spread::MinMax => (
                        values.iter().copied().fold(f64::INFINITY, f64::min),
                        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    ),
                    Spread::StdDev => (center - sample_sd(&values), center + sample_sd(&values)),
                };
                series.band.push((x, low, high));
            }
        }
        series
    }

    /// A shaded band of `(x, low, high)`, such as the spread over seeds.
    #[must_use]
    pub fn band(mut self, band: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.band = band.into_iter().collect();
        self
    }

    /// Takes colour, dash and marker of arm `index`, whatever the series' place in the chart.
    #[must_use]
    pub fn arm(mut self, index: usize) -> Self {
        self.arm = Some(index);
        self
    }

    /// Sets the colour.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    /// Sets the dash.
    #[must_use]
    pub fn dash(mut self, dash: Dash) -> Self {
        self.dash = Some(dash);
        self
    }

    /// Puts a marker on every point.
    #[must_use]
    pub fn marker(mut self, marker: Marker) -> Self {
        self.marker = Some(marker);
        self
    }

    /// Sets the width of the line in logical pixels (0.2 to 10; 1.8 if not set).
    #[must_use]
    pub fn width(mut self, width: f64) -> Self {
        self.width = if width.is_finite() { width.clamp(0.2, 10.0) } else { self.width };
        self
    }
}

/// A grey line across the whole plot that is named like a series.
#[derive(Clone, Debug)]
pub struct Reference {
    pub(crate) name: String,
    pub(crate) at: f64,
    pub(crate) is_horizontal: bool,
}

impl Reference {
    /// A line at `y`, such as the final loss of a baseline.
    pub fn horizontal(y: f64, name: impl Into<String>) -> Self {
        Self { name: name.into(), at: y, is_horizontal: true }
    }

    /// A line at `x`, such as the end of a warm-up.
    pub fn vertical(x: f64, name: impl Into<String>) -> Self {
        Self { name: name.into(), at: x, is_horizontal: false }
    }
}

/// A series without what its axes cannot show.
pub(crate) struct Usable<'a> {
    pub(crate) series: &'a Series,
    pub(crate) color: Color,
    pub(crate) dash: Dash,
    pub(crate) marker: Option<Marker>,
    /// Runs of neighbouring points between the gaps.
    pub(crate) runs: Vec<Vec<(f64, f64)>>,
    pub(crate) bands: Vec<Vec<(f64, f64, f64)>>,
    pub(crate) width: f64,
}

impl<'a> Usable<'a> {
    /// Sorts out the points; the look comes from the series, else its arm, else its place `index` in the chart.
    pub(crate) fn new(series: &'a Series, index: usize, scales: (Scale, Scale), warnings: &mut Vec<String>) -> Self {
        let arm = series.arm.unwrap_or(index);
        let fits = |x: f64, y: f64| usable(x, scales.0) && usable(y, scales.1);
        let runs = runs(&series.points, |&(x, y)| fits(x, y));
        let bands = runs_of_band(series, &fits, scales.1);
        let (mut infinite, mut not_positive) = (0_usize, 0_usize);
        for &(x, y) in series.points.iter().filter(|(x, y)| !fits(*x, *y)) {
            if usable(x, Scale::Linear) && usable(y, Scale::Linear) {
                not_positive += 1;
            } else {
                infinite += 1;
            }
        }
        for (count, what) in [(infinite, "not finite"), (not_positive, "not positive, which a log axis cannot show")] {
            if count > 0 {
                let total = series.points.len();
                warnings.push(format!("series \"{}\": {count} of {total} points left out: {what}", series.name));
            }
        }
        Self {
            series,
            color: series.color.unwrap_or_else(|| arm_color(arm)),
            dash: series.dash.unwrap_or_else(|| arm_dash(arm)),
            marker: series.marker.or_else(|| (!series.is_line).then(|| arm_marker(arm))),
            runs,
            bands,
            width: series.width,
        }
    }

    /// Makes a noisy curve thin and unbroken, since dashes between its spikes would be noise on top of noise.
    /// `place` maps a point to a plot of about unit height.
    pub(crate) fn calm(&mut self, place: impl Fn(f64, f64) -> (f64, f64)) {
        // A smooth curve climbs or falls a few times the height of the plot, training losses of single batches tens of times.
        const SMOOTH: f64 = 6.0;
        let climbed: f64 = self
            .runs
            .iter()
            .flat_map(|run| run.windows(2))
            .map(|pair| (place(pair[1].0, pair[1].1).1 - place(pair[0].0, pair[0].1).1).abs().min(1.0))
            .sum();
        if climbed > SMOOTH && self.series.is_line {
            self.dash = self.series.dash.unwrap_or(Dash::Solid);
            self.width = self.width.min(1.1);
        }
    }
}

fn runs_of_band(series: &Series, fits: &impl Fn(f64, f64) -> bool, scale: Scale) -> Vec<Vec<(f64, f64, f64)>> {
    // A band may reach down to nothing on a log axis (mean minus deviation): it then runs out of the plot.
    let lifted: Vec<_> = series
        .band
        .iter()
        .map(|&(x, low, high)| (x, if scale == Scale::Log && low <= 0.0 { 1e-300 } else { low }, high))
        .collect();
    runs(&lifted, |&(x, low, high)| fits(x, low) && fits(x, high))
}

fn runs<T: Copy>(items: &[T], fits: impl Fn(&T) -> bool) -> Vec<Vec<T>> {
    let cut: Vec<Vec<T>> = items.split(|item| !fits(item)).map(<[T]>::to_vec).collect();
    cut.into_iter().filter(|run| !run.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_points_break_the_line_and_are_counted() {
        let points = [(1.0, 1.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, -1.0), (5.0, 1.0), (6.0, 2.0)];
        let series = Series::line("loss", points);
        let mut warnings = Vec::new();
        let usable = Usable::new(&series, 0, (Scale::Linear, Scale::Log), &mut warnings);
        assert_eq!(usable.runs, [vec![(1.0, 1.0)], vec![(3.0, 2.0)], vec![(5.0, 1.0), (6.0, 2.0)]]);
        assert_eq!(
            warnings,
            [
                "series \"loss\": 1 of 6 points left out: not finite",
                "series \"loss\": 1 of 6 points left out: not positive, which a log axis cannot show"
            ]
        );
    }

    #[test]
    fn runs_of_unequal_length_are_averaged_as_far_as_they_go() {
        let series =
            Series::mean_of_runs("a", &[0.0, 1.0, 2.0, 3.0], &[vec![1.0, 2.0, 4.0], vec![3.0, 2.0]], Spread::MinMax);
        assert_eq!(series.points, [(0.0, 2.0), (1.0, 2.0), (2.0, 4.0)]);
        assert_eq!(series.band, [(0.0, 1.0, 3.0), (1.0, 2.0, 2.0)]);
        let deviation = Series::mean_of_runs("a", &[0.0], &[vec![1.0], vec![3.0]], Spread::StdDev);
        assert_eq!(deviation.band, [(0.0, 2.0 - 2.0_f64.sqrt(), 2.0 + 2.0_f64.sqrt())]);
    }

    #[test]
    fn a_band_below_zero_runs_out_of_a_log_plot() {
        let series = Series::line("a", [(1.0, 1.0)]).band([(1.0, -0.5, 2.0)]);
        let usable = Usable::new(&series, 0, (Scale::Log, Scale::Log), &mut Vec::new());
        assert_eq!(usable.bands, [vec![(1.0, 1e-300, 2.0)]]);
    }
}
