//! IDX files: the format of MNIST and its kin.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;

use super::{Loaded, entries, length, pictures, pictures::Shaper, read_error};
use crate::images::{ImageError, ImageKind, ImageOptions, ImageSet, set::numbered};

/// Unsigned bytes in three dimensions, and in one.
const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;

/// The CRC-32 of the 60,000 training labels of Fashion-MNIST: its files have the names of MNIST's.
const FASHION: u32 = 0x2ED6E46A;
/// The classes of Fashion-MNIST (Xiao et al. 2017).
const FASHION_NAMES: [&str; 10] =
    ["T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"];

/// Whether a name is that of a file of images: `train-images-idx3-ubyte`, `t10k-images.idx3-ubyte.gz`, ...
pub(crate) fn is_images_name(name: &str) -> bool {
    name.contains("images") && name.contains("idx3")
}

/// Whether the file begins like a file of images, compressed or not.
pub(crate) fn is_idx(path: &Path) -> Result<bool, ImageError> {
    let mut magic = [0; 4];
    let begins = Input::open(path)?.reader.read_exact(&mut magic).is_ok();
    Ok(begins && u32::from_be_bytes(magic) == IMAGES)
}

/// The training and test files of a folder, or one file of images.
pub(crate) fn load(path: &Path, options: &ImageOptions) -> Result<Loaded, ImageError> {
    if !path.exists() {
        return Err(ImageError::NotFound { path: path.to_owned() });
    }
    if path.is_file() {
        let train = set(&read_pair(path, options)?, None, options)?;
        return Ok(Loaded { train, test: None });
    }
    let names: Vec<String> = entries(path)?.into_iter().map(|entry| entry.name).collect();
    // A plain file and its compressed copy may stand side by side; the plain one sorts first.
    let find = |word: &str| names.iter().find(|name| is_images_name(name) && name.contains(word)).map(|n| path.join(n));
    let Some(train) = find("train") else {
        return Err(ImageError::Unrecognised { path: path.to_owned(), found: names });
    };
    let train = set(&read_pair(&train, options)?, None, options)?;
    let Some(test) = find("t10k").or_else(|| find("test")) else {
        return Ok(Loaded { train, test: None });
    };
    let pair = read_pair(&test, options)?;
    let test = set(&pair, Some(&train), options)?;
    if test.shape() != train.shape() {
        return Err(ImageError::Shape {
            place: pair.path.display().to_string(),
            reason: format!("its images are {:?} where the training images are {:?}", test.shape(), train.shape()),
        });
    }
    let rule = format!("the test files {}", file_name(&pair.path));
    Ok(Loaded { train, test: Some((test, rule)) })
}

/// Images and labels as they are stored.
struct Pair {
    path: PathBuf,
    images: u64,
    height: u32,
    width: u32,
    bytes: Vec<u8>,
    labels: Vec<u8>,
    labels_path: PathBuf,
}

fn read_pair(path: &Path, options: &ImageOptions) -> Result<Pair, ImageError> {
    let labels_path = labels_beside(path)?;
    let ([images, height, width], bytes) = read(path, IMAGES, "images", options)?;
    let ([count], labels) = read(&labels_path, LABELS, "labels", options)?;
    if count != images {
        return Err(ImageError::LabelCount { path: labels_path, labels: u64::from(count), images: u64::from(images) });
    }
    if images == 0 {
        return Err(ImageError::Empty { place: path.display().to_string(), advice: "fetch or write it again" });
    }
    Ok(Pair { path: path.to_owned(), images: u64::from(images), height, width, bytes, labels, labels_path })
}

