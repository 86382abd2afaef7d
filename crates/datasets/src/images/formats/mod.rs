//! Reading images out of crates and files.

pub(super) mod cifar;
pub(super) mod digits;
pub(super) mod folders;
pub(super) mod idx;
pub(super) mod latents;
mod pictures;
pub(super) mod twemoji;

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
};

use super::{ImageError, ImageSet};

/// What a source holds.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Never empty.
    pub train: ImageSet,
    /// The test images that the source brings, with the reason in words why they are held out.
    pub test: Option<(ImageSet, String)>,
}

/// A name in a folder.
pub(super) struct Entry {
    pub name: String,
    pub is_folder: bool,
}

/// What the folder holds, sorted by name, hidden entries left out.
pub(super) fn entries(folder: &Path) -> Result<Vec<Entry>, ImageError> {
    let error = |source| read_error(folder, source);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            // Links are followed because the download caches of data hubs consist of them.
            let kind = fs::metadata(entry.path());
            let is_folder = kind.as_ref().is_ok_and(Metadata::is_dir);
            // A pipe, a socket or a device is no picture, and reading one may never end. A broken link is named later.
            if kind.is_err() || is_folder || kind.is_ok_and(|kind| kind.is_file()) {
                entries.push(Entry { name, is_folder });
            }
        }
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

pub(super) fn read_error(path: &Path, source: io::Error) -> ImageError {
    ImageError::Read { path: path.to_owned(), source }
}

fn length(path: &Path) -> Result<u64, ImageError> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(|source| read_error(path, source))
}
