//! What can go wrong while a figure is laid out, drawn or written.

use std::path::PathBuf;

/// Why a figure was not drawn or not written. Every message names the figure or the file and what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// No usable data point was left.
    #[error("figure \"{figure}\" has nothing to draw: {reason}")]
    Empty {
        /// Title of the figure.
        figure: String,
        /// What was missing.
        reason: String,
    },
    /// A range given by the caller cannot span an axis or a colour scale.
    #[error("figure \"{figure}\": the {axis} range {low} to {high} cannot be used: {reason}")]
    Range {
        /// Title of the figure.
        figure: String,
        /// Which axis.
        axis: &'static str,
        /// Lower end as given.
        low: f64,
        /// Upper end as given.
        high: f64,
        /// Which rule is broken.
        reason: &'static str,
    },
    /// Two parts of the data do not fit together, or there is more of it than a picture can show.
    #[error("figure \"{figure}\": {problem}")]
    Data {
        /// Title of the figure.
        figure: String,
        /// What does not fit, with both sizes.
        problem: String,
    },
    /// The size asked for is outside what can be laid out.
    #[error("figure \"{figure}\": a size of {width} x {height} cannot be laid out; use {min} to {max} a side")]
    Size {
        /// Title of the figure.
        figure: String,
        /// Width as given, logical pixels.
        width: u32,
        /// Height as given, logical pixels.
        height: u32,
        /// Smallest side allowed.
        min: u32,
        /// Largest side allowed.
        max: u32,
    },
    /// The name of a figure must be one plain path component, since `.png` and `.svg` are put behind it.
    #[error(
        "{name:?} cannot name a figure: give one file name without directories, e.g. \"loss\"; .png and .svg are added"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// A file or directory could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The drawing backend refused an element.
    #[error("drawing failed in the plotters backend: {0}")]
    Backend(String),
    /// An embedded font could not be read.
    #[error("the embedded font {0} could not be read; rebuild with another release of epaint_default_fonts")]
    Font(&'static str),
}
