//! The figures: each drawn of a log, or not at all where the log is not there.

mod arms;
mod costs;
mod gains;
mod lines;

use std::path::Path;

use anyhow::Result;
use plotting::{Figure, Saved};

use crate::{logs::Log, paper::Paper};

/// A figure that was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its file, without extension.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The part of the page that it belongs to: the id of a table or claim, or `theory`.
    pub part: &'static str,
}

/// Where figures go, and what was drawn.
struct Gallery<'a> {
    folder: &'a Path,
    drawn: Vec<Drawn>,
    warnings: Vec<String>,
}

impl Gallery<'_> {
    fn save(&mut self, figure: &impl Figure, part: &'static str, name: String, caption: String) -> Result<()> {
        let Saved { svg, warnings, .. } = figure.save(self.folder, &name)?;
        // One form of each is committed.
        std::fs::remove_file(svg)?;
        self.warnings.extend(warnings.into_iter().map(|warning| format!("{name}: {warning}")));
        self.drawn.push(Drawn { name, caption, part });
        Ok(())
    }
}

/// Draws everything that there are logs for into a folder; `progress` is told after each log. Returns what was drawn, and
/// what figures could not show.
///
/// # Errors
/// If a log is damaged or a figure cannot be drawn.
pub fn draw(paper: &Paper, logs: &Path, folder: &Path, progress: impl Fn()) -> Result<(Vec<Drawn>, Vec<String>)> {
    let mut gallery = Gallery { folder, drawn: Vec::new(), warnings: Vec::new() };
    gains::draw(paper, logs, &mut gallery)?;
    for log in Log::all(logs)? {
        if let Some(report) = log.report()? {
            arms::draw(&log, &report, &mut gallery)?;
        }
        costs::draw(&log, &mut gallery)?;
        lines::draw(&log, &mut gallery)?;
        progress();
    }
    Ok((gallery.drawn, gallery.warnings))
}
