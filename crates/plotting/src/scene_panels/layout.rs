//! Which part of the plane each panel shows, at which scale, and where the panels lie in the picture.

use super::marks::{Mark, Shape, union};
use super::{MOST_NAMES, Range, ScenePanel, ScenePanels};
use crate::PlotError;
use crate::axis::Axis;
use crate::font::Fonts;
use crate::frame::{Heading, SLACK, TICK_GAP, horizontal_ticks, label_width, vertical_ticks};
use crate::geometry::Rect;
use crate::style::{LABEL_SIZE, PAD, Scale, TICK_SIZE};
use crate::ticks::Ticks;

const MOST_A_ROW: usize = 8;
/// More rows of the largest panels would not fit into the largest picture.
const MOST_ROWS: usize = 5;
/// Largest side of a panel in logical pixels, by the panels in a row.
const SIDES: [f64; MOST_A_ROW] = [430.0, 360.0, 280.0, 220.0, 180.0, 150.0, 128.0, 112.0];
/// No side of a panel is less than this share of the longest one: a panel must stay wide enough to be seen.
const SLIMMEST: f64 = 0.125;
const TITLE_ROOM: f64 = 22.0;
const GAP: f64 = 14.0;
const LEGEND_ROW: f64 = 20.0;
pub(super) const SWATCH: f64 = 22.0;
const SWATCH_GAP: f64 = 7.0;
const ENTRY_GAP: f64 = 14.0;

/// Where one panel lies, and what it shows.
pub(super) struct Place {
    pub(super) rect: Rect,
    pub(super) x: Range,
    pub(super) y: Range,
    /// Marks and numbers below, where they are shown.
    pub(super) below: Option<(Axis, Ticks)>,
    /// Marks and numbers at the left, where they are shown.
    pub(super) left: Option<(Axis, Ticks)>,
}

/// One name of the legend.
pub(super) struct Entry<'a> {
    pub(super) mark: &'a Mark,
    pub(super) text: String,
    pub(super) at: (f64, f64),
}

impl Entry<'_> {
    pub(super) fn text_at(&self) -> (f64, f64) {
        (self.at.0 + SWATCH + SWATCH_GAP, self.at.1)
    }
}

pub(super) struct Layout<'a> {
    pub(super) heading: Heading,
    pub(super) legend: Vec<Entry<'a>>,
    pub(super) places: Vec<Place>,
    /// Logical pixels for each unit of the marks.
    pub(super) scale: f64,
    /// The smallest rectangle around all panels.
    pub(super) all: Rect,
    pub(super) size: (u32, u32),
}

impl ScenePanels {
    /// The part of the plane that each panel shows.
    fn windows(&self) -> Vec<(Range, Range)> {
        let without = self.panels.iter().filter(|panel| panel.view.is_none());
        let ground = |mark: &Mark| match mark.shape {
            Shape::Ground(y) => Some(y),
            _ => None,
        };
        let bounds = without.clone().flat_map(ScenePanel::drawable).filter_map(Mark::bounds).reduce(union);
        // The ground has no width of its own: it only raises or lowers what the other marks span.
        let shared = bounds.map(|(x, y)| {
            let levels = without.flat_map(ScenePanel::drawable).filter_map(ground);
            (x, levels.fold(y, |y, level| (y.0.min(level), y.1.max(level))))
        });
        let shared = shared.unwrap_or(((0.0, 1.0), (0.0, 1.0)));
        let margin = 0.02 * (shared.0.1 - shared.0.0).max(shared.1.1 - shared.1.0);
        let padded = |(low, high): Range| (low - margin, high + margin);
        let shared = (padded(shared.0), padded(shared.1));
        let mut windows: Vec<_> = self.panels.iter().map(|panel| panel.view.unwrap_or(shared)).collect();
        let sides = |&(x, y): &(Range, Range)| [x.1 - x.0, y.1 - y.0];
        let longest = windows.iter().flat_map(sides).fold(0.0, f64::max);
        let farthest = windows.iter().flat_map(|&(x, y)| [x.0, x.1, y.0, y.1]).fold(0.0, |m: f64, v| m.max(v.abs()));
        // Below this width places could not be told apart.
        let least = if longest <= 1e-9 * farthest || longest < 1e-290 {
            if farthest > 1e-290 { 0.1 * farthest } else { 1.0 }
        } else {
            SLIMMEST * longest
        };
        let widened = |(low, high): Range| {
            let lack = (least - (high - low)).max(0.0) / 2.0;
            (low - lack, high + lack)
        };
        windows.iter_mut().for_each(|(x, y)| (*x, *y) = (widened(*x), widened(*y)));
        windows
    }

    fn a_row(&self) -> usize {
        let count = self.panels.len().max(1);
        self.panels_a_row.unwrap_or(4).clamp(1, MOST_A_ROW).max(count.div_ceil(MOST_ROWS)).min(count)
    }

    pub(super) fn layout(&self) -> Result<Layout<'_>, PlotError> {
        let fonts = Fonts::get()?;
        let windows = self.windows();
        let a_row = self.a_row();
        let side = SIDES[a_row - 1];
        let widest = |pick: fn(&(Range, Range)) -> Range| {
            windows.iter().map(pick).map(|(low, high)| high - low).fold(0.0, f64::max)
        };
        let (width, height) = (widest(|window| window.0), widest(|window| window.1));
        let (width, height) = if windows.is_empty() { (1.0, 1.0) } else { (width, height) };
        // Panels that are wide and low may take the room that a row of square ones has.
        let scale = (side / width).min(side / height);
        let (cell_width, cell_height) = (width * scale, height * scale);

