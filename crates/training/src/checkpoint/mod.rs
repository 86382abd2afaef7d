//! Checkpoints: everything that a run needs to go on as if it had not been stopped.
//!
//! [`Checkpoint`] is one moment, as one file; [`CheckpointStore`] is the folder that holds the newest few, and
//! [`CheckpointView`] the same folder for commands that only read. A file appears
//! under its name only when it is whole and on the disk, so a process that is killed while writing leaves the older ones
//! untouched.

mod configuration;
mod file;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub use configuration::Configuration;
pub use file::{CheckpointHeader, FORMAT_VERSION};

use crate::{
    parameters::NamedTensor,
    run_directory::{advice, sync_folder_of},
};

/// What can go wrong with a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file could not be read or written.
    #[error("cannot {action} the checkpoint {}: {source}{}", path.display(), advice(source))]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not what was once written.
    #[error("the checkpoint {} is damaged: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        message: String,
    },
    /// Another version of the program wrote it.
    #[error(
        "the checkpoint {} has format version {found}, and this program reads {expected}; continue it with the version \
         that wrote it", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version of this program.
        expected: u32,
    },
    /// A checkpoint cannot be made of this.
    #[error("cannot make the checkpoint {}: {message}", path.display())]
    Content {
        /// The file that would have been written.
        path: PathBuf,
        /// What is in the way.
        message: String,
    },
    /// There are checkpoints, and not one of them can be used.
    #[error("no checkpoint in {} can be used:\n  {}\nstart a new run in another directory", folder.display(), reasons.join("\n  "))]
    NoneUsable {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with each.
        reasons: Vec<String>,
    },
    /// The checkpoint belongs to a run with other settings.
    #[error(
        "the checkpoint {} was made with other settings:\n  {}\ngive the same settings, or allow the change (--allow-changes) \
         if you mean it", path.display(), differences.join("\n  ")
    )]
    OtherConfiguration {
        /// The file.
        path: PathBuf,
        /// What differs.
        differences: Vec<String>,
    },
}

/// A moment of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Step, tokens, settings.
    pub header: CheckpointHeader,
    /// The parameters; see [`parameters::export`](crate::parameters::export).
    pub model: Vec<NamedTensor>,
    /// The optimizer's state; see [`Optimizer::export`](crate::optimizer::Optimizer::export).
    pub optimizer: Vec<NamedTensor>,
    /// Tensors that the experiment wants back.
    pub task: Vec<NamedTensor>,
}

/// The folder of a run's checkpoints, `step-00000100.safetensors` and so on, to read from.
///
/// It changes nothing and needs no lock, so another process may be writing to the folder meanwhile: files appear under
/// these names only when they are whole. Whatever else lies there, a temporary that a killed writer has left among it, is
/// no checkpoint; nor is there one in a folder that does not exist.
///
/// ```
/// use training::checkpoint::CheckpointStore;
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("step-00000100.safetensors.tmp"), "half of a checkpoint")?;
/// let has_begun = CheckpointStore::view(folder.path()).newest().is_some();
/// assert!(!has_begun);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CheckpointView {
    folder: PathBuf,
}

/// The folder of a run's checkpoints, to write to as well: everything that a [`CheckpointView`] does, and more.
#[derive(Debug)]
pub struct CheckpointStore {
    view: CheckpointView,
    keep: usize,
}

impl std::ops::Deref for CheckpointStore {
    type Target = CheckpointView;

    fn deref(&self) -> &CheckpointView {
        &self.view
    }
}

/// The newest checkpoint that is whole.
#[derive(Debug)]
pub struct Found {
    /// What it holds.
    pub checkpoint: Checkpoint,
    /// Its file.
    pub path: PathBuf,
    /// Newer ones that are damaged, with what is wrong with them.
    pub damaged: Vec<(PathBuf, CheckpointError)>,
}

