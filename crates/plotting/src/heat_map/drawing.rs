//! Layout and drawing of heat maps.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::prelude::DrawingBackend;

use super::{HeatMap, Panel};
use crate::axis::{Axis, usable};
use crate::canvas::{Align, Canvas, Face, Medium};
use crate::color_map::lightness;
use crate::font::Fonts;
use crate::frame::{Heading, SLACK};
use crate::geometry::Rect;
use crate::style::{Color, GREY, INK, LABEL_SIZE, PAD, Scale, TICK_SIZE};
use crate::{Figure, PlotError};

/// Values are printed up to this many rows and columns.
const MOST_PRINTED: usize = 16;
const MOST_PANELS_A_ROW: usize = 4;
const BAR_WIDTH: f64 = 14.0;
const PANEL_GAP: f64 = 26.0;
const CELL_TEXT: f64 = 10.5;

/// Sizes in logical pixels that all panels share.
struct Layout {
    cell: f64,
    prints: bool,
    decimals: usize,
    /// Panels side by side.
    a_row: usize,
    /// Room for row labels and the name of the rows.
    left: f64,
    below: f64,
    panel_width: f64,
    /// Room for the titles of the panels and the name of the values.
    title: f64,
    panel_height: f64,
}

impl HeatMap {
    fn layout(&self) -> Option<Layout> {
        let fonts = Fonts::get().ok()?;
        let rows = self.panels.iter().map(|p| p.rows.len()).max().unwrap_or(0).max(1);
        let columns = self.panels.iter().map(Panel::columns).max().unwrap_or(0).max(1);
        let a_row = self.panels.len().clamp(1, MOST_PANELS_A_ROW);
        // Cells are square; one panel may be larger than each of many.
        let side = [430.0, 330.0, 270.0, 230.0][a_row - 1];
        let mut cell = (side / rows.max(columns) as f64).min(40.0);
        // Printed values may stretch a panel, but not beyond all measure.
        let printed =
            self.print_size(rows, columns, fonts).filter(|room| room * rows.max(columns) as f64 <= 1.5 * side);
        if let Some(room) = printed {
            cell = cell.max(room);
        }
        let widest = |labels: &Option<Vec<String>>, count: usize| match labels {
            Some(labels) => labels.iter().map(|l| fonts.width(l, TICK_SIZE)).fold(0.0, f64::max).min(110.0) * SLACK,
            None => fonts.width(&count.to_string(), TICK_SIZE) * SLACK,
        };
        let left = self.panels.iter().map(|p| widest(&p.row_labels, p.rows.len())).fold(0.0, f64::max) + 8.0;
        let left = left + if self.y_label.is_empty() { 0.0 } else { 20.0 };
        let below = TICK_SIZE + 8.0 + if self.x_label.is_empty() { 0.0 } else { LABEL_SIZE + 6.0 };
        let untitled = self.value_label.is_empty() && self.panels.iter().all(|p| p.title.is_empty());
        let title = if untitled { 4.0 } else { 24.0 };
        Some(Layout {
            cell,
            prints: printed.is_some(),
            decimals: self.cell_decimals(),
            a_row,
            left,
            below,
            panel_width: left + cell * columns as f64,
            title,
            panel_height: title + cell * rows as f64 + below,
        })
    }

    /// The cell size that printed values need, if they are printed.
    fn print_size(&self, rows: usize, columns: usize, fonts: &Fonts) -> Option<f64> {
        if rows.max(columns) > MOST_PRINTED {
            return None;
        }
        let all = self.panels.iter().flat_map(Panel::values).filter(|v| v.is_finite());
        let decimals = self.cell_decimals();
        let widest = all.map(|v| fonts.width(&cell_text(v, decimals), CELL_TEXT)).fold(0.0, f64::max);
        (widest <= 36.0).then_some((widest * SLACK + 5.0).max(CELL_TEXT * 1.9))
    }

    /// Digits behind the point that tell apart a hundred steps of the colour scale.
    fn cell_decimals(&self) -> usize {
        let (low, high) = self.range.unwrap_or_else(|| {
            let finite = self.panels.iter().flat_map(Panel::values).filter(|&v| usable(v, Scale::Linear));
            finite.fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)))
        });
        let span = (high - low).abs();
        if !(span.is_finite() && span > 0.0) {
            return 2;
        }
        (2.0 - (span * 1.0001).log10().floor()).clamp(0.0, 12.0) as usize
    }
}

