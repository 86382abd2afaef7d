//! Shapes as horizontal spans of pixels, for bitmaps.
//!
//! plotters turns a thick line into one polygon with integer corners, which leaves holes and spikes where a noisy curve
//! turns sharply, and its polygon filling paints concave shapes unevenly. A union of spans has neither fault, and
//! paints every pixel once, so that translucent shapes stay even.

use std::collections::BTreeMap;

use crate::geometry::Point;

/// A set of pixels: for each row the intervals `first..end` of columns, which may overlap until [`Spans::merged`].
#[derive(Default)]
pub(crate) struct Spans {
    rows: BTreeMap<i32, Vec<(i32, i32)>>,
    /// Pixels outside are never drawn, so they are not collected either.
    width: f64,
    height: f64,
}

impl Spans {
    /// An empty set on a bitmap of the given size.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self { rows: BTreeMap::new(), width: f64::from(width), height: f64::from(height) }
    }

    /// Adds a line of the given radius through `points`, with round joins and ends.
    pub(crate) fn stroke(&mut self, points: &[Point], radius: f64) {
        if let [only] = points {
            self.capsule(*only, *only, radius);
        }
        for pair in points.windows(2) {
            self.capsule(pair[0], pair[1], radius);
        }
    }

    /// Adds everything closer than `radius` to the segment from `a` to `b`.
    fn capsule(&mut self, a: Point, b: Point, radius: f64) {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = dx.hypot(dy);
        let side = if length > 0.0 { (-dy / length * radius, dx / length * radius) } else { (0.0, 0.0) };
        let corners = [
            (a.0 + side.0, a.1 + side.1),
            (b.0 + side.0, b.1 + side.1),
            (b.0 - side.0, b.1 - side.1),
            (a.0 - side.0, a.1 - side.1),
        ];
        for row in self.rows_between(a.1.min(b.1) - radius, a.1.max(b.1) + radius) {
            let y = f64::from(row) + 0.5;
            // The shape is convex, so a row meets it in one interval: from the leftmost to the rightmost crossing.
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for center in [a, b] {
                let under = radius * radius - (y - center.1).powi(2);
                if under > 0.0 {
                    low = low.min(center.0 - under.sqrt());
                    high = high.max(center.0 + under.sqrt());
                }
            }
            for i in 0..4 {
                if let Some(x) = crossing(corners[i], corners[(i + 1) % 4], y) {
                    low = low.min(x);
                    high = high.max(x);
                }
            }
            self.add(row, low, high);
        }
    }

    /// Adds the inside of a closed polygon, by the even-odd rule.
    pub(crate) fn polygon(&mut self, points: &[Point]) {
        let mut crossings: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
        for (i, &a) in points.iter().enumerate() {
            let b = points[(i + 1) % points.len()];
            for row in self.rows_between(a.1.min(b.1), a.1.max(b.1)) {
                if let Some(x) = crossing(a, b, f64::from(row) + 0.5) {
                    crossings.entry(row).or_default().push(x);
                }
            }
        }
        for (row, mut xs) in crossings {
            xs.sort_by(f64::total_cmp);
            for pair in xs.chunks_exact(2) {
                self.add(row, pair[0], pair[1]);
            }
        }
    }

    fn rows_between(&self, low: f64, high: f64) -> std::ops::RangeInclusive<i32> {
        low.clamp(0.0, self.height).floor() as i32..=(high.clamp(-1.0, self.height - 1.0)).floor() as i32
    }

    fn add(&mut self, row: i32, low: f64, high: f64) {
        // A pixel belongs to a shape that covers its centre.
        let first = (low.clamp(0.0, self.width) - 0.5).ceil() as i32;
        let end = (high.clamp(0.0, self.width) - 0.5).ceil() as i32;
        if first < end {
            self.rows.entry(row).or_default().push((first, end));
        }
    }

    /// The disjoint intervals `(row, first, end)`, row by row.
    pub(crate) fn merged(self) -> impl Iterator<Item = (i32, i32, i32)> {
        self.rows.into_iter().flat_map(|(row, mut intervals)| {
            intervals.sort_unstable();
            let mut joined: Vec<(i32, i32)> = Vec::new();
            for (first, end) in intervals {
                match joined.last_mut() {
                    Some(last) if first <= last.1 => last.1 = last.1.max(end),
                    _ => joined.push((first, end)),
                }
            }
            joined.into_iter().map(move |(first, end)| (row, first, end))
        })
    }
}

