//! The name of an image source, as a user writes it, and what it stands for.

use std::{
    fmt,
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use super::{
    ImageError, ImageOptions, ImageSet,
    formats::{self, Loaded, cifar, digits, folders, idx, latents, twemoji},
    split,
};

/// Which images to use. In configuration files it stands as the string that [`ImageSpec::parse`] reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ImageSpec {
    /// `digits`: 1,797 handwritten digits of 8x8 points, embedded (crate `smartcore`; UCI "Optical Recognition of
    /// Handwritten Digits").
    Digits,
    /// `twemoji`: the emoji of the crate `emojis` as Twemoji draws them, in colour, embedded (crate `twemoji-assets`);
    /// the classes are the nine groups of Unicode.
    Twemoji,
    /// `idx:FOLDER`: the IDX files of MNIST and its kin.
    Idx(PathBuf),
    /// Anything with a `/` in it or that ends in `.safetensors` or `.npy`: what it is shows when it is read.
    Path(PathBuf),
}

/// Images to train on and images held out.
///
/// `Display` gives a short account of it for a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageData {
    /// The images to train on, never empty.
    pub train: ImageSet,
    /// The images to evaluate on, of the same shape and classes; empty if none were asked for.
    pub held_out: ImageSet,
    /// How the held-out images were chosen, in words.
    pub held_out_rule: String,
}

impl fmt::Display for ImageData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "images: {}", self.train.source())?;
        writeln!(f, "training: {}", self.train)?;
        write!(f, "held out: {} ({})", self.held_out.len(), self.held_out_rule)?;
        if let Some(attribution) = self.train.attribution() {
            write!(f, "\n{attribution}")?;
        }
        Ok(())
    }
}

impl ImageSpec {
    /// Reads `digits`, `twemoji`, `idx:FOLDER`, or a path: anything with a `/` in it or that ends in `.safetensors` or
    /// `.npy`.
    ///
    /// # Errors
    /// [`ImageError::Spec`] for anything else.
    pub fn parse(spec: &str) -> Result<Self, ImageError> {
        match spec {
            "digits" => return Ok(Self::Digits),
            "twemoji" => return Ok(Self::Twemoji),
            _ => {}
        }
        if let Some(folder) = spec.strip_prefix("idx:")
            && !folder.is_empty()
        {
            return Ok(Self::Idx(folder.into()));
        }
        let is_path = spec.contains(['/', std::path::MAIN_SEPARATOR]) || [".", ".."].contains(&spec);
        if is_path || spec.ends_with(".safetensors") || spec.ends_with(".npy") {
            return Ok(Self::Path(spec.into()));
        }
        Err(ImageError::Spec { spec: spec.to_owned() })
    }

    /// Reads the images into memory. The same files and options give the same sets.
    ///
    /// A path is recognised by what it holds:
    ///
    /// - A folder of IDX files: MNIST and its kin. The images are in `train-images-idx3-ubyte`, the labels in
    ///   `train-labels-idx1-ubyte`, those with `t10k` or `test` for `train` are held out if they are there; each may be
    ///   compressed (`.gz`). Also one IDX file of images, with its labels beside it.
    /// - A folder with `data_batch_1.bin`, ...: CIFAR-10; `test_batch.bin` is held out if it is there.
    /// - A folder with `train.bin`: CIFAR-100 with its fine labels; `test.bin` is held out if it is there.
    /// - A folder of folders: one class a folder, in the order of their names, with `.png`, `.jpg`, `.jpeg`, `.bmp` and
    ///   `.webp` pictures at any depth. If the folders are `train` and `val`, `valid`, `validation` or `test`, with the
    ///   classes in them, the second is held out.
    /// - A `.safetensors` file: latents, the tensor `latents` of `[n, c, h, h]` (F32, F16 or BF16) with the labels
    ///   `labels` of `[n]` (integers) if they are there.
    /// - A `.npy` file: latents of `[n, c, h, h]` (`<f4` or `<f2`) with the labels in `NAME-labels.npy` if it is there.
    ///
    /// Where nothing else is held out, it is the share [`ImageOptions::held_out`] of each class: equal images go
    /// together, and no class loses all of its images.
    ///
    /// # Errors
    /// Impossible options, before anything is read, and any fault of any file: nothing is skipped silently. See
    /// [`ImageError`].
    pub fn load(&self, options: &ImageOptions) -> Result<ImageData, ImageError> {
        options.check()?;
        let Loaded { train, test } = match self {
            Self::Digits => digits::load(options)?,
            Self::Twemoji => twemoji::load(options)?,
            Self::Idx(path) => idx::load(path, options)?,
            Self::Path(path) => load_path(path, options)?,
        };
        if let Some(expected) = options.expected_classes
            && expected != train.classes()
        {
            let names = train.class_names().to_vec();
            return Err(ImageError::ClassCount { expected, found: names.len(), names });
        }
        if let Some((held_out, rule)) = test {
            return Ok(ImageData { train, held_out, held_out_rule: rule });
        }
        let parts = split::by_fraction(train, options.held_out, options.seed)?;
        Ok(ImageData { train: parts.train, held_out: parts.held_out, held_out_rule: parts.rule })
    }
}

