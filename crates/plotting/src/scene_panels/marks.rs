//! What stands in a scene.

use super::{Range, default_color};
use crate::axis::usable;
use crate::style::Scale;
use crate::{Color, ColorMap};

/// A place in the plane of a scene, y upwards.
type Place = (f64, f64);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Block { centre: Place, half: Place },
    Disc { centre: Place, radius: f64 },
    Circle { centre: Place, radius: f64 },
    Capsule { from: Place, to: Place, radius: f64 },
    Path { points: Vec<Place>, course: Course },
    Ground(f64),
}

/// How the colour of a path runs from its first to its last point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Course {
    Even,
    Fading,
    Mapped(ColorMap),
}

/// One thing in a [`ScenePanel`](crate::ScenePanel), in the units of its axes, y upwards. One whose place or size is
/// not finite, or whose size is negative, is left out with a warning.
#[derive(Clone, Debug)]
pub struct Mark {
    pub(crate) shape: Shape,
    pub(crate) color: Color,
    pub(crate) name: String,
}

impl Mark {
    fn new(shape: Shape) -> Self {
        Self { color: default_color(&shape), shape, name: String::new() }
    }

    /// A filled box with sides along the axes, such as a wall; `half` of its sides along x and y.
    pub fn block(centre: (f64, f64), half: (f64, f64)) -> Self {
        Self::new(Shape::Block { centre, half })
    }

    /// A filled disc. One that would be too small to see is drawn as a point.
    pub fn disc(centre: (f64, f64), radius: f64) -> Self {
        Self::new(Shape::Disc { centre, radius })
    }

    /// A circle around a faintly filled area, such as the places that count as a goal.
    pub fn circle(centre: (f64, f64), radius: f64) -> Self {
        Self::new(Shape::Circle { centre, radius })
    }

    /// Two discs and the band between them, such as a limb.
    pub fn capsule(from: (f64, f64), to: (f64, f64), radius: f64) -> Self {
        Self::new(Shape::Capsule { from, to, radius })
    }

    /// A line through points; one that is not finite is left out with a warning and leaves a gap.
    pub fn path(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(Shape::Path { points: points.into_iter().collect(), course: Course::Even })
    }

    /// The ground: a line at height `y` across the panel.
    pub fn ground(y: f64) -> Self {
        Self::new(Shape::Ground(y))
    }

    /// Sets the colour.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = color;
        self
    }

    /// What it means, for the legend, where marks of the same name, kind and colour are one entry. Not in the legend if
    /// not set.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Lets a path begin pale and reach its colour at its end. Other marks stay as they are.
    #[must_use]
    pub fn fading(self) -> Self {
        self.course(Course::Fading)
    }

    /// Colours a path along a colour scale, from its first point to its last. Other marks stay as they are.
    #[must_use]
    pub fn color_map(self, map: ColorMap) -> Self {
        self.course(Course::Mapped(map))
    }

    fn course(mut self, to: Course) -> Self {
        if let Shape::Path { course, .. } = &mut self.shape {
            *course = to;
        }
        self
    }

    pub(crate) fn points(&self) -> usize {
        match &self.shape {
            Shape::Path { points, .. } => points.len(),
            _ => 0,
        }
    }

    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let course = |mark: &Self| match &mark.shape {
            Shape::Path { course, .. } => Some(*course),
            _ => None,
        };
        self.name == other.name
            && self.color == other.color
            && std::mem::discriminant(&self.shape) == std::mem::discriminant(&other.shape)
            && course(self) == course(other)
    }

    pub(crate) fn is_drawable(&self) -> bool {
        let length = |value: f64| usable(value, Scale::Linear) && value >= 0.0;
        match &self.shape {
            Shape::Block { centre, half } => usable_point(*centre) && length(half.0) && length(half.1),
            Shape::Disc { centre, radius } | Shape::Circle { centre, radius } => {
                usable_point(*centre) && length(*radius)
            }
            Shape::Capsule { from, to, radius } => usable_point(*from) && usable_point(*to) && length(*radius),
            Shape::Path { points, .. } => points.iter().any(|&point| usable_point(point)),
            Shape::Ground(y) => usable(*y, Scale::Linear),
        }
    }

    /// The ranges of x and y that a drawable mark covers; a ground reaches as far as the panel and has none.
    pub(crate) fn bounds(&self) -> Option<(Range, Range)> {
        let around = |(x, y): Place, (dx, dy): Place| ((x - dx, x + dx), (y - dy, y + dy));
        match &self.shape {
            Shape::Block { centre, half } => Some(around(*centre, *half)),
            Shape::Disc { centre, radius } | Shape::Circle { centre, radius } => {
                Some(around(*centre, (*radius, *radius)))
            }
            Shape::Capsule { from, to, radius } => {
                Some(union(around(*from, (*radius, *radius)), around(*to, (*radius, *radius))))
            }
            Shape::Path { points, .. } => points
                .iter()
                .filter(|&&point| usable_point(point))
                .map(|&point| around(point, (0.0, 0.0)))
                .reduce(union),
            Shape::Ground(_) => None,
        }
    }
}

/// The smallest ranges that hold both.
pub(crate) fn union(a: (Range, Range), b: (Range, Range)) -> (Range, Range) {
    let both = |a: Range, b: Range| (a.0.min(b.0), a.1.max(b.1));
    (both(a.0, b.0), both(a.1, b.1))
}

pub(crate) fn usable_point((x, y): Place) -> bool {
    usable(x, Scale::Linear) && usable(y, Scale::Linear)
}
