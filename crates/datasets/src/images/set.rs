//! Labelled images in memory.

use std::{fmt, sync::Arc};

use super::ImageError;

/// What the values of an [`ImageSet`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// Brightness from -1 (black) to 1 (full). A byte b is b / 127.5 - 1, a digit's value v of 0 to 16 is v / 8 - 1.
    Pictures,
    /// The output of an image encoder, of any range.
    Latents,
}

/// Images of one shape with a class each. A copy shares the values.
///
/// `Display` gives a short account of it for a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSet {
    kind: ImageKind,
    shape: [usize; 3],
    values: Arc<Vec<f32>>,
    labels: Arc<Vec<u32>>,
    class_names: Arc<Vec<String>>,
    flips_make_sense: bool,
    pub(super) source: String,
    pub(super) attribution: Option<String>,
}

impl ImageSet {
    /// A set of `labels.len()` images of `shape` (channels, height, width). `values` holds them one after the other,
    /// each channel by channel and row by row; `source` says in words what they are. The set may be empty.
    ///
    /// # Errors
    /// [`ImageError::Shape`] if the shape is not square, has a side of 0 or does not fit the number of values,
    /// [`ImageError::LabelOutOfRange`] if a label is no index of `class_names`, [`ImageError::NotFinite`] for a value
    /// that is no finite number. All name `source`.
    pub fn new(
        kind: ImageKind,
        shape: [usize; 3],
        values: Vec<f32>,
        labels: Vec<u32>,
        class_names: Vec<String>,
        source: impl Into<String>,
    ) -> Result<Self, ImageError> {
        let place = source.into();
        let [channels, height, width] = shape;
        let bad_shape = |reason: String| ImageError::Shape { place: place.clone(), reason };
        if shape.contains(&0) || height != width {
            return Err(bad_shape(format!(
                "images of {channels} channels and {width}x{height} points (width x height) cannot be used: they must \
                 be square and not empty"
            )));
        }
        let size = channels.checked_mul(height).and_then(|size| size.checked_mul(width));
        if labels.len() > u32::MAX as usize || size.and_then(|s| s.checked_mul(labels.len())) != Some(values.len()) {
            return Err(bad_shape(format!(
                "{} values are not those of {} images of {channels} x {height} x {width}",
                values.len(),
                labels.len()
            )));
        }
        let classes = class_names.len();
        if let Some(index) = labels.iter().position(|&label| label as usize >= classes) {
            let label = i128::from(labels[index]);
            return Err(ImageError::LabelOutOfRange { place, index, label, classes });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let index = at / (channels * height * width);
            return Err(ImageError::NotFinite { place, index, value: values[at] });
        }
        Ok(Self {
            kind,
            shape,
            values: Arc::new(values),
            labels: Arc::new(labels),
            class_names: Arc::new(class_names),
            flips_make_sense: false,
            source: place,
            attribution: None,
        })
    }

    /// The same set, whose mirror images are said to be as good as the images (or not).
    pub fn with_flips(mut self, flips_make_sense: bool) -> Self {
        self.flips_make_sense = flips_make_sense;
        self
    }

    /// The images `numbers` (from 0) as a set of their own, which shares nothing but the names.
    pub(super) fn subset(&self, numbers: &[u32]) -> Self {
        let mut values = Vec::with_capacity(numbers.len() * self.image_len());
        for &number in numbers {
            values.extend_from_slice(self.image(number));
        }
        let labels = numbers.iter().map(|&number| self.labels[number as usize]).collect();
        Self { values: Arc::new(values), labels: Arc::new(labels), ..self.clone() }
    }

    /// The set without the images for which `leaves` holds. Takes no second copy of the values if they are not shared.
    pub(super) fn without(mut self, leaves: &[bool]) -> Self {
        let size = self.image_len();
        let values = Arc::make_mut(&mut self.values);
        let labels = Arc::make_mut(&mut self.labels);
        let mut kept = 0;
        for number in (0..labels.len()).filter(|&number| !leaves[number]) {
            values.copy_within(number * size..(number + 1) * size, kept * size);
            labels[kept] = labels[number];
            kept += 1;
        }
        labels.truncate(kept);
        values.truncate(kept * size);
        values.shrink_to_fit();
        self
    }

    /// What the values are.
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// Number of images.
    pub fn len(&self) -> u32 {
        self.labels.len() as u32 // `new` admits no more.
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Channels, height and width of an image; height and width are equal.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Values of an image: channels x height x width.
    pub fn image_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// All values, `[len, channels, height, width]` with the last one fastest.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The values of image `number`, from 0, channel by channel and row by row.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn image(&self, number: u32) -> &[f32] {
        let size = self.image_len();
        &self.values[number as usize * size..][..size]
    }

    /// The class of each image, an index into [`ImageSet::class_names`].
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The names of the classes.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Number of classes, those without an image among them.
    pub fn classes(&self) -> usize {
        self.class_names.len()
    }

    /// The number of images of each class.
    pub fn class_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.classes()];
        for &label in self.labels.iter() {
            counts[label as usize] += 1;
        }
        counts
    }

    /// Whether the mirror image of an image is as good an image of its class. Never for latents: the mirror image of a
    /// latent is not the latent of the mirror image. For a set made by [`ImageSet::new`], what [`ImageSet::with_flips`]
    /// says.
    pub fn flips_make_sense(&self) -> bool {
        self.flips_make_sense && self.kind == ImageKind::Pictures
    }

    /// What the images are, where they come from and what was done to them, in words.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The words that must stand beside anything that shows these images, if their licence asks for it.
    pub fn attribution(&self) -> Option<&str> {
        self.attribution.as_deref()
    }

    /// A CRC-32 of the shape, the labels and the bits of all values; any single changed value changes it.
    pub fn fingerprint(&self) -> u32 {
        // Fed in pieces of some kilobytes: the checksum of four bytes at a time is several times slower.
        const PIECE: usize = 1024;
        let mut hasher = crc32fast::Hasher::new();
        for side in self.shape {
            hasher.update(&(side as u64).to_le_bytes());
        }
        hasher.update(&(self.classes() as u64).to_le_bytes());
        hasher.update(&u64::from(self.len()).to_le_bytes());
        let mut bytes = Vec::with_capacity(4 * PIECE);
        for labels in self.labels.chunks(PIECE) {
            bytes.clear();
            bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
            hasher.update(&bytes);
        }
        for values in self.values.chunks(PIECE) {
            bytes.clear();
            bytes.extend(values.iter().flat_map(|value| value.to_bits().to_le_bytes()));
            hasher.update(&bytes);
        }
        hasher.finalize()
    }
}

impl fmt::Display for ImageSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [channels, height, width] = self.shape;
        let what = match self.kind {
            ImageKind::Pictures => "pictures",
            ImageKind::Latents => "latents",
        };
        write!(f, "{} {what} of {channels} x {height} x {width}, {} classes", self.len(), self.classes())
    }
}

/// `0`, `1`, ...: the names of classes that have none.
pub(super) fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}
