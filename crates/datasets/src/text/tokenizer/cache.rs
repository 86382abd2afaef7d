//! The cache of trained tokenizers: one `tokenizer.json` for each vocabulary size and training text.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{CacheOutcome, hugging_face::HuggingFace};
use crate::text::{Document, TextError};

/// Part of the file name: raise it when training changes, so that old files are left alone.
const FORMAT_VERSION: u32 = 1;

/// Reads the tokenizer from its file below `dir`, or trains it and writes the file. `check` turns the contents of a
/// file into a tokenizer or says what is wrong with them.
pub(super) fn load_or_train(
    dir: Option<&Path>,
    entries: usize,
    documents: &[Document],
    check: impl Fn(&str) -> Result<HuggingFace, String>,
    train: impl FnOnce() -> Result<String, TextError>,
) -> Result<(HuggingFace, CacheOutcome), TextError> {
    let Some(dir) = dir else {
        return Ok((trained(&train()?, check)?, CacheOutcome::Off));
    };
    let path = dir.join(file_name(entries, documents));
    let fault = match fs::read_to_string(&path) {
        Ok(json) => match check(&json) {
            Ok(tokenizer) => return Ok((tokenizer, CacheOutcome::Read(path))),
            Err(reason) => Some(reason),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    };
    let json = train()?;
    let tokenizer = trained(&json, check)?;
    let outcome = match (write(dir, &path, &json), fault) {
        (Ok(()), None) => CacheOutcome::Written(path),
        (Ok(()), Some(reason)) => CacheOutcome::Replaced(path, reason),
        (Err(error), _) => CacheOutcome::NotWritten(path, error.to_string()),
    };
    Ok((tokenizer, outcome))
}

/// A fresh tokenizer goes through the same door as a stored one, so that the first run and the second cannot differ.
fn trained(json: &str, check: impl Fn(&str) -> Result<HuggingFace, String>) -> Result<HuggingFace, TextError> {
    check(json).map_err(|reason| TextError::BpeTraining { reason })
}

/// Names the training text by its CRC-32, its bytes and its number of documents.
fn file_name(entries: usize, documents: &[Document]) -> String {
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = 0;
    for document in documents {
        // The length keeps two documents apart from one that holds both.
        hasher.update(&(document.text.len() as u64).to_le_bytes());
        hasher.update(document.text.as_bytes());
        bytes += document.text.len();
    }
    format!("bpe-{entries}-{:08x}-{bytes}-{}-v{FORMAT_VERSION}.json", hasher.finalize(), documents.len())
}

/// Writes through a temporary file that is renamed: whoever reads finds the whole file or none.
fn write(dir: &Path, path: &Path, json: &str) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(dir)?;
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary: PathBuf = dir.join(format!(".bpe-{}-{number}.tmp", process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(json.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}
