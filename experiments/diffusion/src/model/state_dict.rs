//! The names and arrangement of the authors' DiT state dicts.
//!
//! Matrices are stored transposed, as `[outputs, inputs]`; the patch embedding as a convolution `[width, channels, patch,
//! patch]`. `pos_embed` is a table that the model computes itself.

use experiment_kit::state_dict::{Naming, StateDict, StoredTensor};

use super::DitConfig;

/// The stored table of positions, `[1, tokens, width]`.
pub const POSITIONS: &str = "pos_embed";

/// Module names with the stored ones, where they differ: what PyTorch counts in a `Sequential`, and an embedding's weight.
const PARTS: [(&str, &str); 4] = [
    ("t_embedder.fc1.", "t_embedder.mlp.0."),
    ("t_embedder.fc2.", "t_embedder.mlp.2."),
    ("y_embedder.table", "y_embedder.embedding_table.weight"),
    (".modulation.", ".adaLN_modulation.1."),
];

/// The naming of a DiT; it needs the shape of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DitNaming {
    channels: usize,
    patch: usize,
}

impl DitNaming {
    /// For models of this configuration.
    pub fn new(config: &DitConfig) -> Self {
        Self { channels: config.channels, patch: config.patch }
    }
}

fn replace(name: &str, pairs: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    pairs.fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

const PATCHES: &str = "x_embedder.proj.weight";

/// Whether a module's matrix is stored transposed: all are but the table of labels.
fn is_transposed(name: &str) -> bool {
    name.ends_with(".weight")
}

impl Naming for DitNaming {
    fn connections_prefix(&self) -> &str {
        "ancre."
    }

    fn buffers(&self) -> &str {
        "tables of positions"
    }

    fn stored_name(&self, name: &str) -> String {
        replace(name, PARTS.into_iter())
    }

    fn module_name(&self, stored: &str) -> Option<String> {
        (stored != POSITIONS).then(|| replace(stored, PARTS.into_iter().map(|(module, file)| (file, module))))
    }

    fn to_file(&self, name: &str, tensor: &StoredTensor) -> StoredTensor {
        let mut stored = if is_transposed(name) { tensor.transposed() } else { tensor.clone() };
        if name == PATCHES
            && let [width, _] = stored.shape[..]
        {
            stored.shape = vec![width, self.channels, self.patch, self.patch];
        }
        stored
    }

    fn to_module(&self, name: &str, tensor: &StoredTensor) -> StoredTensor {
        let mut tensor = tensor.clone();
        if name == PATCHES && tensor.shape.get(1..) == Some(&[self.channels, self.patch, self.patch]) {
            tensor.shape = vec![tensor.shape[0], self.channels * self.patch * self.patch];
        }
        if is_transposed(name) { tensor.transposed() } else { tensor }
    }
}

/// Adds what the authors store besides parameters.
pub fn with_positions(mut tensors: StateDict, table: Vec<f32>, tokens: usize) -> StateDict {
    let width = table.len() / tokens.max(1);
    tensors.insert(POSITIONS.to_owned(), StoredTensor { shape: vec![1, tokens, width], values: table });
    tensors
}
