//! Grouped bars with error bars.

mod group_names;

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::prelude::DrawingBackend;

use self::group_names::{GroupNames, LINE};
use crate::axis::{Axis, usable};
use crate::canvas::{Align, Canvas, Face, Medium};
use crate::figure::tint;
use crate::frame::{self, Heading, SLACK, TICK_GAP};
use crate::geometry::{Rect, Stroke};
use crate::legend::{Columns, Entry};
use crate::style::{Color, GREY, PAD, SMALL_SIZE, Scale, arm_color};
use crate::{Figure, PlotError};

/// One bar in each group of a [`BarChart`].
#[derive(Clone, Debug)]
pub struct Bars {
    name: String,
    values: Vec<f64>,
    /// Ends of the error bars.
    intervals: Vec<[f64; 2]>,
    color: Option<Color>,
}

impl Bars {
    /// A value for each group, in the order of the groups. A value that is not finite leaves its place free.
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name: name.into(), values: values.into_iter().collect(), intervals: Vec::new(), color: None }
    }

    /// Half the length of the error bar of each group, such as a standard deviation; a value that is not finite or not
    /// positive draws none.
    #[must_use]
    pub fn errors(self, errors: impl IntoIterator<Item = f64>) -> Self {
        let around = |(group, error): (usize, f64)| match self.values.get(group) {
            Some(value) if error > 0.0 => [value - error, value + error],
            _ => [f64::NAN; 2],
        };
        let intervals = errors.into_iter().enumerate().map(around).collect();
        Self { intervals, ..self }
    }

    /// Both ends of the error bar of each group, such as a confidence interval, which need not have the value in its middle; one with an
    /// end that is not finite, or without length, is not drawn.
    #[must_use]
    pub fn intervals(mut self, intervals: impl IntoIterator<Item = [f64; 2]>) -> Self {
        self.intervals = intervals.into_iter().collect();
        self
    }

    /// Takes the colour of arm `index` instead of that of its place.
    #[must_use]
    pub fn arm(mut self, index: usize) -> Self {
        self.color = Some(arm_color(index));
        self
    }

    /// Sets the colour.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    fn interval(&self, group: usize) -> Option<[f64; 2]> {
        let drawn = |[low, high]: &[f64; 2]| low < high && [low, high].iter().all(|end| usable(**end, Scale::Linear));
        self.intervals.get(group).copied().filter(drawn)
    }
}

/// Bars in named groups.
///
/// ```
/// use plotting::{BarChart, Bars, Figure};
///
/// let chart = BarChart::new("Step time against the cascade")
///     .y_label("ratio")
///     .groups(["llama-60m", "llama-130m"])
///     .bars(Bars::new("ANCRe", [1.006, 1.004]).errors([0.002, 0.001]));
/// assert!(chart.svg()?.starts_with("<svg"));
/// # Ok::<(), plotting::PlotError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    title: String,
    subtitle: String,
    y_label: String,
    y_range: Option<(f64, f64)>,
    baseline: f64,
    value_decimals: Option<usize>,
    size: Option<(u32, u32)>,
    groups: Vec<String>,
    bars: Vec<Bars>,
}

const SIZE: (u32, u32) = (840, 440);

