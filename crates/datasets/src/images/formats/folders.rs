//! Folders of pictures, one class a folder.

use std::{
    io,
    path::{Path, PathBuf},
};

use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use walkdir::WalkDir;

use super::{
    Entry, Loaded, entries,
    pictures::{self, Shaper, opaque},
    read_error,
};
use crate::images::{ImageError, ImageKind, ImageOptions, ImageSet};

const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "bmp", "webp"];
/// The most points on a side, and the most bytes that a decoder may take: far beyond photographs.
const MAX_SIDE: u32 = 1 << 15;
const MAX_DECODER_BYTES: u64 = 1 << 30;

pub(crate) fn load(folder: &Path, found: &[Entry], options: &ImageOptions) -> Result<Loaded, ImageError> {
    let sub_folders: Vec<&str> = found.iter().filter(|entry| entry.is_folder).map(|entry| &*entry.name).collect();
    let test = ["val", "valid", "validation", "test"].into_iter().find(|name| sub_folders.contains(name));
    let train = folder.join("train");
    if let Some(test) = test
        && sub_folders.contains(&"train")
        && entries(&train)?.iter().any(|entry| entry.is_folder)
    {
        let test = folder.join(test);
        let names = class_folders(&train)?;
        let test_names = class_folders(&test)?;
        if let Some(name) = test_names.iter().find(|name| !names.contains(name)) {
            return Err(ImageError::NotFound { path: train.join(name) });
        }
        let train = read(&train, &names, &names, None, options)?;
        let held_out = read(&test, &test_names, &names, Some(train.shape()), options)?;
        return Ok(Loaded { train, test: Some((held_out, format!("the pictures in {}", test.display()))) });
    }
    let names: Vec<String> = sub_folders.into_iter().map(str::to_owned).collect();
    Ok(Loaded { train: read(folder, &names, &names, None, options)?, test: None })
}

fn class_folders(folder: &Path) -> Result<Vec<String>, ImageError> {
    Ok(entries(folder)?.into_iter().filter(|entry| entry.is_folder).map(|entry| entry.name).collect())
}

/// The pictures of the folders `here`, whose classes are their places in `names`.
fn read(
    folder: &Path,
    here: &[String],
    names: &[String],
    shape: Option<[usize; 3]>,
    options: &ImageOptions,
) -> Result<ImageSet, ImageError> {
    let (mut files, mut passed_over) = (Vec::new(), 0);
    for name in here {
        let class_folder = folder.join(name);
        let before = files.len();
        let label = names.iter().position(|known| known == name).unwrap_or_default() as u32;
        passed_over += find(&class_folder, label, &mut files)?;
        if files.len() == before {
            let advice = "put .png, .jpg, .bmp or .webp pictures there, or remove the folder";
            return Err(ImageError::Empty { place: class_folder.display().to_string(), advice });
        }
    }
    let Some((first, _)) = files.first() else {
        let advice = "put one folder of pictures a class there";
        return Err(ImageError::Empty { place: folder.display().to_string(), advice });
    };
    let (first, shaper) =
        (first.clone(), Shaper { size: options.size.map(|size| size as u32), channels: options.channels.unwrap_or(3) });
    let picture = decode(&first)?;
    let first_size = (picture.width(), picture.height());
    if shaper.size.is_none() && first_size.0 != first_size.1 {
        return Err(ImageError::Shape {
            place: first.display().to_string(),
            reason: format!("the picture is {}x{}: give a size to cut squares out", first_size.0, first_size.1),
        });
    }
    let side = shaper.side(first_size.1);
    let own_shape = [shaper.channels, side, side];
    if let Some(shape) = shape
        && shape != own_shape
    {
        return Err(ImageError::Shape {
            place: first.display().to_string(),
            reason: format!("the picture is {own_shape:?} where the training pictures are {shape:?}: give a size"),
        });
    }
    let mut values = options.room(&folder.display().to_string(), files.len() as u64, own_shape)?;
    shaper.append(picture, &mut values);
    for (path, _) in &files[1..] {
        let picture = decode(path)?;
        let size = (picture.width(), picture.height());
        if shaper.size.is_none() && size != first_size {
            return Err(ImageError::MixedSizes { first, first_size, second: path.clone(), second_size: size });
        }
        shaper.append(picture, &mut values);
    }
    let mut source = format!("{} pictures in {}", files.len(), folder.display());
    if shaper.size.is_some() {
        source += &format!(", their middle squares resized to {side}x{side} with a {}", pictures::FILTER);
    }
    if passed_over > 0 {
        source += &format!(" ({passed_over} other files passed over)");
    }
    let labels = files.iter().map(|&(_, label)| label).collect();
    Ok(ImageSet::new(ImageKind::Pictures, own_shape, values, labels, names.to_vec(), source)?.with_flips(true))
}

/// Appends the pictures below `folder` in the order of their names; returns how many other files were passed over.
fn find(folder: &Path, label: u32, files: &mut Vec<(PathBuf, u32)>) -> Result<usize, ImageError> {
    let mut passed_over = 0;
    let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            let source = error
                .into_io_error()
                .unwrap_or_else(|| io::Error::other("a link leads back to one of its own parent folders"));
            read_error(&path, source)
        })?;
        if entry.file_type().is_dir() {
            continue;
        }
        let extension = entry.path().extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        // A pipe, a socket or a device is no picture whatever its name, and reading one may never end.
        let is_picture =
            entry.file_type().is_file() && extension.is_some_and(|extension| EXTENSIONS.contains(&&*extension));
        if is_picture {
            files.push((entry.into_path(), label));
        } else {
            passed_over += 1;
        }
    }
    Ok(passed_over)
}

/// The picture, opaque and the right way up: cameras store turned pictures with a note. Its format goes by its content.
fn decode(path: &Path) -> Result<DynamicImage, ImageError> {
    let mut reader = ImageReader::open(path)
        .and_then(ImageReader::with_guessed_format)
        .map_err(|source| read_error(path, source))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    reader.limits(limits);
    let bad = |reason: String| ImageError::Picture { path: path.to_owned(), reason };
    let bad_file = |error: image::ImageError| bad(error.to_string());
    let mut decoder = reader.into_decoder().map_err(bad_file)?;
    // The decoder's limits do not cover the picture itself.
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 || decoder.total_bytes() > MAX_DECODER_BYTES {
        return Err(bad(format!("it would have {width}x{height} points")));
    }
    let orientation = decoder.orientation().map_err(bad_file)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(bad_file)?;
    picture.apply_orientation(orientation);
    Ok(opaque(picture))
}
