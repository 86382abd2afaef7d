//! Weights as safetensors files under the names of the authors' code, read and written.
//!
//! A program describes its names by a [`Naming`]; the connections are handled here. They are stored as
//! `PREFIXshortcut_params.{i}` (one vector in all, for the naive scalars, without a number) with the buffer
//! `PREFIXsoftmax_temp`, where the prefix is `model.ancre.` in the authors' language models and `ancre.` in their
//! diffusion models.

mod model;
mod naming;

use std::{collections::BTreeMap, fs, io, path::Path, path::PathBuf};

use ancre::ConnectionsError;
use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};
use thiserror::Error;
use training::parameters::ParameterError;

pub use model::{LoadReport, from_model, into_model, load, to_stored};
pub use naming::Naming;

/// A tensor in the arrangement of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTensor {
    /// Sizes; empty for a scalar.
    pub shape: Vec<usize>,
    /// Entries in row-major order.
    pub values: Vec<f32>,
}

impl StoredTensor {
    /// The transpose of a matrix; anything else as it is.
    #[must_use]
    pub fn transposed(&self) -> Self {
        match self.shape[..] {
            [rows, columns] => Self { shape: vec![columns, rows], values: transpose(&self.values, rows, columns) },
            _ => self.clone(),
        }
    }
}

/// The tensors of a state dict by name.
pub type StateDict = BTreeMap<String, StoredTensor>;

/// Why weights cannot be read, written or used.
#[derive(Debug, Error)]
pub enum StateDictError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is cut short or is no safetensors file.
    #[error("{path} is not a whole safetensors file: {source}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SafeTensorError,
    },
    /// A tensor has an element type that is not read.
    #[error("{path}: tensor `{name}` has type {dtype:?}: F32, F64, BF16 and F16 are read", path = path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its type.
        dtype: Dtype,
    },
    /// Names or shapes do not fit the model.
    #[error("{0}")]
    Fit(#[from] ParameterError),
    /// The stored connections do not fit the arm.
    #[error("{0}")]
    Connections(#[from] ConnectionsError),
    /// The tensors cannot be laid out in a file.
    #[error("cannot lay out the weights: {0}")]
    Layout(SafeTensorError),
}

/// Reads all tensors of a safetensors file as `f32`.
///
/// # Errors
/// If the file cannot be read, is not whole, or holds a type other than F32, F64, BF16, F16.
pub fn read(path: &Path) -> Result<StateDict, StateDictError> {
    let unreadable = |source| StateDictError::Read { path: path.to_owned(), source };
    // A device or a pipe may have no end.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let file =
        SafeTensors::deserialize(&bytes).map_err(|source| StateDictError::Format { path: path.to_owned(), source })?;
    let mut tensors = StateDict::new();
    for (name, view) in file.iter() {
        let values = match view.dtype() {
            Dtype::F32 => each(view.data(), f32::from_le_bytes),
            Dtype::F64 => each(view.data(), |b| f64::from_le_bytes(b) as f32),
            Dtype::BF16 => each(view.data(), |b| half::bf16::from_le_bytes(b).to_f32()),
            Dtype::F16 => each(view.data(), |b| half::f16::from_le_bytes(b).to_f32()),
            dtype => return Err(StateDictError::Type { path: path.to_owned(), name: name.to_owned(), dtype }),
        };
        tensors.insert(name.to_owned(), StoredTensor { shape: view.shape().to_vec(), values });
    }
    Ok(tensors)
}

fn each<const N: usize>(data: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    data.as_chunks::<N>().0.iter().map(|&bytes| read(bytes)).collect()
}

/// The bytes of a safetensors file with these tensors, as F32.
///
/// # Errors
/// If the tensors cannot be laid out, which does not happen for those of a model.
pub fn to_bytes(tensors: &StateDict) -> Result<Vec<u8>, StateDictError> {
    let bytes: Vec<(&String, &StoredTensor, Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| (name, tensor, tensor.values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = bytes
        .iter()
        .map(|(name, tensor, bytes)| Ok((name, TensorView::new(Dtype::F32, tensor.shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, SafeTensorError>>()
        .map_err(StateDictError::Layout)?;
    safetensors::serialize(views, None).map_err(StateDictError::Layout)
}

/// The transpose of a row-major `rows x columns` matrix.
///
/// # Panics
/// If there are fewer values than `rows * columns`.
pub fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| values[(i % rows) * columns + i / rows]).collect()
}
