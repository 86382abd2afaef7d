//! Plane geometry in logical pixels: rectangles, dashes, clipping and the outlines of markers.

use crate::style::{Color, Dash, Marker};

/// A point, `y` downwards.
pub(crate) type Point = (f64, f64);

/// A rectangle in logical pixels, `y` downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// The look of a line.
#[derive(Clone, Copy)]
pub(crate) struct Stroke {
    pub(crate) color: Color,
    /// Logical pixels.
    pub(crate) width: f64,
    pub(crate) dash: Dash,
}

impl Stroke {
    pub(crate) fn solid(color: Color, width: f64) -> Self {
        Self { color, width, dash: Dash::Solid }
    }
}

/// The corners of a filled marker of radius `r`.
pub(crate) fn marker_outline(marker: Marker, (x, y): Point, r: f64) -> Vec<Point> {
    match marker {
        Marker::Circle | Marker::Cross => (0..24)
            .map(|i| (f64::from(i) * std::f64::consts::TAU / 24.0).sin_cos())
            .map(|(sin, cos)| (x + r * cos, y + r * sin))
            .collect(),
        Marker::Square => {
            let s = 0.88 * r;
            vec![(x - s, y - s), (x + s, y - s), (x + s, y + s), (x - s, y + s)]
        }
        Marker::Triangle => vec![(x, y - 1.15 * r), (x + 1.1 * r, y + 0.8 * r), (x - 1.1 * r, y + 0.8 * r)],
        Marker::Diamond => {
            let s = 1.2 * r;
            vec![(x, y - s), (x + s, y), (x, y + s), (x - s, y)]
        }
    }
}

/// The strokes of a line with `stroke.dash`, measured along the line.
pub(crate) fn dashes(points: &[Point], stroke: Stroke) -> Vec<Vec<Point>> {
    let pattern = stroke.dash.pattern();
    let length: f64 = points.windows(2).map(|p| distance(p[0], p[1])).sum();
    // A curve so noisy that it is this long shows no dashes, only a file of many megabytes.
    const LONGEST: f64 = 30_000.0;
    if pattern.is_empty() || length > LONGEST {
        return vec![points.to_vec()];
    }
    let mut pieces = Vec::new();
    let mut current: Vec<Point> = points.first().copied().into_iter().collect();
    // Round ends add a stroke width to what is seen of a stroke.
    let seen = |i: usize| {
        let cap = if i.is_multiple_of(2) { -stroke.width } else { stroke.width };
        (pattern[i % pattern.len()] + cap).max(0.1)
    };
    let (mut index, mut left) = (0, seen(0));
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        let mut rest = distance(from, to);
        while rest > left {
            let t = left / rest;
            from = (from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t);
            rest -= left;
            if index % 2 == 0 {
                current.push(from);
                pieces.push(std::mem::take(&mut current));
            } else {
                current = vec![from];
            }
            index += 1;
            left = seen(index);
        }
        left -= rest;
        if index % 2 == 0 {
            current.push(to);
        }
    }
    if current.len() > 1 {
        pieces.push(current);
    }
    pieces
}

fn distance(a: Point, b: Point) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

/// The runs of `points` inside `clip`, cut at its edges (Liang-Barsky on each segment).
pub(crate) fn clip_line(points: &[Point], clip: Rect) -> Vec<Vec<Point>> {
    let mut runs: Vec<Vec<Point>> = Vec::new();
    let mut run: Vec<Point> = Vec::new();
    for pair in points.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        let mut outside = false;
        for (step, room) in
            [(-dx, a.0 - clip.left), (dx, clip.right - a.0), (-dy, a.1 - clip.top), (dy, clip.bottom - a.1)]
        {
            if step == 0.0 {
                outside |= room < 0.0;
            } else if step < 0.0 {
                enter = enter.max(room / step);
            } else {
                leave = leave.min(room / step);
            }
        }
        if outside || enter > leave {
            runs.push(std::mem::take(&mut run));
            continue;
        }
        if run.is_empty() || enter > 0.0 {
            runs.push(std::mem::take(&mut run));
            run.push((a.0 + dx * enter, a.1 + dy * enter));
        }
        run.push((a.0 + dx * leave, a.1 + dy * leave));
        if leave < 1.0 {
            runs.push(std::mem::take(&mut run));
        }
    }
    runs.push(run);
    runs.retain(|run| run.len() > 1);
    runs
}

/// The part of a polygon inside `clip` (Sutherland-Hodgman).
pub(crate) fn clip_polygon(points: &[Point], clip: Rect) -> Vec<Point> {
    let mut kept = points.to_vec();
    let edges: [(bool, f64, f64); 4] =
        [(true, clip.left, 1.0), (true, clip.right, -1.0), (false, clip.top, 1.0), (false, clip.bottom, -1.0)];
    for (horizontal, edge, sign) in edges {
        let depth = |p: Point| sign * (if horizontal { p.0 } else { p.1 } - edge);
        let mut inside = Vec::with_capacity(kept.len() + 4);
        for (i, &b) in kept.iter().enumerate() {
            let a = kept[(i + kept.len() - 1) % kept.len()];
            let (da, db) = (depth(a), depth(b));
            if (da >= 0.0) != (db >= 0.0) {
                let t = da / (da - db);
                inside.push((a.0 + (b.0 - a.0) * t, a.1 + (b.1 - a.1) * t));
            }
            if db >= 0.0 {
                inside.push(b);
            }
        }
        kept = inside;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIP: Rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn a_line_is_cut_where_it_leaves_and_enters() {
        let runs = clip_line(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 20.0), (8.0, 20.0), (8.0, 5.0)], CLIP);
        assert_eq!(runs, [vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]]);
        assert!(clip_line(&[(-1.0, -1.0), (-1.0, 11.0), (11.0, 11.0)], CLIP).is_empty());
        assert!(clip_line(&[(1.0, 1.0)], CLIP).is_empty());
    }

    #[test]
    fn a_polygon_is_cut_at_the_edges() {
        let cut = clip_polygon(&[(-5.0, 2.0), (5.0, 2.0), (5.0, 15.0), (-5.0, 15.0)], CLIP);
        let area: f64 =
            (0..cut.len()).map(|i| (cut[i], cut[(i + 1) % cut.len()])).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum();
        assert_eq!(area.abs() / 2.0, 40.0);
        assert!(cut.iter().all(|p| (0.0..=10.0).contains(&p.0) && (0.0..=10.0).contains(&p.1)));
    }

    #[test]
    fn dashes_cover_their_share_and_go_round_corners() {
        let stroke = Stroke { color: Color(0, 0, 0), width: 1.0, dash: Dash::Short };
        let pieces = dashes(&[(0.0, 0.0), (45.0, 0.0), (45.0, 45.0)], stroke);
        assert_eq!(pieces.len(), 10);
        let drawn: f64 = pieces.iter().flat_map(|p| p.windows(2)).map(|p| distance(p[0], p[1])).sum();
        assert!((drawn - 50.0).abs() < 1e-9, "{drawn}");
        let solid = dashes(&[(0.0, 0.0), (45.0, 0.0)], Stroke::solid(Color(0, 0, 0), 1.0));
        assert_eq!(solid, [vec![(0.0, 0.0), (45.0, 0.0)]]);
    }
}
