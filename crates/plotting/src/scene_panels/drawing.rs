//! Drawing of scenes.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::prelude::DrawingBackend;

use super::layout::{Layout, Place, SWATCH};
use super::marks::{Course, Mark, Shape, usable_point};
use super::{ScenePanel, ScenePanels};
use crate::canvas::{Align, Canvas, Face, Medium};
use crate::figure::tint;
use crate::frame::TICK_GAP;
use crate::geometry::{Point, Rect, Stroke};
use crate::style::{AXIS, Color, GREY, INK, LABEL_SIZE, PAD, TICK_SIZE};
use crate::{Figure, PlotError};

const PATH_WIDTH: f64 = 1.8;
const RIM_WIDTH: f64 = 1.4;
const GROUND_WIDTH: f64 = 1.6;
/// The smallest disc that is seen.
const LEAST_RADIUS: f64 = 2.6;
/// Points of a path nearer to each other are drawn as one.
const NEAR: f64 = 0.4;
/// Steps of colour along a path.
const SHADES: usize = 32;
/// Share of the colour at the beginning of a path that fades.
const PALEST: f64 = 0.25;
const AREA_OPACITY: f64 = 0.16;

impl Figure for ScenePanels {
    fn title(&self) -> &str {
        &self.title
    }

    fn size(&self) -> (u32, u32) {
        // A figure that cannot be laid out fails with its reason when it is drawn.
        self.layout().map_or((400, 400), |layout| layout.size)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        medium: Medium,
    ) -> Result<Vec<String>, PlotError> {
        let warnings = self.check()?;
        let layout = self.layout()?;
        let canvas = Canvas::new(area, layout.size, medium)?;
        layout.heading.draw(&canvas)?;
        for entry in &layout.legend {
            draw_swatch(&canvas, entry.mark, entry.at)?;
            canvas.text(&entry.text, entry.text_at(), Face::new(LABEL_SIZE, INK, Align::Left))?;
        }
        for (panel, place) in self.panels.iter().zip(&layout.places) {
            draw_panel(&canvas, panel, place, layout.scale)?;
        }
        self.draw_names(&canvas, &layout)?;
        Ok(warnings)
    }
}

impl ScenePanels {
    fn draw_names<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, layout: &Layout<'_>) -> Result<(), PlotError> {
        let (fonts, all) = (canvas.fonts(), layout.all);
        if !self.x_label.is_empty() {
            let name = fonts.fit(&self.x_label, LABEL_SIZE, all.width().max(120.0));
            let below = TICK_GAP + TICK_SIZE + 8.0 + LABEL_SIZE / 2.0;
            let at = ((all.left + all.right) / 2.0, all.bottom + below);
            canvas.text(&name, at, Face::new(LABEL_SIZE, INK, Align::Center))?;
        }
        if !self.y_label.is_empty() {
            let name = fonts.fit(&self.y_label, LABEL_SIZE, all.height().max(80.0));
            let at = (PAD + 6.0, (all.top + all.bottom) / 2.0);
            canvas.text(&name, at, Face { upright: true, ..Face::new(LABEL_SIZE, INK, Align::Center) })?;
        }
        Ok(())
    }
}