impl CheckpointView {
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.folder).and_then(Iterator::collect::<io::Result<Vec<_>>>)?;
        Ok(entries.into_iter().map(|entry| entry.path()).collect())
    }

    fn list_error(&self, source: io::Error) -> CheckpointError {
        CheckpointError::Io { action: "list", path: self.folder.clone(), source }
    }

    /// The checkpoints, newest first, with their steps.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<(usize, PathBuf)>, CheckpointError> {
        let files = match self.files() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            result => result.map_err(|error| self.list_error(error))?,
        };
        let mut found: Vec<_> = files.into_iter().filter_map(|path| Some((step_of(&path)?, path))).collect();
        found.sort_by(|a, b| b.cmp(a));
        Ok(found)
    }

    /// The newest checkpoint file, if there is any: it was whole when it was written, and is not read here.
    pub fn newest(&self) -> Option<PathBuf> {
        self.list().ok()?.into_iter().next().map(|(_, path)| path)
    }

    /// Reads the newest checkpoint that is whole; `None` if there are no checkpoints.
    ///
    /// # Errors
    /// [`CheckpointError::NoneUsable`] if there are some and all of them are damaged; an error of the system or another
    /// version is not damage and is returned as it is.
    pub fn load_newest(&self) -> Result<Option<Found>, CheckpointError> {
        let mut damaged = Vec::new();
        for (_, path) in self.list()? {
            match Checkpoint::read(&path) {
                Ok(checkpoint) => return Ok(Some(Found { checkpoint, path, damaged })),
                Err(error @ CheckpointError::Damaged { .. }) => damaged.push((path, error)),
                Err(error) => return Err(error),
            }
        }
        if damaged.is_empty() {
            return Ok(None);
        }
        let reasons = damaged.iter().map(|(_, error)| error.to_string()).collect();
        Err(CheckpointError::NoneUsable { folder: self.folder.clone(), reasons })
    }
}

impl CheckpointStore {
    /// The checkpoints in `folder` for commands that only read them; the folder need not exist.
    pub fn view(folder: &Path) -> CheckpointView {
        CheckpointView { folder: folder.to_owned() }
    }

    /// The store in `folder`, which exists, of which the newest `keep` checkpoints stay: at least two, because the newest
    /// may turn out to be damaged. Removes the temporaries that a killed writer has left, so the caller must hold the run
    /// directory.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn open(folder: &Path, keep: usize) -> Result<Self, CheckpointError> {
        let view = Self::view(folder);
        for path in view.files().map_err(|error| view.list_error(error))? {
            if path.file_stem().is_some_and(|name| step_of(Path::new(name)).is_some())
                && path.extension() == Some("tmp".as_ref())
            {
                remove(&path)?;
            }
        }
        Ok(Self { view, keep: keep.max(2) })
    }

    /// Stores a checkpoint, and then removes those that are older than the newest few. Returns its path.
    ///
    /// # Errors
    /// If it cannot be written; the older ones are then untouched.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let path = self.folder.join(format!("step-{:08}.safetensors", checkpoint.header.step));
        checkpoint.write(&path)?;
        for (_, path) in self.list()?.into_iter().skip(self.keep) {
            remove(&path)?;
        }
        Ok(path)
    }

    /// Renames a damaged checkpoint to `<name>.damaged`, so that it is neither tried again nor counted among the newest.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn set_aside(&self, path: &Path) -> Result<PathBuf, CheckpointError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".damaged");
        let aside = PathBuf::from(name);
        fs::rename(path, &aside).and_then(|()| sync_folder_of(path)).map_err(|source| CheckpointError::Io {
            action: "rename",
            path: path.to_owned(),
            source,
        })?;
        Ok(aside)
    }
}

fn remove(path: &Path) -> Result<(), CheckpointError> {
    fs::remove_file(path).map_err(|source| CheckpointError::Io { action: "remove", path: path.to_owned(), source })
}

