//! What every figure can do: be drawn on a plotters area, and be saved as PNG and SVG.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::prelude::{BitMapBackend, DrawingBackend, SVGBackend};

use crate::canvas::Medium;
use crate::font::{TEXT_FAMILY, printable};
use crate::spans::shrink;
use crate::{Color, PlotError};

/// Pixels of the PNG for each logical pixel.
const PNG_SCALE: u32 = 2;
/// SVG coordinates are whole numbers in plotters; ten for each logical pixel keep curves smooth.
const SVG_UNITS: u32 = 10;
const SMALLEST_SIDE: u32 = 160;
const LARGEST_SIDE: u32 = 3000;

/// Where a figure was written, and what the reader of the run's output should know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The bitmap, two pixels for each logical one.
    pub png: PathBuf,
    /// The vector picture of the same drawing.
    pub svg: PathBuf,
    /// What was left out, one sentence each; empty when all data is in the picture.
    pub warnings: Vec<String>,
}

/// A picture in the house style.
pub trait Figure {
    /// The title, which also names the figure in messages.
    fn title(&self) -> &str;

    /// Width and height in logical pixels.
    fn size(&self) -> (u32, u32);

    /// Draws on any plotters backend, scaled to fit into `area`, and returns what was left out, one sentence each.
    ///
    /// # Errors
    /// When the data or the settings cannot be drawn; see [`PlotError`].
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, medium: Medium)
    -> Result<Vec<String>, PlotError>;

    /// Writes `dir/name.png` and `dir/name.svg`, making `dir` if needed. Both are written under temporary names and
    /// renamed when both are whole: a reader never sees half a picture, and a figure that cannot be drawn or a full disk
    /// leaves older files as they were. The same figure gives the same bytes.
    ///
    /// # Errors
    /// When `name` is not one plain file name, the figure cannot be drawn, or a file cannot be written.
    fn save(&self, dir: impl AsRef<Path>, name: &str) -> Result<Saved, PlotError>
    where
        Self: Sized,
    {
        let dir = dir.as_ref();
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
            return Err(PlotError::Name { name: name.to_owned() });
        }
        let (svg, warnings) = svg_text(self)?;
        let (pixels, size) = bitmap(self)?;
        fs::create_dir_all(dir).map_err(|source| PlotError::Io { path: dir.to_owned(), source })?;
        let target = |extension: &str| dir.join(format!("{name}.{extension}"));
        let saved = Saved { png: target("png"), svg: target("svg"), warnings };
        let svg_file = Temporary::beside(&saved.svg);
        fs::write(&svg_file.path, svg).map_err(|source| PlotError::Io { path: saved.svg.clone(), source })?;
        let png_file = Temporary::beside(&saved.png);
        write_png(&png_file.path, &pixels, size)
            .map_err(|message| PlotError::Io { path: saved.png.clone(), source: std::io::Error::other(message) })?;
        png_file.rename(&saved.png)?;
        svg_file.rename(&saved.svg)?;
        Ok(saved)
    }

    /// The figure as the text of an SVG file.
    ///
    /// # Errors
    /// When the figure cannot be drawn.
    fn svg(&self) -> Result<String, PlotError>
    where
        Self: Sized,
    {
        Ok(svg_text(self)?.0)
    }
}

fn svg_text(figure: &impl Figure) -> Result<(String, Vec<String>), PlotError> {
    let (width, height) = checked_size(figure)?;
    let (full_width, full_height) = (width * SVG_UNITS, height * SVG_UNITS);
    let mut drawn = String::new();
    let warnings = {
        let area = SVGBackend::with_string(&mut drawn, (full_width, full_height)).into_drawing_area();
        let warnings = figure.draw(&area, Medium::Vector)?;
        area.present().map_err(|error| PlotError::Backend(error.to_string()))?;
        warnings
    };
    // plotters' own first line shows the picture at the size of its coordinates and joins lines with spikes.
    let body = drawn.split_once('\n').map_or("", |(_, body)| body);
    // Said once at the root instead of at each element. Labels cannot contain these strings: their quotes are escaped.
    let family = TEXT_FAMILY.replace('\'', "&apos;");
    let body = body.replace(&format!(" font-family=\"{family}\""), "").replace(" opacity=\"1\"", "");
    let mut title = String::new();
    for c in printable(figure.title()).chars() {
        match c {
            '<' => title.push_str("&lt;"),
            '>' => title.push_str("&gt;"),
            '&' => title.push_str("&amp;"),
            c => title.push(c),
        }
    }
    let text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {full_width} {full_height}\" role=\"img\" stroke-linejoin=\"round\" stroke-linecap=\"round\" \
         font-family=\"{family}\">\n\
         <title>{title}</title>\n{body}"
    );
    Ok((text, warnings))
}

/// The RGB pixels of the PNG, averaged down from a larger drawing for smooth edges.
fn bitmap(figure: &impl Figure) -> Result<(Vec<u8>, (u32, u32)), PlotError> {
    let (width, height) = checked_size(figure)?;
    let (width, height) = (width * PNG_SCALE, height * PNG_SCALE);
    // Two instead of three samples a side keep the drawing of a huge figure within about 100 MB.
    let samples = if u64::from(width) * u64::from(height) > 4_000_000 { 2 } else { 3 };
    let (full_width, full_height) = (width * samples, height * samples);
    let mut pixels = vec![255; 3 * full_width as usize * full_height as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (full_width, full_height)).into_drawing_area();
        figure.draw(&area, Medium::Raster)?;
        area.present().map_err(|error| PlotError::Backend(error.to_string()))?;
    }
    Ok((shrink(&pixels, width as usize, height as usize, samples as usize), (width, height)))
}

fn write_png(path: &Path, pixels: &[u8], size: (u32, u32)) -> Result<(), String> {
    let mut backend = BitMapBackend::new(path, size);
    backend.blit_bitmap((0, 0), size, pixels).map_err(|error| error.to_string())?;
    backend.present().map_err(|error| error.to_string())
}

fn checked_size(figure: &impl Figure) -> Result<(u32, u32), PlotError> {
    let (width, height) = figure.size();
    let allowed = SMALLEST_SIDE..=LARGEST_SIDE;
    if allowed.contains(&width) && allowed.contains(&height) {
        return Ok((width, height));
    }
    Err(PlotError::Size { figure: figure.title().to_owned(), width, height, min: SMALLEST_SIDE, max: LARGEST_SIDE })
}

/// A file under a name of its own, removed unless it was renamed.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn beside(target: &Path) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let extension = target.extension().unwrap_or_default().to_string_lossy();
        // The extension stays last: the image encoder takes the format from it.
        let name = format!(".plot-{}-{}.{extension}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { path: target.with_file_name(name) }
    }

    fn rename(self, target: &Path) -> Result<(), PlotError> {
        fs::rename(&self.path, target).map_err(|source| PlotError::Io { path: target.to_owned(), source })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename nothing is there any more, which is as it should be.
        let _ = fs::remove_file(&self.path);
    }
}

/// `color` mixed with white; `share` is how much of the colour stays.
pub(crate) fn tint(color: Color, share: f64) -> Color {
    let mix = |v: u8| (255.0 - (255.0 - f64::from(v)) * share).round() as u8;
    Color(mix(color.0), mix(color.1), mix(color.2))
}
