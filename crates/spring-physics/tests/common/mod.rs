//! Reads reference files.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of the family `rl_tasks`.
pub fn read(name: &str) -> Value {
    let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "rl_tasks");
    parse(folder.join(name))
}

/// A file that was made for this crate and stands only here.
#[allow(dead_code)]
pub fn read_own(name: &str) -> Value {
    parse(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/rl_tasks")).join(name))
}

fn parse(path: PathBuf) -> Value {
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A list of numbers.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

/// The largest difference of two lists of one length; a NaN is larger than all.
#[allow(dead_code)]
pub fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "lists of one length");
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| {
        let off = (a - b).abs();
        if off <= m { m } else { off }
    })
}
