//! What surrounds the data of a chart: heading, grid lines, tick labels and axis names.

use plotters::prelude::DrawingBackend;

use crate::PlotError;
use crate::axis::Axis;
use crate::canvas::{Align, Canvas, Face};
use crate::font::Fonts;
use crate::geometry::{Rect, Stroke};
use crate::style::{AXIS, GREY, GRID, GRID_MINOR, INK, LABEL_SIZE, PAD, SUBTITLE_SIZE, TICK_SIZE, TITLE_SIZE};
use crate::ticks::Ticks;

/// Distance between a tick label and the plot.
pub(crate) const TICK_GAP: f64 = 8.0;
/// Viewers of the SVG may have wider fonts than the measured one.
pub(crate) const SLACK: f64 = 1.06;

/// Title and subtitle, broken into lines.
pub(crate) struct Heading {
    title: Vec<String>,
    subtitle: Vec<String>,
}

impl Heading {
    pub(crate) fn new(title: &str, subtitle: &str, fonts: &Fonts, width: f64) -> Self {
        let room = (width - 2.0 * PAD) / SLACK;
        Self { title: fonts.wrap(title, TITLE_SIZE, room, 2), subtitle: fonts.wrap(subtitle, SUBTITLE_SIZE, room, 3) }
    }

    /// Height from the top of the picture to below the heading.
    pub(crate) fn bottom(&self) -> f64 {
        let lines = 22.0 * self.title.len() as f64 + 16.0 * self.subtitle.len() as f64;
        PAD - 2.0 + lines + if lines > 0.0 { 8.0 } else { 0.0 }
    }

    pub(crate) fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> Result<(), PlotError> {
        let mut y = PAD - 2.0;
        for (lines, size, color, height) in
            [(&self.title, TITLE_SIZE, INK, 22.0), (&self.subtitle, SUBTITLE_SIZE, GREY, 16.0)]
        {
            for line in lines {
                canvas.text(line, (PAD, y + height / 2.0), Face::new(size, color, Align::Left))?;
                y += height;
            }
        }
        Ok(())
    }
}

/// Width of the widest label.
pub(crate) fn label_width(ticks: &Ticks, fonts: &Fonts) -> f64 {
    ticks.labelled.iter().map(|tick| fonts.width(&tick.label, TICK_SIZE) * SLACK).fold(0.0, f64::max)
}

/// The densest marks of a horizontal axis whose labels keep apart over `length` logical pixels.
pub(crate) fn horizontal_ticks(axis: &Axis, length: f64, fonts: &Fonts) -> Ticks {
    let mut most = ((length / 95.0) as usize).clamp(2, 12);
    loop {
        let ticks = axis.ticks(most);
        let nearest = ticks
            .labelled
            .windows(2)
            .map(|pair| (axis.at(pair[1].at) - axis.at(pair[0].at)) * length)
            .fold(f64::INFINITY, f64::min);
        if most <= 2 || nearest >= label_width(&ticks, fonts) + 12.0 {
            return ticks;
        }
        most -= 1;
    }
}

/// Marks of a vertical axis of the given length.
pub(crate) fn vertical_ticks(axis: &Axis, length: f64) -> Ticks {
    axis.ticks(((length / 48.0) as usize).clamp(2, 10))
}

/// Grid lines across the plot at the marks of the vertical axis, with their labels to the left.
pub(crate) fn draw_rows<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    plot: Rect,
    axis: &Axis,
    ticks: &Ticks,
) -> Result<(), PlotError> {
    let y = |at: f64| plot.bottom - axis.at(at) * plot.height();
    for (&at, color) in lines(ticks) {
        canvas.line(&[(plot.left, y(at)), (plot.right, y(at))], Stroke::solid(color, 1.0))?;
    }
    for tick in &ticks.labelled {
        let face = Face::new(TICK_SIZE, GREY, Align::Right);
        canvas.text(&tick.label, (plot.left - TICK_GAP, y(tick.at)), face)?;
    }
    Ok(())
}

/// Grid lines up the plot at the marks of the horizontal axis, with their labels below.
pub(crate) fn draw_columns<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    plot: Rect,
    axis: &Axis,
    ticks: &Ticks,
) -> Result<(), PlotError> {
    let x = |at: f64| plot.left + axis.at(at) * plot.width();
    for (&at, color) in lines(ticks) {
        canvas.line(&[(x(at), plot.top), (x(at), plot.bottom)], Stroke::solid(color, 1.0))?;
    }
    for tick in &ticks.labelled {
        let face = Face::new(TICK_SIZE, GREY, Align::Center);
        canvas.text(&tick.label, (x(tick.at), plot.bottom + TICK_GAP + TICK_SIZE / 2.0), face)?;
    }
    Ok(())
}

fn lines(ticks: &Ticks) -> impl Iterator<Item = (&f64, crate::Color)> {
    let minor = ticks.minor.iter().map(|at| (at, GRID_MINOR));
    minor.chain(ticks.labelled.iter().map(|tick| (&tick.at, GRID)))
}

/// The line that the data stands on.
pub(crate) fn draw_base<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    from: (f64, f64),
    to: (f64, f64),
) -> Result<(), PlotError> {
    canvas.line(&[from, to], Stroke::solid(AXIS, 1.2))
}

/// Name of the vertical axis, above its labels, where it reads without turning the head.
pub(crate) fn draw_y_name<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    name: &str,
    plot: Rect,
    room: f64,
) -> Result<(), PlotError> {
    let name = canvas.fonts().fit(name, LABEL_SIZE, room / SLACK);
    canvas.text(&name, (PAD, plot.top - 21.0), Face::new(LABEL_SIZE, INK, Align::Left))
}

/// Name of the horizontal axis, centred below its labels.
pub(crate) fn draw_x_name<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    name: &str,
    plot: Rect,
    below: f64,
) -> Result<(), PlotError> {
    let name = canvas.fonts().fit(name, LABEL_SIZE, plot.width().max(120.0));
    let at = ((plot.left + plot.right) / 2.0, plot.bottom + below + LABEL_SIZE / 2.0);
    canvas.text(&name, at, Face::new(LABEL_SIZE, INK, Align::Center))
}
