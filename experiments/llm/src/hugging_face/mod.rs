//! LLaMA models as Hugging Face folders hold them: `config.json`, one `model.safetensors` or several with an index, and mostly a
//! `tokenizer.json`.
//!
//! [`Folder::open`] reads the configuration and the headers of the weight files and checks that every tensor is there and has its
//! shape; only [`Folder::model`] reads weights, one tensor after another, so that the model is in memory once. Weights of type
//! F32, BF16 and F16 become `f32`. Whatever this program would compute differently from the model's own code is refused, with
//! the reason.

mod config;
mod files;
mod weights;

use std::path::{Path, PathBuf};

use fused_ops::FusedOps;
use thiserror::Error;

pub use config::{ConfigError, FolderConfig};
pub use files::FileError;
use files::TensorFiles;
pub use weights::FitError;

use crate::model::{Llama, LlamaConfig, ModelError};

/// The file of the configuration.
const CONFIG: &str = "config.json";

/// A folder whose configuration and tensors fit each other.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    config: FolderConfig,
    files: TensorFiles,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub enum HuggingFaceError {
    /// `config.json` is missing, damaged, or of a model that is not read.
    #[error("{path}: {source}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ConfigError,
    },
    /// A file of weights.
    #[error(transparent)]
    File(#[from] FileError),
    /// The tensors are not those of the configuration.
    #[error("{path}: {source}", path = path.display())]
    Fit {
        /// The folder.
        path: PathBuf,
        /// What does not fit.
        source: FitError,
    },
    /// The model cannot be made.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl Folder {
    /// Whether a folder is meant to be one of these: it has a `config.json`.
    pub fn is_one(path: &Path) -> bool {
        path.join(CONFIG).is_file()
    }

    /// Reads the configuration and the headers of all files of weights.
    ///
    /// # Errors
    /// If a file is missing, damaged or cut short, the model is not one that is read, or tensors are missing, unexpected or of
    /// another shape (all are listed).
    pub fn open(path: &Path) -> Result<Self, HuggingFaceError> {
        let file = path.join(CONFIG);
        let config = FolderConfig::read(&file).map_err(|source| HuggingFaceError::Config { path: file, source })?;
        let files = TensorFiles::open(path)?;
        weights::check(&config.model, &files)
            .map_err(|source| HuggingFaceError::Fit { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), config, files })
    }

    /// The configuration of the model, with all the positions that it was made for.
    pub fn config(&self) -> &LlamaConfig {
        &self.config.model
    }

    /// The file of its tokenizer, if there is one.
    pub fn tokenizer(&self) -> Option<PathBuf> {
        let file = self.path.join("tokenizer.json");
        file.is_file().then_some(file)
    }

    /// The model, for sequences of at most `positions` tokens. `progress` is called with the number of parameters that have been
    /// read since the last call.
    ///
    /// # Errors
    /// If a file has changed, or cannot be read any more.
    pub fn model<B: FusedOps>(
        &self,
        positions: usize,
        device: &B::Device,
        progress: impl FnMut(usize),
    ) -> Result<Llama<B>, HuggingFaceError> {
        let config = LlamaConfig { positions: positions.min(self.config.model.positions), ..self.config.model.clone() };
        Llama::with_weights(&config, &mut self.files.reader(progress), device)
    }
}
