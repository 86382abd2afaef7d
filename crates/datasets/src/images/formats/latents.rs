//! Latents: what an image encoder made of images, in safetensors or NumPy files.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use half::{bf16, f16};
use npyz::{DType, NpyHeader, Order};
use safetensors::{Dtype, tensor::Metadata};

use super::{Loaded, length, read_error};
use crate::images::{ImageError, ImageKind, ImageOptions, ImageSet, set::numbered};

/// The most classes that labels may name, some times those of the largest sets in use.
const MAX_CLASSES: usize = 1 << 16;
/// The largest header of a safetensors file, that of the format's own library.
const MAX_HEADER: u64 = 100_000_000;
/// The largest header of a NumPy file of numbers: the usual one has 118 bytes.
const MAX_NPY_HEADER: u64 = 1024;

/// How a number is stored, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    F16,
    Bf16,
    F32,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
}

impl Element {
    fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::F16 | Self::Bf16 | Self::U16 | Self::I16 => 2,
            Self::F32 | Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32)
    }

    /// The float in `bytes`, which has [`Element::size`] bytes.
    fn float(self, bytes: &[u8]) -> f32 {
        match (self, bytes) {
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (Self::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
            (Self::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f32(),
            _ => f32::NAN, // Not reached: see `Array::floats`.
        }
    }

    /// The integer in `bytes`, which has [`Element::size`] bytes.
    fn integer(self, bytes: &[u8]) -> i128 {
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = i128::from_le_bytes(wide);
        let bits = 8 * bytes.len();
        let is_signed = matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64);
        if is_signed && unsigned >> (bits - 1) == 1 { unsigned - (1 << bits) } else { unsigned }
    }
}

/// An array inside a file, which is known to hold all of it.
struct Array {
    path: PathBuf,
    element: Element,
    shape: Vec<u64>,
    /// Offset of the first number.
    start: u64,
}

impl Array {
    fn reader(&self) -> Result<BufReader<File>, ImageError> {
        let mut file = File::open(&self.path).map_err(|source| read_error(&self.path, source))?;
        file.seek(SeekFrom::Start(self.start)).map_err(|source| read_error(&self.path, source))?;
        Ok(BufReader::new(file))
    }

    /// Goes through the numbers in order.
    fn each(
        &self,
        count: usize,
        mut visit: impl FnMut(usize, &[u8]) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        const PIECE: usize = 1 << 14;
        let size = self.element.size();
        let mut reader = self.reader()?;
        let mut buffer = vec![0; PIECE.min(count) * size];
        let mut done = 0;
        while done < count {
            let piece = &mut buffer[..PIECE.min(count - done) * size];
            reader.read_exact(piece).map_err(|source| read_error(&self.path, source))?;
            for bytes in piece.chunks_exact(size) {
                visit(done, bytes)?;
                done += 1;
            }
        }
        Ok(())
    }
}

/// `NAME.safetensors` with the tensors `latents` and, if there, `labels`.
pub(crate) fn load_safetensors(path: &Path, options: &ImageOptions) -> Result<Loaded, ImageError> {
    let (latents, labels) = open_safetensors(path)?;
    load(&latents, labels.as_ref(), options)
}

/// `NAME.npy` with labels in `NAME-labels.npy`, if there.
pub(crate) fn load_npy(path: &Path, options: &ImageOptions) -> Result<Loaded, ImageError> {
    let latents = open_npy(path)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let labels_path = path.with_file_name(format!("{stem}-labels.npy"));
    let labels = if labels_path.exists() { Some(open_npy(&labels_path)?) } else { None };
    load(&latents, labels.as_ref(), options)
}

