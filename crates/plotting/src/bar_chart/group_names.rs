//! Names of groups under a bar chart.

use plotters::prelude::DrawingBackend;

use crate::PlotError;
use crate::canvas::{Align, Canvas, Face};
use crate::font::Fonts;
use crate::frame::SLACK;
use crate::style::{INK, TICK_SIZE};

/// Height of a line of a group's name.
pub(super) const LINE: f64 = 15.0;

/// The names under the groups: in a few level lines, or upright where a slot is too narrow for them.
pub(super) struct GroupNames {
    lines: Vec<Vec<String>>,
    upright: bool,
    pub(super) height: f64,
}

impl GroupNames {
    pub(super) fn new(groups: &[String], fonts: &Fonts, slot: f64) -> Self {
        const LONGEST: f64 = 110.0;
        let lines: Vec<_> = groups.iter().map(|name| wrapped(name, fonts, slot)).collect();
        let is_cut = |(name, lines): (&String, &Vec<String>)| {
            !name.split_whitespace().eq(lines.iter().flat_map(|l| l.split_whitespace()))
        };
        if !groups.iter().zip(&lines).any(is_cut) {
            let height = LINE * lines.iter().map(Vec::len).max().unwrap_or(1).max(1) as f64;
            return Self { lines, upright: false, height };
        }
        let lines: Vec<_> = groups.iter().map(|name| vec![fonts.fit(name, TICK_SIZE, LONGEST)]).collect();
        let longest = lines.iter().flatten().map(|l| fonts.width(l, TICK_SIZE) * SLACK).fold(0.0, f64::max);
        Self { lines, upright: true, height: longest }
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        left: f64,
        top: f64,
        slot: f64,
    ) -> Result<(), PlotError> {
        // Where even upright names would touch, every second, third ... is written.
        let every = if self.upright { (LINE / slot).ceil().max(1.0) as usize } else { 1 };
        for (i, lines) in self.lines.iter().enumerate().step_by(every) {
            let x = left + (i as f64 + 0.5) * slot;
            for (row, line) in lines.iter().enumerate() {
                let (at, align) = if self.upright {
                    ((x, top), Align::Right)
                } else {
                    ((x, top + LINE * (row as f64 + 0.5)), Align::Center)
                };
                canvas.text(line, at, Face { upright: self.upright, ..Face::new(TICK_SIZE, INK, align) })?;
            }
        }
        Ok(())
    }
}

/// The name of a group in as few lines as fit its slot, of about equal length.
fn wrapped(name: &str, fonts: &Fonts, slot: f64) -> Vec<String> {
    const MOST_LINES: usize = 3;
    let mut room = (slot / SLACK - 6.0).max(0.0);
    let mut lines = fonts.wrap(name, TICK_SIZE, room, MOST_LINES);
    let is_whole = |lines: &[String]| name.split_whitespace().eq(lines.iter().flat_map(|l| l.split_whitespace()));
    while room > 24.0 {
        room *= 0.95;
        let narrower = fonts.wrap(name, TICK_SIZE, room, MOST_LINES);
        if narrower.len() != lines.len() || !is_whole(&narrower) {
            break;
        }
        lines = narrower;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_too_long_for_their_slots_stand_upright() {
        let fonts = Fonts::get().unwrap();
        let names: Vec<String> = (0..64).map(|i| format!("layout {i}")).collect();
        let (wide, narrow) = (GroupNames::new(&names, fonts, 80.0), GroupNames::new(&names, fonts, 12.0));
        assert!(!wide.upright && wide.height == LINE);
        assert!(narrow.upright && narrow.lines[63] == ["layout 63"]);
        let balanced = wrapped("embedding scale 0.02, 300 steps", fonts, 180.0);
        assert_eq!(balanced, ["embedding scale", "0.02, 300 steps"]);
    }
}
