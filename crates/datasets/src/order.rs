//! The order in which an epoch visits its items.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// Separates these random streams from every other use of the same seed. Changing it changes every data order.
const DOMAIN: [u8; 16] = *b"epoch order v1  ";

/// A seeded shuffle of `0..items` for every epoch, computed from `(seed, epoch)` alone.
///
/// The generator is ChaCha8 with the 32-byte key `seed` (8 bytes, little endian), `epoch` (8 bytes, little endian),
/// `"epoch order v1  "` (16 bytes); the shuffle is the Fisher-Yates shuffle of the `rand` crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochOrder {
    items: u32,
    seed: u64,
}

impl EpochOrder {
    /// An order over `items` items.
    pub fn new(items: u32, seed: u64) -> Self {
        Self { items, seed }
    }

    /// Number of items.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The permutation of `0..items` that epoch number `epoch` follows. Takes O(items).
    pub fn permutation(&self, epoch: u64) -> Vec<u32> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&epoch.to_le_bytes());
        key[16..].copy_from_slice(&DOMAIN);
        let mut order: Vec<u32> = (0..self.items).collect();
        order.shuffle(&mut ChaCha8Rng::from_seed(key));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A run that is resumed with a later build of this crate must meet the same batches. If an update of `rand`
    /// fails here, keep the old shuffle or say in the release notes that data orders change.
    #[test]
    fn the_order_of_a_seed_never_changes() {
        assert_eq!(EpochOrder::new(10, 7).permutation(0), [3, 8, 0, 6, 1, 9, 7, 2, 5, 4]);
        assert_eq!(EpochOrder::new(10, 7).permutation(1), [4, 5, 1, 2, 7, 9, 8, 3, 0, 6]);
        assert!(EpochOrder::new(0, 7).permutation(0).is_empty());
        assert_eq!(EpochOrder::new(1, 7).permutation(3), [0]);
    }

    /// Every item must be equally likely at every place, for consecutive seeds and epochs too.
    #[test]
    fn places_are_uniform_over_seeds_and_epochs() {
        const ITEMS: usize = 8;
        let mut counts = [[0_u32; ITEMS]; ITEMS];
        for seed in 0..80 {
            for epoch in 0..80 {
                for (place, item) in EpochOrder::new(ITEMS as u32, seed).permutation(epoch).into_iter().enumerate() {
                    counts[place][item as usize] += 1;
                }
            }
        }
        // 6400 draws, expectation 800, standard deviation 26.5: five of them are exceeded once in 1.7 million.
        for (place, row) in counts.iter().enumerate() {
            for (item, &count) in row.iter().enumerate() {
                assert!((667..=933).contains(&count), "item {item} at place {place}: {count}");
            }
        }
    }

    proptest! {
        #[test]
        fn is_a_permutation_that_depends_on_seed_and_epoch_alone(items in 0_u32..300, seed: u64, epoch: u64) {
            let order = EpochOrder::new(items, seed).permutation(epoch);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..items).collect::<Vec<_>>());
            prop_assert_eq!(&order, &EpochOrder::new(items, seed).permutation(epoch));
            // 30 items have 2e32 orders: two streams that agree by chance are not seen.
            if items >= 30 {
                prop_assert_ne!(&order, &EpochOrder::new(items, seed).permutation(epoch.wrapping_add(1)));
                prop_assert_ne!(&order, &EpochOrder::new(items, seed.wrapping_add(1)).permutation(epoch));
            }
        }
    }
}
