//! Real text for language models and real images for diffusion models, from files to seeded batches.
//!
//! A [`text::Corpus`] is a list of documents to train on and a list that is held out: the embedded King James Bible
//! (no download) or the user's own files. A [`text::Tokenizer`] turns text into ids and knows how many UTF-8 bytes each
//! token stands for, so that losses can be given in bits per byte and tokenizers compared. [`text::Rows`] lays the ids
//! out as rows of inputs and targets, and a [`text::BatchPlan`] says which rows make up batch number `step` of a run:
//! a function of the seed and the step alone, so that a resumed run needs to remember nothing but its step.
//! The crate knows no tensor library: a batch is two flat `Vec<i32>`.
//!
//! ```
//! use datasets::text::{BatchPlan, Corpus, IGNORE, RowMode, Rows, TokenizerSpec};
//!
//! # fn main() -> Result<(), datasets::text::TextError> {
//! let corpus = Corpus::embedded()?;
//! let tokenizer = TokenizerSpec::parse("bytes")?.load(&corpus, None)?;
//! let rows = Rows::build(&corpus.train, &tokenizer, RowMode::Packed, 128)?;
//! let plan = BatchPlan::new(rows, 16, 0)?;
//!
//! let batch = plan.batch(1000); // any step, in any order
//! assert_eq!((batch.rows, batch.context), (16, 128));
//! assert_eq!(batch.inputs.len(), 16 * 128);
//! assert_eq!(batch.inputs[1], batch.targets[0]); // each target is the input that follows
//! assert_eq!(batch.targets.iter().filter(|&&t| t != IGNORE).count(), batch.target_tokens);
//! # Ok(())
//! # }
//! ```
//!
//! Images go the same way. An [`images::ImageSpec`] names them: embedded digits or emoji, or the user's IDX, CIFAR and
//! picture files or latents. Loading it gives two [`images::ImageSet`]s, one to train on and one that is held out, and an
//! [`images::ImagePlan`] the batches: again a function of the seed and the number of the batch.
//!
//! ```
//! use datasets::images::{ImageOptions, ImagePlan, ImageSpec};
//!
//! # fn main() -> Result<(), datasets::images::ImageError> {
//! let data = ImageSpec::parse("digits")?.load(&ImageOptions::default())?;
//! let flip = data.train.flips_make_sense(); // not for digits
//! let plan = ImagePlan::new(data.train, 64, 0, flip)?;
//!
//! let batch = plan.batch(1000);
//! assert_eq!((batch.rows, batch.shape), (64, [1, 8, 8]));
//! assert_eq!(batch.images.len(), 64 * 8 * 8); // from -1 to 1
//! assert!(batch.labels.iter().all(|&label| label < 10));
//! # Ok(())
//! # }
//! ```
//!
//! Images, text and ids are held in memory (about the size of the text plus four bytes a token); nothing is streamed yet.

pub mod images;
mod order;
pub mod text;

pub use order::EpochOrder;
