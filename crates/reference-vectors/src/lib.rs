//! Test support: reference vectors, computed with the authors' and peers' code, that an implementation must agree with.
//!
//! Each family is a folder of safetensors files with a `manifest.json` that states semantics and tolerances. A crate
//! keeps what its tests need under `tests/reference/`; the environment variable `ANCRE_REFERENCE_DIR` replaces that
//! directory by another of the same layout. Tests walk whatever cases they find, and print how many.
//!
//! This crate is for tests: its functions panic with a message instead of returning errors.

mod signs;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

pub use self::signs::{columns, signs};

/// The folder of a family (`ancre`, `llama`, ...): below `ANCRE_REFERENCE_DIR` if set, else below `default`, which tests
/// give as `concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference")`.
pub fn family(default: &str, name: &str) -> PathBuf {
    let root = std::env::var_os("ANCRE_REFERENCE_DIR").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let folder = root.join(name);
    assert!(
        folder.is_dir(),
        "{} is missing: set ANCRE_REFERENCE_DIR to a folder that holds `{name}`",
        folder.display()
    );
    folder
}

/// Folders at or below `folder` that hold a `manifest.json`, in order.
pub fn cases(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        if folder.join("manifest.json").is_file() {
            found.push(folder.clone());
        }
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        open.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// The safetensors files of a folder with their names (without extension), in order.
pub fn files(folder: &Path) -> Vec<(String, Tensors)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), Tensors::read(path))).collect()
}

/// The manifest of a folder.
pub fn manifest(folder: &Path) -> Value {
    let path = folder.join("manifest.json");
    let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A tensor of a reference file, widened to `f64`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Its shape; empty for a scalar.
    pub shape: Vec<usize>,
    /// Its entries in row-major order.
    pub values: Vec<f64>,
}

impl Reference {
    /// The entries rounded to `f32` (exact for what was stored so).
    pub fn f32s(&self) -> Vec<f32> {
        self.values.iter().map(|&v| v as f32).collect()
    }

    /// The entries of an integer tensor.
    pub fn i64s(&self) -> Vec<i64> {
        self.values.iter().map(|&v| v as i64).collect()
    }
}

/// The tensors of one safetensors file by name.
#[derive(Clone, Debug)]
pub struct Tensors {
    path: PathBuf,
    map: BTreeMap<String, Reference>,
}

impl Tensors {
    /// Reads a whole file.
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let map = file
            .iter()
            .map(|(name, view)| {
                let reference = Reference { shape: view.shape().to_vec(), values: widen(view.dtype(), view.data()) };
                (name.to_owned(), reference)
            })
            .collect();
        Self { path: path.to_path_buf(), map }
    }

    /// A tensor that must be there.
    pub fn get(&self, name: &str) -> &Reference {
        self.find(name).unwrap_or_else(|| panic!("{}: no tensor `{name}`", self.path.display()))
    }

    /// A tensor that may be there.
    pub fn find(&self, name: &str) -> Option<&Reference> {
        self.map.get(name)
    }

    /// All tensors with their names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Reference)> {
        self.map.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.map.keys().map(String::as_str)
    }
}

fn widen(dtype: Dtype, data: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(data: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        data.as_chunks::<N>().0.iter().map(|&bytes| read(bytes)).collect()
    }
    match dtype {
        Dtype::F64 => each(data, f64::from_le_bytes),
        Dtype::F32 => each(data, |b| f64::from(f32::from_le_bytes(b))),
        Dtype::F16 => each(data, |b| half::f16::from_le_bytes(b).to_f64()),
        Dtype::BF16 => each(data, |b| half::bf16::from_le_bytes(b).to_f64()),
        Dtype::I64 => each(data, |b| i64::from_le_bytes(b) as f64),
        Dtype::I32 => each(data, |b| f64::from(i32::from_le_bytes(b))),
        Dtype::U8 | Dtype::BOOL => data.iter().map(|&b| f64::from(b)).collect(),
        other => panic!("reference vectors of type {other:?} are not read yet"),
    }
}

/// Asserts that `actual` is within `tolerance` of the largest entry of `expected` (or of `scale`, where larger), plus
/// `absolute`; the message names the worst entry.
pub fn assert_close(what: &str, actual: &[f64], expected: &[f64], tolerance: f64, scale: f64, absolute: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}: number of entries");
    let largest = expected.iter().fold(scale, |m, x| m.max(x.abs()));
    let allowed = tolerance * largest + absolute;
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        // Written so that a NaN fails.
        assert!(
            (a - e).abs() <= allowed,
            "{what}: entry {i} is {a}, expected {e}: off by {:e}, allowed {allowed:e}",
            (a - e).abs()
        );
    }
}
