//! Which images make up a batch, and which of them are mirrored.

use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{ImageError, ImageSet};
use crate::EpochOrder;

/// The most values of a batch: they take 1 GiB.
const MAX_VALUES: usize = 1 << 28;

/// Separates the random stream of the mirrored images from every other use of the same seed.
const FLIPS: [u8; 16] = *b"image flips v1  ";

/// Whether batches of `rows` images can be held.
fn check(rows: usize, images: &ImageSet) -> Result<(), ImageError> {
    let values = images.image_len();
    match rows.checked_mul(values) {
        Some(0) => Err(ImageError::EmptyBatch), // An image has at least one value.
        Some(all) if all <= MAX_VALUES => Ok(()),
        _ => Err(ImageError::BatchTooLarge { rows, values, maximum: MAX_VALUES }),
    }
}

/// Some images with their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageBatch {
    /// `[rows, channels, height, width]`, the last one fastest.
    pub images: Vec<f32>,
    /// The class of each image.
    pub labels: Vec<u32>,
    /// The numbers of the images in their [`ImageSet`], to name them when a batch goes wrong.
    pub numbers: Vec<u32>,
    /// Number of images.
    pub rows: usize,
    /// Channels, height and width of an image.
    pub shape: [usize; 3],
}

impl ImageBatch {
    /// The images `numbers`, those mirrored for which `flips` gives true (none where it has ended).
    fn new(set: &ImageSet, numbers: Vec<u32>, flips: &[bool]) -> Self {
        let shape = set.shape();
        let mut images = Vec::with_capacity(numbers.len() * set.image_len());
        for (place, &number) in numbers.iter().enumerate() {
            let image = set.image(number);
            if flips.get(place).copied().unwrap_or(false) {
                image.chunks_exact(shape[2]).for_each(|row| images.extend(row.iter().rev()));
            } else {
                images.extend_from_slice(image);
            }
        }
        let labels = numbers.iter().map(|&number| set.labels()[number as usize]).collect();
        Self { images, labels, rows: numbers.len(), numbers, shape }
    }
}

/// The batches of a training run: a function of the images, the batch size, the seed and the number of the batch.
///
/// Every epoch visits each image once, in the order of [`EpochOrder`]. Batches run on over the epochs without a gap:
/// the one in which an epoch ends takes the rest of it and the start of the next, so all batches are full. Nothing
/// about the position is stored, so a resumed run asks for its next batch and several threads may ask for different
/// ones.
///
/// With `flip` each drawn image is mirrored left to right with probability 1/2. Position p of a run (image p mod B of
/// batch p / B, for batches of B) takes bit p mod 64 of the first 64-bit number of the ChaCha8 generator with the key
/// `seed` (8 bytes, little endian), `p / 64` (8 bytes, little endian), `"image flips v1  "` (16 bytes).
#[derive(Debug)]
pub struct ImagePlan {
    set: Arc<ImageSet>,
    batch_size: usize,
    order: EpochOrder,
    seed: u64,
    flip: bool,
    /// The orders of the two epochs used last (a batch may need two): a shuffle costs as much as many batches.
    recent: Mutex<Vec<(u64, Arc<Vec<u32>>)>>,
}

impl ImagePlan {
    /// A plan over `set` with `batch_size` images a batch. Whether to `flip` is the caller's choice;
    /// [`ImageSet::flips_make_sense`] gives advice.
    ///
    /// # Errors
    /// [`ImageError::Empty`] if the set has no image, [`ImageError::EmptyBatch`] if `batch_size` is 0,
    /// [`ImageError::BatchTooLarge`] if a batch has more than 2^28 values.
    pub fn new(set: impl Into<Arc<ImageSet>>, batch_size: usize, seed: u64, flip: bool) -> Result<Self, ImageError> {
        let set = set.into();
        check(batch_size, &set)?;
        if set.is_empty() {
            return Err(ImageError::Empty { place: set.source().to_owned(), advice: "give images to train on" });
        }
        let order = EpochOrder::new(set.len(), seed);
        Ok(Self { set, batch_size, order, seed, flip, recent: Mutex::new(Vec::new()) })
    }

