//! The safetensors files of a folder: which tensor stands where, and its numbers.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;
use thiserror::Error;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The largest header that is read: that of safetensors itself.
const MAX_HEADER: u64 = 100_000_000;

/// Why the weights of a folder cannot be read.
#[derive(Debug, Error)]
pub enum FileError {
    /// There is nothing to read.
    #[error(
        "{folder} holds neither model.safetensors nor model.safetensors.index.json{}", if *has_pickle {
            ": its weights are in PyTorch's own format; save the model once with save_pretrained(..., safe_serialization=True)"
        } else {
            ": is the download complete?"
        },
        folder = folder.display()
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
        /// Whether there are weights in PyTorch's format.
        has_pickle: bool,
    },
    /// The system cannot read a file.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// The index is no index.
    #[error("{path} is no index of safetensors files: {source}", path = path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The index names a file that is no file of the folder.
    #[error("{path} names `{name}`, which is no file name", path = path.display())]
    Name {
        /// The index.
        path: PathBuf,
        /// What it names.
        name: String,
    },
    /// Files that the index names are not there.
    #[error(
        "{folder} lacks {count} of the {of} files of its index: {names}; is the download complete?",
        folder = folder.display(),
        count = missing.len(),
        names = missing.join(", ")
    )]
    Shards {
        /// The folder.
        folder: PathBuf,
        /// How many files there should be.
        of: usize,
        /// Those that are missing.
        missing: Vec<String>,
    },
    /// The header of a file is damaged.
    #[error("{path} is no safetensors file: {reason}", path = path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file is shorter or longer than its header says.
    #[error("{path} has {found} bytes, and {expected} by its header: is the download complete?", path = path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        found: u64,
        /// What they should be.
        expected: u64,
    },
    /// A tensor is not where the index says.
    #[error("{path} has no tensor `{tensor}`, though the index says so", path = path.display())]
    Moved {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
}

/// Where a tensor stands.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which file.
    file: usize,
    /// Where its bytes begin in the file.
    start: u64,
    pub info: TensorInfo,
}

/// The tensors of a folder by name; only headers have been read.
#[derive(Debug)]
pub struct TensorFiles {
    pub paths: Vec<PathBuf>,
    pub places: BTreeMap<String, Place>,
}

/// A file of a sharded model's table of contents.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl TensorFiles {
    /// Reads the headers of all files of weights in a folder.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        let index = folder.join(INDEX);
        if index.is_file() {
            return Self::open_indexed(folder, &index);
        }
        let single = folder.join(SINGLE);
        if !single.is_file() {
            let has_pickle = ["pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"]
                .iter()
                .any(|name| folder.join(name).exists());
            return Err(FileError::NoWeights { folder: folder.to_owned(), has_pickle });
        }
        let places = header(&single, 0)?.into_iter().collect();
        Ok(Self { paths: vec![single], places })
    }

    fn open_indexed(folder: &Path, index: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(index).map_err(|e| unreadable(index, e))?;
        let Index { weight_map } =
            serde_json::from_str(&text).map_err(|source| FileError::Index { path: index.to_owned(), source })?;
        let mut names: Vec<&String> = weight_map.values().collect();
        names.sort();
        names.dedup();
        if let Some(&name) = names.iter().find(|name| Path::new(name.as_str()).file_name() != Some(name.as_ref())) {
            return Err(FileError::Name { path: index.to_owned(), name: name.clone() });
        }
        let missing: Vec<String> =
            names.iter().filter(|name| !folder.join(name).is_file()).map(|name| (*name).clone()).collect();
        if !missing.is_empty() {
            return Err(FileError::Shards { folder: folder.to_owned(), of: names.len(), missing });
        }
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let mut headers = paths.iter().enumerate().map(|(i, path)| header(path, i)).collect::<Result<Vec<_>, _>>()?;
        let mut places = BTreeMap::new();
        for (tensor, name) in &weight_map {
            // Every name of the map is in the list made of it.
            let file = names.partition_point(|other| *other < name);
            let place = headers[file]
                .remove(tensor)
                .ok_or_else(|| FileError::Moved { path: paths[file].clone(), tensor: tensor.clone() })?;
            places.insert(tensor.clone(), place);
        }
        Ok(Self { paths, places })
    }

    /// The file that a place is in.
    pub fn path(&self, place: &Place) -> &Path {
        &self.paths[place.file]
    }
}

/// Reads the bytes of tensors, and keeps the file of the last one open.
#[derive(Debug, Default)]
pub struct ByteReader {
    open: Option<(usize, File)>,
}

impl ByteReader {
    /// The bytes of a tensor.
    pub fn bytes(&mut self, files: &TensorFiles, place: &Place) -> Result<Vec<u8>, FileError> {
        let path = files.path(place);
        if self.open.as_ref().is_none_or(|(file, _)| *file != place.file) {
            self.open = Some((place.file, File::open(path).map_err(|e| unreadable(path, e))?));
        }
        let (start, end) = place.info.data_offsets;
        let mut bytes = vec![0; end - start];
        if let Some((_, file)) = &mut self.open {
            file.seek(SeekFrom::Start(place.start))
                .and_then(|_| file.read_exact(&mut bytes))
                .map_err(|e| unreadable(path, e))?;
        }
        Ok(bytes)
    }
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    FileError::Read { path: path.to_owned(), source }
}

/// The tensors that the header of file number `file` lists, once it is clear that the file is whole.
fn header(path: &Path, file: usize) -> Result<BTreeMap<String, Place>, FileError> {
    let damaged = |reason: String| FileError::Header { path: path.to_owned(), reason };
    let mut open = File::open(path).map_err(|e| unreadable(path, e))?;
    let found = open.metadata().map_err(|e| unreadable(path, e))?.len();
    let mut size = [0; 8];
    open.read_exact(&mut size).map_err(|_| damaged(format!("it has only {found} bytes")))?;
    let size = u64::from_le_bytes(size);
    if size > MAX_HEADER || size.saturating_add(8) > found {
        return Err(damaged(format!("its header would have {size} bytes, and the file has {found}")));
    }
    let mut text = vec![0; size as usize];
    open.read_exact(&mut text).map_err(|e| unreadable(path, e))?;
    let metadata: Metadata = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    let tensors = metadata.tensors();
    let data = tensors.values().map(|info| info.data_offsets.1 as u64).max().unwrap_or(0);
    let expected = 8 + size + data;
    if found != expected {
        return Err(FileError::Length { path: path.to_owned(), found, expected });
    }
    let place = |info: &TensorInfo| Place { file, start: 8 + size + info.data_offsets.0 as u64, info: info.clone() };
    Ok(tensors.into_iter().map(|(name, info)| (name, place(info))).collect())
}
