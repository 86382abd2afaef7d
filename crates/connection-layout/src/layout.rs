//! A layout: the set of shortcuts of a stack of known depth.

use std::fmt;

use thiserror::Error;

use crate::bits::Bits;
use crate::shortcut::{Shortcut, capacity, row_start};

/// The deepest stack that a [`Layout`] describes, in layers.
pub const MAX_DEPTH: usize = 256;

/// Why a layout could not be built, or a question about it not answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The depth is 0 or larger than [`MAX_DEPTH`].
    #[error("a depth of {depth} is not possible: a stack has between 1 and {MAX_DEPTH} layers")]
    DepthOutOfRange {
        /// The depth that was asked for.
        depth: usize,
    },
    /// A shortcut whose source does not lie before its target.
    #[error("shortcut {source_node}:{target} does not point forward: give a source that is smaller than the target")]
    NotForward {
        /// The node that the shortcut would leave.
        source_node: usize,
        /// The node that the shortcut would enter.
        target: usize,
    },
    /// A shortcut that ends after the last node.
    #[error("shortcut {source_node}:{target} ends beyond the output: at depth {depth} the targets are 1 to {depth}")]
    BeyondOutput {
        /// The node that the shortcut would leave.
        source_node: usize,
        /// The node that the shortcut would enter.
        target: usize,
        /// The number of the output node.
        depth: usize,
    },
    /// The same shortcut was given twice.
    #[error("shortcut {0} is given twice: a layout holds each shortcut at most once")]
    Duplicate(Shortcut),
    /// A named layout that does not exist at this depth.
    #[error("the layout `{name}` needs at least {needed} layers, and the depth is {depth}")]
    TooShallow {
        /// The name of the layout.
        name: &'static str,
        /// The smallest depth at which it exists.
        needed: usize,
        /// The depth that was asked for.
        depth: usize,
    },
    /// The depth has more layouts than an enumeration can number.
    #[error("depth {depth} has too many layouts to go through: enumeration ends at depth {limit}")]
    TooDeepToEnumerate {
        /// The depth that was asked for.
        depth: usize,
        /// The largest depth that can be enumerated.
        limit: usize,
    },
    /// A layout number that the depth does not have.
    #[error("there is no layout number {index} at depth {depth}: the numbers are 0 to {last}")]
    IndexOutOfRange {
        /// The number that was asked for.
        index: u64,
        /// The depth that was asked for.
        depth: usize,
        /// The largest number at that depth.
        last: u64,
    },
    /// An exact count of paths does not fit into 128 bits.
    #[error(
        "the layout has more than 2^128 paths, which an exact count cannot hold: use a shallower or sparser layout"
    )]
    TooManyPaths,
}

/// A set of [`Shortcut`]s over a stack of [`depth`](Layout::depth) layers.
///
/// The layers form a chain of nodes `h_0 → h_1 → ... → h_K`, and the layout says which further
/// connections there are. It compares, hashes and sorts by value: first by depth, then in the order
/// of the enumeration ([`Layout::all`]). Up to depth 10 a layout is a single machine word and
/// copying it does not allocate.
///
/// ```
/// use connection_layout::Layout;
///
/// let layout = Layout::new(4, [(2, 3), (0, 2)])?;
/// assert_eq!(layout.to_string(), "0:2+2:3");
/// assert!(layout.contains(0, 2) && !layout.contains(0, 3));
/// assert_eq!(layout.reversed().to_string(), "1:2+2:4");
/// # Ok::<(), connection_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    depth: u16,
    /// Bit `Shortcut::position` is set when the shortcut is there.
    bits: Bits,
}

impl Layout {
    /// The layout without any shortcut, written `none`: a plain chain of `depth` layers.
    ///
    /// # Errors
    ///
    /// [`LayoutError::DepthOutOfRange`] unless `1 <= depth <= MAX_DEPTH`.
    pub fn none(depth: usize) -> Result<Self, LayoutError> {
        match u16::try_from(depth) {
            Ok(short) if (1..=MAX_DEPTH).contains(&depth) => Ok(Self::blank(short)),
            _ => Err(LayoutError::DepthOutOfRange { depth }),
        }
    }

    /// The layout without any shortcut at a depth that is known to be legal.
    pub(crate) fn blank(depth: u16) -> Self {
        Self { depth, bits: Bits::zeros(capacity(depth.into())) }
    }

    /// The layout with the given `(source, target)` shortcuts, in any order.
    ///
    /// # Errors
    ///
    /// The depth must be legal, each shortcut must point forward and end at node `depth` or before,
    /// and none may be given twice; the [`LayoutError`] names the first offender.
    pub fn new(depth: usize, shortcuts: impl IntoIterator<Item = (usize, usize)>) -> Result<Self, LayoutError> {
        let mut layout = Self::none(depth)?;
        for (source, target) in shortcuts {
            let shortcut = Shortcut::new(source, target)?;
            if !layout.insert(shortcut)? {
                return Err(LayoutError::Duplicate(shortcut));
            }
        }
        Ok(layout)
    }