    /// The images.
    pub fn set(&self) -> &ImageSet {
        &self.set
    }

    /// Images in a batch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// How many epochs the first `batches` batches are: 1.5 is all images once and half of them twice.
    pub fn epochs(&self, batches: u64) -> f64 {
        batches as f64 * self.batch_size as f64 / f64::from(self.set.len())
    }

    /// Batch number `index`, from 0. Batches may be asked for in any order.
    pub fn batch(&self, index: u64) -> ImageBatch {
        let flips = if self.flip { self.flips(index) } else { Vec::new() };
        ImageBatch::new(&self.set, self.numbers(index), &flips)
    }

    /// The numbers of the images of batch number `index`.
    pub fn numbers(&self, index: u64) -> Vec<u32> {
        // In 128 bits nothing overflows; no run reaches an epoch number beyond 64.
        let first = u128::from(index) * self.batch_size as u128;
        let images = u128::from(self.set.len());
        let mut numbers = Vec::with_capacity(self.batch_size);
        let mut epoch = (first / images) as u64;
        let mut place = (first % images) as usize;
        while numbers.len() < self.batch_size {
            let order = self.order_of(epoch);
            let wanted = self.batch_size - numbers.len();
            numbers.extend(order[place..].iter().take(wanted));
            (epoch, place) = (epoch.wrapping_add(1), 0);
        }
        numbers
    }

    /// Which images of batch number `index` are mirrored.
    fn flips(&self, index: u64) -> Vec<bool> {
        let first = u128::from(index) * self.batch_size as u128;
        let mut known = None;
        (0..self.batch_size)
            .map(|place| {
                let position = first + place as u128;
                let block = (position / 64) as u64;
                let bits = match known {
                    Some((known_block, bits)) if known_block == block => bits,
                    _ => flip_bits(self.seed, block),
                };
                known = Some((block, bits));
                bits >> (position % 64) & 1 == 1
            })
            .collect()
    }

    fn order_of(&self, epoch: u64) -> Arc<Vec<u32>> {
        // A thread that panicked here left at worst fewer orders: they are only ever pushed whole.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, order)) = recent.iter().find(|(known, _)| *known == epoch) {
            return Arc::clone(order);
        }
        let order = Arc::new(self.order.permutation(epoch));
        if recent.len() == 2 {
            recent.remove(0);
        }
        recent.push((epoch, Arc::clone(&order)));
        order
    }
}

fn flip_bits(seed: u64, block: u64) -> u64 {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&block.to_le_bytes());
    key[16..].copy_from_slice(&FLIPS);
    ChaCha8Rng::from_seed(key).next_u64()
}

impl ImageSet {
    /// All images once in their own order, `batch_size` at a time and none mirrored; the last batch is shorter if they
    /// do not divide. More than there are images means all at once.
    ///
    /// # Errors
    /// [`ImageError::EmptyBatch`] if `batch_size` is 0 or the set is empty, [`ImageError::BatchTooLarge`] if a batch
    /// has more than 2^28 values.
    pub fn in_order(&self, batch_size: usize) -> Result<impl ExactSizeIterator<Item = ImageBatch> + '_, ImageError> {
        let size = batch_size.min(self.len() as usize);
        check(size, self)?;
        let batches = (self.len() as usize).div_ceil(size);
        Ok((0..batches).map(move |batch| {
            // Both ends are at most the number of images, which is a u32.
            let (start, end) = (batch * size, ((batch + 1) * size).min(self.len() as usize));
            ImageBatch::new(self, (start as u32..end as u32).collect(), &[])
        }))
    }
}

#[cfg(test)]
mod tests;
