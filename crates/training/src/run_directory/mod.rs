//! The directory of a run: what was asked for, what it ran on, and what came out.
//!
//! ```text
//! runs/llm-60m/
//!   config.toml         the resolved settings
//!   environment.json    versions, machine, command line (a resumed run adds environment-2.json, ...)
//!   tokenizer.json      and whatever else the experiment keeps with the run
//!   metrics.jsonl       values that are a function of the run: the same bits whether or not it was interrupted
//!   timing.jsonl        wall-clock facts
//!   checkpoints/        step-00000100.safetensors, ...
//!   figures/
//! ```
//!
//! The directory appears [whole or not at all](RunDirectory::create), so a run that was killed at any moment can either be
//! started again or be continued. It is never overwritten, and only one process at a time can hold it. Files appear whole
//! or not at all, too, except for the two logs: lines are appended to them, and a process that is killed may leave half of
//! the last one, which readers leave out and a resumed run cuts off.

mod atomic_file;
mod environment;
mod new_run;

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

pub(crate) use atomic_file::sync_folder_of;
pub use atomic_file::{atomic_write, temporary_name};
pub use environment::{BURN_VERSION, Environment};
pub use new_run::NewRun;
use serde::de::DeserializeOwned;

const CONFIG: &str = "config.toml";
const ENVIRONMENT: &str = "environment.json";
const LOCK: &str = ".lock";
const FOLDERS: [&str; 2] = ["checkpoints", "figures"];

/// What can go wrong with the directory of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    /// A new run would overwrite something.
    #[error(
        "{} already exists, and a run directory is never overwritten; choose another directory, or continue it with \
         --resume if it is a run", path.display()
    )]
    Exists {
        /// The directory asked for.
        path: PathBuf,
    },
    /// There is no run to continue.
    #[error(
        "{} holds no run (it has no config.toml); check the path, or start a new run in a directory that \
         does not exist yet", path.display()
    )]
    NotARun {
        /// The directory asked for.
        path: PathBuf,
    },
    /// Another process has the directory open for writing.
    #[error("another process is writing to the run in {}; wait for it to end, or stop it first", path.display())]
    Locked {
        /// The directory asked for.
        path: PathBuf,
    },
    /// Where a new run is prepared lies something else.
    #[error("{} is in the way: it lies where a new run is prepared, but is not of one; move it away", path.display())]
    InTheWay {
        /// What is in the way.
        path: PathBuf,
    },
    /// An experiment's file cannot have this name.
    #[error("a run directory cannot hold a further file named `{name}`: the name is taken, hidden, or not a plain one")]
    Name {
        /// The name.
        name: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file was read, but does not hold what it should.
    #[error("{} cannot be understood: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

/// What to do about an error of the system, where that is not plain from it.
pub(crate) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there, or choose another directory (what was written before is untouched)"
        }
        io::ErrorKind::PermissionDenied => "; choose a directory that you may write to",
        _ => "",
    }
}

impl RunDirectoryError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Where the files of a run lie. Reading needs no lock, so a run can be looked at while it is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPaths {
    root: PathBuf,
}

impl RunPaths {
    /// The files of the run in `root`, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The resolved settings.
    pub fn config(&self) -> PathBuf {
        self.root.join(CONFIG)
    }

    /// The facts about the first process that made the run.
    pub fn environment(&self) -> PathBuf {
        self.root.join(ENVIRONMENT)
    }

    /// The values that are a function of the run; see [`metrics`](crate::metrics).
    pub fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// The wall-clock facts.
    pub fn timing(&self) -> PathBuf {
        self.root.join("timing.jsonl")
    }

    /// The folder of the checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The folder of the figures.
    pub fn figures(&self) -> PathBuf {
        self.root.join("figures")
    }

    /// Reads the settings that the run was made with.
    ///
    /// # Errors
    /// If `config.toml` is missing or does not fit the type.
    pub fn read_config<T: DeserializeOwned>(&self) -> Result<T, RunDirectoryError> {
        let path = self.config();
        let text = read_text(&path)?;
        toml::from_str(&text).map_err(|error| RunDirectoryError::Content { path, message: error.to_string() })
    }
}

