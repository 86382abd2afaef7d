//! Training a byte-level BPE on the training documents.

use std::path::Path;

use tokenizers::{
    AddedToken, NormalizerWrapper, TokenizerBuilder,
    models::bpe::{BPE, BpeTrainerBuilder},
    pre_tokenizers::byte_level::ByteLevel,
};

use super::{
    END_OF_TEXT, Provenance, Tokenizer, cache,
    hugging_face::HuggingFace,
    pieces::{PIECE, pieces},
};
use crate::text::{Document, TextError};

/// The end of text and the 256 bytes.
pub(in crate::text) const MIN_BPE_ENTRIES: usize = 257;

/// A pair that occurs once is noise, not a word.
const MIN_FREQUENCY: u64 = 2;

pub(super) fn check(entries: usize) -> Result<(), TextError> {
    if entries < MIN_BPE_ENTRIES || i32::try_from(entries).is_err() {
        return Err(TextError::BpeEntries { entries });
    }
    Ok(())
}

/// The BPE of `entries` entries over `documents`, from the cache if it is there.
pub(super) fn load(entries: usize, documents: &[Document], cache_dir: Option<&Path>) -> Result<Tokenizer, TextError> {
    check(entries)?;
    let (inner, cache) = cache::load_or_train(
        cache_dir,
        entries,
        documents,
        |json| usable(json, entries),
        || train(entries, documents),
    )?;
    let provenance = Provenance::Bpe { requested: entries, cache };
    Ok(Tokenizer::from_hugging_face(inner, provenance))
}

/// The tokenizer that `json` holds, if it can be one that [`train`] wrote.
fn usable(json: &str, entries: usize) -> Result<HuggingFace, String> {
    let inner = HuggingFace::from_json(json)?;
    let size = inner.vocabulary_size();
    if !(MIN_BPE_ENTRIES..=entries).contains(&size) {
        return Err(format!("it has {size} entries"));
    }
    if inner.end_of_text() != Some(0) || !inner.is_byte_level() {
        return Err("it is another kind of tokenizer".to_owned());
    }
    Ok(inner)
}

/// Trains and returns the contents of a `tokenizer.json`.
///
/// The result depends on the documents alone: the library breaks ties between pairs by their ids, and counts are sums of
/// integers. (A test trains repeatedly, on one thread and on several.)
fn train(entries: usize, documents: &[Document]) -> Result<String, TextError> {
    let failed = |error: tokenizers::Error| TextError::BpeTraining { reason: error.to_string() };
    let byte_level = ByteLevel::new(false, false, true);
    let mut tokenizer = TokenizerBuilder::<BPE, NormalizerWrapper, ByteLevel, ByteLevel, ByteLevel>::new()
        .with_model(BPE::default())
        .with_normalizer(None)
        .with_pre_tokenizer(Some(byte_level))
        .with_post_processor(Some(byte_level))
        .with_decoder(Some(byte_level))
        .build()
        .map_err(failed)?;
    // The trainer reserves memory for all entries it may make; a text has no more merges than bytes.
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    let mut trainer = BpeTrainerBuilder::new()
        .vocab_size(entries.min(MIN_BPE_ENTRIES.saturating_add(bytes)))
        .min_frequency(MIN_FREQUENCY)
        .show_progress(false)
        .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let texts = documents.iter().flat_map(|document| pieces(&document.text, PIECE));
    tokenizer.train(&mut trainer, texts).map_err(failed)?;
    tokenizer.to_string(false).map_err(failed)
}

#[cfg(test)]
mod tests;