/// Where the edge from `a` to `b` crosses the height `y`; its lower end counts, its upper one does not.
fn crossing(a: Point, b: Point, y: f64) -> Option<f64> {
    let (top, bottom) = if a.1 <= b.1 { (a, b) } else { (b, a) };
    (top.1 <= y && y < bottom.1).then(|| top.0 + (bottom.0 - top.0) * (y - top.1) / (bottom.1 - top.1))
}

/// Averages `factor` x `factor` blocks of an RGB image of `width * factor` by `height * factor` pixels.
pub(crate) fn shrink(pixels: &[u8], width: usize, height: usize, factor: usize) -> Vec<u8> {
    let area = (factor * factor) as u32;
    let mut shrunk = Vec::with_capacity(3 * width * height);
    let mut sums = vec![0_u32; 3 * width];
    for block in pixels.chunks_exact(3 * width * factor * factor).take(height) {
        sums.fill(0);
        for row in block.chunks_exact(3 * width * factor) {
            for (sum, run) in sums.chunks_exact_mut(3).zip(row.chunks_exact(3 * factor)) {
                for pixel in run.chunks_exact(3) {
                    for (total, &value) in sum.iter_mut().zip(pixel) {
                        *total += u32::from(value);
                    }
                }
            }
        }
        shrunk.extend(sums.iter().map(|sum| ((sum + area / 2) / area) as u8));
    }
    shrunk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(spans: Spans) -> Vec<String> {
        let (width, height) = (spans.width as usize, spans.height as usize);
        let mut rows = vec![vec![b'.'; width]; height];
        for (row, first, end) in spans.merged() {
            for cell in &mut rows[row as usize][first as usize..end as usize] {
                assert_eq!(*cell, b'.', "painted twice");
                *cell = b'#';
            }
        }
        rows.into_iter().map(|row| String::from_utf8(row).unwrap()).collect()
    }

    #[test]
    fn a_sharp_turn_has_no_hole_and_no_spike() {
        let mut spans = Spans::new(8, 8);
        spans.stroke(&[(1.0, 7.0), (4.0, 2.0), (4.5, 7.0)], 1.0);
        assert_eq!(
            picture(spans),
            ["........", "...##...", "...##...", "..###...", ".####...", ".####...", "##.##...", "##..#..."]
                .map(str::to_owned)
        );
    }

    #[test]
    fn a_concave_polygon_keeps_its_notch() {
        let mut spans = Spans::new(6, 4);
        spans.polygon(&[
            (0.0, 0.0),
            (6.0, 0.0),
            (6.0, 4.0),
            (4.0, 4.0),
            (4.0, 2.0),
            (2.0, 2.0),
            (2.0, 4.0),
            (0.0, 4.0),
        ]);
        assert_eq!(picture(spans), ["######", "######", "##..##", "##..##"].map(str::to_owned));
    }

    #[test]
    fn what_lies_outside_the_bitmap_is_not_collected() {
        let mut spans = Spans::new(4, 4);
        spans.stroke(&[(-1e6, 1.5), (1e6, 1.5)], 0.5);
        spans.polygon(&[(-1e6, -1e6), (1e6, -1e6), (1e6, -1e5)]);
        spans.stroke(&[(2.0, 1e6)], 3.0);
        assert_eq!(picture(spans), ["....", "####", "....", "...."].map(str::to_owned));
    }

    #[test]
    fn shrinking_averages_blocks() {
        let pixels = [[0, 10, 20], [10, 20, 30], [20, 30, 40], [31, 41, 51]].concat();
        assert_eq!(shrink(&pixels, 1, 1, 2), [15, 25, 35]);
    }
}
