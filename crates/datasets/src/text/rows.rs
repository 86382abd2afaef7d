//! Rows of inputs and targets.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Document, EncodedText, TextError, Tokenizer};

/// The target of a place that does not count: padding, or the end of a row. The value that PyTorch's cross-entropy
/// ignores by default.
pub const IGNORE: i32 = -100;

/// The longest row, larger than the context of any published model: beyond it the lists of a row, and sums over them,
/// would run out of memory or of numbers instead of giving an error.
const MAX_CONTEXT: usize = 1 << 24;

/// Bytes of text that are tokenized at once.
const GROUP: usize = 1 << 23;

/// How documents are laid out in rows of T tokens. In configuration files and arguments: `packed`, `document`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowMode {
    /// All documents one after the other, an end-of-text token before the first and after each, cut into windows of T + 1
    /// tokens that overlap by one: every token of every document is a target exactly once an epoch, and only the last
    /// row is padded. With a tokenizer that has no end of text nothing stands between the documents, and the very first
    /// token is not a target. The special tokens that a tokenizer puts around a text are not used.
    Packed,
    /// One document a row, as in the paper: cut to T tokens, padded on the right, each token the target of the one before.
    /// So a row has at most T - 1 targets, and the first token of a document is none.
    ///
    /// The special tokens that the tokenizer puts around a text are part of the T tokens, also of a document that is
    /// cut. A tokenizer that puts none (bytes and BPE) gets its end of text after each document that is not cut.
    Document,
}

impl RowMode {
    fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Document => "document",
        }
    }

    /// The least T with a target.
    fn least_context(self) -> usize {
        match self {
            Self::Packed => 1,
            Self::Document => 2,
        }
    }
}

impl fmt::Display for RowMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RowMode {
    type Err = TextError;

    fn from_str(mode: &str) -> Result<Self, TextError> {
        match mode {
            "packed" => Ok(Self::Packed),
            "document" => Ok(Self::Document),
            _ => Err(TextError::RowMode { mode: mode.to_owned() }),
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// T token ids.
    pub inputs: Vec<i32>,
    /// For each input the token that follows, or [`IGNORE`].
    pub targets: Vec<i32>,
    /// Targets that count.
    pub target_tokens: usize,
    /// UTF-8 bytes of text that those targets stand for.
    pub target_bytes: u64,
}

/// Figures of some [`Rows`]; `Display` gives a line for a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowStats {
    /// Documents that were laid out.
    pub documents: usize,
    /// Targets that count, over all rows.
    pub target_tokens: u64,
    /// UTF-8 bytes that those targets stand for.
    pub target_bytes: u64,
    /// Places of all rows that are no target.
    pub ignored_targets: u64,
    /// Documents of which a part did not fit into its row ([`RowMode::Document`]).
    pub truncated_documents: usize,
    /// Tokens of those parts.
    pub truncated_tokens: u64,
    /// Documents without a target, which have no row ([`RowMode::Document`]).
    pub skipped_documents: usize,
}

/// Tokenized documents as rows of T inputs and T targets ([`Rows::context`]), in the order of the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The tokens of all rows. Packed rows share their border tokens.
    tokens: Vec<u32>,
    spans: Vec<Span>,
    context: usize,
    filler: i32,
    mode: RowMode,
    stats: RowStats,
}

/// A row as a part of the token list: the first `min(length, T)` tokens are its inputs, the tokens from the second on
/// are its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    length: usize,
    target_bytes: u64,
}

impl Rows {
    /// Tokenizes `documents` and lays them out in rows of `context` tokens. Documents that give no token are left out.
    ///
    /// Each call reads only the documents that it is given, so an evaluation that is not preceded by training lays out
    /// [`Corpus::held_out`](super::Corpus::held_out) alone. The tokenizer of such an evaluation is the one the model was
    /// trained with, as a file ([`Tokenizer::to_json`], [`TokenizerSpec::File`](super::TokenizerSpec::File)): only
    /// [`TokenizerSpec::Bpe`](super::TokenizerSpec::Bpe) needs the training text.
    ///
    /// # Errors
    /// [`TextError::ContextTooShort`], [`TextError::ContextTooLong`] (above 2^24 tokens), [`TextError::NoRows`], [`TextError::TooManyRows`], and [`TextError::Encode`] from
    /// the tokenizer.
    pub fn build(
        documents: &[Document],
        tokenizer: &Tokenizer,
        mode: RowMode,
        context: usize,
    ) -> Result<Self, TextError> {
        let minimum = mode.least_context();
        if context < minimum {
            return Err(TextError::ContextTooShort { context, mode: mode.name(), minimum });
        }
        if context > MAX_CONTEXT {
            return Err(TextError::ContextTooLong { context, maximum: MAX_CONTEXT });
        }
        let mut rows = match mode {
            RowMode::Packed => packed(documents, tokenizer, context)?,
            RowMode::Document => one_a_row(documents, tokenizer, context)?,
        };
        if rows.spans.is_empty() {
            return Err(TextError::NoRows { documents: documents.len() });
        }
        if u32::try_from(rows.spans.len()).is_err() {
            return Err(TextError::TooManyRows { rows: rows.spans.len() });
        }
        let stats = &mut rows.stats;
        stats.documents = documents.len();
        stats.target_tokens = rows.spans.iter().map(|span| span.length as u64 - 1).sum();
        stats.target_bytes = rows.spans.iter().map(|span| span.target_bytes).sum();
        stats.ignored_targets = rows.spans.len() as u64 * context as u64 - stats.target_tokens;
        Ok(rows)
    }

