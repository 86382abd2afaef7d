//! Named streams of random numbers, all derived from the one seed of a run.
//!
//! Each use of randomness takes its own stream, so that adding one (a dropout mask, say) does not shift the numbers of
//! the others, and so that the numbers of step `n` can be had without drawing those of the steps before: this is what
//! makes a resumed run the same as an uninterrupted one.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// The generator of the stream `name`, number `index`, of a run with this `seed`.
///
/// The 32 bytes of the ChaCha8 key are, little-endian: the seed, the index, the 64-bit FNV-1a hash of the name, and the
/// name's length. The derivation is fixed: the same three values give the same numbers on every machine and in every
/// later version.
///
/// ```
/// use rand::Rng;
/// let mut order = training::seed::stream(42, "data order", 0);
/// let mut same = training::seed::stream(42, "data order", 0);
/// let mut next_epoch = training::seed::stream(42, "data order", 1);
/// let first = order.next_u64();
/// assert_eq!(first, same.next_u64());
/// assert_ne!(first, next_epoch.next_u64());
/// ```
pub fn stream(seed: u64, name: &str, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&index.to_le_bytes());
    key[16..24].copy_from_slice(&fnv1a(name.as_bytes()).to_le_bytes());
    key[24..].copy_from_slice(&(name.len() as u64).to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// Fowler, Noll and Vo's hash, variant 1a: tiny, and the same everywhere, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::Rng;

    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of the hash's authors.
        assert_eq!(fnv1a(b""), 0xcbf29ce484222325);
        assert_eq!(fnv1a(b"a"), 0xaf63dc4c8601ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x85944171f73967e8);
    }

    #[test]
    fn the_derivation_does_not_change() {
        // Runs of the past depend on these two.
        assert_eq!(stream(0, "", 0).next_u64(), 8_396_793_851_153_314_632);
        assert_eq!(stream(42, "data order", 3).next_u64(), 6_378_876_451_100_277_925);
    }

    #[test]
    fn streams_differ_in_seed_name_and_index() {
        let mut seen = HashSet::new();
        for seed in [0, 1, 2, u64::MAX] {
            for name in ["", "init", "data order", "data_order"] {
                for index in [0, 1, 2, u64::MAX] {
                    assert!(seen.insert(stream(seed, name, index).next_u64()));
                }
            }
        }
    }
}
