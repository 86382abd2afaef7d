//! Documents to train on and documents held out.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use super::{
    TextError, embedded,
    files::{self, Found},
    formats, split,
};

/// One text with a name to find it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Where the text comes from: `"Genesis 1"`, `"data/a.txt"`, `"data/b.jsonl:17"` (line, from 1),
    /// `"data/c.parquet:17"` (row, from 0).
    pub name: String,
    /// The text, never empty. No byte-order mark at its start, no `\r\n`.
    pub text: String,
}

/// How the held-out documents of a [`Corpus::open`] are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldOut {
    /// About this share of the bytes, `0.0 <= share < 1.0`. The choice depends on the texts alone: not on a seed, not on
    /// the order of the files; texts that are equal stay on one side. If no document is as small as the share, the end
    /// of the largest one is held out instead (of every copy, if it is there several times). `0.0` keeps everything for
    /// training.
    Fraction(f64),
    /// The documents of these files and folders. Files that are also among the training paths are not trained on, and
    /// neither are documents of other files with the same text.
    Paths(Vec<PathBuf>),
}

/// How [`Corpus::open`] reads the user's files.
#[derive(Clone, Debug, PartialEq)]
pub struct CorpusOptions {
    /// The JSON field or parquet column that holds the text; `"text"` by default.
    pub text_field: String,
    /// What is held out; a tenth of the bytes by default.
    pub held_out: HeldOut,
}

impl Default for CorpusOptions {
    fn default() -> Self {
        Self { text_field: "text".to_owned(), held_out: HeldOut::Fraction(0.1) }
    }
}

/// Documents to train on and documents held out, all in memory, no text on both sides.
///
/// Text only: nothing is tokenized before [`Rows::build`](super::Rows::build) is called on one side or the other.
///
/// `Display` gives a short account of it for a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corpus {
    /// The documents to train on.
    pub train: Vec<Document>,
    /// The documents to evaluate on.
    pub held_out: Vec<Document>,
    /// What the text is, in words.
    pub source: String,
    /// How the held-out documents were chosen, in words.
    pub held_out_rule: String,
    /// Files in the given folders that were passed over because of their extension.
    pub ignored_files: Vec<PathBuf>,
    /// JSON lines and parquet rows whose text is empty or null; they are not among the documents.
    pub empty_documents: usize,
    /// Documents that would have been trained on if their text were not also that of a held-out one.
    pub left_out_documents: usize,
}

impl Corpus {
    /// The King James Bible as the crate `bible-lib` embeds it: one document a chapter, the books of
    /// [`HELD_OUT_BOOKS`](super::HELD_OUT_BOOKS) held out. Needs no file and no network.
    ///
    /// # Errors
    /// [`TextError::Embedded`] if the embedded text does not parse, which a test rules out.
    pub fn embedded() -> Result<Self, TextError> {
        embedded::corpus()
    }

    /// The user's own files, and folders of them.
    ///
    /// A `.txt` is one document, each line of a `.jsonl`, `.ndjson` or `.json` is one (an object with a field
    /// [`CorpusOptions::text_field`]), each row of a `.parquet` is one. All but parquet may be gzipped (`.txt.gz`).
    /// Folders are searched at any depth in the order of their names; hidden files and folders are skipped, files of
    /// other formats are listed in [`Corpus::ignored_files`]. A file that is reached twice is read once.
    ///
    /// The parquet library panics on some damaged files. Such a panic becomes an error without a panic message: the first
    /// parquet file puts a panic hook in front of the program's, which hands every other panic on.
    ///
    /// # Errors
    /// Any fault of any file: nothing is skipped silently. See [`TextError`].
    pub fn open<P: AsRef<Path>>(paths: &[P], options: &CorpusOptions) -> Result<Self, TextError> {
        let train_files = files::find(paths)?;
        match &options.held_out {
            HeldOut::Fraction(fraction) => Self::open_split(train_files, *fraction, options),
            HeldOut::Paths(paths) => Self::open_separate(train_files, files::find(paths)?, options),
        }
    }

    fn open_split(files: Found, fraction: f64, options: &CorpusOptions) -> Result<Self, TextError> {
        // Asked first, so that a slip is reported before gigabytes are read.
        split::check(fraction)?;
        let contents = formats::read_all(&files.files, &options.text_field)?;
        let parts = split::by_fraction(contents.documents, fraction)?;
        Ok(Self {
            train: parts.train,
            held_out: parts.held_out,
            source: source(files.files.len()),
            held_out_rule: parts.rule,
            ignored_files: files.ignored,
            empty_documents: contents.empty,
            left_out_documents: parts.left_out,
        })
    }

    fn open_separate(mut train: Found, held_out: Found, options: &CorpusOptions) -> Result<Self, TextError> {
        let before = train.files.len();
        train.files.retain(|file| !held_out.files.iter().any(|other| other.identity == file.identity));
        if train.files.is_empty() {
            return Err(TextError::NothingToTrainOn);
        }
        let mut rule = format!("{} validation file(s)", held_out.files.len());
        let shared = before - train.files.len();
        if shared > 0 {
            rule += &format!(", {shared} of them left out of the training data");
        }
        let mut train_contents = formats::read_all(&train.files, &options.text_field)?;
        let held_out_contents = formats::read_all(&held_out.files, &options.text_field)?;
        let left_out = leave_out_held_out(&mut train_contents.documents, &held_out_contents.documents);
        if train_contents.documents.is_empty() {
            return Err(TextError::NothingToTrainOn);
        }
        let mut ignored_files = train.ignored;
        ignored_files.extend(held_out.ignored);
        ignored_files.sort();
        ignored_files.dedup();
        Ok(Self {
            train: train_contents.documents,
            held_out: held_out_contents.documents,
            source: source(train.files.len() + held_out.files.len()),
            held_out_rule: rule,
            ignored_files,
            empty_documents: train_contents.empty + held_out_contents.empty,
            left_out_documents: left_out,
        })
    }
}

fn source(files: usize) -> String {
    format!("{files} file(s)")
}

/// Removes the training documents whose text is also held out: a loss on them would measure memory. Returns how many.
pub(super) fn leave_out_held_out(train: &mut Vec<Document>, held_out: &[Document]) -> usize {
    let texts: HashSet<&str> = held_out.iter().map(|document| document.text.as_str()).collect();
    let before = train.len();
    train.retain(|document| !texts.contains(document.text.as_str()));
    before - train.len()
}

/// Bytes of UTF-8 in all documents.
pub(super) fn total_bytes(documents: &[Document]) -> u64 {
    documents.iter().map(|d| d.text.len() as u64).sum()
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "text: {}", self.source)?;
        writeln!(f, "training: {} documents, {} bytes", self.train.len(), total_bytes(&self.train))?;
        write!(
            f,
            "held out: {} documents, {} bytes ({})",
            self.held_out.len(),
            total_bytes(&self.held_out),
            self.held_out_rule
        )?;
        if self.left_out_documents > 0 {
            write!(f, "\nleft out of the training data: {} documents that are also held out", self.left_out_documents)?;
        }
        if self.empty_documents > 0 {
            write!(f, "\nskipped: {} empty or null texts", self.empty_documents)?;
        }
        if !self.ignored_files.is_empty() {
            write!(
                f,
                "\npassed over: {} file(s) of other formats, the first is {}",
                self.ignored_files.len(),
                self.ignored_files[0].display()
            )?;
        }
        Ok(())
    }
}
