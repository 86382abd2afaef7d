//! The directory of a run: what was asked for, what it ran on, and what came out.
//!
//! ```text
//! runs/llm-60m/
//!   config.toml         the resolved settings
//!   environment.json    versions, machine, command line (a resumed run adds environment-2.json, ...)
//!   metrics.jsonl       values that are a function of the run: the same bits whether or not it was interrupted
//!   timing.jsonl        wall-clock facts
//!   checkpoints/        step-00000100.safetensors, ...
//!   figures/
//! ```
//!
//! A directory is never overwritten, and only one process at a time can hold it.

mod atomic_file;
mod environment;

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

pub(crate) use atomic_file::sync_folder_of;
pub use atomic_file::{atomic_write, temporary_name};
pub use environment::{BURN_VERSION, Environment};
use serde::{Serialize, de::DeserializeOwned};

/// What can go wrong with the directory of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    /// A new run would overwrite something.
    #[error(
        "{} already exists, and a run directory is never overwritten; choose another one, or continue that run with \
         --resume", path.display()
    )]
    Exists {
        /// The directory asked for.
        path: PathBuf,
    },
    /// There is no run to continue.
    #[error("{} holds no run (it has no config.toml); check the path, or start a new run there", path.display())]
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
        self.root.join("config.toml")
    }

    /// The facts about the first process that made the run.
    pub fn environment(&self) -> PathBuf {
        self.root.join("environment.json")
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

    /// Reads the settings that [`RunDirectory::write_config`] stored.
    ///
    /// # Errors
    /// If `config.toml` is missing or does not fit the type.
    pub fn read_config<T: DeserializeOwned>(&self) -> Result<T, RunDirectoryError> {
        let path = self.config();
        let text = fs::read_to_string(&path).map_err(RunDirectoryError::io("read", &path))?;
        toml::from_str(&text).map_err(|error| RunDirectoryError::Content { path, message: error.to_string() })
    }
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
    /// Makes the directory of a new run, and its parents where they are missing.
    ///
    /// # Errors
    /// [`RunDirectoryError::Exists`] if there is something at `path` already, whatever it is.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RunDirectoryError> {
        let paths = RunPaths::new(path.as_ref());
        let root = paths.root();
        if let Some(parent) = root.parent() {
            fs::create_dir_all(parent).map_err(RunDirectoryError::io("create", parent))?;
        }
        // One call that makes the directory or fails, so that of two processes only one can have made it.
        fs::create_dir(root).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RunDirectoryError::Exists { path: root.to_owned() },
            _ => RunDirectoryError::io("create", root)(error),
        })?;
        let lock = lock(root)?;
        for folder in [paths.checkpoints(), paths.figures()] {
            fs::create_dir(&folder).map_err(RunDirectoryError::io("create", &folder))?;
        }
        Ok(Self { paths, lock })
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
        let lock = lock(paths.root())?;
        for folder in [paths.checkpoints(), paths.figures()] {
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

    /// Stores the resolved settings as `config.toml`.
    ///
    /// # Errors
    /// If they cannot be written as TOML, or not be stored.
    pub fn write_config(&self, settings: &impl Serialize) -> Result<(), RunDirectoryError> {
        let path = self.paths.config();
        let text = toml::to_string_pretty(settings).map_err(|error| RunDirectoryError::Content {
            path: path.clone(),
            message: format!("the settings cannot be written as TOML: {error}"),
        })?;
        atomic_write(&path, |writer| writer.write_all(text.as_bytes())).map_err(RunDirectoryError::io("write", &path))
    }

    /// Stores what the run is made with as `environment.json`, or as `environment-2.json` and so on where an earlier
    /// process has written that already. Returns the path.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn write_environment(&self, environment: &Environment) -> Result<PathBuf, RunDirectoryError> {
        let numbered = (2..).map(|number| self.path().join(format!("environment-{number}.json")));
        let mut candidates = std::iter::once(self.paths.environment()).chain(numbered);
        let path = candidates.find(|path| !path.exists()).unwrap_or_else(|| self.paths.environment());
        let write = |writer: &mut io::BufWriter<File>| {
            serde_json::to_writer_pretty(&mut *writer, environment)?;
            writer.write_all(b"\n")
        };
        atomic_write(&path, write).map_err(RunDirectoryError::io("write", &path))?;
        Ok(path)
    }
}

fn lock(root: &Path) -> Result<File, RunDirectoryError> {
    let path = root.join(".lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(RunDirectoryError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunDirectoryError::Locked { path: root.to_owned() }),
        Err(TryLockError::Error(source)) => Err(RunDirectoryError::Io { action: "lock", path, source }),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Settings {
        lr: f64,
        name: String,
    }

    #[test]
    fn a_directory_is_made_once_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/a");
        let run = RunDirectory::create(&path).unwrap();
        let settings = Settings { lr: 0.1 + 0.2, name: "a \"quoted\" name".into() };
        run.write_config(&settings).unwrap();
        assert_eq!(run.paths().read_config::<Settings>().unwrap(), settings);
        drop(run);
        for existing in [path.as_path(), folder.path()] {
            let message = RunDirectory::create(existing).unwrap_err().to_string();
            assert!(message.contains("already exists") && message.contains("--resume"), "{message}");
        }
        assert_eq!(RunDirectory::open(&path).unwrap().paths().read_config::<Settings>().unwrap(), settings);
    }

    #[test]
    fn a_file_in_the_way_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        assert!(matches!(RunDirectory::create(&path), Err(RunDirectoryError::Exists { .. })));
        assert!(matches!(RunDirectory::create(path.join("run")), Err(RunDirectoryError::Io { .. })));
    }

    #[test]
    fn only_one_process_holds_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let run = RunDirectory::create(&path).unwrap();
        run.write_config(&toml::Table::new()).unwrap();
        assert!(matches!(RunDirectory::open(&path), Err(RunDirectoryError::Locked { .. })));
        drop(run);
        RunDirectory::open(&path).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_copy_of_the_lock_does_not_outlive_the_run() {
        // Regression: a process that was being started at that moment kept the run locked.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let run = RunDirectory::create(&path).unwrap();
        run.write_config(&toml::Table::new()).unwrap();
        let _copy = run.lock.try_clone().unwrap();
        drop(run);
        RunDirectory::open(&path).unwrap();
    }

    #[test]
    fn opening_what_is_no_run_says_so() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("missing")] {
            let message = RunDirectory::open(path).unwrap_err().to_string();
            assert!(message.contains("holds no run"), "{message}");
        }
    }

    #[test]
    fn each_process_adds_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(folder.path().join("a")).unwrap();
        let environment = Environment::collect("demo", "1", "cpu");
        let names: Vec<_> = (0..3).map(|_| run.write_environment(&environment).unwrap()).collect();
        let names: Vec<_> = names.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["environment.json", "environment-2.json", "environment-3.json"]);
        let text = fs::read_to_string(run.paths().environment()).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap().program, "demo");
    }
}
