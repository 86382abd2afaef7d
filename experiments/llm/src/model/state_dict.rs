//! The authors' state-dict names: reading and writing weights as safetensors.
//!
//! A module's parameter `layers.0.mlp.up_proj.weight` is stored as `model.layers.0.mlp.up_proj.weight`, matrices
//! transposed to PyTorch's `[output, input]`; the connections are `model.ancre.shortcut_params.{i}` and the buffer
//! `model.ancre.softmax_temp`.

use burn::tensor::backend::Backend;
use experiment_kit::state_dict::Naming;
pub use experiment_kit::state_dict::{LoadReport, StateDict, StateDictError, StoredTensor, read, to_bytes};
use training::parameters::NamedTensor;

use super::Llama;

/// The names of the authors' `LlamaForCausalLM`.
#[derive(Clone, Copy, Debug)]
pub struct LlamaNaming;

impl Naming for LlamaNaming {
    fn connections_prefix(&self) -> &str {
        "model.ancre."
    }

    fn buffers(&self) -> &str {
        "rotary buffers"
    }

    fn stored_name(&self, name: &str) -> String {
        if name.starts_with("lm_head.") { name.to_owned() } else { format!("model.{name}") }
    }

    fn module_name(&self, stored: &str) -> Option<String> {
        let own = !stored.ends_with("rotary_emb.inv_freq");
        own.then(|| stored.strip_prefix("model.").unwrap_or(stored).to_owned())
    }

    fn to_file(&self, name: &str, tensor: &StoredTensor) -> StoredTensor {
        if is_transposed(name) { tensor.transposed() } else { tensor.clone() }
    }

    fn to_module(&self, name: &str, tensor: &StoredTensor) -> StoredTensor {
        self.to_file(name, tensor)
    }
}

/// Whether a parameter's matrix is stored transposed: projections are, the embedding is not.
fn is_transposed(name: &str) -> bool {
    name.ends_with("_proj.weight") || name == "lm_head.weight"
}

/// The model's weights under the authors' names.
pub fn from_model<B: Backend>(model: &Llama<B>) -> StateDict {
    experiment_kit::state_dict::from_model(model, &LlamaNaming)
}

/// Tensors of a module (weights, gradients or moments of its parameters) under the stored names and arrangement.
pub fn to_stored(tensors: impl IntoIterator<Item = NamedTensor>) -> StateDict {
    experiment_kit::state_dict::to_stored(tensors, &LlamaNaming)
}

/// The model with the weights of a state dict. A stored temperature wins over the configured one, and connections that
/// the file lacks keep their initial values; the [`LoadReport`] says so.
///
/// # Errors
/// If weights are missing, unexpected or of another shape (all are listed), or the connections do not fit the arm.
pub fn into_model<B: Backend>(model: Llama<B>, stored: &StateDict) -> Result<(Llama<B>, LoadReport), StateDictError> {
    experiment_kit::state_dict::into_model(model, stored, &LlamaNaming)
}
