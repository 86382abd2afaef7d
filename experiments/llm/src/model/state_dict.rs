//! The authors' state-dict names: reading and writing weights as safetensors.
//!
//! A module's parameter `layers.0.mlp.up_proj.weight` is stored as `model.layers.0.mlp.up_proj.weight`, matrices
//! transposed to PyTorch's `[output, input]`; the connections are `model.ancre.shortcut_params.{i}` and the buffer
//! `model.ancre.softmax_temp`.

use std::{collections::BTreeMap, fs, io, path::Path, path::PathBuf};

use ancre::{Arm, ConnectionsError};
use burn::tensor::{TensorData, backend::Backend};
use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};
use thiserror::Error;
use training::parameters::{self, NamedTensor, ParameterError};

use super::Llama;

const TAU: &str = "model.ancre.softmax_temp";
const VECTORS: &str = "model.ancre.shortcut_params";
/// Free scalars are no logits, so they have a name of their own, which the authors' code does not know.
const SCALARS: &str = "model.ancre.scalars";

/// A tensor in the arrangement of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTensor {
    /// Sizes; empty for a scalar.
    pub shape: Vec<usize>,
    /// Entries in row-major order.
    pub values: Vec<f32>,
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

/// What loading found besides the weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Buffers in the file that this model computes itself (rotary frequencies).
    pub recomputed: Vec<String>,
    /// The file's connections, where the arm of the model has none and they are left out.
    pub unused_connections: Vec<String>,
    /// The connections' parameters that the file lacks; they keep their initial values.
    pub fresh_connections: bool,
    /// A stored temperature that replaced the configured one: (configured, stored).
    pub tau: Option<(f64, f64)>,
}

/// Reads all tensors of a safetensors file as `f32`.
///
/// # Errors
/// If the file cannot be read, is not whole, or holds a type other than F32, F64, BF16, F16.
pub fn read(path: &Path) -> Result<StateDict, StateDictError> {
    let bytes = fs::read(path).map_err(|source| StateDictError::Read { path: path.to_owned(), source })?;
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

/// The model's weights under the authors' names.
pub fn from_model<B: Backend>(model: &Llama<B>) -> StateDict {
    let weights = parameters::export::<B, _>(model).into_iter().filter(|t| !t.name.starts_with("connections."));
    let mut tensors = to_stored(weights);
    let connections = model.connections();
    let vectors = connections.to_vectors();
    // Fixed layouts have coefficients of 1 that are no parameters to the authors.
    if !matches!(connections.arm(), Arm::Cascade | Arm::Fixed(_)) {
        let single = *connections.arm() == Arm::NaiveScalars;
        for (i, values) in vectors.into_iter().enumerate() {
            let prefix = vectors_name(connections.arm());
            let name = if single { prefix.to_owned() } else { format!("{prefix}.{i}") };
            tensors.insert(name, StoredTensor { shape: vec![values.len()], values });
        }
        tensors.insert(TAU.to_owned(), StoredTensor { shape: vec![], values: vec![connections.tau() as f32] });
    }
    tensors
}

/// Tensors of a module (weights, gradients or moments of its parameters) under the stored names and arrangement.
pub fn to_stored(tensors: impl IntoIterator<Item = NamedTensor>) -> StateDict {
    tensors
        .into_iter()
        .map(|NamedTensor { name, data }| {
            let shape = data.shape.to_vec();
            let values: Vec<f32> = data.iter::<f32>().collect();
            let stored = match shape[..] {
                [rows, columns] if is_transposed(&name) => {
                    StoredTensor { shape: vec![columns, rows], values: transpose(&values, rows, columns) }
                }
                _ => StoredTensor { shape, values },
            };
            (stored_name(&name), stored)
        })
        .collect()
}

/// The model with the weights of a state dict. A stored temperature wins over the configured one, and connections that
/// the file lacks keep their initial values; the [`LoadReport`] says so.
///
/// # Errors
/// If weights are missing, unexpected or of another shape (all are listed), or the connections do not fit the arm.
pub fn into_model<B: Backend>(model: Llama<B>, stored: &StateDict) -> Result<(Llama<B>, LoadReport), StateDictError> {
    let mut report = LoadReport::default();
    let connections = model.connections().clone();
    let prefix = vectors_name(connections.arm());
    let (mut weights, mut vectors, mut tau) = (Vec::new(), BTreeMap::new(), None);
    for (name, tensor) in stored {
        if name.ends_with("rotary_emb.inv_freq") {
            report.recomputed.push(name.clone());
        } else if name == TAU {
            tau = tensor.values.first().copied();
        } else if let Some(rest) = name.strip_prefix(prefix).or_else(|| name.strip_prefix(VECTORS)) {
            let index = rest.strip_prefix('.').and_then(|i| i.parse::<usize>().ok()).unwrap_or(0);
            vectors.insert(index, (name.clone(), tensor.values.clone()));
        } else {
            weights.push(to_module(name, tensor));
        }
    }
    // The connections are handled apart: here their present values stand in.
    weights.extend(parameters::export::<B, _>(&model).into_iter().filter(|t| t.name.starts_with("connections.")));
    let model: Llama<B> = parameters::import(model, weights).map_err(with_stored_names)?;

    let learned = !matches!(connections.arm(), Arm::Cascade | Arm::Fixed(_));
    if !learned {
        report.unused_connections = vectors.into_values().map(|(name, _)| name).collect();
        return Ok((model, report));
    }
    let mut connections = model.connections().clone();
    if let Some(tau) = tau {
        // Stored as f32: 0.01 comes back as 0.01, not as 0.009999999776.
        let stored: f64 = tau.to_string().parse().unwrap_or(f64::from(tau));
        if stored != connections.tau() {
            report.tau = Some((connections.tau(), stored));
            connections.set_tau(stored)?;
        }
    }
    if vectors.is_empty() {
        report.fresh_connections = true;
    } else {
        let vectors: Vec<Vec<f32>> = vectors.into_values().map(|(_, values)| values).collect();
        connections = connections.with_vectors(&vectors)?;
    }
    Ok((model.with_connections(connections), report))
}

/// What the vectors of an arm are stored as.
fn vectors_name(arm: &Arm) -> &'static str {
    if *arm == Arm::Scalars { SCALARS } else { VECTORS }
}

/// Whether a parameter's matrix is stored transposed: projections are, the embedding is not.
fn is_transposed(name: &str) -> bool {
    name.ends_with("_proj.weight") || name == "lm_head.weight"
}

fn stored_name(name: &str) -> String {
    if name.starts_with("lm_head.") { name.to_owned() } else { format!("model.{name}") }
}

fn to_module(stored: &str, tensor: &StoredTensor) -> NamedTensor {
    let name = stored.strip_prefix("model.").unwrap_or(stored).to_owned();
    let (shape, values) = match tensor.shape[..] {
        [rows, columns] if is_transposed(&name) => (vec![columns, rows], transpose(&tensor.values, rows, columns)),
        _ => (tensor.shape.clone(), tensor.values.clone()),
    };
    NamedTensor { name, data: TensorData::new(values, shape) }
}

/// The transpose of a row-major `rows x columns` matrix.
fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| values[(i % rows) * columns + i / rows]).collect()
}

/// The error in the file's own names.
fn with_stored_names(mut error: ParameterError) -> ParameterError {
    for names in [&mut error.missing, &mut error.unexpected, &mut error.mismatched] {
        for name in names {
            *name = stored_name(name);
        }
    }
    error
}
