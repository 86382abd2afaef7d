//! Layout and drawing of line charts.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::prelude::DrawingBackend;

use super::LineChart;
use crate::axis::{self, Axis};
use crate::canvas::{Canvas, Medium};
use crate::font::Fonts;
use crate::frame::{self, Heading, TICK_GAP};
use crate::geometry::{Rect, Stroke};
use crate::legend::{Columns, Entry, LineEnds};
use crate::series::Usable;
use crate::style::{Dash, GREY, LABEL_SIZE, Legend, PAD, REFERENCE, TICK_SIZE};
use crate::{Figure, PlotError, Scale};

const SIZE: (u32, u32) = (840, 480);
/// What the default size leaves for the names of the series; more widens the picture.
const LEGEND_ROOM: f64 = 190.0;

impl LineChart {
    /// Series with what their axes can show and with the look of their place. A series that has its own colour, such as
    /// a guide, takes no place.
    fn usable(&self, warnings: &mut Vec<String>) -> Vec<Usable<'_>> {
        // Among so many, dashes tell nothing apart and make the SVG many times larger.
        const MANY: usize = 128;
        let mut place = 0;
        let of_series = self.series.iter().map(|series| {
            let mut usable = Usable::new(series, place, self.scales, warnings);
            if self.series.len() > MANY {
                usable.dash = series.dash.unwrap_or(Dash::Solid);
            }
            place += usize::from(series.color.is_none());
            usable
        });
        of_series.collect()
    }

    fn entries(&self, usable: &[Usable<'_>]) -> Vec<Entry> {
        let of_series = usable.iter().map(|u| Entry {
            name: u.series.name.clone(),
            color: u.color,
            stroke: u.series.is_line.then_some(u.stroke()),
            marker: u.marker,
            filled: false,
        });
        let of_references = self.references.iter().map(|reference| Entry {
            name: reference.name.clone(),
            color: GREY,
            stroke: Some(REFERENCE_STROKE),
            marker: None,
            filled: false,
        });
        of_series.chain(of_references).collect()
    }

    fn x_axis(&self, usable: &[Usable<'_>]) -> Result<Axis, PlotError> {
        if let Some(range) = self.x_range {
            return Axis::given(range, self.scales.0, &self.title, "x");
        }
        let points = usable.iter().flat_map(|u| u.runs.iter().flatten().map(|p| p.0));
        let bands = usable.iter().flat_map(|u| u.bands.iter().flatten().map(|p| p.0));
        let marked = usable.iter().any(|u| u.marker.is_some());
        Ok(Axis::spanning(points.chain(bands), self.scales.0, if marked { 0.025 } else { 0.0 }))
    }

    fn y_axis(&self, usable: &[Usable<'_>], x_axis: &Axis) -> Result<Axis, PlotError> {
        if let Some(range) = self.y_range {
            return Axis::given(range, self.scales.1, &self.title, "y");
        }
        let values = |from: f64| -> Vec<f64> {
            let seen = |x: f64| (from..=1.0 + 1e-9).contains(&x_axis.position(x));
            let points = usable.iter().flat_map(|u| u.runs.iter().flatten().copied());
            let bands = usable.iter().flat_map(|u| u.bands.iter().flatten());
            let edges = bands.flat_map(|&(x, low, high)| [(x, low), (x, high)]).filter(|p| p.1 > 1e-300);
            points.chain(edges).filter(|p| seen(p.0)).map(|p| p.1).collect()
        };
        let mut shown = values(self.clip_start - 1e-9);
        if shown.is_empty() {
            shown = values(f64::NEG_INFINITY);
        }
        if let Some((low, high)) = self.quantiles {
            shown.sort_by(f64::total_cmp);
            let at = |q: f64| (q * shown.len().saturating_sub(1) as f64).round() as usize;
            shown = shown.get(at(low)..=at(high)).map_or_else(Vec::new, <[f64]>::to_vec);
        }
        let references = self.references.iter().filter(|r| r.is_horizontal && axis::usable(r.at, self.scales.1));
        Ok(Axis::spanning(shown.into_iter().chain(references.map(|r| r.at)), self.scales.1, 0.05))
    }
}

const REFERENCE_STROKE: Stroke = Stroke { color: REFERENCE, width: 1.2, dash: Dash::Short };

impl Usable<'_> {
    fn stroke(&self) -> Stroke {
        Stroke { color: self.color, width: self.width, dash: self.dash }
    }
}

/// How the series of one drawing are named.
enum Names {
    Columns(Columns),
    Ends(LineEnds),
    Nowhere,
}

impl Names {
    fn width(&self) -> f64 {
        match self {
            Names::Columns(columns) => columns.width() + 18.0,
            Names::Ends(ends) => ends.width(),
            Names::Nowhere => 0.0,
        }
    }
}

impl Figure for LineChart {
    fn title(&self) -> &str {
        &self.title
    }

    fn size(&self) -> (u32, u32) {
        if let Some(size) = self.size {
            return size;
        }
        let Ok(fonts) = Fonts::get() else { return SIZE };
        if self.legend == Legend::Hidden {
            return SIZE;
        }
        let legend = Columns::new(&self.entries(&self.usable(&mut Vec::new())), fonts, f64::from(SIZE.1) - 110.0);
        (SIZE.0 + (legend.width() - LEGEND_ROOM).max(0.0).ceil() as u32, SIZE.1)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        medium: Medium,
    ) -> Result<Vec<String>, PlotError> {
        let mut warnings = Vec::new();
        let mut usable = self.usable(&mut warnings);
        if usable.iter().all(|u| u.runs.is_empty() && u.bands.is_empty()) {
            let reason = match (self.series.len(), warnings.first()) {
                (0, _) => "it has no series".to_owned(),
                (_, Some(warning)) => format!("no point can be shown ({warning})"),
                (count, None) => format!("none of its {count} series has a point"),
            };
            return Err(PlotError::Empty { figure: self.title.clone(), reason });
        }
        let x_axis = self.x_axis(&usable)?;
        let y_axis = self.y_axis(&usable, &x_axis)?;
        for u in &mut usable {
            u.calm(|x, y| (x_axis.position(x), y_axis.position(y).clamp(0.0, 1.0)));
        }

        let size = self.size();
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let canvas = Canvas::new(area, size, medium)?;
        let fonts = canvas.fonts();
        let heading = Heading::new(&self.title, &self.subtitle, fonts, width);
        let top = heading.bottom() + if self.y_label.is_empty() { 6.0 } else { 30.0 };
        let x_name_room = if self.x_label.is_empty() { 0.0 } else { LABEL_SIZE + 8.0 };
        let bottom = (height - PAD - TICK_GAP - TICK_SIZE - x_name_room).max(top + 40.0);
        let y_ticks = frame::vertical_ticks(&y_axis, bottom - top);
        let left = PAD + frame::label_width(&y_ticks, fonts) + TICK_GAP;

        let entries = self.entries(&usable);
        let names = self.names(&entries, &usable, (&x_axis, &y_axis), (top, bottom), fonts);
        if let Names::Columns(Columns { left_out: count @ 1.., .. }) = names {
            warnings.push(format!("the legend has no room for {count} of {} names", entries.len()));
        }
        let right = (width - PAD - names.width().max(8.0)).max(left + 60.0);
        if right + names.width() > width {
            warnings.push(format!("the names of the series need more than the given width of {width}"));
        }
        let plot = Rect { left, top, right, bottom };

        heading.draw(&canvas)?;
        let x_ticks = frame::horizontal_ticks(&x_axis, plot.width(), fonts);
        let x_ticks = if self.x_whole && self.scales.0 == Scale::Linear { x_ticks.whole() } else { x_ticks };
        frame::draw_columns(&canvas, plot, &x_axis, &x_ticks)?;
        frame::draw_rows(&canvas, plot, &y_axis, &y_ticks)?;
        frame::draw_base(&canvas, (left, bottom), (right, bottom))?;
        frame::draw_y_name(&canvas, &self.y_label, plot, width - 2.0 * PAD)?;
        frame::draw_x_name(&canvas, &self.x_label, plot, TICK_GAP + TICK_SIZE + 8.0)?;

        let place = |x: f64, y: f64| {
            (plot.left + x_axis.position(x) * plot.width(), plot.bottom - y_axis.position(y) * plot.height())
        };
        self.draw_data(&canvas, &usable, plot, &place, (&x_axis, &y_axis), &mut warnings)?;
        match &names {
            Names::Columns(columns) => columns.draw(&canvas, &entries, right + 18.0, top - 4.0)?,
            Names::Ends(ends) => ends.draw(&canvas, right)?,
            Names::Nowhere => {}
        }
        Ok(warnings)
    }
}

impl LineChart {
    /// Chooses between names at the line ends and columns; `span` is top and bottom of the plot.
    fn names(
        &self,
        entries: &[Entry],
        usable: &[Usable<'_>],
        (x_axis, y_axis): (&Axis, &Axis),
        span: (f64, f64),
        fonts: &Fonts,
    ) -> Names {
        const FEW: usize = 6;
        // Farther from its line than this a label needs searching for.
        const NEAR: f64 = 26.0;
        if self.legend == Legend::Hidden || entries.is_empty() {
            return Names::Nowhere;
        }
        let height = |y: f64| span.1 - y_axis.position(y).clamp(0.0, 1.0) * (span.1 - span.0);
        let at_ends = || -> Option<LineEnds> {
            let mut ends = Vec::new();
            for (entry, u) in entries.iter().zip(usable) {
                let &(x, y) = u.runs.last().and_then(|run| run.last())?;
                let reaches = (0.93..=1.0 + 1e-9).contains(&x_axis.position(x)) && u.series.is_line;
                if !reaches && self.legend == Legend::Auto {
                    return None;
                }
                ends.push((entry, (0.0, height(y))));
            }
            for (entry, reference) in entries[usable.len()..].iter().zip(&self.references) {
                if !reference.is_horizontal || !axis::usable(reference.at, self.scales.1) {
                    return None;
                }
                ends.push((entry, (0.0, height(reference.at))));
            }
            LineEnds::place(&ends, fonts, span.0 - 8.0, span.1 + 8.0)
        };
        let columns = || Names::Columns(Columns::new(entries, fonts, span.1 - span.0 + 20.0));
        match self.legend {
            Legend::LineEnds => at_ends().map_or_else(columns, Names::Ends),
            Legend::Auto if entries.len() <= FEW => {
                at_ends().filter(|ends| ends.displacement() <= NEAR).map_or_else(columns, Names::Ends)
            }
            _ => columns(),
        }
    }

    fn draw_data<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        usable: &[Usable<'_>],
        plot: Rect,
        place: &impl Fn(f64, f64) -> (f64, f64),
        (x_axis, y_axis): (&Axis, &Axis),
        warnings: &mut Vec<String>,
    ) -> Result<(), PlotError> {
        for u in usable {
            for band in &u.bands {
                let upper = band.iter().map(|&(x, _, high)| place(x, high));
                let lower = band.iter().rev().map(|&(x, low, _)| place(x, low));
                let outline: Vec<_> = upper.chain(lower).collect();
                canvas.clipped_polygon(&outline, plot, u.color, 0.16)?;
            }
        }
        for reference in &self.references {
            let (axis, scale) = if reference.is_horizontal { (y_axis, self.scales.1) } else { (x_axis, self.scales.0) };
            if !axis::usable(reference.at, scale) || !(-1e-9..=1.0 + 1e-9).contains(&axis.position(reference.at)) {
                warnings.push(format!("reference line \"{}\" lies outside the axes and is not drawn", reference.name));
                continue;
            }
            let share = axis.position(reference.at);
            let (x, y) = (plot.left + share * plot.width(), plot.bottom - share * plot.height());
            let ends = if reference.is_horizontal {
                [(plot.left, y), (plot.right, y)]
            } else {
                [(x, plot.top), (x, plot.bottom)]
            };
            canvas.line(&ends, REFERENCE_STROKE)?;
        }
        // The first series is the baseline or the main result: drawn last, it stays visible.
        for u in usable.iter().rev() {
            let is_inside = |&(x, y): &(f64, f64)| {
                (plot.left - 1.0..=plot.right + 1.0).contains(&x) && (plot.top - 1.0..=plot.bottom + 1.0).contains(&y)
            };
            let mut seen = u.runs.is_empty();
            for run in &u.runs {
                let points: Vec<_> = run.iter().map(|&(x, y)| place(x, y)).collect();
                if u.series.is_line {
                    if let [only] = points[..] {
                        // A lone point between gaps has no segment; a dot shows that it is there.
                        if is_inside(&only) {
                            canvas.line(&[only], Stroke { dash: Dash::Solid, width: 2.6, ..u.stroke() })?;
                        }
                    }
                    // Half a pixel of overhang keeps a line along the edge of the plot at its full width.
                    let room = Rect {
                        left: plot.left - 0.5,
                        top: plot.top - 0.5,
                        right: plot.right + 0.5,
                        bottom: plot.bottom + 0.5,
                    };
                    canvas.clipped_line(&thinned(&points), room, u.stroke())?;
                    seen |= points.windows(2).any(|pair| crosses(pair[0], pair[1], plot));
                }
                seen |= points.iter().any(is_inside);
                if let Some(marker) = u.marker {
                    let radius = if u.series.points.len() > 300 { 2.4 } else { 3.6 };
                    for &at in points.iter().filter(|at| is_inside(at)) {
                        canvas.marker(at, marker, radius, u.color)?;
                    }
                }
            }
            if !seen {
                warnings.push(format!(
                    "series \"{}\" lies outside the axes and is not drawn; widen x_range or y_range",
                    u.series.name
                ));
            }
        }
        Ok(())
    }
}

/// Whether the box around a segment meets the plot.
fn crosses(a: (f64, f64), b: (f64, f64), plot: Rect) -> bool {
    a.0.min(b.0) <= plot.right && a.0.max(b.0) >= plot.left && a.1.min(b.1) <= plot.bottom && a.1.max(b.1) >= plot.top
}

/// First, lowest, highest and last of the points in each half pixel of width: what a line of any number of points looks
/// like, in a bounded number.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |p: &(f64, f64)| (p.0 * 2.0).floor() as i64;
    let mut kept = Vec::with_capacity(points.len().min(8192));
    for chunk in points.chunk_by(|a, b| column(a) == column(b)) {
        if chunk.len() <= 4 {
            kept.extend_from_slice(chunk);
            continue;
        }
        let by_height = |a: &usize, b: &usize| chunk[*a].1.total_cmp(&chunk[*b].1);
        let low = (0..chunk.len()).min_by(by_height).unwrap_or(0);
        let high = (0..chunk.len()).max_by(by_height).unwrap_or(0);
        let mut indices = [0, low.min(high), low.max(high), chunk.len() - 1].to_vec();
        indices.dedup();
        kept.extend(indices.into_iter().map(|i| chunk[i]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;

    #[test]
    fn thinning_keeps_the_envelope_of_a_dense_line() {
        let points: Vec<_> =
            (0..100_000).map(|i| (f64::from(i) / 200.0, if i == 54_321 { 99.0 } else { f64::from(i % 7) })).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= 4 * 1000 + 4, "{}", kept.len());
        assert!(kept.contains(&points[54_321]));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        let sparse = [(0.0, 1.0), (0.1, 5.0), (7.0, 2.0)];
        assert_eq!(thinned(&sparse), sparse);
    }

    #[test]
    fn high_first_steps_can_be_left_out_of_the_range() {
        let series = Series::line(
            "loss",
            (0..100).map(|i| (f64::from(i), if i < 2 { 1000.0 } else { 1.0 + 0.01 * f64::from(i) })),
        );
        let chart = LineChart::new("t").series(series);
        let top = |chart: &LineChart| {
            let usable = chart.usable(&mut Vec::new());
            let x = chart.x_axis(&usable).unwrap();
            let y = chart.y_axis(&usable, &x).unwrap();
            y.position(2.0)
        };
        assert!(top(&chart) < 0.01);
        assert!(top(&chart.clone().clip_start(0.05)) > 0.9);
        assert!(top(&chart.clone().y_quantiles(0.0, 0.97)) > 0.9);
        assert!(top(&chart.clone().y_quantiles(0.9, f64::NAN)) < 0.01, "a bad pair of quantiles is no pair");
    }
}