fn load(latents: &Array, labels: Option<&Array>, options: &ImageOptions) -> Result<Loaded, ImageError> {
    let bad = |reason: String| ImageError::Latents { path: latents.path.clone(), reason };
    let shape = &latents.shape;
    let sides = match shape[..] {
        [_, channels, height, width] if height == width && channels > 0 && height > 0 => {
            [channels, height, width].map(|side| usize::try_from(side).unwrap_or(usize::MAX))
        }
        _ => return Err(bad(format!("their shape is {shape:?}, not [images, channels, side, side]: store them so"))),
    };
    let [channels, side, _] = sides;
    if !latents.element.is_float() {
        return Err(bad(format!("they are {:?}: store F32, F16 or BF16", latents.element)));
    }
    if options.size.is_some_and(|size| size != side) || options.channels.is_some_and(|c| c != channels) {
        return Err(bad(format!("they are {channels} x {side} x {side} and cannot be resized or recoloured")));
    }
    let images = shape[0];
    let place = latents.path.display().to_string();
    if images == 0 {
        return Err(ImageError::Empty { place, advice: "write it again" });
    }
    if let Some(labels) = labels {
        if labels.element.is_float() || labels.shape.len() != 1 {
            let reason = format!("labels are {:?} {:?}: store one integer an image", labels.element, labels.shape);
            return Err(ImageError::Latents { path: labels.path.clone(), reason });
        }
        if labels.shape[0] != images {
            return Err(ImageError::LabelCount { path: labels.path.clone(), labels: labels.shape[0], images });
        }
    }
    let mut values = options.room(&place, images, sides)?;
    let size = channels * side * side; // No overflow: `room` has multiplied them and more.
    let (mut sum, mut squares) = (0.0, 0.0);
    let count = images as usize; // At most a u32: `room` has seen to it.
    latents.each(count * size, |at, bytes| {
        let value = latents.element.float(bytes) * options.latent_scale;
        if !value.is_finite() {
            return Err(ImageError::NotFinite { place: place.clone(), index: at / size, value });
        }
        sum += f64::from(value);
        squares += f64::from(value) * f64::from(value);
        values.push(value);
        Ok(())
    })?;
    let (labels, class_names) = match labels {
        Some(labels) => read_labels(labels, count)?,
        None => (vec![0; count], vec!["unlabelled".to_owned()]),
    };
    let mean = sum / values.len() as f64;
    let deviation = (squares / values.len() as f64 - mean * mean).max(0.0).sqrt();
    // A deviation far from 1 shows latents that were scaled twice or not at all.
    let source = format!(
        "latents of {place} ({:?}), times {}: standard deviation {deviation:.3}",
        latents.element, options.latent_scale
    );
    let train = ImageSet::new(ImageKind::Latents, sides, values, labels, class_names, source)?;
    Ok(Loaded { train, test: None })
}

fn read_labels(array: &Array, count: usize) -> Result<(Vec<u32>, Vec<String>), ImageError> {
    let mut labels = Vec::with_capacity(count);
    array.each(count, |index, bytes| {
        let label = array.element.integer(bytes);
        if !(0..MAX_CLASSES as i128).contains(&label) {
            let place = array.path.display().to_string();
            return Err(ImageError::LabelOutOfRange { place, index, label, classes: MAX_CLASSES });
        }
        labels.push(label as u32);
        Ok(())
    })?;
    let classes = labels.iter().max().map_or(0, |&label| label as usize + 1);
    Ok((labels, numbered(classes)))
}

fn open_safetensors(path: &Path) -> Result<(Array, Option<Array>), ImageError> {
    let bad = |reason: String| ImageError::Latents { path: path.to_owned(), reason };
    let truncated = |what: &str, expected, found| ImageError::Truncated {
        path: path.to_owned(),
        what: what.to_owned(),
        expected,
        found,
    };
    let found = length(path)?;
    let mut file = File::open(path).map_err(|source| read_error(path, source))?;
    let mut size = [0; 8];
    if found < 8 {
        return Err(truncated("the length of the header", 8, found));
    }
    file.read_exact(&mut size).map_err(|source| read_error(path, source))?;
    let size = u64::from_le_bytes(size);
    if size > MAX_HEADER {
        return Err(bad(format!("its header would have {size} bytes: it is no safetensors file")));
    }
    if found < 8 + size {
        return Err(truncated("the header", 8 + size, found));
    }
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header).map_err(|source| read_error(path, source))?;
    // Checks that the tensors follow each other and are as large as their shapes say.
    let metadata: Metadata =
        serde_json::from_slice(&header).map_err(|error| bad(format!("its header does not parse ({error})")))?;
    let expected = (8 + size).saturating_add(metadata.data_len() as u64);
    if found < expected {
        return Err(truncated("what its header announces", expected, found));
    }
    if found > expected {
        return Err(ImageError::TrailingBytes { path: path.to_owned(), expected });
    }
    let array = |name: &str| {
        let Some(info) = metadata.info(name) else {
            return Ok(None);
        };
        let element = match info.dtype {
            Dtype::F16 => Element::F16,
            Dtype::BF16 => Element::Bf16,
            Dtype::F32 => Element::F32,
            Dtype::U8 => Element::U8,
            Dtype::I8 => Element::I8,
            Dtype::U16 => Element::U16,
            Dtype::I16 => Element::I16,
            Dtype::U32 => Element::U32,
            Dtype::I32 => Element::I32,
            Dtype::U64 => Element::U64,
            Dtype::I64 => Element::I64,
            other => return Err(bad(format!("its tensor `{name}` is {other:?}: store F32 (or integers for labels)"))),
        };
        let shape = info.shape.iter().map(|&side| side as u64).collect();
        Ok(Some(Array { path: path.to_owned(), element, shape, start: 8 + size + info.data_offsets.0 as u64 }))
    };
    let Some(latents) = array("latents")? else {
        let names = metadata.offset_keys().join(", ");
        return Err(bad(format!("it has no tensor `latents` (found: {names}): name the tensor so")));
    };
    Ok((latents, array("labels")?))
}

