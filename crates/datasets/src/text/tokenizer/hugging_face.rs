//! Tokenizers in the format of the Hugging Face `tokenizers` library.

use std::{collections::HashMap, fs, io::ErrorKind, path::Path};

use tokenizers::{
    DecoderWrapper, Encoding, ModelWrapper, PreTokenizerWrapper, Token, Tokenizer as Inner,
    pre_tokenizers::byte_level::ByteLevel,
};

use super::{
    EncodedText, SpecialTokens,
    pieces::{PIECE, pieces},
};
use crate::text::{TextError, files::read_error};

/// Bytes of text that are encoded before the library's detailed results, some hundred bytes a token, are dropped.
const GROUP: usize = 1 << 21;

const END_OF_TEXT_NAMES: [&str; 6] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]", "<|eos|>"];
const PAD_NAMES: [&str; 6] = ["<pad>", "[PAD]", "<|pad|>", "<|padding|>", "<|finetune_right_pad_id|>", "<PAD>"];

#[derive(Debug)]
pub(super) struct HuggingFace {
    inner: Inner,
    vocabulary_size: usize,
    end_of_text: Option<u32>,
    pad: Option<u32>,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// Bytes that each id stands for, if the vocabulary spells every byte with one letter and the text is not changed.
    byte_lengths: Option<Vec<u32>>,
    /// Whether [`pieces`] may cut a text.
    cuts: bool,
}

impl HuggingFace {
    /// Reads a `tokenizer.json`.
    pub fn open(path: &Path) -> Result<Self, TextError> {
        let json = fs::read_to_string(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => TextError::NotFound { path: path.to_owned() },
            ErrorKind::InvalidData => {
                TextError::TokenizerFile { path: path.to_owned(), reason: "it is not UTF-8 text".to_owned() }
            }
            _ => read_error(path, source),
        })?;
        Self::from_json(&json).map_err(|reason| TextError::TokenizerFile { path: path.to_owned(), reason })
    }

    /// The contents of a `tokenizer.json` that reads back as this tokenizer.
    pub fn to_json(&self) -> Result<String, String> {
        self.inner.to_string(false).map_err(|error| format!("{error}"))
    }

    /// Reads the contents of a `tokenizer.json`. Errors say in words what is wrong.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let mut inner: Inner = json.parse().map_err(|error| format!("{error}"))?;
        let pad_in_settings = inner.get_padding().map(|padding| padding.pad_token.clone());
        // Many files were saved with the settings of some training run. They would silently shorten and fill every text.
        inner.with_truncation(None).map_err(|error| format!("{error}"))?;
        inner.with_padding(None);
        // Dropout makes the same text give other ids each time.
        if let ModelWrapper::BPE(model) = inner.get_model()
            && model.dropout.is_some()
        {
            let mut model = model.clone();
            model.dropout = None;
            inner.with_model(model);
        }

        let vocabulary = inner.get_vocab(true);
        let largest = *vocabulary.values().max().ok_or("its vocabulary is empty")?;
        if i32::try_from(largest).is_err() {
            return Err(format!("it has an id of {largest}, more than 2^31 - 1"));
        }
        let first = |names: &[&str]| names.iter().find_map(|name| vocabulary.get(*name).copied());
        let end_of_text = first(&END_OF_TEXT_NAMES);
        let pad = pad_in_settings.and_then(|name| vocabulary.get(&name).copied()).or_else(|| first(&PAD_NAMES));
        let vocabulary_size = largest as usize + 1;
        let byte_lengths = byte_lengths(&inner, &vocabulary, vocabulary_size)?;
        let (prefix, suffix) = template(&inner)?;
        if let Some(id) = prefix.iter().chain(&suffix).find(|&&id| id > largest) {
            return Err(format!("its template uses the id {id}, but the largest of its vocabulary is {largest}"));
        }
        Ok(Self {
            cuts: byte_lengths.is_some() && cuts(&inner),
            inner,
            vocabulary_size,
            end_of_text,
            pad,
            prefix,
            suffix,
            byte_lengths,
        })
    }

    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    pub fn end_of_text(&self) -> Option<u32> {
        self.end_of_text
    }

    pub fn pad(&self) -> Option<u32> {
        self.pad
    }

    pub fn template(&self) -> (&[u32], &[u32]) {
        (&self.prefix, &self.suffix)
    }

    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    pub fn contains(&self, id: u32) -> bool {
        // Most ids are in range; only vocabularies with gaps need the (slower) look-up to be sure.
        (id as usize) < self.vocabulary_size && self.inner.id_to_token(id).is_some()
    }

    pub fn decode(&self, ids: &[u32], special: SpecialTokens) -> Result<String, TextError> {
        self.inner
            .decode(ids, special == SpecialTokens::Skip)
            .map_err(|error| TextError::Decode { reason: error.to_string() })
    }

    /// Whether bytes are counted by the spelling of the tokens.
    pub fn is_byte_level(&self) -> bool {
        self.byte_lengths.is_some()
    }

    pub fn encode_all(&self, texts: &[&str]) -> Result<Vec<EncodedText>, TextError> {
        match &self.byte_lengths {
            Some(lengths) => self.encode_byte_level(texts, lengths),
            None => self.encode_with_offsets(texts),
        }
    }

    fn encode_byte_level(&self, texts: &[&str], lengths: &[u32]) -> Result<Vec<EncodedText>, TextError> {
        let mut encoded = vec![EncodedText::default(); texts.len()];
        let all_pieces = texts.iter().enumerate().flat_map(|(i, text)| {
            let size = if self.cuts { PIECE } else { usize::MAX };
            pieces(text, size).into_iter().map(move |piece| (i, piece))
        });
        for_groups(all_pieces, |group, pieces| {
            let encodings = self.inner.encode_batch_fast(pieces, false).map_err(encode_error)?;
            for (i, encoding) in group.into_iter().zip(encodings) {
                let ids = encoding.get_ids();
                encoded[i].bytes.extend(ids.iter().map(|&id| lengths[id as usize]));
                encoded[i].ids.extend_from_slice(ids);
            }
            Ok(())
        })?;
        for (encoded, text) in encoded.iter_mut().zip(texts) {
            // An added token that swallows the spaces around it, or a byte that the vocabulary lacks.
            if encoded.bytes.iter().map(|&b| b as usize).sum::<usize>() != text.len() {
                *encoded = self.encode_with_offsets(&[text])?.pop().unwrap_or_default();
            }
        }
        Ok(encoded)
    }

    fn encode_with_offsets(&self, texts: &[&str]) -> Result<Vec<EncodedText>, TextError> {
        let mut encoded = Vec::with_capacity(texts.len());
        for_groups(texts.iter().copied().enumerate(), |group, pieces| {
            let encodings = self.inner.encode_batch(pieces, false).map_err(encode_error)?;
            for (i, encoding) in group.into_iter().zip(encodings) {
                let ends = encoding.get_offsets().iter().map(|&(_, end)| end);
                encoded.push(EncodedText {
                    ids: encoding.get_ids().to_vec(),
                    bytes: bytes_from_ends(ends, texts[i].len()),
                });
            }
            Ok(())
        })?;
        Ok(encoded)
    }
}

