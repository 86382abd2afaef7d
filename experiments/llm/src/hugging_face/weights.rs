//! The tensors that a model of some configuration has, checked and read.

use std::fmt;

use half::{bf16, f16};
use rayon::prelude::*;
use safetensors::Dtype;
use thiserror::Error;

use super::{
    HuggingFaceError,
    files::{ByteReader, TensorFiles},
};
use crate::model::{LlamaConfig, Weights};

const HEAD: &str = "lm_head";

/// Tensors that are not those of the configuration; all of them at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
pub struct FitError {
    /// Parameters without a tensor.
    pub missing: Vec<String>,
    /// Tensors without a parameter.
    pub unexpected: Vec<String>,
    /// Tensors of another shape, with both.
    pub mismatched: Vec<String>,
    /// Tensors of a type of numbers that is not read, with it.
    pub unreadable: Vec<String>,
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tensors are not those of config.json")?;
        let lists = [
            ("missing", &self.missing),
            ("unexpected", &self.unexpected),
            ("of another shape", &self.mismatched),
            ("not F32, BF16 or F16", &self.unreadable),
        ];
        for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            const SHOWN: usize = 8;
            let more = if names.len() > SHOWN { ", ..." } else { "" };
            write!(f, "\n  {what} ({}): {}{more}", names.len(), names[..names.len().min(SHOWN)].join(", "))?;
        }
        Ok(())
    }
}

/// Names (without `.weight`) and shapes of a model's tensors, as files hold them: projections are `[output, input]`.
fn expected(config: &LlamaConfig) -> Vec<(String, Vec<usize>)> {
    let (width, inner, size) = (config.width, config.feed_forward, config.head_size());
    let (queries, keys) = (config.heads * size, config.key_value_heads() * size);
    let mut tensors =
        vec![("model.embed_tokens".to_owned(), vec![config.vocabulary, width]), ("model.norm".to_owned(), vec![width])];
    if !config.variant.tied_head {
        tensors.push((HEAD.to_owned(), vec![config.vocabulary, width]));
    }
    for layer in 0..config.layers {
        let parts = [
            ("input_layernorm", vec![width]),
            ("self_attn.q_proj", vec![queries, width]),
            ("self_attn.k_proj", vec![keys, width]),
            ("self_attn.v_proj", vec![keys, width]),
            ("self_attn.o_proj", vec![width, queries]),
            ("post_attention_layernorm", vec![width]),
            ("mlp.gate_proj", vec![inner, width]),
            ("mlp.up_proj", vec![inner, width]),
            ("mlp.down_proj", vec![width, inner]),
        ];
        tensors.extend(parts.map(|(part, shape)| (format!("model.layers.{layer}.{part}"), shape)));
    }
    tensors
}

/// Checks that the files hold the tensors of a configuration and nothing else that would matter.
pub fn check(config: &LlamaConfig, files: &TensorFiles) -> Result<(), FitError> {
    let mut found = FitError::default();
    let expected = expected(config);
    for (name, shape) in &expected {
        match files.places.get(&format!("{name}.weight")) {
            None => found.missing.push(format!("{name}.weight")),
            Some(place) if place.info.shape != *shape => {
                found.mismatched.push(format!("{name}.weight (config {shape:?}, file {:?})", place.info.shape));
            }
            Some(place) if !matches!(place.info.dtype, Dtype::F32 | Dtype::BF16 | Dtype::F16) => {
                found.unreadable.push(format!("{name}.weight ({:?})", place.info.dtype));
            }
            Some(_) => {}
        }
    }
    let names: std::collections::BTreeSet<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
    let known = |name: &str| {
        name.strip_suffix(".weight").is_some_and(|name| names.contains(name) || name == HEAD)
            // Computed here.
            || name.ends_with("rotary_emb.inv_freq")
    };
    found.unexpected = files.places.keys().filter(|name| !known(name)).cloned().collect();
    if found == FitError::default() { Ok(()) } else { Err(found) }
}

impl TensorFiles {
    /// The tensors as a source of weights; `progress` is told how many parameters each of them had.
    pub fn reader<P: FnMut(usize)>(&self, progress: P) -> Reader<'_, P> {
        Reader { files: self, bytes: ByteReader::default(), progress }
    }
}