fn open_npy(path: &Path) -> Result<Array, ImageError> {
    let bad = |reason: String| ImageError::Latents { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|source| read_error(path, source))?;
    let found = length(path)?;
    // Read apart, because the library would allocate whatever length the header claims to have.
    let mut start = Vec::new();
    file.take(12 + MAX_NPY_HEADER).read_to_end(&mut start).map_err(|source| read_error(path, source))?;
    let (first, header) = match start[..] {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => (10, u64::from(u16::from_le_bytes([a, b]))),
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
            (12, u64::from(u32::from_le_bytes([a, b, c, d])))
        }
        _ => {
            return Err(bad(format!(
                "it begins with the bytes {:02X?}: it is no .npy file",
                &start[..start.len().min(8)]
            )));
        }
    };
    if header > MAX_NPY_HEADER {
        return Err(bad(format!("its header would have {header} bytes: it is no .npy file of plain numbers")));
    }
    if found < first + header {
        let (what, expected) = ("the header".to_owned(), first + header);
        return Err(ImageError::Truncated { path: path.to_owned(), what, expected, found });
    }
    // The library's parser takes a time exponential in the depth; plain numbers need a dictionary with one tuple.
    let text = &start[first as usize..(first + header) as usize];
    if text.iter().filter(|byte| b"([{".contains(byte)).count() > 2 {
        return Err(bad("its header describes more than an array of plain numbers: store plain numbers".to_owned()));
    }
    let info =
        NpyHeader::from_reader(&start[..]).map_err(|error| bad(format!("its header does not parse ({error})")))?;
    let DType::Plain(plain) = info.dtype() else {
        return Err(bad("its numbers are records: store plain numbers".to_owned()));
    };
    let element = match plain.to_string().trim_start_matches(['\'', '"']).trim_end_matches(['\'', '"']) {
        "<f4" => Element::F32,
        "<f2" => Element::F16,
        "|u1" => Element::U8,
        "|i1" => Element::I8,
        "<u2" => Element::U16,
        "<i2" => Element::I16,
        "<u4" => Element::U32,
        "<i4" => Element::I32,
        "<u8" => Element::U64,
        "<i8" => Element::I64,
        other => return Err(bad(format!("its numbers are {other}: store <f4 or <f2 (labels as <i8, <i4 or |u1)"))),
    };
    if info.order() != Order::C {
        return Err(bad("it is in Fortran order: store it with numpy.ascontiguousarray".to_owned()));
    }
    let shape = info.shape().to_vec();
    let size = shape.iter().try_fold(element.size() as u64, |size, &side| size.checked_mul(side));
    let expected = size.and_then(|size| size.checked_add(first + header));
    match expected {
        Some(expected) if expected == found => {
            Ok(Array { path: path.to_owned(), element, shape, start: first + header })
        }
        Some(expected) if expected < found => Err(ImageError::TrailingBytes { path: path.to_owned(), expected }),
        _ => {
            let what = "what its header announces".to_owned();
            let expected = expected.unwrap_or(u64::MAX);
            Err(ImageError::Truncated { path: path.to_owned(), what, expected, found })
        }
    }
}
