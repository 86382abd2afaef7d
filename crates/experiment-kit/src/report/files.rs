//! The files of a report.

use std::{io::Write, path::Path};

use anyhow::{Context, Result};
use serde::Serialize;
use training::run_directory::atomic_write;

/// Writes `report.json` and `report.md` into the directory of a comparison, each whole or not at all; a report that is
/// there is replaced.
///
/// # Errors
/// If a file cannot be written.
pub fn write(directory: &Path, markdown: &str, json: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(json)?;
    for (name, text) in [("report.json", json.as_str()), ("report.md", markdown)] {
        let path = directory.join(name);
        atomic_write(&path, |file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
