//! Logs of the theory: its findings, and the data of its figures.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A line of `findings.csv`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// Section of `docs/theory.md`.
    pub section: u8,
    /// Where the statement comes from.
    pub source: String,
    /// The statement.
    pub statement: String,
    /// What was measured.
    pub measured: String,
    /// What it was held against.
    pub expected: String,
    /// `holds`, `refuted` or `FAILS`.
    pub verdict: String,
}

/// Reads `findings.csv`.
///
/// # Errors
/// If it cannot be read or a line is damaged.
pub fn read_findings(path: &Path) -> Result<Vec<Finding>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    reader.deserialize().collect::<Result<_, _>>().with_context(|| format!("{} is damaged", path.display()))
}

/// A named line of a figure.
pub type Line = (String, Vec<(f64, f64)>);

#[derive(Serialize, Deserialize)]
struct Point {
    series: String,
    x: f64,
    y: f64,
}

/// Reads the data of a figure: `series,x,y`, the points of a series one after another.
///
/// # Errors
/// If it cannot be read, or a cell is no number.
pub fn read_lines(path: &Path) -> Result<Vec<Line>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines: Vec<Line> = Vec::new();
    for point in reader.deserialize() {
        let Point { series, x, y } = point.with_context(|| format!("{} is damaged", path.display()))?;
        match lines.last_mut().filter(|(name, _)| *name == series) {
            Some((_, points)) => points.push((x, y)),
            None => lines.push((series, vec![(x, y)])),
        }
    }
    Ok(lines)
}

/// The data of a figure as a file, about `most` points of each series, evenly spread with the first and the last.
///
/// # Errors
/// If it cannot be written as text.
pub fn write_lines(lines: &[Line], most: usize) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (series, points) in lines {
        let every = points.len().div_ceil(most.max(1)).max(1);
        for (index, &(x, y)) in points.iter().enumerate() {
            if index % every == 0 || index + 1 == points.len() {
                writer.serialize(Point { series: series.clone(), x, y })?;
            }
        }
    }
    Ok(writer.into_inner().map_err(|error| error.into_error())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_thinned_with_both_ends() {
        let lines: Vec<Line> = ["0:2", "a, b"]
            .iter()
            .map(|name| ((*name).to_owned(), (0..=100).map(|i| (f64::from(i), 0.1 * f64::from(i))).collect()))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.csv");
        std::fs::write(&path, write_lines(&lines, 10).unwrap()).unwrap();
        let read = read_lines(&path).unwrap();
        assert_eq!(read.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["0:2", "a, b"]);
        for (_, points) in read {
            assert!(
                (10..=12).contains(&points.len()) && points[0] == (0.0, 0.0) && points[points.len() - 1].0 == 100.0
            );
        }
    }
}
