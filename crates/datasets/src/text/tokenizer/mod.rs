//! From text to ids and back, with an account of how many bytes of text each id stands for.

mod bpe;
mod cache;
mod hugging_face;
mod pieces;
mod spec;

use std::{fmt, path::PathBuf};

pub(super) use bpe::MIN_BPE_ENTRIES;
use hugging_face::HuggingFace;
pub use spec::TokenizerSpec;

use super::TextError;

/// The text form of the end-of-text token of the tokenizers made here.
const END_OF_TEXT: &str = "<|endoftext|>";

/// A tokenizer: plain bytes, a byte-level BPE trained here, or a `tokenizer.json`. Get one from
/// [`TokenizerSpec::load`].
#[derive(Debug)]
pub struct Tokenizer {
    kind: Kind,
    vocabulary_size: usize,
    end_of_text: Option<u32>,
    pad: Option<u32>,
    provenance: Provenance,
}

#[derive(Debug)]
enum Kind {
    Bytes,
    HuggingFace(Box<HuggingFace>),
}

/// What [`Tokenizer::decode`] does with special tokens such as the end of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialTokens {
    /// Write them out, for example as `<|endoftext|>`.
    Keep,
    /// Leave them out.
    Skip,
}

/// A text as ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedText {
    /// The ids.
    pub ids: Vec<u32>,
    /// For each id the number of UTF-8 bytes of the text that it stands for. They add up to the length of the text, unless
    /// the tokenizer drops all of it.
    ///
    /// Exact for bytes and byte-level BPE. A tokenizer that changes the text first (lower case, added or dropped spaces)
    /// says where its tokens end in the original, and a token stands for everything since the end of the token before.
    pub bytes: Vec<u32>,
}

/// Where a [`Tokenizer`] comes from; `Display` gives a line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Bytes: nothing is learned.
    Bytes,
    /// A byte-level BPE trained on the training documents of the corpus.
    Bpe {
        /// The number of entries that was asked for. The vocabulary is smaller where the text has too few pairs that
        /// occur twice.
        requested: usize,
        /// What became of its cache file.
        cache: CacheOutcome,
    },
    /// A file.
    File(PathBuf),
}

/// What became of the cache file of a trained tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// No cache folder was given.
    Off,
    /// The tokenizer was read from this file.
    Read(PathBuf),
    /// The tokenizer was trained and stored in this file.
    Written(PathBuf),
    /// The file was there but unusable for this reason; the tokenizer was trained again and the file replaced.
    Replaced(PathBuf, String),
    /// The tokenizer was trained but could not be stored in this file for this reason. The next run trains again.
    NotWritten(PathBuf, String),
}

impl Tokenizer {
    /// The byte tokenizer: ids 0 to 255 are bytes, 256 is the end of text.
    ///
    /// It has no padding token. Padded places are never targets and, with causal attention, never seen by a place
    /// that is one: an entry of its own would only be one more logit.
    pub fn bytes() -> Self {
        Self {
            kind: Kind::Bytes,
            vocabulary_size: 257,
            end_of_text: Some(256),
            pad: None,
            provenance: Provenance::Bytes,
        }
    }

    /// The number of ids: all ids are smaller. With a `tokenizer.json` that leaves ids unused it is larger than the
    /// number of tokens; it is the number of rows that an embedding needs.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// The token that ends a document. For a `tokenizer.json` it is the first of `<|endoftext|>`, `<|end_of_text|>`,
    /// `</s>`, `<eos>`, `[EOS]`, `<|eos|>` in its vocabulary, if any.
    pub fn end_of_text(&self) -> Option<u32> {
        self.end_of_text
    }

    /// The padding token: for a `tokenizer.json` the one that its padding section names, else the first of `<pad>`,
    /// `[PAD]`, `<|pad|>`, `<|padding|>`, `<|finetune_right_pad_id|>`, `<PAD>` in its vocabulary, if any.
    pub fn pad(&self) -> Option<u32> {
        self.pad
    }

    /// The id that fills the unused places of a row: the padding token, else the end of text, else 0. Which one it is
    /// changes no loss, since those places are not targets.
    pub fn filler(&self) -> u32 {
        self.pad.or(self.end_of_text).unwrap_or(0)
    }

