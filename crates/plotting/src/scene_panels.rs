//! Places and bodies in a plane, several scenes side by side, with equal scales in both directions.

mod drawing;
mod layout;
mod marks;
#[cfg(test)]
mod tests;

pub use marks::Mark;

use crate::axis::Axis;
use crate::style::Scale;
use crate::{Color, PlotError};
use marks::Shape;

/// A range of x or y.
type Range = (f64, f64);

/// One scene of [`ScenePanels`]: marks on a plane, later ones on top of earlier ones.
#[derive(Clone, Debug)]
pub struct ScenePanel {
    title: String,
    marks: Vec<Mark>,
    view: Option<(Range, Range)>,
}

impl ScenePanel {
    /// A scene without marks.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), marks: Vec::new(), view: None }
    }

    /// Adds a mark on top of those before.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// The part of the plane that is shown, as low and high ends of x and of y, in the units of the marks. Panels
    /// without one share a part that holds all of their marks. A part far slimmer than that of another panel is
    /// widened.
    #[must_use]
    pub fn view(mut self, x: (f64, f64), y: (f64, f64)) -> Self {
        self.view = Some((x, y));
        self
    }

    fn drawable(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(|mark| mark.is_drawable())
    }
}

/// Scenes in panels: boxes, paths, discs, circles and capsules on a plane, such as a maze seen from above. All panels
/// have one scale, which x and y share. Marks that have a name are explained in one legend under the heading. Numbers
/// stand along the outer edges, and inside only where the next panel shows another part of the plane.
///
/// ```
/// use plotting::{Figure, Mark, ScenePanel, ScenePanels};
///
/// let way = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0)];
/// let panel = ScenePanel::new("seed 0")
///     .mark(Mark::block((0.0, 4.0), (2.0, 2.0)).name("wall"))
///     .mark(Mark::circle((4.0, 4.0), 0.5).name("goal"))
///     .mark(Mark::path(way).fading().name("path"));
/// let figure = ScenePanels::new("Ways through a maze").x_label("x, m").y_label("y, m").panel(panel);
/// assert!(figure.svg()?.contains("seed 0"));
/// # Ok::<(), plotting::PlotError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScenePanels {
    title: String,
    subtitle: String,
    x_label: String,
    y_label: String,
    panels_a_row: Option<usize>,
    panels: Vec<ScenePanel>,
}

const MOST_PANELS: usize = 24;
/// A picture of more marks or points takes longer to draw and to open than anyone waits.
const MOST_MARKS: usize = 20_000;
const MOST_POINTS: usize = 200_000;
/// Entries of the legend; more are no longer a key to a picture.
const MOST_NAMES: usize = 16;

impl ScenePanels {
    /// A figure without panels.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A grey line under the title: scale, seeds, command.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// What runs to the right, with its unit.
    #[must_use]
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x_label = label.into();
        self
    }

    /// What runs upwards, with its unit.
    #[must_use]
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y_label = label.into();
        self
    }

    /// Panels side by side, from 1 to 8; up to four if not set. There are more where the panels would fill over five
    /// rows.
    #[must_use]
    pub fn panels_a_row(mut self, count: usize) -> Self {
        self.panels_a_row = Some(count);
        self
    }

    /// Adds a panel to the right of those before, or at the left of a new row.
    #[must_use]
    pub fn panel(mut self, panel: ScenePanel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The first mark of each look that has a name.
    fn named(&self) -> Vec<&Mark> {
        let mut named: Vec<&Mark> = Vec::new();
        for mark in self.panels.iter().flat_map(ScenePanel::drawable).filter(|mark| !mark.name.is_empty()) {
            if named.len() > MOST_NAMES {
                break;
            }
            if !named.iter().any(|other| other.looks_like(mark)) {
                named.push(mark);
            }
        }
        named
    }

    fn check(&self) -> Result<Vec<String>, PlotError> {
        let figure = || self.title.clone();
        let problem = |problem| Err(PlotError::Data { figure: figure(), problem });
        if self.panels.len() > MOST_PANELS {
            return problem(format!("it has {} panels; split it into figures of {MOST_PANELS}", self.panels.len()));
        }
        let marks: usize = self.panels.iter().map(|panel| panel.marks.len()).sum();
        let points: usize = self.panels.iter().flat_map(|panel| &panel.marks).map(Mark::points).sum();
        if marks > MOST_MARKS || points > MOST_POINTS {
            return problem(format!(
                "it has {marks} marks and {points} points of paths, more than {MOST_MARKS} or {MOST_POINTS}; draw \
                 fewer panels or every tenth point"
            ));
        }
        for panel in &self.panels {
            if let Some((x, y)) = panel.view {
                Axis::given(x, Scale::Linear, &self.title, "x")?;
                Axis::given(y, Scale::Linear, &self.title, "y")?;
            }
        }
        if !self.panels.iter().flat_map(ScenePanel::drawable).any(|mark| !matches!(mark.shape, Shape::Ground(_))) {
            let reason = match self.panels.len() {
                0 => "it has no panel".to_owned(),
                count => format!("none of its {count} panels has a mark of finite place and size"),
            };
            return Err(PlotError::Empty { figure: figure(), reason });
        }
        let mut warnings: Vec<String> = self.panels.iter().flat_map(ScenePanel::warnings).collect();
        if self.named().len() > MOST_NAMES {
            warnings.push(format!("the legend shows {MOST_NAMES} names and leaves out the others"));
        }
        Ok(warnings)
    }
}

impl ScenePanel {
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |text: String| warnings.push(format!("panel \"{}\": {text}", self.title));
        let lost = self.marks.iter().filter(|mark| !mark.is_drawable()).count();
        if lost > 0 {
            warn(format!("{lost} marks left out: their place or size is not finite, or the size is negative"));
        }
        let (missing, of) = self.drawable().fold((0, 0), |(missing, of), mark| match &mark.shape {
            Shape::Path { points, .. } => {
                let bad = points.iter().filter(|&&point| !marks::usable_point(point)).count();
                (missing + bad, of + if bad > 0 { points.len() } else { 0 })
            }
            _ => (missing, of),
        });
        if missing > 0 {
            warn(format!("{missing} of {of} points of paths left out: not finite"));
        }
        if let Some((x, y)) = self.view {
            let beyond = |mark: &&Mark| {
                mark.bounds().is_some_and(|(mx, my)| mx.1 < x.0 || mx.0 > x.1 || my.1 < y.0 || my.0 > y.1)
            };
            let outside = self.drawable().filter(beyond).count();
            if outside > 0 {
                warn(format!("{outside} marks lie outside of the part that is shown"));
            }
        }
        warnings
    }
}

/// The colour of a mark whose colour is not set.
pub(crate) fn default_color(shape: &Shape) -> Color {
    match shape {
        Shape::Block { .. } => Color(0xc4, 0xc4, 0xc4),
        Shape::Ground(_) => crate::style::REFERENCE,
        Shape::Circle { .. } => crate::arm_color(3),
        Shape::Path { .. } => crate::arm_color(2),
        Shape::Disc { .. } | Shape::Capsule { .. } => crate::style::INK,
    }
}
