//! The user's own files: every format, and every way in which a file can be wrong.

mod folders;
mod held_out;
mod json_lines;
mod parquet_files;
mod plain;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use datasets::text::{Corpus, CorpusOptions, HeldOut, TextError};
use flate2::{Compression, write::GzEncoder};
use tempfile::{TempDir, tempdir};

/// A folder for the files of one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempdir().unwrap())
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

    fn write_gzip(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        self.write(name, gzip(contents.as_ref()))
    }
}

fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

fn everything() -> CorpusOptions {
    CorpusOptions { held_out: HeldOut::Fraction(0.0), ..CorpusOptions::default() }
}

/// The texts of all documents of a file or folder.
fn texts(path: &Path) -> Vec<String> {
    Corpus::open(&[path], &everything()).unwrap().train.into_iter().map(|d| d.text).collect()
}

fn error(path: &Path) -> TextError {
    Corpus::open(&[path], &everything()).unwrap_err()
}

/// The error's message, which must name the file.
fn message(path: &Path) -> String {
    let message = error(path).to_string();
    assert!(message.contains(&path.display().to_string()), "{message}");
    message
}
