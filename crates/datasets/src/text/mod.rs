//! Text for language models, from files to batches.
//!
//! | step | type | what it decides |
//! |---|---|---|
//! | text | [`Corpus`] | which documents are trained on, which are held out |
//! | ids | [`Tokenizer`], chosen by a [`TokenizerSpec`] | the vocabulary; how many bytes a token stands for |
//! | rows | [`Rows`], in a [`RowMode`] | which tokens stand in one row, which of them are targets |
//! | batches | [`BatchPlan`], [`EvaluationBatches`] | which rows stand in one batch |

mod batches;
mod corpus;
mod embedded;
mod error;
mod files;
mod formats;
mod rows;
mod split;
mod tokenizer;

pub use batches::{Batch, BatchPlan, EvaluationBatches};
pub use corpus::{Corpus, CorpusOptions, Document, HeldOut};
pub use embedded::HELD_OUT_BOOKS;
pub use error::TextError;
pub use rows::{IGNORE, Row, RowMode, RowStats, Rows};
pub use tokenizer::{CacheOutcome, EncodedText, Provenance, SpecialTokens, Tokenizer, TokenizerSpec};

/// Bits per byte of text that cost `nats` in all: the sum (not the mean) of the cross-entropy over the target tokens,
/// and the bytes that those tokens stand for ([`Batch::target_bytes`]). `NaN` if there are no bytes.
///
/// Unlike perplexity it can be compared between tokenizers. The cost of end-of-text tokens is part of `nats`, though
/// they stand for no bytes: where a document ends has to be predicted too.
///
/// ```
/// // A model that gives each byte probability 1/256 needs eight bits for it.
/// let nats = 1000.0 * 256_f64.ln();
/// assert!((datasets::text::bits_per_byte(nats, 1000) - 8.0).abs() < 1e-12);
/// ```
pub fn bits_per_byte(nats: f64, bytes: u64) -> f64 {
    if bytes == 0 { f64::NAN } else { nats / (bytes as f64 * std::f64::consts::LN_2) }
}