fn step_of(path: &Path) -> Option<usize> {
    let digits = path.file_name()?.to_str()?.strip_prefix("step-")?.strip_suffix(".safetensors")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;
    use serde_json::Value;

    use super::*;

    fn at_step(step: usize) -> Checkpoint {
        let data = TensorData::new(vec![step as f32; 50], [50]);
        Checkpoint {
            header: CheckpointHeader {
                format_version: FORMAT_VERSION,
                step,
                tokens_seen: 0,
                skipped: 0,
                metrics_length: 0,
                configuration: Configuration::default(),
                extra: Value::Null,
            },
            model: vec![NamedTensor { name: "a".into(), data }],
            optimizer: vec![],
            task: vec![],
        }
    }

    fn store_with(folder: &Path, steps: &[usize]) -> CheckpointStore {
        let store = CheckpointStore::open(folder, 2).unwrap();
        for step in steps {
            store.save(&at_step(*step)).unwrap();
        }
        store
    }

    fn steps(store: &CheckpointView) -> Vec<usize> {
        store.list().unwrap().into_iter().map(|(step, _)| step).collect()
    }

    fn cut(path: &Path) {
        let content = fs::read(path).unwrap();
        fs::write(path, &content[..content.len() / 2]).unwrap();
    }

    #[test]
    fn the_newest_few_stay_and_at_least_two() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with(folder.path(), &[5, 10, 99_999_999, 100_000_000]);
        assert_eq!(steps(&store), [100_000_000, 99_999_999], "compared as numbers, not as names");
        assert_eq!(CheckpointStore::open(folder.path(), 0).unwrap().keep, 2);
    }

    #[test]
    fn leftovers_are_removed_and_other_files_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["step-00000007.safetensors.tmp", "notes.txt", "notes.tmp", "step-x.safetensors", "step-.safetensors"]
        {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let view = CheckpointStore::view(folder.path());
        assert!(view.load_newest().unwrap().is_none() && view.newest().is_none() && view.list().unwrap().is_empty());
        assert!(folder.path().join("step-00000007.safetensors.tmp").exists(), "a reader removes nothing");
        let store = store_with(folder.path(), &[1, 2, 3]);
        assert_eq!(steps(&store), [3, 2]);
        assert!(!folder.path().join("step-00000007.safetensors.tmp").exists());
        assert_eq!(steps(&view), [3, 2], "a view sees what has come since");
        assert!(folder.path().join("notes.txt").exists() && folder.path().join("notes.tmp").exists());
    }

    #[test]
    fn a_damaged_one_is_named_and_the_one_before_is_offered() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with(folder.path(), &[10, 20]);
        assert_eq!(store.load_newest().unwrap().unwrap().checkpoint, at_step(20));
        let newest = store.newest().unwrap();
        cut(&newest);
        let found = store.load_newest().unwrap().unwrap();
        assert_eq!(found.checkpoint, at_step(10));
        assert_eq!(found.damaged[0].0, newest);
        assert!(found.damaged[0].1.to_string().contains("step-00000020.safetensors is damaged"));

        let aside = store.set_aside(&newest).unwrap();
        assert!(aside.exists() && store.load_newest().unwrap().unwrap().damaged.is_empty());

        cut(&found.path);
        let message = store.load_newest().unwrap_err().to_string();
        assert!(message.contains("no checkpoint") && message.contains("step-00000010"), "{message}");
    }

    #[test]
    fn no_checkpoint_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(CheckpointStore::open(folder.path(), 2).unwrap().load_newest().unwrap().is_none());
        let missing = folder.path().join("missing");
        assert!(CheckpointStore::open(&missing, 2).is_err());
        assert!(CheckpointStore::view(&missing).load_newest().unwrap().is_none());
        assert!(!missing.exists());
    }

    #[test]
    fn a_failed_write_leaves_the_older_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with(folder.path(), &[10, 20]);
        // A folder in the place of the temporary file makes the write fail.
        fs::create_dir(folder.path().join("step-00000030.safetensors.tmp")).unwrap();
        let message = store.save(&at_step(30)).unwrap_err().to_string();
        assert!(message.contains("step-00000030.safetensors"), "{message}");
        assert_eq!(steps(&store), [20, 10]);
    }
}
