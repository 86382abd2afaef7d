//! One checkpoint as one safetensors file.
//!
//! The file is an ordinary safetensors file, which other tools can read. Its metadata has two entries: `checkpoint`, the
//! [`CheckpointHeader`] as JSON, and `crc32`, eight hexadecimal digits: the CRC-32 of the *whole* file in which these
//! digits are zeros. It therefore covers the tensors and everything that is said about them, and a file in which any bit
//! has changed is not taken for a good one.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use burn::tensor::{BoolStore, DType, TensorData, bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Checkpoint, CheckpointError, Configuration};
use crate::{parameters::NamedTensor, run_directory::atomic_write};

/// Raised whenever older versions of this program could not read a new file, or the other way round.
pub const FORMAT_VERSION: u32 = 1;

/// What a checkpoint says about the moment at which it was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointHeader {
    /// [`FORMAT_VERSION`] of the program that wrote it.
    pub format_version: u32,
    /// How many updates had been made.
    pub step: usize,
    /// How many tokens had been learned from.
    pub tokens_seen: u64,
    /// How many micro-batches had been skipped because there was nothing to learn from.
    pub skipped: u64,
    /// The length of `metrics.jsonl` in bytes.
    pub metrics_length: u64,
    /// The settings of the run.
    pub configuration: Configuration,
    /// Whatever the experiment wants back. Floats in here may lose a unit in the last place; numbers that must come back
    /// to the bit belong into tensors.
    pub extra: Value,
}

/// The parts of a checkpoint, as prefixes of the tensors' names in the file.
const PARTS: [&str; 3] = ["model/", "optimizer/", "task/"];

const ZEROS: &str = "00000000";
const MARK: &str = "\"crc32\":\"";

// Tensors are written as they lie in memory, and the format is little-endian.
const _: () = assert!(cfg!(target_endian = "little"), "checkpoints need a little-endian machine");

