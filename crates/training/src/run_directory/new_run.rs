//! Making the directory of a new run: whole or not at all.
//!
//! Everything is written into a staging directory beside the target, `.NAME.starting`, which is then renamed. A process
//! that is killed on the way leaves only that one behind, and the next run of the same name takes it over.
//!
//! The lock is taken in the staging directory, before anything else is made there, and goes along with the rename: it
//! belongs to the file, not to its path. (This takes a system that renames a directory in which a file is open, as Unix
//! systems do.)

use std::{
    fs::{self, File, FileType},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{CONFIG, ENVIRONMENT, Environment, FOLDERS, LOCK, RunDirectoryError, lock, sync_folder_of, to_json};

/// What the directory of a run holds from its first moment on.
///
/// ```
/// use training::run_directory::{Environment, NewRun, RunDirectory};
/// let environment = Environment::collect("demo", "0.1.0", "cpu");
/// let settings = toml::toml! { steps = 100 };
/// let contents = NewRun::new(&settings, &environment)?.with_file("tokenizer.json", "{}")?;
/// let folder = tempfile::tempdir()?;
/// let run = RunDirectory::create(folder.path().join("runs/a"), &contents)?;
/// assert_eq!(run.paths().read_config::<toml::Table>()?, settings);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Names and contents: `config.toml`, `environment.json`, then the further ones.
    files: Vec<(String, Vec<u8>)>,
}

impl NewRun {
    /// The resolved settings, stored as `config.toml`, and the facts about this process, stored as `environment.json`.
    ///
    /// # Errors
    /// [`RunDirectoryError::Content`] if the settings cannot be written as TOML.
    pub fn new(settings: &impl Serialize, environment: &Environment) -> Result<Self, RunDirectoryError> {
        let config = toml::to_string_pretty(settings).map_err(|error| RunDirectoryError::Content {
            path: CONFIG.into(),
            message: format!("the settings cannot be written as TOML: {error}"),
        })?;
        let environment = to_json(environment).map_err(RunDirectoryError::io("write", Path::new(ENVIRONMENT)))?;
        Ok(Self { files: vec![(CONFIG.to_owned(), config.into_bytes()), (ENVIRONMENT.to_owned(), environment)] })
    }

    /// Adds a file that the experiment wants kept with the run.
    ///
    /// # Errors
    /// [`RunDirectoryError::Name`] if the name is taken, hidden, or not that of a file right in the directory.
    pub fn with_file(
        mut self,
        name: impl Into<String>,
        content: impl Into<Vec<u8>>,
    ) -> Result<Self, RunDirectoryError> {
        let name = name.into();
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\n', '\r']);
        let taken = FOLDERS.contains(&name.as_str()) || self.files.iter().any(|(other, _)| *other == name);
        // Logs are made by whoever writes them, and an environment with a number belongs to a resumed process.
        if !plain || taken || name.ends_with(".jsonl") || name.starts_with("environment") {
            return Err(RunDirectoryError::Name { name });
        }
        self.files.push((name, content.into()));
        Ok(self)
    }

    /// Makes the directory `target`, and hands over its lock.
    pub(super) fn make(&self, target: &Path) -> Result<File, RunDirectoryError> {
        refuse_existing(target)?;
        let staging = staging_path(target)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(RunDirectoryError::io("create", parent))?;
        }
        let staging = Staging::enter(staging, target)?;
        match staging.fill(self).and_then(|()| staging.publish(target)) {
            Ok(()) => Ok(staging.lock),
            Err(error) => {
                staging.discard();
                Err(error)
            }
        }
    }
}

/// What is at `path` itself, links not followed; `None` if nothing is.
fn kind(path: &Path) -> Result<Option<FileType>, RunDirectoryError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunDirectoryError::io("read", path)(error)),
    }
}

fn refuse_existing(target: &Path) -> Result<(), RunDirectoryError> {
    match kind(target)? {
        Some(_) => Err(RunDirectoryError::Exists { path: target.to_owned() }),
        None => Ok(()),
    }
}

/// Where the directory `target` is prepared.
fn staging_path(target: &Path) -> Result<PathBuf, RunDirectoryError> {
    let nameless = || RunDirectoryError::io("create", target)(io::ErrorKind::InvalidInput.into());
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().ok_or_else(nameless)?);
    name.push(".starting");
    Ok(target.with_file_name(name))
}

/// A staging directory, held by this process.
struct Staging {
    path: PathBuf,
    /// Its content names the experiment's own files, so that those of a killed process can be told from a stranger's.
    lock: File,
    /// Whether the lock was made by this process, so that a stranger's directory can be left as it was.
    lock_is_new: bool,
}