/// The text of a cell; all cells of a figure have the same number of digits behind the point.
fn cell_text(value: f64, decimals: usize) -> String {
    if value == 0.0 { "0".to_owned() } else { crate::fixed(value, decimals).replace('-', "−") }
}

impl Figure for HeatMap {
    fn title(&self) -> &str {
        &self.title
    }

    fn size(&self) -> (u32, u32) {
        let Some(layout) = self.layout() else { return (400, 400) };
        let rows = self.panels.len().max(1).div_ceil(layout.a_row) as f64;
        let panels = layout.a_row as f64;
        let inner = panels * layout.panel_width + (panels - 1.0) * PANEL_GAP;
        let width = (2.0 * PAD + inner + 90.0).max(360.0);
        let heading = Fonts::get().map_or(60.0, |f| Heading::new(&self.title, &self.subtitle, f, width).bottom());
        let height = heading + rows * layout.panel_height + (rows - 1.0) * 14.0 + PAD;
        // The colour bar needs some height even beside a single row of cells.
        let height = height.max(heading + 150.0);
        (width.ceil() as u32, height.ceil() as u32)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        medium: Medium,
    ) -> Result<Vec<String>, PlotError> {
        let warnings = self.check()?;
        let axis = self.color_axis()?;
        let size = self.size();
        let canvas = Canvas::new(area, size, medium)?;
        let Some(layout) = self.layout() else { return Ok(warnings) };
        let heading = Heading::new(&self.title, &self.subtitle, canvas.fonts(), f64::from(size.0));
        heading.draw(&canvas)?;
        let mut right = PAD;
        for (i, panel) in self.panels.iter().enumerate() {
            let (row, column) = (i / layout.a_row, i % layout.a_row);
            let left = PAD + column as f64 * (layout.panel_width + PANEL_GAP) + layout.left;
            let top = heading.bottom() + row as f64 * (layout.panel_height + 14.0) + layout.title;
            right = right.max(left + layout.panel_width - layout.left);
            self.draw_panel(&canvas, panel, (left, top), &layout, &axis, column == 0)?;
        }
        let bar = Rect {
            left: right + 22.0,
            top: heading.bottom() + layout.title,
            right: right + 22.0 + BAR_WIDTH,
            bottom: heading.bottom() + (layout.panel_height - layout.below).max(layout.title + 60.0),
        };
        self.draw_bar(&canvas, bar, &axis)?;
        Ok(warnings)
    }
}