    /// Number of rows, at least one.
    pub fn len(&self) -> u32 {
        self.spans.len() as u32 // `build` refuses more.
    }

    /// Always false: [`Rows::build`] refuses to make no rows.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Tokens in a row, T.
    pub fn context(&self) -> usize {
        self.context
    }

    /// How the rows were laid out.
    pub fn mode(&self) -> RowMode {
        self.mode
    }

    /// Figures over all rows.
    pub fn stats(&self) -> RowStats {
        self.stats
    }

    /// A CRC-32 of everything that decides what batches hold: the mode, the context, the padding, the token ids, where
    /// the rows lie and how many bytes their targets stand for. A run that is resumed can compare it, for the training
    /// rows and for the held-out ones, with what it wrote down at its start, to notice that a file or the tokenizer has
    /// changed.
    ///
    /// If a single token changes, or a few that lie side by side in 32 bits, it always changes; after any other change it
    /// is the same by chance once in 2^32.
    pub fn fingerprint(&self) -> u32 {
        // Fed in pieces of some kilobytes: the checksum of four bytes at a time is several times slower.
        const PIECE: usize = 1024;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.mode.name().as_bytes());
        hasher.update(&(self.context as u64).to_le_bytes());
        hasher.update(&self.filler.to_le_bytes());
        hasher.update(&(self.tokens.len() as u64).to_le_bytes());
        for ids in self.tokens.chunks(PIECE) {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            hasher.update(&bytes);
        }
        for spans in self.spans.chunks(PIECE) {
            let numbers = spans.iter().flat_map(|span| [span.start as u64, span.length as u64, span.target_bytes]);
            let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
            hasher.update(&bytes);
        }
        hasher.finalize()
    }

    /// Row number `index`, or `None` past the end.
    pub fn row(&self, index: u32) -> Option<Row> {
        let span = *self.spans.get(index as usize)?;
        let mut row = Row {
            inputs: Vec::with_capacity(self.context),
            targets: Vec::with_capacity(self.context),
            target_tokens: span.length - 1,
            target_bytes: span.target_bytes,
        };
        self.append(span, &mut row.inputs, &mut row.targets);
        Some(row)
    }

    /// Appends row number `index`, which must exist, to flat lists, and returns its target tokens and bytes.
    pub(super) fn append_row(&self, index: u32, inputs: &mut Vec<i32>, targets: &mut Vec<i32>) -> (usize, u64) {
        let span = self.spans[index as usize];
        self.append(span, inputs, targets);
        (span.length - 1, span.target_bytes)
    }

    fn append(&self, span: Span, inputs: &mut Vec<i32>, targets: &mut Vec<i32>) {
        // Ids fit: tokenizers with larger ones are refused.
        let tokens = self.tokens[span.start..][..span.length].iter().map(|&id| id as i32);
        let (inputs_end, targets_end) = (inputs.len() + self.context, targets.len() + self.context);
        inputs.extend(tokens.clone().take(self.context));
        targets.extend(tokens.skip(1));
        inputs.resize(inputs_end, self.filler);
        targets.resize(targets_end, IGNORE);
    }

    fn new(tokenizer: &Tokenizer, mode: RowMode, context: usize) -> Self {
        Self {
            tokens: Vec::new(),
            spans: Vec::new(),
            context,
            filler: tokenizer.filler() as i32,
            mode,
            stats: RowStats::default(),
        }
    }
}