impl Staging {
    /// Makes the staging directory `path` of `target`, or takes over the one that a killed process left.
    fn enter(path: PathBuf, target: &Path) -> Result<Self, RunDirectoryError> {
        let lock_path = path.join(LOCK);
        // Around again whenever the one who had the directory has renamed or removed it in the meantime.
        loop {
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(RunDirectoryError::io("create", &path)(error));
                }
                Ok(()) | Err(_) => {}
            }
            match kind(&path)? {
                None => continue,
                Some(kind) if kind.is_dir() => {}
                Some(_) => return Err(RunDirectoryError::InTheWay { path }),
            }
            let found = kind(&lock_path)?;
            if found.is_some_and(|kind| !kind.is_file()) {
                return Err(RunDirectoryError::InTheWay { path: lock_path });
            }
            let lock = match lock(&path, target) {
                Err(RunDirectoryError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
                result => result?,
            };
            if is_at(&lock, &lock_path).map_err(RunDirectoryError::io("read", &lock_path))? {
                return Ok(Self { path, lock, lock_is_new: found.is_none() });
            }
        }
    }

    /// What a killed process has left besides the lock, files first.
    fn leftovers(&self) -> Result<Vec<PathBuf>, RunDirectoryError> {
        let mut announced = Vec::new();
        let mut lock = &self.lock;
        let read = lock.rewind().and_then(|()| lock.read_to_end(&mut announced));
        read.map_err(RunDirectoryError::io("read", &self.path.join(LOCK)))?;
        let announced = String::from_utf8_lossy(&announced);

        let (mut files, mut folders) = (Vec::new(), Vec::new());
        let list = |folder: &Path| fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in list(&self.path).map_err(RunDirectoryError::io("read", &self.path))? {
            let path = entry.path();
            let kind = entry.file_type().map_err(RunDirectoryError::io("read", &path))?;
            let name = entry.file_name();
            let is_ours = |name: &str| match kind.is_dir() {
                true => FOLDERS.contains(&name) && list(&path).is_ok_and(|content| content.is_empty()),
                false => {
                    let known = [CONFIG, ENVIRONMENT, LOCK].contains(&name);
                    kind.is_file() && (known || announced.lines().any(|line| line == name))
                }
            };
            if !name.to_str().is_some_and(is_ours) {
                return Err(RunDirectoryError::InTheWay { path });
            }
            if name != LOCK {
                if kind.is_dir() { &mut folders } else { &mut files }.push(path);
            }
        }
        Ok([files, folders].concat())
    }

    /// Removes what a killed process has left; nothing at all if some of it is not of a run.
    fn clear(&self) -> Result<(), RunDirectoryError> {
        for path in self.leftovers()? {
            let removed = if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
            removed.map_err(RunDirectoryError::io("remove", &path))?;
        }
        Ok(())
    }

    /// Writes everything, down to the disk.
    fn fill(&self, contents: &NewRun) -> Result<(), RunDirectoryError> {
        self.clear()?;
        let announced: String = contents.files.iter().map(|(name, _)| format!("{name}\n")).collect();
        let mut lock = &self.lock;
        let announce = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| {
            lock.write_all(announced.as_bytes())?;
            lock.sync_all()
        });
        announce.map_err(RunDirectoryError::io("write", &self.path.join(LOCK)))?;
        for folder in FOLDERS {
            let path = self.path.join(folder);
            fs::create_dir(&path).map_err(RunDirectoryError::io("create", &path))?;
        }
        for (name, content) in &contents.files {
            let path = self.path.join(name);
            let written = File::create_new(&path).and_then(|mut file| {
                file.write_all(content)?;
                file.sync_all()
            });
            written.map_err(RunDirectoryError::io("write", &path))?;
        }
        sync_folder_of(&self.path.join(LOCK)).map_err(RunDirectoryError::io("write", &self.path))
    }

    /// Gives the directory its name.
    fn publish(&self, target: &Path) -> Result<(), RunDirectoryError> {
        // The check that counts: whoever makes a run of this name has to hold the lock. The rename alone would silently
        // replace an empty directory.
        refuse_existing(target)?;
        fs::rename(&self.path, target).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
                RunDirectoryError::Exists { path: target.to_owned() }
            }
            _ => RunDirectoryError::io("create", target)(error),
        })?;
        sync_folder_of(target).map_err(RunDirectoryError::io("create", target))
    }

    /// Leaves nothing behind after an error, which is the one to tell: whatever fails here stays, and is taken over by
    /// the next run of this name.
    fn discard(self) {
        let cleared = self.clear().is_ok();
        // The lock goes last, so that nobody else can be at work in here before.
        if cleared || self.lock_is_new {
            let _ = fs::remove_file(self.path.join(LOCK));
        }
        if cleared {
            let _ = fs::remove_dir(&self.path);
        }
        let _ = self.lock.unlock();
    }
}

/// Whether the open file is still the one at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        result => result?,
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let here = file.metadata()?;
        Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, there);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
