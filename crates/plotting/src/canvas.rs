//! Drawing in logical pixels on any plotters backend: lines, dashes, clipped curves, markers and placed text.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, IntoFont, TextStyle};

use crate::PlotError;
use crate::font::{CAP_HEIGHT, Fonts, TEXT_FAMILY, printable};
use crate::geometry::{Point, Rect, Stroke, clip_line, clip_polygon, dashes, marker_outline};
use crate::spans::Spans;
use crate::style::{Color, Marker};

/// What the backend of a drawing area does well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The backend draws paths, polygons and whole texts itself (SVG).
    Vector,
    /// The backend sets pixels: paths and polygons arrive as pixel spans and texts glyph by glyph.
    Raster,
}

/// The look of a text.
#[derive(Clone, Copy)]
pub(crate) struct Face {
    /// Logical pixels per em.
    pub(crate) size: f64,
    pub(crate) color: Color,
    pub(crate) align: Align,
    /// Reads from bottom to top.
    pub(crate) upright: bool,
}

/// Which point of a text is put at the given place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Center,
    Right,
}

impl Face {
    pub(crate) fn new(size: f64, color: Color, align: Align) -> Self {
        Self { size, color, align, upright: false }
    }
}

/// A drawing area with logical coordinates.
pub(crate) struct Canvas<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    fonts: &'static Fonts,
    medium: Medium,
    /// Backend units per logical pixel.
    scale: f64,
}

impl<'a, DB: DrawingBackend> Canvas<'a, DB> {
    /// A white canvas of `size` logical pixels, scaled to fit into the area.
    pub(crate) fn new(area: &'a DrawingArea<DB, Shift>, size: (u32, u32), medium: Medium) -> Result<Self, PlotError> {
        let (width, height) = area.dim_in_pixel();
        let scale = (f64::from(width) / f64::from(size.0)).min(f64::from(height) / f64::from(size.1));
        let canvas = Self { area, fonts: Fonts::get()?, medium, scale };
        area.fill(&plotters::style::WHITE).map_err(failed)?;
        Ok(canvas)
    }

