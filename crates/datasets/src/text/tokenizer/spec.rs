//! The name of a tokenizer, as a user writes it.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use super::{Provenance, Tokenizer, bpe, hugging_face::HuggingFace};
use crate::text::{Corpus, TextError};

/// Which tokenizer to use: `bytes`, `bpe:4096`, or the path of a `tokenizer.json`. In configuration files it stands as that
/// string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TokenizerSpec {
    /// The 256 bytes and an end of text.
    Bytes,
    /// A byte-level BPE trained on the training documents.
    Bpe {
        /// Entries of the vocabulary: the end of text, the 256 bytes, and merges.
        entries: usize,
    },
    /// A `tokenizer.json`, or a folder that holds one.
    File(PathBuf),
}

impl TokenizerSpec {
    /// Reads `bytes`, `bpe:N`, or a path: anything that ends in `.json` or has a `/` in it.
    ///
    /// # Errors
    /// [`TextError::TokenizerSpec`] for anything else, [`TextError::BpeEntries`] for an impossible N.
    pub fn parse(spec: &str) -> Result<Self, TextError> {
        let unknown = || TextError::TokenizerSpec { spec: spec.to_owned() };
        if spec == "bytes" {
            return Ok(Self::Bytes);
        }
        if let Some(entries) = spec.strip_prefix("bpe:") {
            let entries = entries.parse().map_err(|_| unknown())?;
            bpe::check(entries)?;
            return Ok(Self::Bpe { entries });
        }
        if spec.ends_with(".json") || spec.contains(['/', std::path::MAIN_SEPARATOR]) {
            return Ok(Self::File(spec.into()));
        }
        Err(unknown())
    }

    /// Makes the tokenizer. A BPE is trained on `corpus.train`, or read from `cache_dir` if one was trained there before
    /// on the same documents; [`Tokenizer::provenance`] says which. The same documents give the same tokenizer.
    ///
    /// # Errors
    /// [`TextError::NotFound`], [`TextError::Read`] or [`TextError::TokenizerFile`] for a file, [`TextError::BpeEntries`]
    /// or [`TextError::BpeTraining`] for a BPE. A cache that cannot be read or written is no error.
    pub fn load(&self, corpus: &Corpus, cache_dir: Option<&Path>) -> Result<Tokenizer, TextError> {
        match self {
            Self::Bytes => Ok(Tokenizer::bytes()),
            Self::Bpe { entries } => bpe::load(*entries, &corpus.train, cache_dir),
            Self::File(path) => {
                let file = if path.is_dir() { path.join("tokenizer.json") } else { path.clone() };
                let inner = HuggingFace::open(&file)?;
                Ok(Tokenizer::from_hugging_face(inner, Provenance::File(file)))
            }
        }
    }
}

impl FromStr for TokenizerSpec {
    type Err = TextError;

    fn from_str(spec: &str) -> Result<Self, TextError> {
        Self::parse(spec)
    }
}

impl TryFrom<String> for TokenizerSpec {
    type Error = TextError;

    fn try_from(spec: String) -> Result<Self, TextError> {
        Self::parse(&spec)
    }
}

impl From<TokenizerSpec> for String {
    fn from(spec: TokenizerSpec) -> Self {
        spec.to_string()
    }
}

impl fmt::Display for TokenizerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("bytes"),
            Self::Bpe { entries } => write!(f, "bpe:{entries}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_and_written_back() {
        for name in ["bytes", "bpe:257", "bpe:4096", "tokenizer.json", "models/llama", "./t5/tokenizer.json"] {
            assert_eq!(TokenizerSpec::parse(name).unwrap().to_string(), name);
        }
        let spec: TokenizerSpec = serde_json::from_str("\"bpe:300\"").unwrap();
        assert_eq!(serde_json::to_string(&spec).unwrap(), "\"bpe:300\"");
        assert!(serde_json::from_str::<TokenizerSpec>("\"bpe:3\"").is_err());
        assert_eq!("bpe:300".parse::<TokenizerSpec>().unwrap(), TokenizerSpec::Bpe { entries: 300 });
    }

    #[test]
    fn slips_are_refused_before_anything_is_read() {
        for name in ["", "byte", "bpe", "bpe:", "bpe:4k", "bpe:-1", "gpt2"] {
            let error = TokenizerSpec::parse(name).unwrap_err();
            assert!(matches!(error, TextError::TokenizerSpec { .. }), "{name}: {error}");
        }
        for name in ["bpe:0", "bpe:256", "bpe:2147483648"] {
            let error = TokenizerSpec::parse(name).unwrap_err();
            assert!(matches!(error, TextError::BpeEntries { .. }), "{name}: {error}");
        }
    }
}
