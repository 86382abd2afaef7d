//! Stored results of other programs, and how to read them.
//!
//! They lie beside this file; the environment variable `ANCRE_REFERENCE_DIR` names another folder of the same layout.

// Each test binary uses a part of this.
#![allow(dead_code)]

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// The folder of one family of cases.
pub struct Family {
    folder: PathBuf,
}

/// A stored tensor, widened to `f64`.
pub struct Stored {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Family {
    pub fn open(name: &str) -> Self {
        let root = env::var_os("ANCRE_REFERENCE_DIR")
            .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference")), PathBuf::from);
        Self { folder: root.join(name) }
    }

    pub fn manifest(&self) -> Value {
        let path = self.folder.join("manifest.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap()
    }

    pub fn tensors(&self, file: &str) -> BTreeMap<String, Stored> {
        let path = self.folder.join(file);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let read = |(name, view): (String, safetensors::tensor::TensorView)| {
            let values = match view.dtype() {
                Dtype::F64 => {
                    view.data().chunks_exact(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap())).collect()
                }
                Dtype::F32 => {
                    let read = |chunk: &[u8]| f64::from(f32::from_le_bytes(chunk.try_into().unwrap()));
                    view.data().chunks_exact(4).map(read).collect()
                }
                other => panic!("{name} has elements {other:?}"),
            };
            (name, Stored { shape: view.shape().to_vec(), values })
        };
        file.tensors().into_iter().map(read).collect()
    }
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let difference = (found - expected).abs();
    assert!(difference <= tolerance, "{what}: found {found}, expected {expected}, off by {difference:e}");
}
