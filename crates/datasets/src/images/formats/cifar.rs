//! The binary files of CIFAR-10 and CIFAR-100 (Krizhevsky 2009): records of one or two labels and 32x32 points in three
//! planes.

use std::{fs, path::Path};

use super::{Entry, Loaded, length, pictures, pictures::Shaper, read_error};
use crate::images::{ImageError, ImageKind, ImageOptions, ImageSet, set::numbered};

const SIDE: u32 = 32;
const POINTS: usize = 3 * (SIDE * SIDE) as usize;
const NAMES: [&str; 10] = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// Whether a name is that of one of the files.
pub(crate) fn is_name(name: &str) -> bool {
    is_batch(name) || ["test_batch.bin", "train.bin"].contains(&name)
}

fn is_batch(name: &str) -> bool {
    name.starts_with("data_batch_") && name.ends_with(".bin")
}

/// What distinguishes the two sets.
struct Variant {
    name: &'static str,
    /// Labels before the points; the last one is used (of CIFAR-100 the fine one).
    labels: usize,
    classes: usize,
    names_file: &'static str,
    test: &'static str,
}

const CIFAR_10: Variant =
    Variant { name: "CIFAR-10", labels: 1, classes: 10, names_file: "batches.meta.txt", test: "test_batch.bin" };
const CIFAR_100: Variant =
    Variant { name: "CIFAR-100", labels: 2, classes: 100, names_file: "fine_label_names.txt", test: "test.bin" };

pub(crate) fn load(folder: &Path, entries: &[Entry], options: &ImageOptions) -> Result<Loaded, ImageError> {
    let has = |wanted: &str| entries.iter().any(|entry| entry.name == wanted);
    let batches: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).filter(|name| is_batch(name)).collect();
    let (variant, train) = match batches.is_empty() {
        true if has("train.bin") => (CIFAR_100, vec!["train.bin"]),
        _ => (CIFAR_10, batches),
    };
    let names = class_names(folder, &variant)?;
    let train = read(folder, &train, &variant, names.clone(), options)?;
    if !has(variant.test) {
        return Ok(Loaded { train, test: None });
    }
    let test = read(folder, &[variant.test], &variant, names, options)?;
    Ok(Loaded { train, test: Some((test, format!("the test file {}", variant.test))) })
}

/// The names that stand beside the data; those of CIFAR-10 are known.
fn class_names(folder: &Path, variant: &Variant) -> Result<Vec<String>, ImageError> {
    let path = folder.join(variant.names_file);
    if path.is_file() {
        let text = fs::read_to_string(&path).map_err(|source| read_error(&path, source))?;
        let names: Vec<String> =
            text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.len() == variant.classes {
            return Ok(names);
        }
        return Err(ImageError::ClassCount { expected: variant.classes, found: names.len(), names });
    }
    Ok(if variant.classes == NAMES.len() { NAMES.map(str::to_owned).to_vec() } else { numbered(variant.classes) })
}

fn read(
    folder: &Path,
    files: &[&str],
    variant: &Variant,
    class_names: Vec<String>,
    options: &ImageOptions,
) -> Result<ImageSet, ImageError> {
    let record = variant.labels + POINTS;
    let mut images = 0;
    for file in files {
        let path = folder.join(file);
        let found = length(&path)?;
        if found % record as u64 != 0 {
            let (what, expected) = (format!("records of {record} bytes"), found.next_multiple_of(record as u64));
            return Err(ImageError::Truncated { path, what, expected, found });
        }
        images += found / record as u64;
    }
    if images == 0 {
        let advice = "fetch the binary version of CIFAR again";
        return Err(ImageError::Empty { place: folder.display().to_string(), advice });
    }
    let shaper = Shaper { size: options.size.map(|size| size as u32), channels: options.channels.unwrap_or(3) };
    let side = shaper.side(SIDE);
    let shape = [shaper.channels, side, side];
    let mut values = options.room(&folder.display().to_string(), images, shape)?;
    let mut labels = Vec::new();
    for file in files {
        let path = folder.join(file);
        let bytes = fs::read(&path).map_err(|source| read_error(&path, source))?;
        for (index, bytes) in bytes.chunks_exact(record).enumerate() {
            let (head, points) = bytes.split_at(variant.labels);
            let label = u32::from(head[variant.labels - 1]);
            if label as usize >= variant.classes {
                let (place, label) = (path.display().to_string(), i128::from(label));
                return Err(ImageError::LabelOutOfRange { place, index, label, classes: variant.classes });
            }
            // A record has exactly the points of a picture.
            if let Some(picture) = pictures::planes(SIDE, SIDE, points) {
                labels.push(label);
                shaper.append(picture, &mut values);
            }
        }
    }
    let mut source = format!("{} in {} ({})", variant.name, folder.display(), files.join(", "));
    if side != SIDE as usize {
        source += &format!(", resized to {side}x{side} with a {}", pictures::FILTER);
    }
    Ok(ImageSet::new(ImageKind::Pictures, shape, values, labels, class_names, source)?.with_flips(true))
}
