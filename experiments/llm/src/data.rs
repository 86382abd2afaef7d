//! From text to tensors: the corpus, the tokenizer, the rows of training and evaluation.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use burn::tensor::{Int, Tensor, TensorData, backend::Backend};
use datasets::text::{Batch, Corpus, CorpusOptions, HeldOut, RowStats, Rows, TextError, Tokenizer};
use thiserror::Error;

use crate::settings::DataSettings;

/// Tokens that an evaluation puts through the model at once, in at most this many rows.
const EVALUATION_TOKENS: usize = 4096;
const MAX_EVALUATION_ROWS: usize = 64;

// Both crates mark what is no target by PyTorch's number, without knowing of each other.
const _: () = assert!(datasets::text::IGNORE as i64 == fused_ops::IGNORE_TARGET);

/// Rows of an evaluation batch: about 4096 tokens, and no fewer than a micro-batch. The authors' convention averages
/// over batches of this size.
pub fn evaluation_rows(settings: &DataSettings) -> usize {
    (EVALUATION_TOKENS / settings.context.max(1))
        .clamp(1, MAX_EVALUATION_ROWS)
        .max(settings.micro_batch.min(MAX_EVALUATION_ROWS))
}

/// Tokenized text, ready for batches. Arms and seeds of a comparison share it.
#[derive(Clone, Debug)]
pub struct TextData {
    /// What the text is.
    pub corpus: CorpusSummary,
    /// The tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Rows to train on.
    pub train: Arc<Rows>,
    /// The held-out batches of an evaluation, chosen once and for all.
    pub held_out: Arc<Vec<Batch>>,
    /// What all held-out rows hold.
    pub held_out_stats: RowStats,
    held_out_fingerprint: u32,
}

/// What a run says about its text.
#[derive(Clone, Debug)]
pub struct CorpusSummary {
    text: String,
}

impl fmt::Display for CorpusSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why the text cannot be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// Reading or tokenizing failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Nothing is held out.
    #[error(
        "no text is held out to evaluate on, or too little of it: give --validation FILE, or a larger share with --set data.held_out=0.2"
    )]
    NothingHeldOut,
    /// The tokenizer has more tokens than the model.
    #[error(
        "the tokenizer has {tokens} tokens and the model's vocabulary {vocabulary}: set model.vocabulary to at least {tokens}, \
         or 0 for as many as the tokenizer has"
    )]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokens: usize,
        /// Entries of the model.
        vocabulary: usize,
    },
}

impl TextData {
    /// Reads the text, makes the tokenizer (a trained one is kept in `cache`), and lays out the rows.
    ///
    /// # Errors
    /// See [`DataError`]; every message names the file.
    pub fn load(settings: &DataSettings, cache: Option<&Path>) -> Result<Self, DataError> {
        let corpus = corpus(settings)?;
        let tokenizer = settings.tokenizer.load(&corpus, cache)?;
        let train = Rows::build(&corpus.train, &tokenizer, settings.rows, settings.context)?;
        let held_out = Rows::build(&corpus.held_out, &tokenizer, settings.rows, settings.context)?;
        // A number per byte needs bytes to be predicted, not only ends of texts.
        if held_out.stats().target_bytes == 0 {
            return Err(DataError::NothingHeldOut);
        }
        Ok(Self {
            corpus: CorpusSummary { text: corpus.to_string() },
            held_out_stats: held_out.stats(),
            held_out_fingerprint: held_out.fingerprint(),
            held_out: Arc::new(spread(&held_out, settings)?),
            tokenizer: Arc::new(tokenizer),
            train: Arc::new(train),
        })
    }

    /// The vocabulary of the model: the configured one, or the tokenizer's where that is 0.
    ///
    /// # Errors
    /// If the tokenizer has tokens that the model does not.
    pub fn vocabulary(&self, configured: usize) -> Result<usize, DataError> {
        let tokens = self.tokenizer.vocabulary_size();
        match configured {
            0 => Ok(tokens),
            vocabulary if vocabulary < tokens => Err(DataError::Vocabulary { tokens, vocabulary }),
            vocabulary => Ok(vocabulary),
        }
    }

    /// A text that changes with the rows on either side, so that a run is not resumed on other data.
    pub fn fingerprint(&self) -> String {
        format!("{:08x}-{:08x}", self.train.fingerprint(), self.held_out_fingerprint)
    }
}

/// The documents to train on and those held out, of which there is at least one.
///
/// # Errors
/// If files cannot be read, or nothing is held out.
pub fn corpus(settings: &DataSettings) -> Result<Corpus, DataError> {
    let corpus = match settings.train.as_slice() {
        [] if settings.validation.is_empty() => Corpus::embedded()?,
        [] => {
            let own = whole(&settings.validation, &settings.text_field)?;
            let held_out_rule = format!("held out: {}", own.source);
            Corpus { held_out: own.train, held_out_rule, ..Corpus::embedded()? }
        }
        paths => Corpus::open(paths, &settings.corpus_options())?,
    };
    if corpus.held_out.is_empty() { Err(DataError::NothingHeldOut) } else { Ok(corpus) }
}

/// All documents of some files and folders, as those to train on; `text_field` holds the text of JSON and parquet.
///
/// # Errors
/// If files cannot be read.
pub fn whole(paths: &[PathBuf], text_field: &str) -> Result<Corpus, TextError> {
    let options = CorpusOptions { text_field: text_field.to_owned(), held_out: HeldOut::Fraction(0.0) };
    Corpus::open(paths, &options)
}

/// Held-out batches that hold about as many tokens as the settings ask for, spread evenly over all rows.
fn spread(rows: &Rows, settings: &DataSettings) -> Result<Vec<Batch>, TextError> {
    let at_once = evaluation_rows(settings);
    let wanted = match settings.evaluation_tokens {
        0 => usize::MAX,
        tokens => tokens.div_ceil(settings.context).max(1),
    };
    let at_once = at_once.min(wanted);
    rows.spread_batches(at_once, wanted.div_ceil(at_once))
}

/// Inputs and targets of a batch, each `[rows, context]`.
pub fn tensors<B: Backend>(batch: &Batch, device: &B::Device) -> (Tensor<B, 2, Int>, Tensor<B, 2, Int>) {
    let tensor = |ids: &[i32]| Tensor::from_data(TensorData::new(ids.to_vec(), [batch.rows, batch.context]), device);
    (tensor(&batch.inputs), tensor(&batch.targets))
}