/// The longest settings file that is read.
const LONGEST_TEXT: u64 = 16 << 20;

/// The text of a settings file, which may be a pipe, but not one without end.
///
/// # Errors
/// If it cannot be read, or is longer than any settings file.
pub fn read_text(path: &Path) -> Result<String, RunDirectoryError> {
    let file = File::open(path).map_err(RunDirectoryError::io("read", path))?;
    let mut text = String::new();
    let read = file.take(LONGEST_TEXT + 1).read_to_string(&mut text).map_err(RunDirectoryError::io("read", path))?;
    if read as u64 > LONGEST_TEXT {
        let message = format!("it is longer than {} MiB, which no settings file is", LONGEST_TEXT >> 20);
        return Err(RunDirectoryError::Content { path: path.to_owned(), message });
    }
    Ok(text)
}

/// The directory of a run, held by this process until the value is dropped.
#[derive(Debug)]
pub struct RunDirectory {
    paths: RunPaths,
    /// An advisory lock, which the kernel releases however the process ends.
    lock: File,
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Closing the file would not be enough: a child process that another thread is just starting has a copy of it
        // until it has become another program. If it fails, there is nobody left to tell.
        let _ = self.lock.unlock();
    }
}

impl RunDirectory {
    /// Makes the directory of a new run, with its parents where they are missing: whole, or not at all.
    ///
    /// It is prepared as `.NAME.starting` beside its place and then renamed. What a killed process may have left of that
    /// name is taken over by the next call for the same directory, unless it holds anything that is not of a run.
    ///
    /// # Errors
    /// [`RunDirectoryError::Exists`] if there is something at `path` already, whatever it is (a link that leads nowhere,
    /// too); [`RunDirectoryError::Locked`] while another process is making the same directory.
    pub fn create(path: impl AsRef<Path>, contents: &NewRun) -> Result<Self, RunDirectoryError> {
        let path = path.as_ref();
        // Without a slash at the end, which would make the system follow a link.
        let target = path.file_name().map_or_else(|| path.to_owned(), |name| path.with_file_name(name));
        let lock = contents.make(&target)?;
        Ok(Self { paths: RunPaths::new(target), lock })
    }

    /// Takes hold of the directory of an earlier run, to continue it.
    ///
    /// # Errors
    /// [`RunDirectoryError::NotARun`] if there is none, [`RunDirectoryError::Locked`] if another process has it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RunDirectoryError> {
        let paths = RunPaths::new(path.as_ref());
        if !paths.config().is_file() {
            return Err(RunDirectoryError::NotARun { path: paths.root });
        }
        let lock = lock(paths.root(), paths.root())?;
        // They are not in what was copied by a tool that leaves out empty folders.
        for folder in FOLDERS.map(|folder| paths.root().join(folder)) {
            fs::create_dir_all(&folder).map_err(RunDirectoryError::io("create", &folder))?;
        }
        Ok(Self { paths, lock })
    }

    /// Where its files lie.
    pub fn paths(&self) -> &RunPaths {
        &self.paths
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        self.paths.root()
    }

    /// Stores what a resumed run goes on with, as `environment-2.json` and so on. Returns the path.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn add_environment(&self, environment: &Environment) -> Result<PathBuf, RunDirectoryError> {
        let mut number = 2;
        let path = loop {
            let path = self.path().join(format!("environment-{number}.json"));
            if !path.exists() {
                break path;
            }
            number += 1;
        };
        let written = to_json(environment).and_then(|text| atomic_write(&path, |writer| writer.write_all(&text)));
        written.map_err(RunDirectoryError::io("write", &path))?;
        Ok(path)
    }
}

fn to_json(environment: &Environment) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(environment)?;
    text.push(b'\n');
    Ok(text)
}

/// Takes the lock in `folder`, which is or will be the directory `run`.
fn lock(folder: &Path, run: &Path) -> Result<File, RunDirectoryError> {
    let path = folder.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(RunDirectoryError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunDirectoryError::Locked { path: run.to_owned() }),
        Err(TryLockError::Error(source)) => Err(RunDirectoryError::Io { action: "lock", path, source }),
    }
}

#[cfg(test)]
mod tests;