    /// Where the tokenizer comes from.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The ids of a text, without the special tokens that the tokenizer puts around one.
    ///
    /// # Errors
    /// [`TextError::Encode`] if a `tokenizer.json` cannot encode the text. Bytes and BPE encode every text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TextError> {
        Ok(self.encode_counted(text)?.ids)
    }

    /// The ids of a text, with the special tokens that the tokenizer puts around one (`tokenizer(text)` in Python).
    /// Bytes and BPE put none.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_with_special_tokens(&self, text: &str) -> Result<Vec<u32>, TextError> {
        let (prefix, suffix) = self.template();
        Ok([prefix, &self.encode(text)?, suffix].concat())
    }

    /// The ids of a text and the bytes that they stand for, without special tokens.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_counted(&self, text: &str) -> Result<EncodedText, TextError> {
        Ok(self.encode_all(&[text])?.pop().unwrap_or_default())
    }

    /// [`Self::encode_counted`] of many texts, on all cores. The result does not depend on how many there are.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_all(&self, texts: &[&str]) -> Result<Vec<EncodedText>, TextError> {
        match &self.kind {
            Kind::Bytes => Ok(texts
                .iter()
                .map(|text| EncodedText { ids: text.bytes().map(u32::from).collect(), bytes: vec![1; text.len()] })
                .collect()),
            Kind::HuggingFace(inner) => inner.encode_all(texts),
        }
    }

    /// The special tokens that go before and after a text.
    pub fn template(&self) -> (&[u32], &[u32]) {
        match &self.kind {
            Kind::Bytes => (&[], &[]),
            Kind::HuggingFace(inner) => inner.template(),
        }
    }

    /// The text of some ids. Bytes that are not valid UTF-8, such as half a character at the end, become U+FFFD.
    ///
    /// # Errors
    /// [`TextError::Decode`] if an id is not in the vocabulary.
    pub fn decode(&self, ids: &[u32], special: SpecialTokens) -> Result<String, TextError> {
        if let Some(&id) = ids.iter().find(|&&id| !self.contains(id)) {
            return Err(TextError::Decode {
                reason: format!("id {id} is not in the vocabulary of {} entries", self.vocabulary_size),
            });
        }
        match &self.kind {
            Kind::Bytes => {
                let mut bytes = Vec::with_capacity(ids.len());
                for &id in ids {
                    match u8::try_from(id) {
                        Ok(byte) => bytes.push(byte),
                        Err(_) if special == SpecialTokens::Keep => {
                            bytes.extend_from_slice(END_OF_TEXT.as_bytes());
                        }
                        Err(_) => {}
                    }
                }
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Kind::HuggingFace(inner) => inner.decode(ids, special),
        }
    }

    /// The tokenizer as the contents of a `tokenizer.json`, to be kept beside a trained model; `None` for bytes.
    ///
    /// # Errors
    /// [`TextError::TokenizerJson`] if the library cannot write it, which no tokenizer that it has read leads to.
    pub fn to_json(&self) -> Result<Option<String>, TextError> {
        match &self.kind {
            Kind::Bytes => Ok(None),
            Kind::HuggingFace(inner) => inner.to_json().map(Some).map_err(|reason| TextError::TokenizerJson { reason }),
        }
    }

    /// The token of an id as the vocabulary spells it (byte-level vocabularies write a space as `Ġ`); the byte tokenizer
    /// gives `0x61`.
    pub fn token(&self, id: u32) -> Option<String> {
        match &self.kind {
            Kind::Bytes => match id {
                0..=255 => Some(format!("0x{id:02X}")),
                256 => Some(END_OF_TEXT.to_owned()),
                _ => None,
            },
            Kind::HuggingFace(inner) => inner.token(id),
        }
    }

    fn contains(&self, id: u32) -> bool {
        match &self.kind {
            Kind::Bytes => (id as usize) < self.vocabulary_size,
            Kind::HuggingFace(inner) => inner.contains(id),
        }
    }

    fn from_hugging_face(inner: HuggingFace, provenance: Provenance) -> Self {
        Self {
            vocabulary_size: inner.vocabulary_size(),
            end_of_text: inner.end_of_text(),
            pad: inner.pad(),
            kind: Kind::HuggingFace(Box::new(inner)),
            provenance,
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("bytes"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Bpe { requested, cache } => write!(f, "byte-level BPE of {requested} entries, {cache}"),
        }
    }
}

impl fmt::Display for CacheOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("trained on the training documents"),
            Self::Read(path) => write!(f, "read from {}", path.display()),
            Self::Written(path) => {
                write!(f, "trained on the training documents, stored in {}", path.display())
            }
            Self::Replaced(path, reason) => {
                write!(f, "trained again and stored in {}, where the old file was unusable ({reason})", path.display())
            }
            Self::NotWritten(path, reason) => {
                write!(f, "trained on the training documents, but not stored in {} ({reason})", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_their_own_ids() {
        let tokenizer = Tokenizer::bytes();
        assert_eq!(tokenizer.encode("a\u{20AC}").unwrap(), [97, 0xE2, 0x82, 0xAC]);
        assert_eq!(tokenizer.encode_with_special_tokens("a").unwrap(), [97]);
        assert_eq!(tokenizer.vocabulary_size(), 257);
        assert_eq!((tokenizer.end_of_text(), tokenizer.pad()), (Some(256), None));
        assert_eq!(tokenizer.filler(), 256);
        assert_eq!(tokenizer.token(97).unwrap(), "0x61");
        assert_eq!(tokenizer.token(256).unwrap(), "<|endoftext|>");
        assert_eq!(tokenizer.token(257), None);
    }

    #[test]
    fn the_end_of_text_is_written_or_left_out() {
        let tokenizer = Tokenizer::bytes();
        let ids = [104, 105, 256, 104];
        assert_eq!(tokenizer.decode(&ids, SpecialTokens::Keep).unwrap(), "hi<|endoftext|>h");
        assert_eq!(tokenizer.decode(&ids, SpecialTokens::Skip).unwrap(), "hih");
        // The letters of its name in a text are letters.
        assert_eq!(tokenizer.encode("<|endoftext|>").unwrap().len(), 13);
    }

    #[test]
    fn half_a_character_is_replaced_and_an_unknown_id_refused() {
        let tokenizer = Tokenizer::bytes();
        assert_eq!(tokenizer.decode(&[97, 0xE2, 0x82], SpecialTokens::Keep).unwrap(), "a\u{FFFD}");
        let error = tokenizer.decode(&[97, 257], SpecialTokens::Keep).unwrap_err();
        assert!(error.to_string().contains("id 257 is not in the vocabulary of 257 entries"), "{error}");
    }

    proptest! {
        #[test]
        fn bytes_give_every_text_back(text in ".*") {
            let tokenizer = Tokenizer::bytes();
            let encoded = tokenizer.encode_counted(&text).unwrap();
            prop_assert_eq!(encoded.bytes.iter().sum::<u32>() as usize, text.len());
            prop_assert_eq!(tokenizer.decode(&encoded.ids, SpecialTokens::Keep).unwrap(), text);
        }
    }
}
