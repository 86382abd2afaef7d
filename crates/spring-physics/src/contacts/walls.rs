//! The boxes of the world in a grid, so that a geom meets only those that are near.

use crate::{
    model::Model,
    real::Real,
    spec::{Shape, Surface},
};

/// Cells along an axis, and entries of all cells together.
const MOST_CELLS: f64 = 256.0;
const MOST_ENTRIES: usize = 1 << 22;

/// Boxes with the list of those that are near each cell of the floor plan.
#[derive(Clone, Debug)]
pub(super) struct Walls<F> {
    /// Geoms that touch some box, by number among the touching geoms.
    pub geoms: Vec<WallGeom<F>>,
    /// Centre and half size of each box.
    pub boxes: Vec<[F; 6]>,
    corner: [f64; 2],
    cells_per_metre: f64,
    cells: [usize; 2],
    starts: Vec<u32>,
    entries: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct WallGeom<F> {
    pub geom: usize,
    /// For each box the coefficient of friction; negative where they do not touch.
    pub friction: Vec<F>,
}

/// How far the surface of a shape reaches from its middle.
pub(super) fn reach(shape: &Shape) -> f64 {
    match shape {
        Shape::Sphere { radius, .. } => *radius,
        Shape::Capsule { from, to, radius } => {
            let square: f64 = from.iter().zip(to).map(|(a, b)| (a - b).powi(2)).sum();
            0.5 * square.sqrt() + radius
        }
    }
}

impl<F: Real> Walls<F> {
    /// `geoms` are those that touch anything, with their shapes and surfaces.
    pub fn new(model: &Model, geoms: &[(Shape, Surface)]) -> Self {
        let blocks = &model.blocks;
        let mut wall_geoms = Vec::new();
        let mut farthest = 0.0f64;
        for (geom, (shape, surface)) in geoms.iter().enumerate() {
            if blocks.iter().any(|block| surface.touches(block.surface)) {
                let friction = blocks.iter().map(|block| {
                    let touches = surface.touches(block.surface);
                    F::from_f64(if touches { surface.friction.max(block.surface.friction) } else { -1.0 })
                });
                wall_geoms.push(WallGeom { geom, friction: friction.collect() });
                farthest = farthest.max(reach(shape));
            }
        }
        let mut walls = Self {
            geoms: wall_geoms,
            boxes: blocks
                .iter()
                .map(|b| [b.center, b.half_size].concat())
                .map(|numbers| std::array::from_fn(|k| F::from_f64(numbers[k])))
                .collect(),
            corner: [0.0; 2],
            cells_per_metre: 0.0,
            cells: [0; 2],
            starts: vec![0],
            entries: Vec::new(),
        };
        if !walls.geoms.is_empty() {
            walls.fill(model, 1.0001 * farthest + 1e-3);
        }
        walls
    }

    fn fill(&mut self, model: &Model, margin: f64) {
        let spans: Vec<[[f64; 2]; 2]> = model
            .blocks
            .iter()
            .map(|b| [0, 1].map(|k| [b.center[k] - b.half_size[k] - margin, b.center[k] + b.half_size[k] + margin]))
            .collect();
        let bounds = [0, 1].map(|k| {
            spans.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], span| {
                [low.min(span[k][0]), high.max(span[k][1])]
            })
        });
        self.corner = [bounds[0][0], bounds[1][0]];
        let extent = bounds.map(|[low, high]| high - low);
        let mut cell = margin.max(extent[0].max(extent[1]) / MOST_CELLS);
        let ranges = loop {
            self.cells_per_metre = 1.0 / cell;
            self.cells = extent.map(|length| (length / cell) as usize + 1);
            let ranges: Vec<[[usize; 2]; 2]> = spans
                .iter()
                .map(|span| {
                    [0, 1].map(|k| {
                        span[k]
                            .map(|at| (((at - self.corner[k]) * self.cells_per_metre) as usize).min(self.cells[k] - 1))
                    })
                })
                .collect();
            let entries = ranges.iter().map(|[x, y]| (x[1] - x[0] + 1) * (y[1] - y[0] + 1));
            if entries.sum::<usize>() <= MOST_ENTRIES || self.cells == [1, 1] {
                break ranges;
            }
            cell *= 2.0;
        };
        let mut lists = vec![Vec::new(); self.cells[0] * self.cells[1]];
        for (index, [x, y]) in ranges.iter().enumerate() {
            for row in x[0]..=x[1] {
                for column in y[0]..=y[1] {
                    lists[row * self.cells[1] + column].push(index as u32);
                }
            }
        }
        for list in lists {
            self.entries.extend(list);
            self.starts.push(self.entries.len() as u32);
        }
    }

    /// The boxes that a geom with its middle at this place can touch.
    #[inline(always)]
    pub fn near(&self, x: F, y: F) -> &[u32] {
        let row = (x.to_f64() - self.corner[0]) * self.cells_per_metre;
        let column = (y.to_f64() - self.corner[1]) * self.cells_per_metre;
        // Written so that a NaN is near nothing.
        if row >= 0.0 && row < self.cells[0] as f64 && column >= 0.0 && column < self.cells[1] as f64 {
            let cell = row as usize * self.cells[1] + column as usize;
            &self.entries[self.starts[cell] as usize..self.starts[cell + 1] as usize]
        } else {
            &[]
        }
    }
}
