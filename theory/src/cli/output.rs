//! Files and directories of a run: never overwritten, and whole or not there at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use tempfile::{NamedTempFile, TempDir};

/// Where default directories are made.
const RUNS: &str = "runs";

/// A directory that takes its place when everything in it is written.
pub struct NewDirectory {
    staging: TempDir,
    path: Option<PathBuf>,
}

impl NewDirectory {
    /// Begins the directory `path`, or the next free `runs/theory-N`.
    ///
    /// # Errors
    /// If `path` exists or its parent cannot be written.
    pub fn begin(path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path {
            refuse_existing(path)?;
        }
        let parent = path.map_or(Path::new(RUNS), parent_of);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let staging = tempfile::Builder::new().prefix(".theory-").permissions(mode(0o777)).tempdir_in(parent);
        let staging = staging.with_context(|| format!("cannot write in {}", parent.display()))?;
        Ok(Self { staging, path: path.map(Path::to_owned) })
    }

    /// Where to write until then.
    pub fn staging(&self) -> &Path {
        self.staging.path()
    }

    /// Puts the directory in its place and returns its path.
    ///
    /// # Errors
    /// If the place is taken by now, or the directory cannot be renamed.
    pub fn finish(self) -> Result<PathBuf> {
        let staging = self.staging.keep();
        let moved = match self.path {
            Some(path) => move_new(&staging, &path).map(|()| path),
            None => (1..)
                .map(|n| Path::new(RUNS).join(format!("theory-{n}")))
                .find_map(|path| match move_new(&staging, &path) {
                    Ok(()) => Some(Ok(path)),
                    Err(_) if path.exists() => None,
                    Err(error) => Some(Err(error)),
                })
                .unwrap_or_else(|| unreachable!("the numbers do not end")),
        };
        if moved.is_err() {
            // The message is about the move; what it could not move goes.
            let _ = fs::remove_dir_all(&staging);
        }
        moved
    }
}

/// Renames a directory to a name that must be free.
fn move_new(from: &Path, to: &Path) -> Result<()> {
    refuse_existing(to)?;
    fs::rename(from, to).with_context(|| format!("cannot make {}", to.display()))
}

/// A file that takes its place when it is written.
pub struct NewFile {
    staging: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file beside the place that it will take, before the work whose results it is for.
    ///
    /// # Errors
    /// If `path` exists, or nothing can be written beside it.
    pub fn begin(path: &Path) -> Result<Self> {
        refuse_existing(path)?;
        ensure!(path.file_name().is_some(), "{}: give the name of a file", path.display());
        let parent = parent_of(path);
        ensure!(parent.is_dir(), "cannot write {}: there is no folder {}", path.display(), parent.display());
        let staging = tempfile::Builder::new().prefix(".theory-").permissions(mode(0o666)).tempfile_in(parent);
        let staging = staging.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { staging, path: path.to_owned() })
    }

    /// Where to write.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.staging
    }

    /// Puts the file in its place and returns its path.
    ///
    /// # Errors
    /// If the disk is full or the place is taken by now.
    pub fn finish(self) -> Result<PathBuf> {
        let Self { staging, path } = self;
        let place = || -> Result<()> {
            staging.as_file().sync_all()?;
            staging.persist_noclobber(&path)?;
            Ok(())
        };
        place().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// The permissions of a new file or folder, less what the user's mask takes away. Temporary ones are for their owner only.
#[cfg(unix)]
fn mode(bits: u32) -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(bits)
}

/// Fails where something is.
///
/// # Errors
/// If it exists.
pub fn refuse_existing(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("{} exists already: give another path, or remove it", path.display());
    }
    Ok(())
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
