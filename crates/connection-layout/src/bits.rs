//! A fixed-length bit set: one machine word for shallow layouts, a boxed slice for deep ones.

use std::cmp::Ordering;

/// Bits `0..len`, ordered as the binary number they spell (bit 0 is the least significant).
///
/// The length belongs to the owner: two sets are only compared when they were made with the same
/// length.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Bits {
    /// Up to 64 bits; copying it costs nothing, which is what enumerations live on.
    Word(u64),
    /// More than 64 bits, least significant word first.
    Words(Box<[u64]>),
}

impl Bits {
    pub(crate) const WORD: usize = u64::BITS as usize;

    pub(crate) fn zeros(len: usize) -> Self {
        if len <= Self::WORD {
            Self::Word(0)
        } else {
            Self::Words(vec![0; len.div_ceil(Self::WORD)].into_boxed_slice())
        }
    }

    pub(crate) fn get(&self, bit: usize) -> bool {
        self.words()[bit / Self::WORD] >> (bit % Self::WORD) & 1 == 1
    }

    pub(crate) fn set(&mut self, bit: usize, value: bool) {
        let word = match self {
            Self::Word(word) => {
                // A larger position would wrap round to another bit of the only word.
                debug_assert!(bit < Self::WORD);
                word
            }
            Self::Words(words) => &mut words[bit / Self::WORD],
        };
        let mask = 1 << (bit % Self::WORD);
        if value {
            *word |= mask;
        } else {
            *word &= !mask;
        }
    }

    pub(crate) fn count_ones(&self) -> usize {
        self.words().iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.words().iter().all(|&word| word == 0)
    }

    fn words(&self) -> &[u64] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::Words(words) => words,
        }
    }
}

impl Ord for Bits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.words().iter().rev().cmp(other.words().iter().rev())
    }
}

impl PartialOrd for Bits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_independent_in_both_representations() {
        for len in [1, 63, 64, 65, 200] {
            for bit in 0..len {
                let mut bits = Bits::zeros(len);
                assert!(bits.is_zero());
                bits.set(bit, true);
                assert_eq!((0..len).filter(|&b| bits.get(b)).collect::<Vec<_>>(), [bit]);
                assert_eq!(bits.count_ones(), 1);
                bits.set(bit, false);
                assert!(bits.is_zero());
            }
        }
    }

    #[test]
    fn order_is_that_of_the_binary_number() {
        for len in [40, 200] {
            let with = |set: &[usize]| {
                let mut bits = Bits::zeros(len);
                set.iter().for_each(|&bit| bits.set(bit, true));
                bits
            };
            assert!(with(&[0, 1, 2]) < with(&[3]));
            assert!(with(&[len - 1]) > with(&[0, len - 2]));
        }
    }
}