/// Reads one tensor after another.
#[derive(Debug)]
pub struct Reader<'a, P> {
    files: &'a TensorFiles,
    bytes: ByteReader,
    progress: P,
}

impl<P: FnMut(usize)> Reader<'_, P> {
    /// A tensor's numbers, of a matrix `[rows, columns]` those of its transpose where `transposed`.
    fn read(&mut self, name: &str, transposed: Option<[usize; 2]>) -> Result<Vec<f32>, HuggingFaceError> {
        let name = format!("{name}.weight");
        let missing = || HuggingFaceError::Fit {
            path: self.files.paths.first().cloned().unwrap_or_default(),
            source: FitError { missing: vec![name.clone()], ..FitError::default() },
        };
        let place = self.files.places.get(&name).ok_or_else(missing)?;
        let bytes = self.bytes.bytes(self.files, place)?;
        // Other types were refused when the folder was opened.
        let values = match place.info.dtype {
            Dtype::F32 => widened(&bytes, transposed, f32::from_le_bytes),
            Dtype::BF16 => widened(&bytes, transposed, |b| bf16::from_le_bytes(b).to_f32()),
            _ => widened(&bytes, transposed, |b| f16::from_le_bytes(b).to_f32()),
        };
        (self.progress)(values.len());
        Ok(values)
    }
}

impl<P: FnMut(usize)> Weights for Reader<'_, P> {
    type Error = HuggingFaceError;

    fn projection(&mut self, name: &str, [inputs, outputs]: [usize; 2]) -> Result<Vec<f32>, HuggingFaceError> {
        self.read(name, Some([outputs, inputs]))
    }

    fn embedding(&mut self, name: &str, _: [usize; 2]) -> Result<Vec<f32>, HuggingFaceError> {
        self.read(name, None)
    }

    fn gain(&mut self, name: &str, _: usize) -> Result<Vec<f32>, HuggingFaceError> {
        self.read(name, None)
    }
}

/// The numbers in some bytes, and those of a matrix `[rows, columns]` in the order of its transpose, if asked for.
fn widened<const N: usize>(
    bytes: &[u8],
    transposed: Option<[usize; 2]>,
    widen: impl Fn([u8; N]) -> f32 + Sync,
) -> Vec<f32> {
    /// Rows of the file that are gone through together: a cache line of each result row is filled at once.
    const STRIP: usize = 16;
    let stored = bytes.as_chunks::<N>().0;
    let Some([rows, columns]) = transposed else {
        return stored.par_iter().with_min_len(1 << 16).map(|&entry| widen(entry)).collect();
    };
    let mut values = vec![0.0; stored.len()];
    if rows == 0 || columns == 0 {
        return values;
    }
    // Some result rows for each thread, which are some columns of the file.
    values.par_chunks_mut(rows * STRIP).enumerate().for_each(|(strip, results)| {
        let first = strip * STRIP;
        let wide = results.len() / rows;
        for start in (0..rows).step_by(STRIP) {
            for row in start..rows.min(start + STRIP) {
                let entries = &stored[row * columns + first..][..wide];
                for (column, &entry) in entries.iter().enumerate() {
                    results[column * rows + row] = widen(entry);
                }
            }
        }
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_widened_and_transposed() {
        for [rows, columns] in [[1, 1], [3, 5], [16, 16], [17, 33], [40, 7], [1, 50], [50, 1]] {
            let stored: Vec<bf16> = (0..rows * columns).map(|i| bf16::from_f32(i as f32)).collect();
            let bytes: Vec<u8> = stored.iter().flat_map(|value| value.to_le_bytes()).collect();
            let widen = |b| bf16::from_le_bytes(b).to_f32();
            let straight = widened(&bytes, None, widen);
            let transposed = widened(&bytes, Some([rows, columns]), widen);
            for (i, value) in straight.iter().enumerate() {
                assert_eq!(*value, stored[i].to_f32());
                assert_eq!(*value, transposed[i % columns * rows + i / columns], "{rows} x {columns}, entry {i}");
            }
        }
    }
}