impl BarChart {
    /// A chart without bars.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A grey line under the title: scale, seeds, command.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Name and unit of the values; written above the axis.
    #[must_use]
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y_label = label.into();
        self
    }

    /// Shows exactly this range. If not set it includes the baseline, so that lengths can be compared.
    #[must_use]
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y_range = Some((low, high));
        self
    }

    /// Bars start at `value` instead of zero: at 1 for ratios. A value that is not finite is ignored.
    #[must_use]
    pub fn baseline(mut self, value: f64) -> Self {
        if usable(value, Scale::Linear) {
            self.baseline = value;
        }
        self
    }

    /// Prints each value above its bar with this many digits behind the point.
    #[must_use]
    pub fn print_values(mut self, decimals: usize) -> Self {
        self.value_decimals = Some(decimals);
        self
    }

    /// Size in logical pixels, legend included (840 x 440 if not set).
    #[must_use]
    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        self.size = Some((width, height));
        self
    }

    /// Names of the groups, from left to right.
    #[must_use]
    pub fn groups<L: ToString>(mut self, groups: impl IntoIterator<Item = L>) -> Self {
        self.groups = groups.into_iter().map(|group| group.to_string()).collect();
        self
    }

    /// Adds a bar to each group.
    #[must_use]
    pub fn bars(mut self, bars: Bars) -> Self {
        self.bars.push(bars);
        self
    }

    fn color(&self, index: usize) -> Color {
        self.bars[index].color.unwrap_or_else(|| arm_color(index))
    }

    fn check(&self) -> Result<Vec<String>, PlotError> {
        let mut warnings = Vec::new();
        for bars in &self.bars {
            for (what, count) in [("values", bars.values.len()), ("error bars", bars.intervals.len())] {
                if count != self.groups.len() && !(what == "error bars" && count == 0) {
                    return Err(PlotError::Data {
                        figure: self.title.clone(),
                        problem: format!("bars \"{}\" have {count} {what} for {} groups", bars.name, self.groups.len()),
                    });
                }
            }
            let lost = bars.values.iter().filter(|&&v| !usable(v, Scale::Linear)).count();
            if lost > 0 {
                warnings.push(format!("bars \"{}\": {lost} of {} values are not finite", bars.name, bars.values.len()));
            }
        }
        if !self.bars.iter().flat_map(|b| &b.values).any(|&v| usable(v, Scale::Linear)) {
            let reason = match (self.bars.len(), self.groups.len()) {
                (0, _) => "it has no bars",
                (_, 0) => "it has no groups",
                _ => "none of its values is finite",
            };
            return Err(PlotError::Empty { figure: self.title.clone(), reason: reason.to_owned() });
        }
        Ok(warnings)
    }

    fn axis(&self) -> Result<Axis, PlotError> {
        if let Some(range) = self.y_range {
            return Axis::given(range, Scale::Linear, &self.title, "y");
        }
        let ends = self.bars.iter().flat_map(|bars| {
            let values = bars.values.iter().enumerate().filter(|(_, v)| usable(**v, Scale::Linear));
            values.flat_map(|(group, &v)| bars.interval(group).unwrap_or([v; 2]).into_iter().chain([v]))
        });
        let base = self.baseline;
        let (mut low, mut high) = (base, base);
        for end in ends {
            low = low.min(end);
            high = high.max(end);
        }
        if low == high {
            high = base + base.abs().max(1.0);
        }
        // Room only on the side where bars end; the baseline stays at the edge otherwise.
        let margin = 0.06 * (high - low).min(1e300);
        let bounds = (if low < base { low - margin } else { low }, if high > base { high + margin } else { high });
        Ok(Axis::spanning([bounds.0.max(-1e300), bounds.1.min(1e300)], Scale::Linear, 0.0))
    }
}

impl Figure for BarChart {
    fn title(&self) -> &str {
        &self.title
    }

    fn size(&self) -> (u32, u32) {
        self.size.unwrap_or(SIZE)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        medium: Medium,
    ) -> Result<Vec<String>, PlotError> {
        let mut warnings = self.check()?;
        let axis = self.axis()?;
        let size = self.size();
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let canvas = Canvas::new(area, size, medium)?;
        let fonts = canvas.fonts();
        let heading = Heading::new(&self.title, &self.subtitle, fonts, width);
        let top = heading.bottom() + if self.y_label.is_empty() { 6.0 } else { 30.0 };
        let entries = self.entries();
        let legend = (self.bars.len() > 1).then(|| Columns::new(&entries, fonts, height - top - 60.0));
        let legend_width = legend.as_ref().map_or(0.0, |legend| legend.width() + 10.0);
        let first_bottom = height - PAD - TICK_GAP - 3.0 * LINE;
        let ticks = frame::vertical_ticks(&axis, (first_bottom - top).max(40.0));
        let left = PAD + frame::label_width(&ticks, fonts) + TICK_GAP;
        let right = (width - PAD - legend_width).max(left + 60.0);
        let slot = (right - left) / self.groups.len() as f64;
        let names = GroupNames::new(&self.groups, fonts, slot);
        let bottom = (height - PAD - TICK_GAP - names.height).max(top + 40.0);
        let plot = Rect { left, top, right, bottom };
        if let Some(Columns { left_out: count @ 1.., .. }) = legend {
            warnings.push(format!("the legend has no room for {count} of {} names", entries.len()));
        }

        heading.draw(&canvas)?;
        frame::draw_rows(&canvas, plot, &axis, &ticks)?;
        frame::draw_y_name(&canvas, &self.y_label, plot, width - 2.0 * PAD)?;
        self.draw_bars(&canvas, plot, slot, &axis)?;
        let base = plot.bottom - axis.position(self.baseline).clamp(0.0, 1.0) * plot.height();
        frame::draw_base(&canvas, (left, base), (right, base))?;
        names.draw(&canvas, left, bottom + TICK_GAP, slot)?;
        if let Some(legend) = legend {
            legend.draw(&canvas, &entries, right + 10.0, top - 4.0)?;
        }
        Ok(warnings)
    }
}

impl BarChart {
    fn entries(&self) -> Vec<Entry> {
        let entry = |(i, bars): (usize, &Bars)| Entry {
            name: bars.name.clone(),
            color: fill(self.color(i)),
            stroke: None,
            marker: None,
            filled: true,
        };
        self.bars.iter().enumerate().map(entry).collect()
    }

