//! A run as others read it: its settings and its newest checkpoint.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use command_line::note;
use training::{
    checkpoint::{Checkpoint, CheckpointStore},
    run_directory::RunPaths,
};

use crate::RunSettings;

/// What a run has come to.
#[derive(Debug)]
pub struct Newest<S> {
    /// The settings of its config.toml, checked.
    pub settings: S,
    /// Its newest checkpoint that is whole: the weights in `model`, what the task remembers in `task`.
    pub checkpoint: Checkpoint,
}

/// The settings and the newest whole checkpoint of the run in a directory, which may be under way in another process. A
/// damaged checkpoint is passed over with a note.
///
/// # Errors
/// If the directory is no run, has no usable checkpoint, or is a comparison (whose arms are named).
pub fn newest<S: RunSettings>(path: &Path) -> Result<Newest<S>> {
    let arms = path.join("arms");
    if arms.is_dir() {
        let mut names: Vec<String> = fs::read_dir(&arms)
            .map(|entries| entries.flatten().map(|e| e.path().display().to_string()).collect())
            .unwrap_or_default();
        names.sort();
        bail!("{} is a comparison: name one of its arms\n  {}", path.display(), names.join("\n  "));
    }
    let paths = RunPaths::new(path);
    if !paths.config().is_file() {
        bail!("{} is not the directory of a run: it has no config.toml", path.display());
    }
    let settings: S = paths.read_config()?;
    settings.check().with_context(|| format!("{} is not valid", paths.config().display()))?;
    // Only looks: the run may be under way in another process.
    let Some(found) = CheckpointStore::view(&paths.checkpoints()).load_newest()? else {
        bail!("{} has no checkpoint yet", path.display());
    };
    for (_, damage) in &found.damaged {
        note(format_args!("note: {damage}; taking {} instead", found.path.display()));
    }
    Ok(Newest { settings, checkpoint: found.checkpoint })
}