        let axis = |range, name| Axis::given(range, Scale::Linear, &self.title, name);
        let mut shown = Vec::new();
        for (i, &(x, y)) in windows.iter().enumerate() {
            let under = windows.get(i + a_row).map(|window| window.0);
            let before = (i % a_row > 0).then(|| windows[i - 1].1);
            let below = match under == Some(x) {
                true => None,
                false => {
                    let axis = axis(x, "x")?;
                    Some((axis, numbers_below(&axis, (x.1 - x.0) * scale, fonts)))
                }
            };
            let left = match before == Some(y) {
                true => None,
                false => {
                    let axis = axis(y, "y")?;
                    Some((axis, vertical_ticks(&axis, (y.1 - y.0) * scale)))
                }
            };
            shown.push((below, left));
        }
        let room =
            |left: &Option<(Axis, Ticks)>| left.as_ref().map_or(0.0, |(_, ticks)| label_width(ticks, fonts) + TICK_GAP);
        let outer = shown.iter().step_by(a_row).map(|(_, left)| room(left)).fold(0.0, f64::max);
        let inner = (0..shown.len()).filter(|i| i % a_row > 0).map(|i| room(&shown[i].1)).fold(0.0, f64::max);
        let rows = self.panels.len().max(1).div_ceil(a_row);
        let is_last = |i: usize| i / a_row + 1 == rows;
        let under = (0..shown.len()).any(|i| !is_last(i) && shown[i].0.is_some());
        let name_room = if self.y_label.is_empty() { 0.0 } else { 20.0 };
        let start = PAD + name_room + outer;
        let step_x = cell_width + GAP + inner;
        let titles = if self.panels.iter().all(|panel| panel.title.is_empty()) { 6.0 } else { TITLE_ROOM };
        let number_room = TICK_GAP + TICK_SIZE;
        let step_y = titles + cell_height + if under { number_room + 6.0 } else { 6.0 };

        let right = start + step_x * (a_row - 1) as f64 + cell_width;
        // Half of the last number may reach beyond the panel.
        let picture = (right + PAD + 8.0).max(360.0).ceil();
        let heading = Heading::new(&self.title, &self.subtitle, fonts, picture);
        let (legend, legend_bottom) = self.legend(fonts, heading.bottom(), picture);
        let top = legend_bottom + titles;
        let mut places = Vec::new();
        for (i, ((x, y), (below, left))) in windows.into_iter().zip(shown).enumerate() {
            let corner = (start + (i % a_row) as f64 * step_x, top + (i / a_row) as f64 * step_y + cell_height);
            let rect = Rect {
                left: corner.0,
                top: corner.1 - (y.1 - y.0) * scale,
                right: corner.0 + (x.1 - x.0) * scale,
                bottom: corner.1,
            };
            places.push(Place { rect, x, y, below, left });
        }
        let all = Rect { left: start, top, right, bottom: top + (rows - 1) as f64 * step_y + cell_height };
        let x_name = if self.x_label.is_empty() { 0.0 } else { LABEL_SIZE + 8.0 };
        let size = (picture as u32, (all.bottom + number_room + x_name + PAD).max(160.0).ceil() as u32);
        Ok(Layout { heading, legend, places, scale, all, size })
    }

    /// The legend in rows that begin at height `top`, and the height below it.
    fn legend(&self, fonts: &Fonts, top: f64, picture: f64) -> (Vec<Entry<'_>>, f64) {
        let (mut x, mut y) = (PAD, top + LEGEND_ROW / 2.0);
        let mut entries = Vec::new();
        for mark in self.named().into_iter().take(MOST_NAMES) {
            let text = fonts.fit(&mark.name, LABEL_SIZE, 240.0);
            let width = SWATCH + SWATCH_GAP + fonts.width(&text, LABEL_SIZE) * SLACK;
            if x > PAD && x + width > picture - PAD {
                (x, y) = (PAD, y + LEGEND_ROW);
            }
            entries.push(Entry { mark, text, at: (x, y) });
            x += width + ENTRY_GAP;
        }
        let bottom = if entries.is_empty() { top } else { y + LEGEND_ROW / 2.0 + 6.0 };
        (entries, bottom)
    }
}

/// Marks as dense as those of a vertical axis, so that both directions of a square have the same, where their labels
/// keep apart.
fn numbers_below(axis: &Axis, length: f64, fonts: &Fonts) -> Ticks {
    let dense = vertical_ticks(axis, length);
    let apart = |pair: &[crate::ticks::Tick]| (axis.at(pair[1].at) - axis.at(pair[0].at)) * length;
    let nearest = dense.labelled.windows(2).map(apart).fold(f64::INFINITY, f64::min);
    let ticks =
        if nearest >= label_width(&dense, fonts) + 10.0 { dense } else { horizontal_ticks(axis, length, fonts) };
    // A number that reaches farther beyond the panel would run into those of the next one: its mark stays alone.
    let beyond = GAP / 2.0 - 2.0;
    let (kept, bare): (Vec<_>, Vec<_>) = ticks.labelled.into_iter().partition(|tick| {
        let (at, half) = (axis.at(tick.at) * length, fonts.width(&tick.label, TICK_SIZE) * SLACK / 2.0);
        at - half >= -beyond && at + half <= length + beyond
    });
    Ticks { labelled: kept, minor: bare.into_iter().map(|tick| tick.at).collect() }
}
