//! How images are read.

use super::ImageError;

/// The factor that brings the latents of the Stable Diffusion autoencoder to about unit variance (Rombach et al. 2022;
/// the one that DiT uses).
pub const LATENT_SCALE: f32 = 0.18215;

/// The largest side that pictures are resized to.
const MAX_SIZE: usize = 4096;

/// How [`ImageSpec::load`](super::ImageSpec::load) reads images.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageOptions {
    /// Height and width that pictures are brought to: the square in their middle is cut out and resized with a triangle
    /// filter (bilinear, widened by the factor when it shrinks). `None`, the default, leaves pictures as they are,
    /// which then must be squares of one size; the embedded sets have a size of their own (digits 8, emoji 32). Latents
    /// cannot be resized.
    pub size: Option<usize>,
    /// 1 (grey) or 3 (red, green, blue). `None`, the default, is 1 for digits and IDX files and 3 for all other
    /// pictures. Latents keep their channels.
    pub channels: Option<usize>,
    /// The share of each class that is held out if the source brings no test files of its own, `0.0 <= share < 1.0`; a
    /// tenth by default.
    pub held_out: f64,
    /// The seed that chooses the held-out images; 0 by default. It is not the seed of the batches.
    pub seed: u64,
    /// The number of classes that the model was built for, if images with another number are an error.
    pub expected_classes: Option<usize>,
    /// What stored latents are multiplied with: [`LATENT_SCALE`] by default, 1 if they were scaled when they were
    /// stored.
    pub latent_scale: f32,
    /// The most bytes that the images may take in memory, four a value; 16 GiB by default.
    pub max_bytes: u64,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            size: None,
            channels: None,
            held_out: 0.1,
            seed: 0,
            expected_classes: None,
            latent_scale: LATENT_SCALE,
            max_bytes: 16 << 30,
        }
    }
}

impl ImageOptions {
    /// Refuses impossible values before anything is read.
    pub(super) fn check(&self) -> Result<(), ImageError> {
        if let Some(size) = self.size
            && !(1..=MAX_SIZE).contains(&size)
        {
            return Err(ImageError::ImageSize { size, maximum: MAX_SIZE });
        }
        if let Some(channels) = self.channels
            && channels != 1
            && channels != 3
        {
            return Err(ImageError::Channels { channels });
        }
        if !(0.0..1.0).contains(&self.held_out) {
            return Err(ImageError::HeldOutFraction { fraction: self.held_out });
        }
        if !self.latent_scale.is_finite() || self.latent_scale <= 0.0 {
            return Err(ImageError::LatentScale { scale: self.latent_scale });
        }
        Ok(())
    }

    /// The number of values of `images` images of `shape`, if they fit.
    pub(super) fn values(&self, what: &str, images: u64, shape: [usize; 3]) -> Result<usize, ImageError> {
        let values = shape.iter().map(|&side| side as u128).product::<u128>().saturating_mul(u128::from(images));
        let bytes = values.saturating_mul(size_of::<f32>() as u128);
        let too_large = || ImageError::TooLarge { what: what.to_owned(), bytes, maximum: self.max_bytes };
        if bytes > u128::from(self.max_bytes) || images > u64::from(u32::MAX) {
            return Err(too_large());
        }
        usize::try_from(values).map_err(|_| too_large())
    }

    /// Room for the values of `images` images of `shape`, if they fit.
    pub(super) fn room(&self, what: &str, images: u64, shape: [usize; 3]) -> Result<Vec<f32>, ImageError> {
        let values = self.values(what, images, shape)?;
        let mut room = Vec::new();
        room.try_reserve_exact(values).map_err(|_| ImageError::TooLarge {
            what: what.to_owned(),
            bytes: values as u128 * size_of::<f32>() as u128,
            maximum: self.max_bytes,
        })?;
        Ok(room)
    }
}
