//! Going through all layouts of a depth.
//!
//! Layouts are numbered by their bits: shortcut 0:1 counts 1, 0:2 counts 2, 1:2 counts 4, 0:3
//! counts 8, and so on by target and then by source. The numbers of the hidden-only layouts
//! therefore come first, and every layout keeps its number when layers are appended to the stack.

use std::iter::FusedIterator;
use std::ops::Range;

use crate::bits::Bits;
use crate::layout::{Layout, LayoutError};
use crate::shortcut::capacity;

/// The deepest stack whose layouts are numbered: 2^55 of them fit into a word, those of depth 11 do
/// not.
pub const MAX_ENUMERATED_DEPTH: usize = 10;

/// The layouts of a depth with consecutive numbers, in ascending order; [`Layout::all`] makes one.
///
/// Skipping ([`Iterator::nth`], [`Iterator::step_by`]) takes constant time, so that a sample or one
/// worker's share costs no more than the layouts in it.
#[derive(Clone, Debug)]
pub struct Layouts {
    depth: u16,
    numbers: Range<u64>,
}

impl Layout {
    /// All `2^(K(K+1)/2)` layouts of depth K: 2, 8, 64, 1024, 32768, 2097152 for K = 1 to 6.
    ///
    /// ```
    /// use connection_layout::Layout;
    ///
    /// let all: Vec<String> = Layout::all(2)?.map(|layout| layout.to_string()).collect();
    /// assert_eq!(all.join(", "), "none, 0:1, 0:2, 0:1+0:2, 1:2, 0:1+1:2, 0:2+1:2, 0:1+0:2+1:2");
    /// # Ok::<(), connection_layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::DepthOutOfRange`], or [`LayoutError::TooDeepToEnumerate`] above
    /// [`MAX_ENUMERATED_DEPTH`].
    pub fn all(depth: usize) -> Result<Layouts, LayoutError> {
        let depth = enumerable(depth)?;
        Ok(Layouts { depth, numbers: 0..1 << capacity(depth.into()) })
    }

    /// All `2^(K(K-1)/2)` layouts of depth K without a shortcut into the output: 1, 2, 8, 64, 1024,
    /// 32768 for K = 1 to 6. They are the first ones of [`Layout::all`].
    ///
    /// # Errors
    ///
    /// As [`Layout::all`].
    pub fn all_hidden_only(depth: usize) -> Result<Layouts, LayoutError> {
        let depth = enumerable(depth)?;
        Ok(Layouts { depth, numbers: 0..1 << capacity(usize::from(depth) - 1) })
    }

    /// The layout with a given number in the enumeration.
    ///
    /// # Errors
    ///
    /// As [`Layout::all`], and [`LayoutError::IndexOutOfRange`] for a number that the depth does
    /// not have.
    pub fn from_index(depth: usize, index: u64) -> Result<Self, LayoutError> {
        let numbers = Self::all(depth)?.numbers;
        if numbers.contains(&index) {
            Ok(Self::from_word(enumerable(depth)?, index))
        } else {
            Err(LayoutError::IndexOutOfRange { index, depth, last: numbers.end - 1 })
        }
    }

    /// The number of this layout in the enumeration; `None` above [`MAX_ENUMERATED_DEPTH`].
    pub fn index(&self) -> Option<u64> {
        self.word()
    }
}

/// How many layouts a stack of `depth` layers has, `2^(K(K+1)/2)`; `None` when 128 bits do not hold
/// it (from 16).
pub fn layout_count(depth: usize) -> Option<u128> {
    power_of_two(depth.checked_mul(depth.checked_add(1)?)? / 2)
}

/// How many of them have no shortcut into the output, `2^(K(K-1)/2)`; `None` when 128 bits do not
/// hold it (from 17).
pub fn hidden_only_count(depth: usize) -> Option<u128> {
    depth.checked_sub(1).map_or(Some(1), layout_count)
}

fn power_of_two(exponent: usize) -> Option<u128> {
    u32::try_from(exponent).ok().and_then(|exponent| 1u128.checked_shl(exponent))
}