fn draw_panel<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    panel: &ScenePanel,
    place: &Place,
    scale: f64,
) -> Result<(), PlotError> {
    let rect = place.rect;
    let title = canvas.fonts().fit(&panel.title, LABEL_SIZE, rect.width() + 8.0);
    canvas.text(&title, (rect.left, rect.top - 11.0), Face::new(LABEL_SIZE, INK, Align::Left))?;
    let pen = Pen { canvas, clip: rect, origin: (rect.left, rect.bottom), low: (place.x.0, place.y.0), scale };
    for mark in panel.drawable() {
        pen.draw(mark)?;
    }
    let edge = Stroke::solid(AXIS, 1.0);
    let corners = [
        (rect.left, rect.top),
        (rect.right, rect.top),
        (rect.right, rect.bottom),
        (rect.left, rect.bottom),
        (rect.left, rect.top),
    ];
    canvas.line(&corners, edge)?;
    if let Some((axis, ticks)) = &place.below {
        let x = |at: f64| rect.left + axis.at(at) * rect.width();
        for &at in ticks.labelled.iter().map(|tick| &tick.at).chain(&ticks.minor) {
            canvas.line(&[(x(at), rect.bottom), (x(at), rect.bottom + 4.0)], edge)?;
        }
        for tick in &ticks.labelled {
            let at = (x(tick.at), rect.bottom + TICK_GAP + TICK_SIZE / 2.0);
            canvas.text(&tick.label, at, Face::new(TICK_SIZE, GREY, Align::Center))?;
        }
    }
    if let Some((axis, ticks)) = &place.left {
        for tick in &ticks.labelled {
            let y = rect.bottom - axis.at(tick.at) * rect.height();
            canvas.line(&[(rect.left - 4.0, y), (rect.left, y)], edge)?;
            canvas.text(&tick.label, (rect.left - TICK_GAP, y), Face::new(TICK_SIZE, GREY, Align::Right))?;
        }
    }
    Ok(())
}

/// A small picture of the mark, `SWATCH` wide, its left end at `at`.
fn draw_swatch<DB: DrawingBackend>(canvas: &Canvas<'_, DB>, mark: &Mark, at: Point) -> Result<(), PlotError> {
    let clip = Rect { left: at.0, top: at.1 - 9.0, right: at.0 + SWATCH, bottom: at.1 + 9.0 };
    let pen = Pen { canvas, clip, origin: at, low: (0.0, 0.0), scale: 1.0 };
    let middle = (SWATCH / 2.0, 0.0);
    let shape = match &mark.shape {
        Shape::Block { .. } => Shape::Block { centre: middle, half: (7.0, 5.5) },
        Shape::Disc { .. } => Shape::Disc { centre: middle, radius: 4.0 },
        Shape::Circle { .. } => Shape::Circle { centre: middle, radius: 6.0 },
        Shape::Capsule { .. } => Shape::Capsule { from: (6.0, 0.0), to: (SWATCH - 6.0, 0.0), radius: 4.0 },
        Shape::Path { course, .. } => {
            let points = (0..=SHADES).map(|i| (1.0 + (SWATCH - 2.0) * i as f64 / SHADES as f64, 0.0)).collect();
            Shape::Path { points, course: *course }
        }
        Shape::Ground(_) => Shape::Ground(0.0),
    };
    pen.draw(&Mark { shape, color: mark.color, name: String::new() })
}

/// Draws marks into a rectangle of the picture.
struct Pen<'a, 'b, DB: DrawingBackend> {
    canvas: &'a Canvas<'b, DB>,
    clip: Rect,
    /// Logical pixel of the place `low`.
    origin: Point,
    low: (f64, f64),
    scale: f64,
}

impl<DB: DrawingBackend> Pen<'_, '_, DB> {
    fn at(&self, (x, y): (f64, f64)) -> Point {
        // Far outside of the panel only the direction counts, and sums must not overflow.
        let bounded = |distance: f64| (distance * self.scale).clamp(-1e6, 1e6);
        (self.origin.0 + bounded(x - self.low.0), self.origin.1 - bounded(y - self.low.1))
    }

    fn length(&self, length: f64) -> f64 {
        (length * self.scale).min(1e6)
    }

    fn fill(&self, outline: &[Point], color: Color, opacity: f64) -> Result<(), PlotError> {
        self.canvas.clipped_polygon(outline, self.clip, color, opacity)
    }

