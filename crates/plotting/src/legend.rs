//! Naming the series beside the plot, never on the data: columns of entries, or labels at the ends of the lines.

use plotters::prelude::DrawingBackend;

use crate::PlotError;
use crate::canvas::{Align, Canvas, Face};
use crate::font::Fonts;
use crate::frame::SLACK;
use crate::geometry::{Rect, Stroke};
use crate::style::{AXIS, Color, GREY, LABEL_SIZE, Marker, SMALL_SIZE};

const SWATCH: f64 = 26.0;
const SWATCH_GAP: f64 = 7.0;
const COLUMN_GAP: f64 = 16.0;
const WIDEST_NAME: f64 = 230.0;
const MOST_COLUMNS: usize = 4;

/// One name with the look of what it names.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) color: Color,
    /// Absent for bare points.
    pub(crate) stroke: Option<Stroke>,
    pub(crate) marker: Option<Marker>,
    /// A filled box instead of a line, for bars.
    pub(crate) filled: bool,
}

/// Entries arranged in columns.
pub(crate) struct Columns {
    size: f64,
    row_height: f64,
    rows: usize,
    names: Vec<String>,
    widths: Vec<f64>,
    /// Entries that found no place.
    pub(crate) left_out: usize,
}

impl Columns {
    /// As many columns as `height` requires, in small type where there are many entries.
    pub(crate) fn new(entries: &[Entry], fonts: &Fonts, height: f64) -> Self {
        let (mut size, mut row_height) = (LABEL_SIZE, 19.0);
        let fits = |row_height: f64| ((height / row_height) as usize).max(1);
        if entries.len() > fits(row_height) {
            (size, row_height) = (SMALL_SIZE, 13.0);
        }
        let rows = fits(row_height);
        let shown = if entries.len() > rows * MOST_COLUMNS { rows * MOST_COLUMNS - 1 } else { entries.len() };
        let left_out = entries.len() - shown;
        let mut names: Vec<String> =
            entries[..shown].iter().map(|entry| fonts.fit(&entry.name, size, WIDEST_NAME)).collect();
        if left_out > 0 {
            names.push(format!("and {left_out} more"));
        }
        // Columns of equal height look calmer than a full one and a rest.
        let columns = names.len().div_ceil(rows).max(1);
        let rows = names.len().div_ceil(columns).max(1);
        let widths = names
            .chunks(rows)
            .map(|column| column.iter().map(|name| fonts.width(name, size) * SLACK).fold(0.0, f64::max))
            .collect();
        Self { size, row_height, rows, names, widths, left_out }
    }

    pub(crate) fn width(&self) -> f64 {
        let columns = self.widths.len() as f64;
        self.widths.iter().sum::<f64>() + columns * (SWATCH + SWATCH_GAP) + (columns - 1.0).max(0.0) * COLUMN_GAP
    }

    /// Draws downwards from `top` to the right of `left`.
    pub(crate) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        entries: &[Entry],
        left: f64,
        top: f64,
    ) -> Result<(), PlotError> {
        let mut x = left;
        for (column, (names, width)) in self.names.chunks(self.rows).zip(&self.widths).enumerate() {
            for (row, name) in names.iter().enumerate() {
                let y = top + (row as f64 + 0.5) * self.row_height;
                let entry = entries.get(column * self.rows + row).filter(|_| self.is_entry(column, row));
                if let Some(entry) = entry {
                    draw_swatch(canvas, entry, x, y, self.row_height)?;
                }
                let face = Face::new(self.size, crate::style::INK, Align::Left);
                canvas.text(name, (x + SWATCH + SWATCH_GAP, y), face)?;
            }
            x += width + SWATCH + SWATCH_GAP + COLUMN_GAP;
        }
        Ok(())
    }

    /// Whether the place holds an entry and not the line that counts those left out.
    fn is_entry(&self, column: usize, row: usize) -> bool {
        self.left_out == 0 || column * self.rows + row + 1 < self.names.len()
    }
}

fn draw_swatch<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    entry: &Entry,
    x: f64,
    y: f64,
    row_height: f64,
) -> Result<(), PlotError> {
    if entry.filled {
        let half = (row_height * 0.28).min(5.5);
        return canvas.rect(
            Rect { left: x + SWATCH - 2.4 * half, top: y - half, right: x + SWATCH, bottom: y + half },
            entry.color,
        );
    }
    if let Some(stroke) = entry.stroke {
        canvas.line(&[(x, y), (x + SWATCH, y)], stroke)?;
    }
    if let Some(marker) = entry.marker {
        canvas.marker((x + SWATCH / 2.0, y), marker, 3.6, entry.color)?;
    }
    Ok(())
}

/// Labels beside the plot, each as near to the end of its line as the others allow.
pub(crate) struct LineEnds {
    labels: Vec<LineEnd>,
    width: f64,
}

struct LineEnd {
    name: String,
    color: Color,
    /// Where the line ends.
    end: (f64, f64),
    /// Height of the label.
    y: f64,
}

/// Height that one label needs.
const LINE_HEIGHT: f64 = 17.0;
const LEADER: f64 = 16.0;