impl Checkpoint {
    /// Stores the checkpoint as `path`, all or nothing.
    ///
    /// # Errors
    /// If it cannot be written; whatever was at `path` before is then untouched.
    pub fn write(&self, path: &Path) -> Result<(), CheckpointError> {
        let header = self.file_header(path)?;
        atomic_write(path, |writer| self.write_to(&header, writer)).map_err(|source| CheckpointError::Io {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// All tensors with their names in the file, those with the widest elements first so that each is aligned.
    fn entries(&self) -> Vec<(String, &TensorData)> {
        let parts = [&self.model, &self.optimizer, &self.task];
        let mut entries: Vec<_> = PARTS
            .iter()
            .zip(parts)
            .flat_map(|(part, tensors)| {
                tensors.iter().map(move |tensor| (format!("{part}{}", tensor.name), &tensor.data))
            })
            .collect();
        entries.sort_by(|a, b| b.1.dtype.size().cmp(&a.1.dtype.size()).then_with(|| a.0.cmp(&b.0)));
        entries
    }

    /// The file up to the tensors: the length of the JSON, and the JSON with the checksum in it.
    fn file_header(&self, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        let unwritable = |message: String| CheckpointError::Content { path: path.to_owned(), message };
        let mut json = Map::new();
        let mut end = 0;
        for (name, data) in self.entries() {
            let start = end;
            end += data.as_bytes().len();
            let dtype = safetensors_dtype(data.dtype)
                .ok_or_else(|| unwritable(format!("{name} has elements {:?}, which cannot be stored", data.dtype)))?;
            let info = json!({ "dtype": dtype, "shape": data.shape.as_slice(), "data_offsets": [start, end] });
            if json.insert(name.clone(), info).is_some() {
                return Err(unwritable(format!("two tensors are named {name}")));
            }
        }
        let header = serde_json::to_string(&self.header).map_err(|error| unwritable(error.to_string()))?;
        json.insert("__metadata__".into(), json!({ "checkpoint": header, "crc32": ZEROS }));
        let mut text = Value::Object(json).to_string();
        while !text.len().is_multiple_of(8) {
            text.push(' ');
        }
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes);
        self.entries().iter().for_each(|(_, data)| hasher.update(data.as_bytes()));
        let digits = checksum_position(&bytes).ok_or_else(|| unwritable("the checksum has no place".into()))?;
        bytes[digits..digits + ZEROS.len()].copy_from_slice(format!("{:08x}", hasher.finalize()).as_bytes());
        Ok(bytes)
    }

    fn write_to(&self, header: &[u8], writer: &mut impl Write) -> io::Result<()> {
        writer.write_all(header)?;
        self.entries().iter().try_for_each(|(_, data)| writer.write_all(data.as_bytes()))
    }

    /// Reads a checkpoint, and checks every bit of it.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] if the file is cut or changed, [`CheckpointError::Version`] if another version of the
    /// program wrote it, [`CheckpointError::Io`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let mut bytes =
            fs::read(path).map_err(|source| CheckpointError::Io { action: "read", path: path.to_owned(), source })?;
        Self::from_bytes(path, &mut bytes)
    }

    fn from_bytes(path: &Path, bytes: &mut [u8]) -> Result<Self, CheckpointError> {
        let path = path.to_owned();
        let damaged = |path: PathBuf, message: &str| CheckpointError::Damaged { path, message: message.to_owned() };
        let Some(digits) = checksum_position(bytes) else {
            return Err(damaged(path, "it is cut off, or no checkpoint"));
        };
        let stored = bytes[digits..digits + ZEROS.len()].to_vec();
        bytes[digits..digits + ZEROS.len()].copy_from_slice(ZEROS.as_bytes());
        if format!("{:08x}", crc32fast::hash(bytes)).as_bytes() != stored {
            return Err(damaged(path, "its checksum does not match: it is cut off or changed"));
        }
        Self::parse(bytes, &path).map_err(|error| match error {
            Parse::Damaged(message) => CheckpointError::Damaged { path, message },
            Parse::Version(found) => CheckpointError::Version { path, found, expected: FORMAT_VERSION },
        })
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self, Parse> {
        let damaged = |error: &dyn std::fmt::Display| Parse::Damaged(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(&error))?;
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|entries: &HashMap<String, String>| entries.get("checkpoint"))
            .ok_or_else(|| damaged(&"it says nothing about a checkpoint"))?;
        // The version first: the rest of a header of another version need not fit.
        let version = serde_json::from_str::<Value>(header).ok().and_then(|header| header["format_version"].as_u64());
        match version {
            Some(version) if version == u64::from(FORMAT_VERSION) => {}
            Some(version) => return Err(Parse::Version(version)),
            None => return Err(damaged(&"it names no version")),
        }
        let header: CheckpointHeader = serde_json::from_str(header).map_err(|error| damaged(&error))?;
        let mut checkpoint = Self { header, model: Vec::new(), optimizer: Vec::new(), task: Vec::new() };
        // In name order, so that what is read does not depend on a hash map.
        let mut tensors = file.tensors();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        for (full_name, view) in tensors {
            let part = PARTS.iter().position(|part| full_name.starts_with(part));
            let data =
                tensor_data(&view).ok_or_else(|| damaged(&format!("{full_name} has elements {:?}", view.dtype())))?;
            let place = match part {
                Some(0) => &mut checkpoint.model,
                Some(1) => &mut checkpoint.optimizer,
                Some(2) => &mut checkpoint.task,
                _ => return Err(damaged(&format!("{full_name} belongs to no part of {}", path.display()))),
            };
            let name = full_name.split_once('/').map_or("", |(_, name)| name).to_owned();
            place.push(NamedTensor { name, data });
        }
        Ok(checkpoint)
    }
}

enum Parse {
    Damaged(String),
    Version(u64),
}

/// Where the digits of the checksum begin: after its name, which cannot stand anywhere else in the JSON of the header,
/// because quotes within strings are escaped.
fn checksum_position(bytes: &[u8]) -> Option<usize> {
    let length = usize::try_from(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?)).ok()?;
    let header = bytes.get(8..length.checked_add(8)?)?;
    let at = header.windows(MARK.len()).position(|window| window == MARK.as_bytes())? + MARK.len();
    header.get(at..at + ZEROS.len())?;
    Some(8 + at)
}