    /// The layout of every shortcut that `keep` answers with true, asked in the order of shortcuts.
    pub(crate) fn from_fn(depth: usize, keep: impl Fn(usize, usize) -> bool) -> Result<Self, LayoutError> {
        let pairs = (1..=depth).flat_map(|target| (0..target).map(move |source| (source, target)));
        Self::new(depth, pairs.filter(|&(source, target)| keep(source, target)))
    }

    /// The layout whose bits spell `index`; the caller has checked that both are in range.
    pub(crate) fn from_word(depth: u16, index: u64) -> Self {
        debug_assert!(capacity(usize::from(depth)) <= Bits::WORD);
        Self { depth, bits: Bits::Word(index) }
    }

    /// Whether the shortcut at a [position](Shortcut::position) below the capacity is there.
    pub(crate) fn has_position(&self, position: usize) -> bool {
        self.bits.get(position)
    }

    /// Adds the shortcut at a [position](Shortcut::position) below the capacity.
    pub(crate) fn insert_position(&mut self, position: usize) {
        self.bits.set(position, true);
    }

    /// The depth in the type that it is stored in.
    pub(crate) fn short_depth(&self) -> u16 {
        self.depth
    }

    /// The bits as a number, when one word holds them.
    pub(crate) fn word(&self) -> Option<u64> {
        match self.bits {
            Bits::Word(word) => Some(word),
            Bits::Words(_) => None,
        }
    }

    /// The number K of layers, which is also the number of the output node.
    pub fn depth(&self) -> usize {
        usize::from(self.depth)
    }

    /// The number of shortcuts.
    pub fn len(&self) -> usize {
        self.bits.count_ones()
    }

    /// Whether there is no shortcut at all.
    pub fn is_empty(&self) -> bool {
        self.bits.is_zero()
    }

    /// Whether the shortcut `source:target` is there; false for pairs that are no shortcut at this
    /// depth.
    pub fn contains(&self, source: usize, target: usize) -> bool {
        source < target && target <= self.depth() && self.bits.get(row_start(target) + source)
    }

    /// Adds a shortcut and tells whether it was new.
    ///
    /// # Errors
    ///
    /// [`LayoutError::BeyondOutput`] when the shortcut ends after node `depth`.
    pub fn insert(&mut self, shortcut: Shortcut) -> Result<bool, LayoutError> {
        let (source_node, target, depth) = (shortcut.source(), shortcut.target(), self.depth());
        if target > depth {
            return Err(LayoutError::BeyondOutput { source_node, target, depth });
        }
        let new = !self.bits.get(shortcut.position());
        self.bits.set(shortcut.position(), true);
        Ok(new)
    }

    /// Removes a shortcut and tells whether it was there.
    pub fn remove(&mut self, shortcut: Shortcut) -> bool {
        let present = self.contains(shortcut.source(), shortcut.target());
        if present {
            self.bits.set(shortcut.position(), false);
        }
        present
    }