impl LineEnds {
    /// Places a label for each `(entry, end of its line)` between `top` and `bottom`; `None` where they do not fit.
    pub(crate) fn place(ends: &[(&Entry, (f64, f64))], fonts: &Fonts, top: f64, bottom: f64) -> Option<Self> {
        if ends.is_empty() || ends.len() as f64 * LINE_HEIGHT > bottom - top {
            return None;
        }
        let mut labels: Vec<LineEnd> = ends
            .iter()
            .map(|&(entry, end)| LineEnd {
                name: fonts.fit(&entry.name, LABEL_SIZE, WIDEST_NAME),
                color: entry.color,
                end,
                y: end.1,
            })
            .collect();
        labels.sort_by(|a, b| a.end.1.total_cmp(&b.end.1));
        spread(&mut labels, top, bottom);
        let width = labels.iter().map(|label| fonts.width(&label.name, LABEL_SIZE) * SLACK).fold(0.0, f64::max);
        Some(Self { labels, width: width + LEADER + 4.0 })
    }

    pub(crate) fn width(&self) -> f64 {
        self.width
    }

    /// The farthest that a label lies from its line.
    pub(crate) fn displacement(&self) -> f64 {
        self.labels.iter().map(|label| (label.y - label.end.1).abs()).fold(0.0, f64::max)
    }

    /// Draws to the right of `left`, with a thin leader to each line.
    pub(crate) fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, left: f64) -> Result<(), PlotError> {
        for label in &self.labels {
            let to = (left + LEADER - 3.0, label.y);
            if (label.y - label.end.1).abs() > 2.0 {
                canvas.line(&[(left + 2.0, label.end.1), to], Stroke::solid(AXIS, 0.8))?;
            }
            let face = Face::new(LABEL_SIZE, readable(label.color), Align::Left);
            canvas.text(&label.name, (left + LEADER, label.y), face)?;
        }
        Ok(())
    }
}

/// Moves sorted labels apart with the least sum of squared moves (isotonic regression of `y - i * height`).
fn spread(labels: &mut [LineEnd], top: f64, bottom: f64) {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let mut block = (label.end.1 - i as f64 * LINE_HEIGHT, 1);
        while let Some(&(mean, count)) = blocks.last() {
            if mean <= block.0 {
                break;
            }
            blocks.pop();
            let total = count + block.1;
            block = ((mean * count as f64 + block.0 * block.1 as f64) / total as f64, total);
        }
        blocks.push(block);
    }
    let half = LINE_HEIGHT / 2.0;
    let lowest = bottom - half - (labels.len() - 1) as f64 * LINE_HEIGHT;
    let starts = blocks.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    for (i, (label, start)) in labels.iter_mut().zip(starts).enumerate() {
        label.y = start.clamp(top + half, lowest.max(top + half)) + i as f64 * LINE_HEIGHT;
    }
}

/// `color` darkened until light type in it is legible on white.
fn readable(color: Color) -> Color {
    if color == GREY {
        return color;
    }
    let darken = |v: u8| (f64::from(v) * 0.82) as u8;
    Color(darken(color.0), darken(color.1), darken(color.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry { name: name.to_owned(), color: Color(0, 0, 0), stroke: None, marker: None, filled: false }
    }

    #[test]
    fn labels_of_lines_that_end_together_are_spread_evenly() {
        let fonts = Fonts::get().unwrap();
        let entries = [entry("a"), entry("b"), entry("c"), entry("d")];
        let ys = [100.0, 101.0, 102.0, 300.0];
        let ends: Vec<_> = entries.iter().zip(ys).map(|(e, y)| (e, (500.0, y))).collect();
        let placed = LineEnds::place(&ends, fonts, 50.0, 400.0).unwrap();
        let found: Vec<f64> = placed.labels.iter().map(|label| label.y).collect();
        assert_eq!(found, [84.0, 101.0, 118.0, 300.0]);
        assert_eq!(placed.displacement(), 16.0);
        let at_the_edge =
            LineEnds::place(&[(&entries[0], (500.0, 399.0)), (&entries[1], (500.0, 400.0))], fonts, 50.0, 400.0);
        let lowest = at_the_edge.unwrap().labels[1].y;
        assert_eq!(lowest, 400.0 - LINE_HEIGHT / 2.0);
        assert!(LineEnds::place(&ends, fonts, 50.0, 60.0).is_none());
    }

    #[test]
    fn a_legend_of_thousands_stays_within_its_columns() {
        let fonts = Fonts::get().unwrap();
        let entries: Vec<Entry> = (0..2000).map(|i| entry(&format!("layout {i}"))).collect();
        let columns = Columns::new(&entries, fonts, 390.0);
        assert_eq!(columns.names.len(), 120);
        assert_eq!(columns.left_out, 2000 - 119);
        assert_eq!(columns.names.last().unwrap(), "and 1881 more");
        assert_eq!(Columns::new(&entries[..64], fonts, 390.0).widths.len(), 3);
        assert_eq!(Columns::new(&entries[..4], fonts, 390.0).left_out, 0);
    }
}
