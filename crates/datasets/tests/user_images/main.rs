//! Images from files: every format, and every way in which a file can be wrong.

mod cifar;
mod damaged;
mod embedded;
mod folders;
mod idx;
mod latents;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use datasets::images::{ImageData, ImageError, ImageOptions, ImageSpec};
use flate2::{Compression, write::GzEncoder};
use tempfile::{TempDir, tempdir};

/// A folder for the files of one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempdir().unwrap())
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }
}

fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Everything for training unless there are test files.
fn everything() -> ImageOptions {
    ImageOptions { held_out: 0.0, ..ImageOptions::default() }
}

fn load(path: &Path, options: &ImageOptions) -> Result<ImageData, ImageError> {
    ImageSpec::Path(path.to_owned()).load(options)
}

fn open(path: &Path) -> ImageData {
    load(path, &everything()).unwrap()
}

/// The error of a path and its message, which must name `file`.
fn error(path: &Path, file: &Path) -> (ImageError, String) {
    let error = load(path, &everything()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&file.display().to_string()), "{message}");
    (error, message)
}

/// A byte on the scale of pictures.
fn value(byte: u8) -> f32 {
    f32::from(byte) / 127.5 - 1.0
}