fn packed(documents: &[Document], tokenizer: &Tokenizer, context: usize) -> Result<Rows, TextError> {
    let mut rows = Rows::new(tokenizer, RowMode::Packed, context);
    let end = tokenizer.end_of_text();
    // Row r has the targets r * context + 1 to (r + 1) * context of the token list.
    let mut row_bytes: Vec<u64> = Vec::new();
    let tokens = &mut rows.tokens;
    let mut append = |id, bytes| {
        if let Some(target) = tokens.len().checked_sub(1) {
            row_bytes.resize(target / context + 1, 0);
            row_bytes[target / context] += u64::from(bytes);
        }
        tokens.push(id);
    };
    if let Some(end) = end {
        append(end, 0);
    }
    for_each_encoded(documents, tokenizer, |text| {
        for (id, bytes) in text.ids.into_iter().zip(text.bytes) {
            append(id, bytes);
        }
        if let Some(end) = end {
            append(end, 0);
        }
    })?;
    rows.spans = (0..)
        .step_by(context)
        .zip(row_bytes)
        .map(|(start, target_bytes)| {
            let length = (context + 1).min(rows.tokens.len() - start);
            Span { start, length, target_bytes }
        })
        .collect();
    Ok(rows)
}

fn one_a_row(documents: &[Document], tokenizer: &Tokenizer, context: usize) -> Result<Rows, TextError> {
    let mut rows = Rows::new(tokenizer, RowMode::Document, context);
    let (prefix, suffix) = tokenizer.template();
    let bare = prefix.is_empty() && suffix.is_empty();
    let room = context.saturating_sub(prefix.len() + suffix.len());
    for_each_encoded(documents, tokenizer, |text| {
        let kept = text.ids.len().min(room);
        let end = tokenizer.end_of_text().filter(|_| bare);
        let start = rows.tokens.len();
        rows.tokens.extend_from_slice(prefix);
        rows.tokens.extend_from_slice(&text.ids[..kept]);
        rows.tokens.extend_from_slice(suffix);
        rows.tokens.extend(end);
        // Takes off the end of text again where there is no room, and shortens a template longer than the row.
        rows.tokens.truncate(start + context);
        let cut = text.ids.len() - kept;
        rows.stats.truncated_documents += usize::from(cut > 0);
        rows.stats.truncated_tokens += cut as u64;
        let length = rows.tokens.len() - start;
        if length < 2 {
            rows.tokens.truncate(start);
            rows.stats.skipped_documents += 1;
            return;
        }
        // Without a prefix the first token of the text opens the row and is no target.
        let first = usize::from(prefix.is_empty());
        let target_bytes = text.bytes[..kept].iter().skip(first).map(|&b| u64::from(b)).sum();
        rows.spans.push(Span { start, length, target_bytes });
    })?;
    Ok(rows)
}

/// Tokenizes the documents in groups, so that many small ones are spread over all cores, and hands them on in order.
fn for_each_encoded(
    documents: &[Document],
    tokenizer: &Tokenizer,
    mut use_text: impl FnMut(EncodedText),
) -> Result<(), TextError> {
    let mut rest = documents;
    while !rest.is_empty() {
        let mut bytes = 0;
        let last = rest.iter().position(|document| {
            bytes += document.text.len();
            bytes >= GROUP
        });
        let (group, later) = rest.split_at(last.map_or(rest.len(), |last| last + 1));
        let texts: Vec<&str> = group.iter().map(|document| document.text.as_str()).collect();
        for text in tokenizer.encode_all(&texts)? {
            use_text(text);
        }
        rest = later;
    }
    Ok(())
}

impl RowStats {
    /// UTF-8 bytes of text per target: how much a token of this tokenizer holds on this text. `NaN` without targets.
    pub fn bytes_per_token(&self) -> f64 {
        self.target_bytes as f64 / self.target_tokens as f64
    }
}

impl fmt::Display for RowStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", count(self.documents as u64, "document"), count(self.target_tokens, "target"))?;
        if self.target_tokens > 0 {
            write!(f, ", {:.3} bytes per token", self.bytes_per_token())?;
        }
        if self.ignored_targets > 0 {
            write!(f, ", {} without a target", count(self.ignored_targets, "place"))?;
        }
        if self.truncated_documents > 0 {
            let documents = count(self.truncated_documents as u64, "document");
            write!(f, ", {documents} cut to the row ({} lost)", count(self.truncated_tokens, "token"))?;
        }
        if self.skipped_documents > 0 {
            write!(f, ", {} too short for a target skipped", count(self.skipped_documents as u64, "document"))?;
        }
        Ok(())
    }
}

fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