impl HeatMap {
    fn draw_panel<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        panel: &Panel,
        (left, top): (f64, f64),
        layout: &Layout,
        axis: &Axis,
        names_rows: bool,
    ) -> Result<(), PlotError> {
        let cell = layout.cell;
        let fonts = canvas.fonts();
        let width = cell * panel.columns() as f64;
        let height = cell * panel.rows.len() as f64;
        let room = layout.panel_width - layout.left + PANEL_GAP * 0.6;
        let title = fonts.fit(&panel.title, LABEL_SIZE, room);
        canvas.text(&title, (left, top - 13.0), Face::new(LABEL_SIZE, INK, Align::Left))?;
        let is_drawn = |r: usize, c: usize| {
            let value = panel.rows.get(r).and_then(|row| row.get(c)).copied().flatten();
            value.filter(|&v| usable(v, Scale::Linear))
        };
        for (r, row) in panel.rows.iter().enumerate() {
            for c in 0..row.len() {
                let Some(value) = is_drawn(r, c) else { continue };
                let (x, y) = (left + c as f64 * cell, top + r as f64 * cell);
                // A hairline of white between cells that are large enough; smaller ones reach under their neighbours,
                // because edges that merely touch show as seams where a viewer smooths them.
                let reach = |neighbour: Option<f64>| match neighbour {
                    _ if cell >= 9.0 => -0.5,
                    Some(_) => 0.6,
                    None => 0.0,
                };
                let (right, bottom) = (x + cell + reach(is_drawn(r, c + 1)), y + cell + reach(is_drawn(r + 1, c)));
                let color = self.color_map.color(axis.position(value));
                canvas.rect(Rect { left: x, top: y, right, bottom }, color)?;
                if layout.prints {
                    let ink = if lightness(color) > 58.0 { INK } else { Color(255, 255, 255) };
                    let at = (x + cell / 2.0, y + cell / 2.0);
                    canvas.text(&cell_text(value, layout.decimals), at, Face::new(CELL_TEXT, ink, Align::Center))?;
                }
            }
        }
        let rows = labels(&panel.row_labels, panel.rows.len());
        let stride = stride(rows.len(), cell, TICK_SIZE + 3.0);
        for (i, label) in rows.iter().enumerate().step_by(stride) {
            let at = (left - 6.0, top + (i as f64 + 0.5) * cell);
            let label = fonts.fit(label, TICK_SIZE, 110.0);
            canvas.text(&label, at, Face::new(TICK_SIZE, GREY, Align::Right))?;
        }
        let columns = labels(&panel.column_labels, panel.columns());
        let widest = columns.iter().map(|l| fonts.width(l, TICK_SIZE) * SLACK).fold(0.0, f64::max).min(60.0);
        let stride = self::stride(columns.len(), cell, widest + 4.0);
        for (i, label) in columns.iter().enumerate().step_by(stride) {
            let at = (left + (i as f64 + 0.5) * cell, top + height + 6.0 + TICK_SIZE / 2.0);
            let label = fonts.fit(label, TICK_SIZE, 60.0);
            canvas.text(&label, at, Face::new(TICK_SIZE, GREY, Align::Center))?;
        }
        if !self.x_label.is_empty() {
            let at = (left + width / 2.0, top + height + TICK_SIZE + 12.0 + LABEL_SIZE / 2.0);
            let name = fonts.fit(&self.x_label, LABEL_SIZE, room.max(60.0));
            canvas.text(&name, at, Face::new(LABEL_SIZE, INK, Align::Center))?;
        }
        if names_rows && !self.y_label.is_empty() {
            let at = (left - layout.left + 7.0, top + height / 2.0);
            let name = fonts.fit(&self.y_label, LABEL_SIZE, height.max(60.0));
            canvas.text(&name, at, Face { upright: true, ..Face::new(LABEL_SIZE, INK, Align::Center) })?;
        }
        Ok(())
    }

    fn draw_bar<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, bar: Rect, axis: &Axis) -> Result<(), PlotError> {
        const STEPS: usize = 96;
        let y = |share: f64| bar.bottom - share * bar.height();
        for i in 0..STEPS {
            // Each step reaches up to the top, under those that follow, so that no seams show.
            let piece = Rect { bottom: y(i as f64 / STEPS as f64), ..bar };
            canvas.rect(piece, self.color_map.color((i as f64 + 0.5) / STEPS as f64))?;
        }
        for tick in axis.ticks(((bar.height() / 40.0) as usize).clamp(2, 6)).labelled {
            let at = (bar.right + 6.0, y(axis.at(tick.at)));
            canvas.text(&tick.label, at, Face::new(TICK_SIZE, GREY, Align::Left))?;
        }
        let label = canvas.fonts().fit(&self.value_label, LABEL_SIZE, 74.0);
        canvas.text(&label, (bar.left, bar.top - 13.0), Face::new(LABEL_SIZE, INK, Align::Left))
    }
}

fn labels(given: &Option<Vec<String>>, count: usize) -> Vec<String> {
    given.clone().unwrap_or_else(|| (0..count).map(|i| i.to_string()).collect())
}

/// Label every `stride`th cell, so that labels of size `need` keep apart.
fn stride(count: usize, cell: f64, need: f64) -> usize {
    let least = (need / cell).ceil().max(1.0) as usize;
    [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100]
        .into_iter()
        .find(|&s| s >= least)
        .unwrap_or(least)
        .min(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_digits_that_their_colours_tell_apart() {
        for (rows, range, text) in [
            (vec![vec![0.0, 0.25, 0.0012, -1.0]], None, "0 0.25 0.00 −1.00"),
            (vec![vec![12.345, 5.0]], None, "12.3 5.0"),
            (vec![vec![0.0021, 0.0012]], None, "0.00210 0.00120"),
            (vec![vec![0.0021, 0.9996]], Some((0.0, 1.0)), "0.00 1.00"),
            (vec![vec![0.0]], None, "0"),
        ] {
            let mut figure = HeatMap::new("p").panel(Panel::of_rows("a", &rows));
            figure.range = range;
            let cells: Vec<_> = rows[0].iter().map(|&v| cell_text(v, figure.cell_decimals())).collect();
            assert_eq!(cells.join(" "), text);
        }
    }
}