    fn draw(&self, mark: &Mark) -> Result<(), PlotError> {
        let white = Color(255, 255, 255);
        match &mark.shape {
            Shape::Block { centre, half } => {
                let (x, y) = self.at(*centre);
                // Blocks that touch would show seams where a viewer smooths their edges.
                let (dx, dy) = (self.length(half.0) + 0.2, self.length(half.1) + 0.2);
                let outline = [(x - dx, y - dy), (x + dx, y - dy), (x + dx, y + dy), (x - dx, y + dy)];
                self.fill(&outline, mark.color, 1.0)
            }
            Shape::Disc { centre, radius } => {
                let (at, radius) = (self.at(*centre), self.length(*radius).max(LEAST_RADIUS));
                self.fill(&capsule(at, at, radius + 0.8), white, 1.0)?;
                self.fill(&capsule(at, at, radius), mark.color, 1.0)
            }
            Shape::Circle { centre, radius } => {
                let at = self.at(*centre);
                let mut rim = capsule(at, at, self.length(*radius).max(LEAST_RADIUS));
                self.fill(&rim, mark.color, AREA_OPACITY)?;
                rim.extend(rim.first().copied());
                self.canvas.clipped_line(&rim, self.clip, Stroke::solid(mark.color, RIM_WIDTH))
            }
            Shape::Capsule { from, to, radius } => {
                let (from, to, radius) = (self.at(*from), self.at(*to), self.length(*radius).max(0.6));
                // A thin rim keeps limbs apart that cross each other.
                self.fill(&capsule(from, to, radius + 0.5), white, 1.0)?;
                self.fill(&capsule(from, to, radius), mark.color, 1.0)
            }
            Shape::Path { points, course } => self.path(points, *course, mark.color),
            Shape::Ground(y) => {
                let y = self.at((self.low.0, *y)).1;
                let line = [(self.clip.left, y), (self.clip.right, y)];
                self.canvas.clipped_line(&line, self.clip, Stroke::solid(mark.color, GROUND_WIDTH))
            }
        }
    }

    fn path(&self, points: &[(f64, f64)], course: Course, color: Color) -> Result<(), PlotError> {
        let last = points.len().saturating_sub(1).max(1);
        let shade = |index: usize| index * SHADES / (last + 1);
        let colored = |shade: usize| {
            let share = shade as f64 / (SHADES - 1) as f64;
            match course {
                Course::Even => color,
                Course::Fading => tint(color, PALEST + (1.0 - PALEST) * share),
                Course::Mapped(map) => map.color(share),
            }
        };
        let mut piece: Vec<Point> = Vec::new();
        let mut of_piece = 0;
        let draw = |piece: &[Point], shade: usize| {
            self.canvas.clipped_line(piece, self.clip, Stroke::solid(colored(shade), PATH_WIDTH))
        };
        for (i, &point) in points.iter().enumerate() {
            if !usable_point(point) {
                draw(&piece, of_piece)?;
                piece.clear();
                continue;
            }
            let at = self.at(point);
            if piece.is_empty() {
                of_piece = shade(i);
            }
            let near = |to: &Point| (to.0 - at.0).hypot(to.1 - at.1) < NEAR;
            if i < last && piece.last().is_some_and(near) {
                continue;
            }
            piece.push(at);
            if course != Course::Even && shade(i) != of_piece {
                draw(&piece, of_piece)?;
                // The next piece begins where this one ends.
                piece = vec![at];
                of_piece = shade(i);
            }
        }
        draw(&piece, of_piece)
    }
}

/// The outline of two discs and the band between them.
fn capsule(from: Point, to: Point, radius: f64) -> Vec<Point> {
    // Chords of about two logical pixels look round.
    let half = ((radius * 1.6) as usize).clamp(10, 120);
    let direction = (to.1 - from.1).atan2(to.0 - from.0);
    let arc = |centre: Point, start: f64| {
        (0..=half).map(move |i| {
            let (sin, cos) = (start + std::f64::consts::PI * i as f64 / half as f64).sin_cos();
            (centre.0 + radius * cos, centre.1 + radius * sin)
        })
    };
    let quarter = std::f64::consts::FRAC_PI_2;
    arc(to, direction - quarter).chain(arc(from, direction + quarter)).collect()
}
