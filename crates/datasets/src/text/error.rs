//! What can go wrong between a file and a batch.

use std::{io, path::PathBuf};

use super::tokenizer::MIN_BPE_ENTRIES;

/// Why text could not be read, tokenized or laid out. Every message says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A tokenizer cannot be written as a `tokenizer.json`.
    #[error("the tokenizer cannot be written as a tokenizer.json: {reason}")]
    TokenizerJson {
        /// What the library says.
        reason: String,
    },
    /// No path was given.
    #[error("no data path was given: name at least one file or folder")]
    NoPaths,
    /// A path does not exist.
    #[error("{path} does not exist: check the path of the data")]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// The operating system refused to read a path.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file that was named explicitly has an extension that stands for no known format.
    #[error(
        "{path} is in no known format: use .txt, .txt.gz, .jsonl, .ndjson or .json (also with .gz; one JSON object a \
         line), or .parquet"
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// A folder holds no file in a known format.
    #[error(
        "{path} holds no usable file ({}): put .txt, .jsonl, .json.gz or .parquet files there",
        ignored_files(.ignored)
    )]
    NoUsableFiles {
        /// The folder.
        path: PathBuf,
        /// The files that were passed over because of their extension.
        ignored: Vec<PathBuf>,
    },
    /// A file holds no text at all.
    #[error("{path} holds no text: remove it, or check that it was written completely")]
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// A text file is not UTF-8.
    #[error(
        "{path} is not UTF-8: byte 0x{byte:02X} at offset {offset}{}: {advice}",
        if *.compressed { " of the decompressed text" } else { "" }
    )]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte that does not belong to a valid character, from the start of the file.
        offset: u64,
        /// That byte.
        byte: u8,
        /// Whether the offset counts decompressed bytes.
        compressed: bool,
        /// A likely cause and its cure.
        advice: &'static str,
    },
    /// A gzip file is cut short or damaged.
    #[error("{path} is not a whole gzip file ({source}): fetch or write it again")]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        source: io::Error,
    },
    /// A line is not one JSON object.
    #[error(
        "{path}, line {line}, is not one JSON object ({reason}): every line must hold one; `jq -c '.[]'` turns a JSON \
         array into such lines, `jq -c .` an indented file"
    )]
    InvalidJson {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What the parser said.
        reason: String,
    },
    /// A JSON object lacks the field that holds the text.
    #[error("{path}, line {line}, has no field `{field}` (found: {}): name the field that holds the text", list(.found))]
    MissingField {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// The field that was looked for.
        field: String,
        /// The fields that the object has.
        found: Vec<String>,
    },
    /// The field that should hold the text holds something else.
    #[error("{path}, line {line}: field `{field}` holds {found}, not a string: name the field that holds the text")]
    FieldNotText {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// The field.
        field: String,
        /// What it holds, in words.
        found: &'static str,
    },
    /// A parquet file is cut short or damaged.
    #[error("{path} is not a whole parquet file ({reason}): fetch or write it again")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// A parquet file lacks the column that holds the text.
    #[error("{path} has no column `{column}` (found: {}): name the column that holds the text", list(.found))]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column that was looked for.
        column: String,
        /// The columns that the file has.
        found: Vec<String>,
    },
    /// The parquet column that should hold the text has another type.
    #[error("{path}: column `{column}` holds {found}, not strings: name the column that holds the text")]
    ColumnNotText {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },
    /// A string in a parquet file is not UTF-8.
    #[error(
        "{path}: row {row} of column `{column}` is not UTF-8 (offset {offset} of its value): write the file again from \
         UTF-8 text"
    )]
    ParquetUtf8 {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Row number, from 0, over all row groups.
        row: u64,
        /// Offset in the value of the first byte that does not belong to a valid character.
        offset: usize,
    },
    /// The held-out share is not a share.
    #[error("a held-out share of {fraction} makes no sense: give at least 0 and less than 1")]
    HeldOutFraction {
        /// The share that was asked for.
        fraction: f64,
    },
    /// There is too little text to hold any of it out.
    #[error(
        "{bytes} bytes of text are too few to hold {fraction} of them out: give more text, another share, or validation \
         files"
    )]
    TooLittleText {
        /// Bytes of text in all.
        bytes: u64,
        /// The share that was asked for.
        fraction: f64,
    },
    /// All training files or documents are validation files or documents too.
    #[error(
        "all of the training data is also validation data: nothing is left to train on; name other training or validation \
         files"
    )]
    NothingToTrainOn,
    /// The embedded text could not be read.
    #[error("the embedded text cannot be read ({reason}): this is a fault of the build, please report it")]
    Embedded {
        /// What the crate that embeds it said.
        reason: String,
    },
    /// The name of a tokenizer is not understood.
    #[error(
        "`{spec}` names no tokenizer: use `bytes`, `bpe:N` (for example `bpe:4096`), or the path of a tokenizer.json"
    )]
    TokenizerSpec {
        /// The name as given.
        spec: String,
    },
    /// The number of entries of a BPE vocabulary is not possible.
    #[error(
        "a byte-level BPE vocabulary cannot have {entries} entries: it needs at least {MIN_BPE_ENTRIES} (256 bytes and \
         the end of text) and less than 2^31"
    )]
    BpeEntries {
        /// The number that was asked for.
        entries: usize,
    },
    /// A BPE vocabulary could not be trained.
    #[error("training a BPE vocabulary failed: {reason}")]
    BpeTraining {
        /// What went wrong.
        reason: String,
    },
    /// A file is not a tokenizer.
    #[error(
        "{path} is not a usable tokenizer ({reason}): give a tokenizer.json as the Hugging Face `tokenizers` library saves \
         it"
    )]
    TokenizerFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The tokenizer refused a text.
    #[error("the tokenizer cannot encode this text: {reason}")]
    Encode {
        /// What it said.
        reason: String,
    },
    /// The tokenizer refused a list of ids.
    #[error("the tokenizer cannot decode these ids: {reason}")]
    Decode {
        /// What it said.
        reason: String,
    },
    /// The name of a row mode is not understood.
    #[error("`{mode}` names no row mode: use `packed` or `document`")]
    RowMode {
        /// The name as given.
        mode: String,
    },
    /// Rows are too short to hold a target.
    #[error("rows of {context} tokens cannot be made in {mode} mode: give at least {minimum}")]
    ContextTooShort {
        /// The row length that was asked for.
        context: usize,
        /// The row mode.
        mode: &'static str,
        /// The least row length of that mode.
        minimum: usize,
    },
    /// Rows are longer than this crate holds.
    #[error("rows of {context} tokens are too long: give at most {maximum}")]
    ContextTooLong {
        /// The row length that was asked for.
        context: usize,
        /// The greatest row length.
        maximum: usize,
    },
    /// The documents give not a single target.
    #[error("{documents} documents give no row with a target: give more text")]
    NoRows {
        /// Number of documents.
        documents: usize,
    },
    /// There are more rows than a 32-bit number can count.
    #[error("{rows} rows are more than this crate can hold: use longer rows or less text")]
    TooManyRows {
        /// Number of rows.
        rows: usize,
    },
    /// A batch of no rows was asked for.
    #[error("a batch needs at least one row")]
    EmptyBatch,
    /// A batch is larger than this crate holds.
    #[error("a batch of {rows} rows of {context} tokens is too large: give at most {} rows", maximum / context)]
    BatchTooLarge {
        /// Rows of the batch.
        rows: usize,
        /// Tokens in a row.
        context: usize,
        /// The most tokens that a batch may have.
        maximum: usize,
    },
    /// An evaluation of no batches was asked for.
    #[error("an evaluation needs at least one batch")]
    NoBatches,
}

/// A list of names for a message, cut to the first dozen.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 12;
    match names.len() {
        0 => "nothing".to_owned(),
        n if n <= SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}

fn ignored_files(ignored: &[PathBuf]) -> String {
    if ignored.is_empty() {
        return "it is empty".to_owned();
    }
    let names: Vec<_> =
        ignored.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned()).collect();
    format!("passed over: {}", list(&names))
}