    /// The shortcuts in their order: by target, then by source.
    pub fn iter(&self) -> impl Iterator<Item = Shortcut> + '_ {
        (1..=self.depth()).flat_map(move |target| {
            // `Shortcut::new` cannot refuse: the source is smaller than the target, and the depth
            // is legal.
            self.sources(target).filter_map(move |source| Shortcut::new(source, target).ok())
        })
    }

    /// The sources of the shortcuts into node `target`, ascending; none when there is no such node.
    pub fn sources(&self, target: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..target).filter(move |&source| self.contains(source, target))
    }

    /// The targets of the shortcuts out of node `source`, ascending; none when there is no such
    /// node.
    pub fn targets(&self, source: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (source.saturating_add(1)..=self.depth()).filter(move |&target| self.contains(source, target))
    }

    /// Whether no shortcut ends in the output node K ("hidden-only").
    ///
    /// The two conventions behave differently in training: with shortcuts into the output, the
    /// input reaches the loss without passing the last layer.
    pub fn is_hidden_only(&self) -> bool {
        self.sources(self.depth()).next().is_none()
    }

    /// The layout read from the output to the input: `i:j` becomes `(K-j):(K-i)`.
    ///
    /// For linear layers this is the layout of the transposed network: the map from the input to
    /// the output with weights `W_1, ..., W_K` is the transpose of the reversed layout's map with
    /// weights `W_Kᵀ, ..., W_1ᵀ`. Reversing twice gives the layout back.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let depth = self.depth();
        let mut reversed = Self::blank(self.depth);
        for shortcut in self.iter() {
            let (source, target) = (depth - shortcut.target(), depth - shortcut.source());
            reversed.bits.set(row_start(target) + source, true);
        }
        reversed
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout(depth {}, {self})", self.depth)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::{any_layout, small_layout};

    #[test]
    fn messages_say_what_where_and_what_to_do() {
        let message = |result: Result<Layout, LayoutError>| result.unwrap_err().to_string();
        expect!["a depth of 0 is not possible: a stack has between 1 and 256 layers"]
            .assert_eq(&message(Layout::none(0)));
        expect!["a depth of 65540 is not possible: a stack has between 1 and 256 layers"]
            .assert_eq(&message(Layout::none(65_540)));
        expect!["shortcut 2:2 does not point forward: give a source that is smaller than the target"]
            .assert_eq(&message(Layout::new(4, [(2, 2)])));
        expect!["shortcut 0:5 ends beyond the output: at depth 4 the targets are 1 to 4"]
            .assert_eq(&message(Layout::new(4, [(0, 5)])));
        expect!["shortcut 0:2 is given twice: a layout holds each shortcut at most once"]
            .assert_eq(&message(Layout::new(4, [(0, 2), (1, 2), (0, 2)])));
    }

    #[test]
    fn sources_and_targets_are_those_of_the_node() {
        let layout = Layout::new(5, [(0, 3), (2, 3), (0, 5), (3, 4)]).unwrap();
        assert_eq!(layout.sources(3).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(layout.targets(0).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(layout.sources(0).count() + layout.sources(6).count() + layout.sources(900).count(), 0);
        assert_eq!(layout.targets(5).count() + layout.targets(usize::MAX).count(), 0);
        assert!(!layout.is_hidden_only());
    }

    #[test]
    fn the_deepest_layout_is_legal() {
        let dense = Layout::from_fn(MAX_DEPTH, |_, _| true).unwrap();
        assert_eq!(dense.len(), MAX_DEPTH * (MAX_DEPTH + 1) / 2);
        assert_eq!(dense.reversed(), dense);
        assert!(dense.contains(MAX_DEPTH - 1, MAX_DEPTH));
        assert!(Layout::none(MAX_DEPTH + 1).is_err());
    }

    #[test]
    fn removing_a_shortcut_of_a_deeper_stack_changes_nothing() {
        let mut layout = Layout::new(3, [(0, 2)]).unwrap();
        assert!(!layout.remove(Shortcut::new(0, 7).unwrap()));
        assert!(layout.insert(Shortcut::new(0, 7).unwrap()).is_err());
        assert_eq!(layout.to_string(), "0:2");
        assert!(layout.remove(Shortcut::new(0, 2).unwrap()));
        assert!(layout.is_empty());
    }

    proptest! {
        #[test]
        fn a_layout_is_the_set_of_its_shortcuts(layout in any_layout()) {
            let pairs: Vec<_> = layout.iter().map(|s| (s.source(), s.target())).collect();
            prop_assert_eq!(pairs.len(), layout.len());
            prop_assert_eq!(pairs.is_empty(), layout.is_empty());
            prop_assert!(layout.iter().is_sorted());
            let by_source: HashSet<_> =
                (0..=layout.depth()).flat_map(|i| layout.targets(i).map(move |j| (i, j))).collect();
            prop_assert_eq!(&by_source, &pairs.iter().copied().collect());
            prop_assert_eq!(Layout::new(layout.depth(), pairs.into_iter().rev()).unwrap(), layout);
        }

        #[test]
        fn reversal_is_an_involution_that_keeps_spans(layout in any_layout()) {
            let reversed = layout.reversed();
            prop_assert_eq!(&reversed.reversed(), &layout);
            let spans = |l: &Layout| {
                let mut spans: Vec<_> = l.iter().map(Shortcut::span).collect();
                spans.sort_unstable();
                spans
            };
            prop_assert_eq!(spans(&reversed), spans(&layout));
            prop_assert_eq!(reversed.is_hidden_only(), layout.targets(0).next().is_none());
        }

        #[test]
        fn inserting_and_removing_undo_each_other(layout in small_layout(), source in 0usize..6, span in 1usize..6) {
            let Ok(shortcut) = Shortcut::new(source, source + span) else { unreachable!() };
            prop_assume!(shortcut.target() <= layout.depth());
            let mut changed = layout.clone();
            let had = layout.contains(source, source + span);
            prop_assert_eq!(changed.insert(shortcut), Ok(!had));
            prop_assert!(changed.contains(source, source + span));
            prop_assert!(changed.remove(shortcut));
            if had {
                prop_assert_eq!(changed.insert(shortcut), Ok(true));
            }
            prop_assert_eq!(changed, layout);
        }
    }
}