fn load_path(path: &Path, options: &ImageOptions) -> Result<Loaded, ImageError> {
    let metadata = fs::metadata(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => ImageError::NotFound { path: path.to_owned() },
        _ => formats::read_error(path, source),
    })?;
    if !metadata.is_dir() {
        return match path.extension().and_then(|extension| extension.to_str()) {
            Some("safetensors") => latents::load_safetensors(path, options),
            Some("npy") => latents::load_npy(path, options),
            _ if idx::is_idx(path)? => idx::load(path, options),
            _ => Err(ImageError::Unrecognised { path: path.to_owned(), found: vec![first_bytes(path)?] }),
        };
    }
    let entries = formats::entries(path)?;
    let named = |is: fn(&str) -> bool| entries.iter().find(|entry| is(&entry.name)).map(|entry| entry.name.clone());
    let (of_idx, of_cifar) = (named(idx::is_images_name), named(cifar::is_name));
    if let (Some(first), Some(second)) = (&of_idx, &of_cifar) {
        Err(ImageError::TwoSets { path: path.to_owned(), first: first.clone(), second: second.clone() })
    } else if of_idx.is_some() {
        idx::load(path, options)
    } else if of_cifar.is_some() {
        cifar::load(path, &entries, options)
    } else if entries.iter().any(|entry| entry.is_folder) {
        folders::load(path, &entries, options)
    } else {
        let found = entries.into_iter().map(|entry| entry.name).collect();
        Err(ImageError::Unrecognised { path: path.to_owned(), found })
    }
}

/// What the file begins with, for a message.
fn first_bytes(path: &Path) -> Result<String, ImageError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(8).read_to_end(&mut bytes))
        .map_err(|source| formats::read_error(path, source))?;
    Ok(format!("a file that begins with the bytes {bytes:02X?}"))
}

impl FromStr for ImageSpec {
    type Err = ImageError;

    fn from_str(spec: &str) -> Result<Self, ImageError> {
        Self::parse(spec)
    }
}

impl TryFrom<String> for ImageSpec {
    type Error = ImageError;

    fn try_from(spec: String) -> Result<Self, ImageError> {
        Self::parse(&spec)
    }
}

impl From<ImageSpec> for String {
    fn from(spec: ImageSpec) -> Self {
        spec.to_string()
    }
}

impl fmt::Display for ImageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits => f.write_str("digits"),
            Self::Twemoji => f.write_str("twemoji"),
            Self::Idx(path) => write!(f, "idx:{}", path.display()),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_and_written_back() {
        for name in
            ["digits", "twemoji", "idx:mnist", "idx:/data/mnist", "./photos", "a/b.npy", "sd.safetensors", "x.npy"]
        {
            assert_eq!(ImageSpec::parse(name).unwrap().to_string(), name);
        }
        let spec: ImageSpec = serde_json::from_str("\"idx:a\"").unwrap();
        assert_eq!(spec, ImageSpec::Idx("a".into()));
        assert_eq!(serde_json::to_string(&spec).unwrap(), "\"idx:a\"");
        assert!(serde_json::from_str::<ImageSpec>("\"digit\"").is_err());
    }

    #[test]
    fn an_unknown_word_is_answered_with_what_is_possible() {
        for name in ["", "digit", "Twemoji", "idx:", "cifar10", "photos"] {
            let message = ImageSpec::parse(name).unwrap_err().to_string();
            for word in ["`digits`", "`twemoji`", "idx:FOLDER", "CIFAR", ".safetensors", ".npy", &format!("`{name}`")] {
                assert!(message.contains(word), "{name}: {message}");
            }
        }
    }

    #[test]
    fn impossible_options_are_refused_before_anything_is_read() {
        let nowhere = ImageSpec::Path("/nowhere/at/all".into());
        let load = |options: ImageOptions| nowhere.load(&options).unwrap_err();
        let default = ImageOptions::default;
        for size in [0, 5000] {
            assert!(matches!(load(ImageOptions { size: Some(size), ..default() }), ImageError::ImageSize { .. }));
        }
        for channels in [0, 2, 4] {
            let options = ImageOptions { channels: Some(channels), ..default() };
            assert!(matches!(load(options), ImageError::Channels { .. }));
        }
        for held_out in [-0.1, 1.0, f64::NAN] {
            assert!(matches!(load(ImageOptions { held_out, ..default() }), ImageError::HeldOutFraction { .. }));
        }
        for latent_scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(matches!(load(ImageOptions { latent_scale, ..default() }), ImageError::LatentScale { .. }));
        }
        assert!(matches!(load(default()), ImageError::NotFound { .. }));
    }
}
