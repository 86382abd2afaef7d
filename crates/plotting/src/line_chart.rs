//! Lines and points over a numeric abscissa.

mod drawing;

use crate::series::{Reference, Series};
use crate::style::{Legend, Scale};

/// Series over a numeric abscissa: loss against steps, error against time on log axes, or a scatter of points.
///
/// ```
/// use plotting::{Figure, LineChart, Reference, Scale, Series};
///
/// let steps: Vec<f64> = (1..=200).map(f64::from).collect();
/// let chart = LineChart::new("Loss against steps")
///     .subtitle("synthetic data")
///     .x_label("step")
///     .y_label("loss, nats per byte")
///     .x_scale(Scale::Log)
///     .series(Series::line("cascade", steps.iter().map(|s| (*s, 2.0 + 4.0 / s))))
///     .series(Series::line("ANCRe", steps.iter().map(|s| (*s, 1.8 + 4.0 / s))))
///     .reference(Reference::horizontal(2.02, "final baseline"));
/// let dir = tempfile::tempdir()?;
/// let saved = chart.save(dir.path(), "loss")?;
/// assert!(saved.png.exists() && saved.svg.exists() && saved.warnings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    title: String,
    subtitle: String,
    x_label: String,
    y_label: String,
    scales: (Scale, Scale),
    x_whole: bool,
    x_range: Option<(f64, f64)>,
    y_range: Option<(f64, f64)>,
    clip_start: f64,
    quantiles: Option<(f64, f64)>,
    legend: Legend,
    size: Option<(u32, u32)>,
    series: Vec<Series>,
    references: Vec<Reference>,
}

impl LineChart {
    /// An empty chart.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A grey line under the title: scale, seeds, command.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Name and unit of the abscissa.
    #[must_use]
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x_label = label.into();
        self
    }

    /// Name and unit of the ordinate; written above the axis.
    #[must_use]
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y_label = label.into();
        self
    }

    /// Scale of the abscissa.
    #[must_use]
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.scales.0 = scale;
        self
    }

    /// Marks the abscissa at whole numbers only: it counts something.
    #[must_use]
    pub fn x_whole(mut self) -> Self {
        self.x_whole = true;
        self
    }

    /// Scale of the ordinate.
    #[must_use]
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.scales.1 = scale;
        self
    }

    /// Shows exactly this part of the abscissa instead of all data.
    #[must_use]
    pub fn x_range(mut self, low: f64, high: f64) -> Self {
        self.x_range = Some((low, high));
        self
    }

    /// Shows exactly this part of the ordinate; lines are cut at its edges.
    #[must_use]
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y_range = Some((low, high));
        self
    }

    /// The first `share` (0 to 1) of the abscissa does not count for the range of the ordinate: the first steps of a
    /// loss curve are so high that they would flatten the rest.
    #[must_use]
    pub fn clip_start(mut self, share: f64) -> Self {
        self.clip_start = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self
    }

    /// Values below the quantile `low` or above `high` (0 to 1) do not count for the range of the ordinate.
    #[must_use]
    pub fn y_quantiles(mut self, low: f64, high: f64) -> Self {
        self.quantiles = (low >= 0.0 && low < high && high <= 1.0).then_some((low, high));
        self
    }

    /// Where series are named.
    #[must_use]
    pub fn legend(mut self, legend: Legend) -> Self {
        self.legend = legend;
        self
    }

    /// Size in logical pixels, legend included. If not set: 840 x 480, wider where the legend needs it.
    #[must_use]
    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        self.size = Some((width, height));
        self
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a reference line.
    #[must_use]
    pub fn reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }
}
