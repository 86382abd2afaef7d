//! Figures and tables of a study in one house style.
//!
//! Runs are compared by looking: loss against steps for every arm, a matrix of learned connections, a table with spreads
//! over seeds. This crate draws [`LineChart`]s, [`HeatMap`]s, [`BarChart`]s and [`ScenePanels`] with plotters and
//! writes each as PNG and SVG from one drawing, so that all figures share colours, type and margins, and an arm looks
//! the same in each of them. Fonts are embedded: a machine without any font, or display, draws the same bytes. Data
//! that an axis cannot show (not finite, or not positive on a log axis) is left out and reported in
//! [`Saved::warnings`]; it never stops a run that has just trained for hours. A [`Table`] is written for the terminal,
//! as Markdown and as CSV.
//!
//! ```
//! use plotting::{Figure, LineChart, Scale, Series};
//!
//! let dir = tempfile::tempdir()?;
//! let saved = LineChart::new("Gradient descent on a quadratic")
//!     .subtitle("synthetic: rate 0.1, one coordinate")
//!     .x_label("step")
//!     .y_label("loss")
//!     .y_scale(Scale::Log)
//!     .series(Series::line("loss", (0..100).map(|step| (f64::from(step), 0.81_f64.powi(step)))))
//!     .save(dir.path().join("figures"), "quadratic")?;
//! println!("{}", saved.svg.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo run -p plotting --example gallery -- OUT_DIR` draws one picture of every kind.

mod axis;
mod bar_chart;
mod canvas;
mod color_map;
mod error;
mod figure;
mod font;
mod frame;
mod geometry;
mod heat_map;
mod legend;
mod line_chart;
mod numbers;
mod scene_panels;
mod series;
mod spans;
mod style;
mod table;
mod ticks;

pub use bar_chart::{BarChart, Bars};
pub use canvas::Medium;
pub use color_map::ColorMap;
pub use error::PlotError;
pub use figure::{Figure, Saved};
pub use heat_map::{HeatMap, Panel};
pub use line_chart::LineChart;
pub use numbers::{bytes, duration, fixed, mean_sd, percent, si, signed, significant};
pub use scene_panels::{Mark, ScenePanel, ScenePanels};
pub use series::{Reference, Series, Spread};
pub use statistics::{mean, sample_sd};
pub use style::{ARM_COLORS, Color, Dash, Legend, Marker, Scale, arm_color, arm_dash, arm_marker};
pub use table::{Align, Table};