/// The file of labels that belongs to a file of images, compressed or not.
fn labels_beside(path: &Path) -> Result<PathBuf, ImageError> {
    let name = file_name(path).replace("images", "labels").replace("idx3", "idx1");
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let first = path.with_file_name(&name);
    [first.clone(), path.with_file_name(plain), path.with_file_name(format!("{plain}.gz"))]
        .into_iter()
        .find(|candidate| candidate != path && candidate.is_file())
        .ok_or(ImageError::NotFound { path: first })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The images as a set. Test images take the classes of the training images.
fn set(pair: &Pair, train: Option<&ImageSet>, options: &ImageOptions) -> Result<ImageSet, ImageError> {
    let (width, height) = (pair.width, pair.height);
    let place = || pair.path.display().to_string();
    if width == 0 || height == 0 || (options.size.is_none() && width != height) {
        let advice =
            if width == 0 || height == 0 { "fetch or write it again" } else { "give a size to cut squares out" };
        return Err(ImageError::Shape { place: place(), reason: format!("its images are {width}x{height}: {advice}") });
    }
    let shaper = Shaper { size: options.size.map(|size| size as u32), channels: options.channels.unwrap_or(1) };
    let side = shaper.side(height);
    let shape = [shaper.channels, side, side];
    let mut values = options.room(&place(), pair.images, shape)?;
    // The number of bytes was checked against the header when they were read.
    for bytes in pair.bytes.chunks_exact(width as usize * height as usize) {
        if let Some(picture) = pictures::grey(width, height, bytes.to_vec()) {
            shaper.append(picture, &mut values);
        }
    }
    let is_fashion = train.is_none() && crc32fast::hash(&pair.labels) == FASHION;
    let class_names = match train {
        Some(train) => train.class_names().to_vec(),
        None if is_fashion => FASHION_NAMES.map(str::to_owned).to_vec(),
        None => numbered(pair.labels.iter().max().map_or(0, |&label| label as usize + 1)),
    };
    let classes = class_names.len();
    if let Some(index) = pair.labels.iter().position(|&label| label as usize >= classes) {
        let (place, label) = (pair.labels_path.display().to_string(), i128::from(pair.labels[index]));
        return Err(ImageError::LabelOutOfRange { place, index, label, classes });
    }
    let labels = pair.labels.iter().map(|&label| u32::from(label)).collect();
    let mut source = format!("{} ({width}x{height} points)", place());
    if side != height as usize || width != height {
        source += &format!(", resized to {side}x{side} with a {}", pictures::FILTER);
    }
    // Other IDX files do not say what they show, and digits must not be mirrored.
    let flips = train.map_or(is_fashion, ImageSet::flips_make_sense);
    Ok(ImageSet::new(ImageKind::Pictures, shape, values, labels, class_names, source)?.with_flips(flips))
}

/// A file, decompressed where it begins like gzip.
struct Input {
    reader: Box<dyn Read>,
    gzip: bool,
}

impl Input {
    fn open(path: &Path) -> Result<Self, ImageError> {
        let error = |source| read_error(path, source);
        let mut file = File::open(path).map_err(error)?;
        let mut start = [0; 2];
        let gzip = file.read_exact(&mut start).is_ok() && start == [0x1F, 0x8B];
        file.rewind().map_err(error)?;
        let reader: Box<dyn Read> =
            if gzip { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(BufReader::new(file)) };
        Ok(Self { reader, gzip })
    }

    fn error(&self, path: &Path, source: io::Error) -> ImageError {
        if self.gzip { ImageError::Gzip { path: path.to_owned(), source } } else { read_error(path, source) }
    }
}

/// The dimensions and the bytes of an IDX file.
fn read<const N: usize>(
    path: &Path,
    magic: u32,
    what: &'static str,
    options: &ImageOptions,
) -> Result<([u32; N], Vec<u8>), ImageError> {
    let mut input = Input::open(path)?;
    let header_len = 4 + 4 * N as u64;
    let mut header = Vec::new();
    if let Err(source) = input.reader.by_ref().take(header_len).read_to_end(&mut header) {
        return Err(input.error(path, source));
    }
    let truncated = |what: &str, expected, found| ImageError::Truncated {
        path: path.to_owned(),
        what: what.to_owned(),
        expected,
        found,
    };
    let mut words = header.as_chunks::<4>().0.iter().map(|&word| u32::from_be_bytes(word));
    let Some(found) = words.next() else {
        return Err(truncated("the header", header_len, header.len() as u64));
    };
    if found != magic {
        return Err(ImageError::Magic { path: path.to_owned(), what, expected: magic, found });
    }
    if (header.len() as u64) < header_len {
        return Err(truncated("the header", header_len, header.len() as u64));
    }
    let mut dimensions = [0; N];
    dimensions.iter_mut().zip(words).for_each(|(dimension, word)| *dimension = word);
    // Three 32-bit numbers fit into 128 bits.
    let size: u128 = dimensions.iter().map(|&dimension| u128::from(dimension)).product();
    let too_large =
        || ImageError::TooLarge { what: path.display().to_string(), bytes: 4 * size, maximum: options.max_bytes };
    let size = u64::try_from(size).ok().filter(|&size| size <= options.max_bytes).ok_or_else(too_large)?;
    let expected = header_len + size;
    // Known beforehand for a plain file; a compressed one is read as far as it goes, so that a header that lies costs
    // nothing.
    if !input.gzip && length(path)? < expected {
        return Err(truncated("what its header announces", expected, length(path)?));
    }
    let mut bytes = Vec::new();
    if let Err(source) = input.reader.by_ref().take(size + 1).read_to_end(&mut bytes) {
        return Err(input.error(path, source));
    }
    let found = bytes.len() as u64;
    if found < size {
        return Err(truncated("what its header announces", expected, header_len + found));
    }
    if found > size {
        return Err(ImageError::TrailingBytes { path: path.to_owned(), expected });
    }
    Ok((dimensions, bytes))
}
