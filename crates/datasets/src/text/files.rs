//! Which files to read: formats by extension, folders in a fixed order.

use std::{
    collections::HashSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use walkdir::{DirEntry, WalkDir};

use super::TextError;

/// How a file holds its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The whole file is one document.
    Plain,
    /// Every line is a JSON object with one document.
    JsonLines,
    /// Every row is one document.
    Parquet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextFile {
    /// The path as the user gave it or as it was found below such a path: for messages.
    pub path: PathBuf,
    /// The same file by its one true path: for comparisons.
    pub identity: PathBuf,
    pub format: Format,
    pub gzip: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Never empty, no file twice.
    pub files: Vec<TextFile>,
    pub ignored: Vec<PathBuf>,
}

/// The files that `paths` stand for, in the order of the paths and, within a folder, of the names of its entries.
pub(super) fn find<P: AsRef<Path>>(paths: &[P]) -> Result<Found, TextError> {
    if paths.is_empty() {
        return Err(TextError::NoPaths);
    }
    let mut found = Found { files: Vec::new(), ignored: Vec::new() };
    let mut seen = HashSet::new();
    for path in paths {
        let path = path.as_ref();
        let metadata = fs::metadata(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => TextError::NotFound { path: path.to_owned() },
            _ => read_error(path, source),
        })?;
        if metadata.is_dir() {
            search_folder(path, &mut found, &mut seen)?;
        } else {
            let (format, gzip) = format_of(path).ok_or_else(|| TextError::UnknownFormat { path: path.to_owned() })?;
            add(path, format, gzip, &mut found.files, &mut seen)?;
        }
    }
    Ok(found)
}

fn search_folder(folder: &Path, found: &mut Found, seen: &mut HashSet<PathBuf>) -> Result<(), TextError> {
    let mut usable = 0;
    let ignored_before = found.ignored.len();
    // Links are followed because the download caches of data hubs consist of them.
    let entries = WalkDir::new(folder)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry));
    for entry in entries {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            let source = error
                .into_io_error()
                .unwrap_or_else(|| std::io::Error::other("a link leads back to one of its own parent folders"));
            TextError::Read { path, source }
        })?;
        if entry.file_type().is_dir() {
            continue;
        }
        match format_of(entry.path()) {
            Some((format, gzip)) => {
                usable += 1;
                add(entry.path(), format, gzip, &mut found.files, seen)?;
            }
            None => found.ignored.push(entry.into_path()),
        }
    }
    if usable == 0 {
        return Err(TextError::NoUsableFiles {
            path: folder.to_owned(),
            ignored: found.ignored.split_off(ignored_before),
        });
    }
    Ok(())
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn add(
    path: &Path,
    format: Format,
    gzip: bool,
    files: &mut Vec<TextFile>,
    seen: &mut HashSet<PathBuf>,
) -> Result<(), TextError> {
    let identity = fs::canonicalize(path).map_err(|source| read_error(path, source))?;
    if seen.insert(identity.clone()) {
        files.push(TextFile { path: path.to_owned(), identity, format, gzip });
    }
    Ok(())
}

pub(super) fn read_error(path: &Path, source: std::io::Error) -> TextError {
    TextError::Read { path: path.to_owned(), source }
}

/// The format that a file's name stands for, and whether the file is gzipped. Upper and lower case are the same.
fn format_of(path: &Path) -> Option<(Format, bool)> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let (name, gzip) = match name.strip_suffix(".gz") {
        Some(name) => (name, true),
        None => (name.as_str(), false),
    };
    let format = match name.rsplit_once('.')?.1 {
        "txt" => Format::Plain,
        "jsonl" | "ndjson" | "json" => Format::JsonLines,
        // Parquet has its own compression; a gzipped one cannot be read from its end.
        "parquet" if !gzip => Format::Parquet,
        _ => return None,
    };
    Some((format, gzip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_the_name() {
        use Format::{JsonLines, Parquet, Plain};
        for (name, expected) in [
            ("a.txt", Some((Plain, false))),
            ("a.TXT", Some((Plain, false))),
            ("a.txt.gz", Some((Plain, true))),
            ("a.b.jsonl", Some((JsonLines, false))),
            ("a.ndjson", Some((JsonLines, false))),
            ("c4-train.00000-of-01024.json.gz", Some((JsonLines, true))),
            ("train-00000-of-00002.parquet", Some((Parquet, false))),
            ("a.parquet.gz", None),
            ("a.md", None),
            ("a.gz", None),
            ("txt", None),
            ("a", None),
        ] {
            assert_eq!(format_of(Path::new(name)), expected, "{name}");
        }
    }
}
