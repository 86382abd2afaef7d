//! Matrices as coloured cells, several side by side on one colour scale.

mod drawing;

use crate::PlotError;
use crate::axis::{Axis, usable};
use crate::color_map::ColorMap;
use crate::style::Scale;

/// One matrix of a [`HeatMap`]. Rows run downwards and may have different lengths.
#[derive(Clone, Debug)]
pub struct Panel {
    title: String,
    rows: Vec<Vec<Option<f64>>>,
    row_labels: Option<Vec<String>>,
    column_labels: Option<Vec<String>>,
}

impl Panel {
    /// A matrix whose missing cells stay white.
    pub fn new(title: impl Into<String>, rows: Vec<Vec<Option<f64>>>) -> Self {
        Self { title: title.into(), rows, row_labels: None, column_labels: None }
    }

    /// A matrix of rows that may be shorter than others, such as the coefficients `p[l][i]` of the sources `i < l`
    /// of each target `l`.
    pub fn of_rows(title: impl Into<String>, rows: &[Vec<f64>]) -> Self {
        Self::new(title, rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect())
    }

    /// Names of the rows; counted from 0 if not given.
    #[must_use]
    pub fn row_labels<L: ToString>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.row_labels = Some(labels.into_iter().map(|label| label.to_string()).collect());
        self
    }

    /// Names of the columns; counted from 0 if not given.
    #[must_use]
    pub fn column_labels<L: ToString>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.column_labels = Some(labels.into_iter().map(|label| label.to_string()).collect());
        self
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().flatten().flatten().copied()
    }
}

/// Matrices as coloured cells with a colour bar; up to 16 x 16 the values are printed too.
///
/// ```
/// use plotting::{Figure, HeatMap, Panel};
///
/// let p = [vec![1.0], vec![0.5, 0.5], vec![0.8, 0.1, 0.1]];
/// let figure = HeatMap::new("Connections p")
///     .x_label("source i")
///     .y_label("target l")
///     .range(0.0, 1.0)
///     .panel(Panel::of_rows("seed 0", &p).row_labels(1..=3));
/// assert!(figure.svg()?.contains("0.80"));
/// # Ok::<(), plotting::PlotError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    title: String,
    subtitle: String,
    x_label: String,
    y_label: String,
    value_label: String,
    range: Option<(f64, f64)>,
    color_map: ColorMap,
    panels: Vec<Panel>,
}

/// A picture of more cells shows noise, and its SVG is too large for a viewer.
const MOST_CELLS: usize = 1 << 16;
const MOST_CELLS_A_SIDE: usize = 512;
const MOST_PANELS: usize = 24;

impl HeatMap {
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

    /// What the columns are.
    #[must_use]
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x_label = label.into();
        self
    }

    /// What the rows are.
    #[must_use]
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y_label = label.into();
        self
    }

    /// What the colours measure; written above the colour bar.
    #[must_use]
    pub fn value_label(mut self, label: impl Into<String>) -> Self {
        self.value_label = label.into();
        self
    }

    /// Values at the ends of the colour scale; those of the data if not set. Values outside get the colour of the
    /// nearer end, and a warning says so.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// Sets the colour scale.
    #[must_use]
    pub fn color_map(mut self, color_map: ColorMap) -> Self {
        self.color_map = color_map;
        self
    }

    /// Adds a matrix to the right of those before; after four a new row of panels begins.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    fn color_axis(&self) -> Result<Axis, PlotError> {
        if let Some(range) = self.range {
            return Axis::given(range, Scale::Linear, &self.title, "colour");
        }
        let values = self.panels.iter().flat_map(Panel::values).filter(|&v| usable(v, Scale::Linear));
        if self.color_map == ColorMap::BlueRed {
            // Zero must be the colour without a hue.
            let largest = values.fold(0.0_f64, |m, v| m.max(v.abs()));
            return Ok(Axis::spanning([-largest, largest], Scale::Linear, 0.0));
        }
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h): (f64, f64), v| (l.min(v), h.max(v)));
        // A scale that nearly starts at zero is read as one that does.
        let low = if low > 0.0 && low < 0.1 * high { 0.0 } else { low };
        Ok(Axis::spanning([low, high], Scale::Linear, 0.0))
    }

    fn check(&self) -> Result<Vec<String>, PlotError> {
        let figure = || self.title.clone();
        let problem = |problem| Err(PlotError::Data { figure: figure(), problem });
        let mut warnings = Vec::new();
        if self.panels.len() > MOST_PANELS {
            return problem(format!("it has {} panels; split it into figures of {MOST_PANELS}", self.panels.len()));
        }
        for panel in &self.panels {
            let (rows, columns) = (panel.rows.len(), panel.columns());
            if rows.max(columns) > MOST_CELLS_A_SIDE || rows * columns > MOST_CELLS {
                return problem(format!(
                    "panel \"{}\" has {rows} x {columns} cells, more than {MOST_CELLS_A_SIDE} a side or {MOST_CELLS} \
                     in all; average blocks of cells first",
                    panel.title
                ));
            }
            for (labels, count, what) in [(&panel.row_labels, rows, "rows"), (&panel.column_labels, columns, "columns")]
            {
                if let Some(labels) = labels
                    && labels.len() != count
                {
                    return problem(format!(
                        "panel \"{}\" has {count} {what} but labels for {}",
                        panel.title,
                        labels.len()
                    ));
                }
            }
            let lost = panel.values().filter(|&v| !usable(v, Scale::Linear)).count();
            if lost > 0 {
                warnings.push(format!("panel \"{}\": {lost} cells are not finite and stay white", panel.title));
            }
            if let Some((low, high)) = self.range {
                let outside = panel.values().filter(|v| v.is_finite() && !(low..=high).contains(v)).count();
                if outside > 0 {
                    warnings.push(format!(
                        "panel \"{}\": {outside} cells lie outside the colour range {low} to {high}",
                        panel.title
                    ));
                }
            }
        }
        if !self.panels.iter().flat_map(Panel::values).any(|v| usable(v, Scale::Linear)) {
            let reason = match self.panels.len() {
                0 => "it has no panel".to_owned(),
                count => format!("none of its {count} panels has a finite cell"),
            };
            return Err(PlotError::Empty { figure: figure(), reason });
        }
        Ok(warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    #[test]
    fn labels_that_do_not_fit_their_matrix_are_refused() {
        let panel = Panel::of_rows("seed 3", &[vec![1.0], vec![0.5, 0.5]]).row_labels(["only one"]);
        let error = HeatMap::new("p").panel(panel).svg().unwrap_err().to_string();
        assert_eq!(error, "figure \"p\": panel \"seed 3\" has 2 rows but labels for 1");
        let large = Panel::new("big", vec![vec![Some(1.0); 300]; 300]);
        assert!(HeatMap::new("p").panel(large).svg().unwrap_err().to_string().contains("300 x 300"));
    }

    #[test]
    fn a_signed_scale_is_centred_on_zero() {
        let figure = HeatMap::new("w").color_map(ColorMap::BlueRed).panel(Panel::of_rows("a", &[vec![-1.0, 3.0]]));
        assert_eq!(figure.color_axis().unwrap().position(0.0), 0.5);
    }
}