fn encode_error(error: tokenizers::Error) -> TextError {
    TextError::Encode { reason: error.to_string() }
}

/// Calls `encode` with groups of about [`GROUP`] bytes.
fn for_groups<'a>(
    texts: impl Iterator<Item = (usize, &'a str)>,
    mut encode: impl FnMut(Vec<usize>, Vec<&'a str>) -> Result<(), TextError>,
) -> Result<(), TextError> {
    let (mut numbers, mut group, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (number, text) in texts {
        numbers.push(number);
        group.push(text);
        bytes += text.len();
        if bytes >= GROUP {
            encode(std::mem::take(&mut numbers), std::mem::take(&mut group))?;
            bytes = 0;
        }
    }
    if group.is_empty() { Ok(()) } else { encode(numbers, group) }
}

/// Bytes per token from the places in the text where the tokens end: a token stands for everything since the token
/// before, the last one for the rest too. So the numbers add up to `length`, whatever the tokenizer dropped or added.
fn bytes_from_ends(ends: impl Iterator<Item = usize>, length: usize) -> Vec<u32> {
    let mut reached = 0;
    let mut bytes: Vec<u32> = ends
        .map(|end| {
            let end = end.clamp(reached, length);
            let stands_for = (end - reached) as u32;
            reached = end;
            stands_for
        })
        .collect();
    if let Some(last) = bytes.last_mut() {
        *last += (length - reached) as u32;
    }
    bytes
}

/// The special tokens that the tokenizer puts before and after a text, found by letting it finish a text of one token.
fn template(inner: &Inner) -> Result<(Vec<u32>, Vec<u32>), String> {
    let token = Encoding::from_tokens(vec![Token::new(0, "a".to_owned(), (0, 1))], 0);
    let encoding = inner.post_process(token, None, true).map_err(|error| format!("{error}"))?;
    let special = encoding.get_special_tokens_mask();
    let before = special.iter().take_while(|&&special| special == 1).count();
    let after = special.iter().rev().take_while(|&&special| special == 1).count();
    let ids = encoding.get_ids();
    if before + 1 + after != ids.len() {
        return Err("its template does not hold the text exactly once".to_owned());
    }
    Ok((ids[..before].to_vec(), ids[before + 1..].to_vec()))
}

/// The number of bytes that each id stands for, or `None` if the spelling does not tell.
fn byte_lengths(inner: &Inner, vocabulary: &HashMap<String, u32>, size: usize) -> Result<Option<Vec<u32>>, String> {
    let keeps_text =
        matches!(inner.get_decoder(), Some(DecoderWrapper::ByteLevel(_))) && inner.get_normalizer().is_none();
    if !keeps_text {
        return Ok(None);
    }
    let alphabet = ByteLevel::alphabet();
    let added = inner.get_added_tokens_decoder();
    let mut lengths = vec![0; size];
    for (token, &id) in vocabulary {
        lengths[id as usize] = if added.contains_key(&id) {
            token.len() as u32
        } else if token.chars().all(|c| alphabet.contains(&c)) {
            token.chars().count() as u32
        } else {
            return Ok(None);
        };
    }
    // A space put in front of a text, or a vocabulary that is not used as bytes, shows in the sum.
    for probe in ["a", "\u{e9}t\u{e9}  \n x"] {
        let encoding = inner.encode_fast(probe, false).map_err(|error| format!("{error}"))?;
        let total: u32 = encoding.get_ids().iter().map(|&id| lengths[id as usize]).sum();
        if total as usize != probe.len() {
            return Ok(None);
        }
    }
    Ok(Some(lengths))
}

/// Whether a text may be cut by [`pieces`]: the pattern must be that of GPT-2, and no added token may reach over a cut.
fn cuts(inner: &Inner) -> bool {
    let gpt2 = matches!(
        inner.get_pre_tokenizer(),
        Some(PreTokenizerWrapper::ByteLevel(ByteLevel { use_regex: true, add_prefix_space: false, .. }))
    );
    gpt2 && inner
        .get_added_tokens_decoder()
        .values()
        .all(|token| !token.lstrip && !token.rstrip && !token.content.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests;