    fn draw_bars<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        plot: Rect,
        slot: f64,
        axis: &Axis,
    ) -> Result<(), PlotError> {
        let count = self.bars.len() as f64;
        let bar_width = (slot * 0.76 / count).min(64.0);
        let y = |v: f64| plot.bottom - axis.position(v).clamp(0.0, 1.0) * plot.height();
        for (i, bars) in self.bars.iter().enumerate() {
            let color = self.color(i);
            for (group, &value) in bars.values.iter().enumerate() {
                if !usable(value, Scale::Linear) {
                    continue;
                }
                let middle = plot.left + (group as f64 + 0.5) * slot + (i as f64 + 0.5 - count / 2.0) * bar_width;
                let half = (bar_width / 2.0 - 0.08 * bar_width.min(10.0)).max(0.3);
                let (from, to) = (y(self.baseline), y(value));
                let bar = Rect { left: middle - half, right: middle + half, top: from.min(to), bottom: from.max(to) };
                canvas.rect(bar, fill(color))?;
                let interval = bars.interval(group);
                let [low, high] = interval.unwrap_or([value; 2]).map(y);
                if interval.is_some() {
                    let cap = (half * 0.45).min(5.0);
                    let stroke = Stroke::solid(Color(0x33, 0x33, 0x33), 1.2);
                    canvas.line(&[(middle, low), (middle, high)], stroke)?;
                    for end in [low, high] {
                        canvas.line(&[(middle - cap, end), (middle + cap, end)], stroke)?;
                    }
                }
                if let Some(decimals) = self.value_decimals {
                    let text = crate::fixed(value, decimals).replace('-', "−");
                    let fits = canvas.fonts().width(&text, SMALL_SIZE) * SLACK <= bar_width.max(slot / count);
                    let at = if value < self.baseline { low.max(to) + 9.0 } else { high.min(to) - 9.0 };
                    if fits {
                        canvas.text(&text, (middle, at), Face::new(SMALL_SIZE, GREY, Align::Center))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Large areas are calmer in a lighter tone than lines.
fn fill(color: Color) -> Color {
    tint(color, 0.82)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_zero_unless_a_range_is_given() {
        let chart = BarChart::new("t").groups(["a", "b"]).bars(Bars::new("x", [2.0, 3.0]).errors([0.5, f64::NAN]));
        let axis = chart.axis().unwrap();
        assert_eq!(axis.position(0.0), 0.0);
        assert!(axis.position(3.0) < 1.0);
        let signed = BarChart::new("t").groups(["a", "b"]).bars(Bars::new("x", [-2.0, 3.0]));
        assert!(signed.axis().unwrap().position(-2.0) > 0.0);
        let ratio = BarChart::new("t").groups(["a"]).bars(Bars::new("x", [1.01])).baseline(1.0).baseline(f64::NAN);
        assert_eq!(ratio.axis().unwrap().position(1.0), 0.0);
        assert_eq!(chart.y_range(1.9, 3.1).axis().unwrap().position(1.9), 0.0);
    }

    /// The upper end is where the interval says, not as far from the value as the lower one.
    #[test]
    fn intervals_need_not_be_symmetric() {
        let chart = |bars: Bars| BarChart::new("t").groups(["a"]).y_range(0.0, 2.0).bars(bars);
        let lines = |bars: Bars| chart(bars).svg().unwrap().matches("<polyline").count();
        let skewed = Bars::new("x", [1.03]).intervals([[1.0, 1.5]]);
        assert_eq!(skewed.interval(0), Some([1.0, 1.5]));
        let symmetric = Bars::new("x", [1.25]).errors([0.25]);
        assert_eq!(symmetric.interval(0), skewed.interval(0));
        let none = || Bars::new("x", [1.0]);
        for without in [[f64::NAN, 2.0], [1.0, 1.0], [1.0, f64::INFINITY]] {
            assert_eq!(none().intervals([without]).interval(0), None);
            assert_eq!(lines(none().intervals([without])), lines(none()));
        }
        assert!(lines(skewed) > lines(none()));
        let axis = BarChart::new("t").groups(["a"]).bars(Bars::new("x", [1.0]).intervals([[0.9, 3.0]])).axis().unwrap();
        assert!(axis.position(3.0) < 1.0, "the upper end has its place");
        let error = BarChart::new("t").groups(["a"]).bars(none().intervals([[1.0, 2.0]; 2])).svg().unwrap_err();
        assert!(error.to_string().contains("2 error bars for 1 groups"), "{error}");
    }

    #[test]
    fn a_missing_value_is_named() {
        let chart = BarChart::new("ratios").groups(["a", "b", "c"]).bars(Bars::new("ANCRe", [1.0, 2.0]));
        assert_eq!(
            chart.svg().unwrap_err().to_string(),
            "figure \"ratios\": bars \"ANCRe\" have 2 values for 3 groups"
        );
        let chart = BarChart::new("ratios").groups(["a"]).bars(Bars::new("ANCRe", [f64::NAN]));
        assert!(chart.svg().unwrap_err().to_string().contains("none of its values is finite"));
    }
}
