//! The stream of random numbers of one environment.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Separates these streams from every other use of the same seed.
const DOMAIN: [u8; 16] = *b"goal tasks v1   ";

/// Random numbers of one environment: a function of the seed and the number of the environment, so that they depend
/// neither on other environments nor on threads.
///
/// The generator is ChaCha8 with the 32-byte key seed (8 bytes, little endian), environment (8 bytes, little endian),
/// `"goal tasks v1   "` (16 bytes).
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of an environment.
    pub fn new(seed: u64, environment: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&environment.to_le_bytes());
        key[16..].copy_from_slice(&DOMAIN);
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number from `low` to `high`, uniformly.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        self.0.sample(StandardNormal)
    }

    /// One of the items, each equally likely.
    ///
    /// # Panics
    /// Where there is none.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.0.random_range(0..items.len())]
    }

    /// How far the stream has been read, in words of 32 bits.
    pub(crate) fn position(&self) -> u128 {
        self.0.get_word_pos()
    }

    /// Goes on from a [`position`](Self::position) of the same stream.
    pub(crate) fn seek(&mut self, position: u128) {
        self.0.set_word_pos(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_can_be_continued() {
        let mut random = Random::new(3, 5);
        let first = random.normal();
        assert_ne!(first, Random::new(3, 6).normal());
        assert_ne!(first, Random::new(4, 5).normal());
        for _ in 0..7 {
            random.choose(&[1, 2, 3]);
        }
        let mut same = Random::new(3, 5);
        same.seek(random.position());
        for _ in 0..100 {
            assert_eq!(random.normal(), same.normal());
        }
    }

    #[test]
    fn the_derivation_does_not_change() {
        // Snapshots of the past depend on it.
        assert_eq!(Random::new(3, 5).0.random::<u64>(), 2_110_279_167_788_725_484);
    }
}