    pub(crate) fn fonts(&self) -> &'static Fonts {
        self.fonts
    }

    fn pixel(&self, point: Point) -> (i32, i32) {
        // The bound keeps sums of coordinates inside plotters within i32; nothing visible is that far out.
        let to_unit = |v: f64| (v * self.scale).round().clamp(-1e6, 1e6) as i32;
        (to_unit(point.0), to_unit(point.1))
    }

    /// An open line through `points`.
    pub(crate) fn line(&self, points: &[Point], stroke: Stroke) -> Result<(), PlotError> {
        let pieces = dashes(points, stroke);
        if self.medium == Medium::Raster {
            let mut spans = self.spans();
            for piece in &pieces {
                spans.stroke(&self.scaled(piece), stroke.width * self.scale / 2.0);
            }
            return self.paint(spans, stroke.color, 1.0);
        }
        let width = (stroke.width * self.scale).round().max(1.0) as u32;
        for piece in &pieces {
            let mut path: Vec<_> = piece.iter().map(|&p| self.pixel(p)).collect();
            path.dedup();
            if let [only] = path[..] {
                path.push((only.0 + 1, only.1));
            }
            self.area.draw(&PathElement::new(path, stroke.color.stroke_width(width))).map_err(failed)?;
        }
        Ok(())
    }

    /// The part of an open line that lies inside `clip`.
    pub(crate) fn clipped_line(&self, points: &[Point], clip: Rect, stroke: Stroke) -> Result<(), PlotError> {
        for run in clip_line(points, clip) {
            self.line(&run, stroke)?;
        }
        Ok(())
    }

    /// The part of a filled polygon that lies inside `clip`.
    pub(crate) fn clipped_polygon(
        &self,
        points: &[Point],
        clip: Rect,
        color: Color,
        opacity: f64,
    ) -> Result<(), PlotError> {
        self.polygon(&clip_polygon(points, clip), color, opacity)
    }

    /// A filled polygon.
    pub(crate) fn polygon(&self, points: &[Point], color: Color, opacity: f64) -> Result<(), PlotError> {
        if points.len() < 3 {
            return Ok(());
        }
        if self.medium == Medium::Raster {
            let mut spans = self.spans();
            spans.polygon(&self.scaled(points));
            return self.paint(spans, color, opacity);
        }
        let corners: Vec<_> = points.iter().map(|&p| self.pixel(p)).collect();
        self.area.draw(&Polygon::new(corners, color.mix(opacity))).map_err(failed)
    }

    /// A filled rectangle.
    pub(crate) fn rect(&self, rect: Rect, color: Color) -> Result<(), PlotError> {
        let corners = [self.pixel((rect.left, rect.top)), self.pixel((rect.right, rect.bottom))];
        self.area.draw(&Rectangle::new(corners, color.filled())).map_err(failed)
    }

    /// A marker of the given radius, with a thin white rim that keeps neighbours apart.
    pub(crate) fn marker(&self, at: Point, marker: Marker, radius: f64, color: Color) -> Result<(), PlotError> {
        let (x, y) = at;
        let white = Color(255, 255, 255);
        let (rim, outline) = (0.8, |r: f64| marker_outline(marker, at, r));
        if marker == Marker::Cross {
            let r = radius * 0.8;
            for (dx, dy) in [(r, r), (r, -r)] {
                self.line(&[(x - dx, y - dy), (x + dx, y + dy)], Stroke::solid(color, radius * 0.55))?;
            }
            return Ok(());
        }
        self.polygon(&outline(radius + rim), white, 1.0)?;
        self.polygon(&outline(radius), color, 1.0)
    }

    /// `text` beside `at`, capitals centred on it vertically.
    pub(crate) fn text(&self, text: &str, at: Point, face: Face) -> Result<(), PlotError> {
        let text = printable(text);
        let transform = if face.upright { FontTransform::Rotate270 } else { FontTransform::None };
        if self.medium == Medium::Raster {
            return self.glyphs(&text, at, face, &transform);
        }
        // The SVG backend divides the size by 1.24 and hangs a centred text half an x-height below the point; 0.93 leaves
        // room for viewers whose fonts run wider than the measured one.
        let size = (face.size * 0.93 * self.scale).round() * 1.24;
        let drop = (CAP_HEIGHT / 2.0 - 0.26) * face.size * 0.93;
        let at = if face.upright { (at.0 + drop, at.1) } else { (at.0, at.1 + drop) };
        let position = match face.align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = TextStyle::from((TEXT_FAMILY, size).into_font().transform(transform))
            .color(&face.color)
            .pos(Pos::new(position, VPos::Center));
        self.area.draw(&Text::new(text, self.pixel(at), style)).map_err(failed)
    }

    fn glyphs(&self, text: &str, at: Point, face: Face, transform: &FontTransform) -> Result<(), PlotError> {
        let em = face.size * self.scale;
        let width = self.fonts.width(text, em);
        let mut pen = match face.align {
            Align::Left => 0.0,
            Align::Center => -width / 2.0,
            Align::Right => -width,
        };
        let origin = self.pixel(at);
        let mut buffer = [0; 4];
        for character in text.chars() {
            let glyph = self.fonts.glyph(character);
            if character != ' ' {
                let size = glyph.size_per_em * em;
                // plotters centres a box of size / 1.24, cut to whole pixels, whose baseline lies at size / 2.
                let baseline = size / 2.0 - f64::from((size / 1.24) as i32 / 2);
                let dx = (pen + (glyph.bearing * em).floor()).round() as i32;
                let dy = (CAP_HEIGHT / 2.0 * em - baseline).round() as i32;
                let (dx, dy) = transform.transform(dx, dy);
                let style = TextStyle::from((glyph.family, size).into_font().transform(transform.clone()))
                    .color(&face.color)
                    .pos(Pos::new(HPos::Left, VPos::Center));
                let letter: &str = character.encode_utf8(&mut buffer);
                self.area.draw(&Text::new(letter.to_owned(), (origin.0 + dx, origin.1 + dy), style)).map_err(failed)?;
            }
            pen += glyph.advance * em;
        }
        Ok(())
    }

    fn scaled(&self, points: &[Point]) -> Vec<Point> {
        points.iter().map(|p| (p.0 * self.scale, p.1 * self.scale)).collect()
    }

    fn spans(&self) -> Spans {
        let (width, height) = self.area.dim_in_pixel();
        Spans::new(width, height)
    }

    fn paint(&self, spans: Spans, color: Color, opacity: f64) -> Result<(), PlotError> {
        let style = color.mix(opacity).filled();
        for (row, first, end) in spans.merged() {
            self.area.draw(&Rectangle::new([(first, row), (end, row + 1)], style)).map_err(failed)?;
        }
        Ok(())
    }
}

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> PlotError {
    PlotError::Backend(error.to_string())
}