/// The depth in its short form, if its layouts are numbered.
fn enumerable(depth: usize) -> Result<u16, LayoutError> {
    const { assert!(capacity_fits(MAX_ENUMERATED_DEPTH) && !capacity_fits(MAX_ENUMERATED_DEPTH + 1)) };
    Layout::none(depth)?;
    match u16::try_from(depth) {
        Ok(short) if depth <= MAX_ENUMERATED_DEPTH => Ok(short),
        _ => Err(LayoutError::TooDeepToEnumerate { depth, limit: MAX_ENUMERATED_DEPTH }),
    }
}

const fn capacity_fits(depth: usize) -> bool {
    depth * (depth + 1) / 2 <= Bits::WORD
}

impl Layouts {
    /// How many layouts are still to come.
    pub fn remaining(&self) -> u64 {
        self.numbers.end - self.numbers.start
    }
}

impl Iterator for Layouts {
    type Item = Layout;

    fn next(&mut self) -> Option<Layout> {
        self.numbers.next().map(|number| Layout::from_word(self.depth, number))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Layout> {
        self.numbers.nth(n).map(|number| Layout::from_word(self.depth, number))
    }
}

impl DoubleEndedIterator for Layouts {
    fn next_back(&mut self) -> Option<Layout> {
        self.numbers.next_back().map(|number| Layout::from_word(self.depth, number))
    }
}

impl FusedIterator for Layouts {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_layout_comes_once_in_ascending_order() {
        for depth in 1..=4 {
            let all: Vec<Layout> = Layout::all(depth).unwrap().collect();
            assert_eq!(all.len() as u128, layout_count(depth).unwrap());
            assert!(all.is_sorted());
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            for (index, layout) in all.iter().enumerate() {
                assert_eq!(layout.index(), Some(index as u64));
                assert_eq!(&Layout::from_index(depth, index as u64).unwrap(), layout);
                assert_eq!(&Layout::new(depth, layout.iter().map(|s| (s.source(), s.target()))).unwrap(), layout);
            }
        }
    }

    #[test]
    fn hidden_only_layouts_come_first() {
        for depth in 1..=4 {
            let filtered: Vec<Layout> = Layout::all(depth).unwrap().filter(Layout::is_hidden_only).collect();
            assert_eq!(Layout::all_hidden_only(depth).unwrap().collect::<Vec<_>>(), filtered);
            assert_eq!(filtered.len() as u128, hidden_only_count(depth).unwrap());
        }
    }

    #[test]
    fn counts_are_powers_of_two_until_they_overflow() {
        let counts: Vec<_> = (0..=6).map(|depth| layout_count(depth).unwrap()).collect();
        assert_eq!(counts, [1, 2, 8, 64, 1024, 32_768, 2_097_152]);
        let hidden: Vec<_> = (0..=6).map(|depth| hidden_only_count(depth).unwrap()).collect();
        assert_eq!(hidden, [1, 1, 2, 8, 64, 1024, 32_768]);
        assert_eq!(layout_count(15), Some(1 << 120));
        assert_eq!((layout_count(16), layout_count(usize::MAX), layout_count(1 << 40)), (None, None, None));
        assert_eq!(hidden_only_count(16), Some(1 << 120));
    }

    #[test]
    fn skipping_and_reversing_agree_with_walking() {
        let all: Vec<Layout> = Layout::all(3).unwrap().collect();
        let stepped: Vec<Layout> = Layout::all(3).unwrap().step_by(7).collect();
        assert_eq!(stepped, all.iter().step_by(7).cloned().collect::<Vec<_>>());
        assert!(Layout::all(3).unwrap().rev().eq(all.into_iter().rev()));
        let mut deep = Layout::all(MAX_ENUMERATED_DEPTH).unwrap();
        assert_eq!(deep.remaining(), 1 << 55);
        assert_eq!(deep.nth(1 << 54).unwrap().to_string(), "9:10");
    }

    #[test]
    fn depths_and_numbers_out_of_range_are_refused() {
        assert_eq!(Layout::all(0).unwrap_err(), LayoutError::DepthOutOfRange { depth: 0 });
        assert_eq!(Layout::all(11).unwrap_err(), LayoutError::TooDeepToEnumerate { depth: 11, limit: 10 });
        assert_eq!(Layout::all_hidden_only(300).unwrap_err(), LayoutError::DepthOutOfRange { depth: 300 });
        assert_eq!(
            Layout::from_index(2, 8).unwrap_err().to_string(),
            "there is no layout number 8 at depth 2: the numbers are 0 to 7"
        );
        assert_eq!(Layout::none(11).unwrap().index(), None);
    }
}
