//! Files and directories of a run: never overwritten, and whole or not there at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

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
        let staging = tempfile::Builder::new().prefix(".theory-").tempdir_in(parent);
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
        // Temporary directories are for their owner only; this one is for everybody who may read beside it.
        #[cfg(unix)]
        fs::set_permissions(&staging, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
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

/// Writes a file that must not exist, through a temporary one beside it.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn write_new(path: &Path, contents: &[u8]) -> Result<()> {
    refuse_existing(path)?;
    let parent = parent_of(path);
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let write = || -> Result<()> {
        let mut file = tempfile::Builder::new().prefix(".theory-").tempfile_in(parent)?;
        file.write_all(contents)?;
        file.as_file().sync_all()?;
        let file = file.persist_noclobber(path)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
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