/// The name of an element type in the file.
fn safetensors_dtype(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F64 => "F64",
        DType::F32 | DType::Flex32 => "F32",
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        DType::I64 => "I64",
        DType::I32 => "I32",
        DType::I16 => "I16",
        DType::I8 => "I8",
        DType::U64 => "U64",
        DType::U32 => "U32",
        DType::U16 => "U16",
        DType::U8 => "U8",
        DType::Bool(BoolStore::Native | BoolStore::U8) => "BOOL",
        DType::Bool(BoolStore::U32) | DType::QFloat(_) => return None,
    })
}

/// The tensor, in memory of its own that is aligned for its elements.
fn tensor_data(view: &TensorView) -> Option<TensorData> {
    macro_rules! read {
        ($type:ty) => {{
            let values = view.data().chunks_exact(size_of::<$type>());
            let values: Vec<$type> = values
                // The chunks have the size of the element.
                .filter_map(|chunk| Some(<$type>::from_le_bytes(chunk.try_into().ok()?)))
                .collect();
            TensorData::new(values, view.shape())
        }};
    }
    Some(match view.dtype() {
        Dtype::F64 => read!(f64),
        Dtype::F32 => read!(f32),
        Dtype::F16 => read!(f16),
        Dtype::BF16 => read!(bf16),
        Dtype::I64 => read!(i64),
        Dtype::I32 => read!(i32),
        Dtype::I16 => read!(i16),
        Dtype::I8 => read!(i8),
        Dtype::U64 => read!(u64),
        Dtype::U32 => read!(u32),
        Dtype::U16 => read!(u16),
        Dtype::U8 => read!(u8),
        Dtype::BOOL => TensorData::new(view.data().iter().map(|byte| *byte != 0).collect::<Vec<bool>>(), view.shape()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    fn sample() -> Checkpoint {
        let named = |name: &str, data: TensorData| NamedTensor { name: name.to_owned(), data };
        Checkpoint {
            header: CheckpointHeader {
                format_version: FORMAT_VERSION,
                step: 100,
                tokens_seen: 12_345,
                skipped: 2,
                metrics_length: 678,
                configuration: Configuration::of(&json!({ "lr": 0.1, "note": "\"crc32\":\"00000000\"" })).unwrap(),
                extra: json!({ "crc32": "00000000", "cursor": [1, 2, 3] }),
            },
            model: vec![
                named(
                    "a.weight",
                    TensorData::new(vec![1.5f32, -0.0, f32::MIN_POSITIVE / 4.0, f32::NAN, 3.0, 4.0], [2, 3]),
                ),
                named("b", TensorData::new(vec![1.0f64, f64::NEG_INFINITY], [2])),
                named("empty", TensorData::new(Vec::<f32>::new(), [0, 3])),
            ],
            optimizer: vec![named("step/a.weight", TensorData::new(vec![7i64], [1]))],
            task: vec![
                named("mask", TensorData::new(vec![true, false, true], [3])),
                named("half", TensorData::new(vec![bf16::from_f32(0.1)], [1])),
                named("bytes", TensorData::new(vec![1u8, 255], [2])),
            ],
        }
    }

    fn bytes_of(checkpoint: &Checkpoint) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = checkpoint.file_header(Path::new("x")).unwrap();
        checkpoint.write_to(&header, &mut bytes).unwrap();
        bytes
    }

    static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| bytes_of(&sample()));

    fn read(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::from_bytes(Path::new("x"), &mut bytes.to_vec())
    }

    /// Compares to the bit, where `==` of floats would not.
    fn assert_same(a: &Checkpoint, b: &Checkpoint) {
        assert_eq!(a.header, b.header);
        for (a, b) in [(&a.model, &b.model), (&a.optimizer, &b.optimizer), (&a.task, &b.task)] {
            let mut a: Vec<_> = a.iter().map(|t| (&t.name, &t.data.shape, t.data.dtype, t.data.as_bytes())).collect();
            let mut b: Vec<_> = b.iter().map(|t| (&t.name, &t.data.shape, t.data.dtype, t.data.as_bytes())).collect();
            a.sort_by_key(|t| t.0);
            b.sort_by_key(|t| t.0);
            assert_eq!(a, b);
        }
    }

    #[test]
    fn a_checkpoint_comes_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        sample().write(&path).unwrap();
        assert_same(&Checkpoint::read(&path).unwrap(), &sample());
    }

    #[test]
    fn the_file_is_plain_safetensors() {
        let file = SafeTensors::deserialize(&SAMPLE).unwrap();
        assert_eq!(file.tensor("model/a.weight").unwrap().shape(), [2, 3]);
        assert_eq!(file.len(), 7);
        // Aligned, so that a reader may map the file.
        let start = SAMPLE.as_ptr() as usize;
        for (name, view) in file.tensors() {
            let size = view.dtype().bitsize() / 8;
            assert_eq!((view.data().as_ptr() as usize - start) % size, 0, "{name}");
        }
    }

    #[test]
    fn every_truncation_is_damage() {
        for end in 0..SAMPLE.len() {
            assert!(matches!(read(&SAMPLE[..end]), Err(CheckpointError::Damaged { .. })), "cut to {end} bytes");
        }
        let mut longer = SAMPLE.clone();
        longer.push(0);
        assert!(matches!(read(&longer), Err(CheckpointError::Damaged { .. })));
    }

    #[test]
    fn every_flipped_bit_is_damage() {
        let mut bytes = SAMPLE.clone();
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let outcome = read(&bytes);
            assert!(matches!(outcome, Err(CheckpointError::Damaged { .. })), "bit {bit}: {outcome:?}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        read(&bytes).unwrap();
    }

    proptest! {
        #[test]
        fn a_changed_stretch_is_never_read_as_something_else(
            start in 0..SAMPLE.len(), change in prop::collection::vec(any::<u8>(), 1..40), keep in 0..=SAMPLE.len(),
        ) {
            let mut bytes = SAMPLE.clone();
            for (byte, change) in bytes[start..].iter_mut().zip(change) {
                *byte = change;
            }
            bytes.truncate(keep.max(start));
            match read(&bytes) {
                Ok(checkpoint) => {
                    prop_assert_eq!(&bytes, &*SAMPLE);
                    assert_same(&checkpoint, &sample());
                }
                Err(error) => prop_assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}"),
            }
        }

        #[test]
        fn arbitrary_bytes_are_damage(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0u64..220) {
            let with_length = [&length.to_le_bytes()[..], &bytes].concat();
            for bytes in [bytes, with_length] {
                prop_assert!(read(&bytes).is_err());
            }
        }
    }

    #[test]
    fn another_version_is_not_damage() {
        let mut checkpoint = sample();
        checkpoint.header.format_version = 99;
        let error = read(&bytes_of(&checkpoint)).unwrap_err();
        assert!(matches!(error, CheckpointError::Version { found: 99, .. }), "{error}");
    }

    #[test]
    fn what_cannot_be_stored_is_an_error() {
        let mut checkpoint = sample();
        checkpoint.model.push(checkpoint.model[0].clone());
        let error = checkpoint.file_header(Path::new("x")).unwrap_err().to_string();
        assert!(error.contains("two tensors are named model/a.weight"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_a_clean_error() {
        // Every write to this device fails as on a full disk.
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let checkpoint = sample();
        let header = checkpoint.file_header(Path::new("x")).unwrap();
        let error = checkpoint.write_to(&header, &mut &full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let error = CheckpointError::Io { action: "write", path: "runs/a/x".into(), source: error }.to_string();
        assert!(error.contains("runs/a/x") && error.contains("free some space"), "{error}");
    }
}
