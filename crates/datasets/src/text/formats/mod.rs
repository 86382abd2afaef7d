//! Reading documents out of files.

mod json_lines;
mod parquet;
mod plain;
mod quiet;

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use super::{
    Document, TextError,
    files::{Format, TextFile, read_error},
};

/// The documents of some files.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub documents: Vec<Document>,
    /// Texts that were empty or null.
    pub empty: usize,
}

impl Contents {
    fn push(&mut self, name: impl FnOnce() -> String, text: &str) {
        match clean(text) {
            text if text.is_empty() => self.empty += 1,
            text => self.documents.push(Document { name: name(), text }),
        }
    }
}

/// The documents of `files`, in order. A file without any text is refused.
pub(super) fn read_all(files: &[TextFile], field: &str) -> Result<Contents, TextError> {
    let mut contents = Contents::default();
    for file in files {
        let empty = || TextError::EmptyFile { path: file.path.clone() };
        // Asked first, because a decoder would call an empty file cut.
        if fs::metadata(&file.path).is_ok_and(|metadata| metadata.len() == 0) {
            return Err(empty());
        }
        let before = contents.documents.len();
        match file.format {
            Format::Plain => plain::read(file, &mut contents)?,
            Format::JsonLines => json_lines::read(file, field, &mut contents)?,
            Format::Parquet => parquet::read(file, field, &mut contents)?,
        }
        if contents.documents.len() == before {
            return Err(empty());
        }
    }
    Ok(contents)
}

/// The text without a byte-order mark at its start and with `\n` for every `\r\n`, so that a file saved on Windows gives
/// the same tokens. A lone `\r` stays.
fn clean(text: &str) -> String {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if text.contains("\r\n") { text.replace("\r\n", "\n") } else { text.to_owned() }
}

/// A reader of the file's bytes, decompressed where need be.
fn open(file: &TextFile) -> Result<Box<dyn Read>, TextError> {
    let raw = File::open(&file.path).map_err(|source| read_error(&file.path, source))?;
    Ok(if file.gzip {
        // Large collections are often several gzip streams one after the other.
        Box::new(MultiGzDecoder::new(BufReader::new(raw)))
    } else {
        Box::new(raw)
    })
}

/// An error met while reading from [`open`].
fn stream_error(file: &TextFile, source: io::Error) -> TextError {
    // The decoder reports damage with these kinds; others come from the operating system.
    let damaged = matches!(
        source.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
    );
    if file.gzip && damaged {
        TextError::Gzip { path: file.path.clone(), source }
    } else {
        read_error(&file.path, source)
    }
}

/// `bytes`, which stand at `offset` in the file, as text.
fn utf8<'a>(file: &TextFile, bytes: &'a [u8], offset: u64) -> Result<&'a str, TextError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        invalid_utf8(&file.path, file.gzip, bytes[at], offset + at as u64)
    })
}

fn invalid_utf8(path: &Path, compressed: bool, byte: u8, offset: u64) -> TextError {
    let advice = match (offset, byte) {
        (0, 0xFF | 0xFE) => "it looks like UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`",
        (1, 0x8B) => "it looks like gzip; give its name the ending .gz",
        _ => "convert the file to UTF-8 (for example `iconv -f WINDOWS-1252 -t UTF-8`)",
    };
    TextError::InvalidUtf8 { path: path.to_owned(), offset, byte, compressed, advice }
}
