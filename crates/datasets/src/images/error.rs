//! What can go wrong between an image file and a batch.

use std::{io, path::PathBuf};

/// Why images could not be read or put into batches. Every message says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The name of an image source is not understood.
    #[error(
        "`{spec}` names no images: use `digits`, `twemoji`, `idx:FOLDER`, or a path with a / in it (a folder of IDX \
         files, of CIFAR .bin files or of one folder of pictures a class; a .safetensors or .npy file of latents)"
    )]
    Spec {
        /// The name as given.
        spec: String,
    },
    /// A path does not exist.
    #[error("{path} does not exist: check the path of the images")]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused to read a path.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A path holds nothing that is known.
    #[error(
        "{path} holds no known images (found: {}): give a folder with train-images-idx3-ubyte or data_batch_1.bin or \
         train.bin, a folder with one folder of .png, .jpg, .bmp or .webp pictures a class, or a .safetensors or .npy \
         file",
        list(.found)
    )]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
        /// The names in it, or what the file begins with.
        found: Vec<String>,
    },
    /// A folder holds the files of two formats.
    #[error("{path} holds {first} and {second}: give each a folder of its own")]
    TwoSets {
        /// The folder.
        path: PathBuf,
        /// A file of one format.
        first: String,
        /// A file of the other.
        second: String,
    },
    /// A file is shorter than its format or header says.
    #[error("{path} is cut short: {what} takes {expected} bytes, the file holds {found}; fetch or write it again")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The part that is too short.
        what: String,
        /// Bytes that it takes.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// A file goes on where its header says that it ends.
    #[error("{path} goes on after the {expected} bytes that its header announces: fetch or write it again")]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Bytes that the header announces, itself among them (of a .gz: decompressed).
        expected: u64,
    },
    /// A gzip file is damaged.
    #[error("{path} is not a whole gzip file ({source}): fetch or write it again")]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        source: io::Error,
    },
    /// A file begins with the wrong number.
    #[error("{path} is no IDX file of {what}: it begins with {found:#010x} where {expected:#010x} belongs")]
    Magic {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// The number that such a file begins with.
        expected: u32,
        /// The number it begins with.
        found: u32,
    },
    /// There are not as many labels as images.
    #[error("{path} holds {labels} labels for {images} images: give the file that belongs to the images")]
    LabelCount {
        /// The file or tensor with the labels.
        path: PathBuf,
        /// Labels in it.
        labels: u64,
        /// Images.
        images: u64,
    },
    /// A label stands for no class.
    #[error("{place}: label {index} (from 0) is {label}, which is none of the {classes} classes from 0")]
    LabelOutOfRange {
        /// The file or set.
        place: String,
        /// Number of the label, from 0.
        index: usize,
        /// Its value.
        label: i128,
        /// Number of classes.
        classes: usize,
    },
    /// There is not a single image.
    #[error("{place} holds no images: {advice}")]
    Empty {
        /// The file, folder or set.
        place: String,
        /// What belongs there.
        advice: &'static str,
    },
    /// A picture cannot be decoded.
    #[error("{path} is not a readable picture ({reason}): replace or remove it")]
    Picture {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        reason: String,
    },
    /// Images have a shape that cannot be used.
    #[error("{place}: {reason}")]
    Shape {
        /// The file or set.
        place: String,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// Pictures differ in size and no size was asked for.
    #[error(
        "pictures differ in size: {first} is {}x{}, {second} is {}x{} (width x height); give a size that all \
         are brought to",
        first_size.0, first_size.1, second_size.0, second_size.1
    )]
    MixedSizes {
        /// The first picture.
        first: PathBuf,
        /// Its width and height.
        first_size: (u32, u32),
        /// The first one of another size.
        second: PathBuf,
        /// Its width and height.
        second_size: (u32, u32),
    },
    /// A value is not a number.
    #[error("{place}: image {index} (from 0) holds the value {value}: all values must be finite numbers")]
    NotFinite {
        /// The file or set.
        place: String,
        /// Number of the image, from 0.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A file of latents cannot be used.
    #[error("{path} holds no usable latents: {reason}")]
    Latents {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// The images have another number of classes than was asked for.
    #[error(
        "{expected} classes were asked for, but the images have {found} ({}): give {found} classes or other images",
        list(.names)
    )]
    ClassCount {
        /// Classes that were asked for.
        expected: usize,
        /// Classes of the images.
        found: usize,
        /// Their names.
        names: Vec<String>,
    },
    /// The images do not fit into the memory that they may take.
    #[error(
        "{what} takes {bytes} bytes ({:.1} GiB), more than the {maximum} that images may take or the memory has: use \
         fewer or smaller images, or allow more",
        *bytes as f64 / (1_u64 << 30) as f64
    )]
    TooLarge {
        /// The images.
        what: String,
        /// Bytes that they would take, four a value.
        bytes: u128,
        /// Bytes that they may take.
        maximum: u64,
    },
    /// The size that pictures should have is not possible.
    #[error("pictures cannot be {size}x{size}: give a size from 1 to {maximum}")]
    ImageSize {
        /// The size that was asked for.
        size: usize,
        /// The greatest size.
        maximum: usize,
    },
    /// The number of channels is not possible.
    #[error("pictures cannot have {channels} channels: give 1 for grey or 3 for colour")]
    Channels {
        /// The number that was asked for.
        channels: usize,
    },
    /// The factor for latents is not possible.
    #[error("latents cannot be multiplied with {scale}: give a positive number")]
    LatentScale {
        /// The factor that was asked for.
        scale: f32,
    },
    /// The held-out share is not a share.
    #[error("a held-out share of {fraction} makes no sense: give at least 0 and less than 1")]
    HeldOutFraction {
        /// The share that was asked for.
        fraction: f64,
    },
    /// There are too few images to hold any of them out.
    #[error("{images} images are too few to hold {fraction} of each class out: give more images or another share")]
    TooFewImages {
        /// Number of images.
        images: usize,
        /// The share that was asked for.
        fraction: f64,
    },
    /// A batch of no images was asked for.
    #[error("a batch needs at least one image")]
    EmptyBatch,
    /// A batch is larger than this crate holds.
    #[error("a batch of {rows} images of {values} values is too large: give at most {} images", maximum / values)]
    BatchTooLarge {
        /// Images in the batch.
        rows: usize,
        /// Values of an image.
        values: usize,
        /// The most values that a batch may have.
        maximum: usize,
    },
    /// Embedded images could not be read.
    #[error("the embedded images ({what}) cannot be read ({reason}): this is a fault of the build, please report it")]
    Embedded {
        /// Which ones.
        what: &'static str,
        /// What went wrong.
        reason: String,
    },
}

/// A list of names for a message, cut to the first dozen.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 12;
    match names.len() {
        0 => "nothing".to_owned(),
        n if n <= SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
    }
}
