//! One shortcut `i:j`, the unit that layouts are made of.

use std::fmt;

use crate::layout::{LayoutError, MAX_DEPTH};

/// A shortcut `source:target`, which adds the state of node `source` to the state of node `target`.
///
/// Node 0 is the input of the stack and node `l` is the output of layer `l`, so that a shortcut
/// always points forward: `source < target`. Shortcuts are ordered by target, then by source, which
/// is the order in which a forward pass meets them.
///
/// ```
/// use connection_layout::Shortcut;
///
/// let shortcut = Shortcut::new(0, 2)?;
/// assert_eq!(shortcut.to_string(), "0:2");
/// assert_eq!(shortcut.span(), 2);
/// assert!(Shortcut::new(2, 2).is_err());
/// # Ok::<(), connection_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shortcut {
    // The target comes first because the derived order compares the fields from top to bottom.
    target: u16,
    source: u16,
}

impl Shortcut {
    /// The shortcut from node `source` to node `target`.
    ///
    /// # Errors
    ///
    /// [`LayoutError::NotForward`] unless `source < target`, and [`LayoutError::BeyondOutput`] when
    /// `target` is larger than [`MAX_DEPTH`].
    pub fn new(source: usize, target: usize) -> Result<Self, LayoutError> {
        if source >= target {
            return Err(LayoutError::NotForward { source_node: source, target });
        }
        match (u16::try_from(source), u16::try_from(target)) {
            (Ok(source), Ok(short)) if target <= MAX_DEPTH => Ok(Self { source, target: short }),
            _ => Err(LayoutError::BeyondOutput { source_node: source, target, depth: MAX_DEPTH }),
        }
    }

    /// The node that the shortcut leaves.
    pub fn source(self) -> usize {
        usize::from(self.source)
    }

    /// The node that the shortcut enters.
    pub fn target(self) -> usize {
        usize::from(self.target)
    }

    /// How many layers the shortcut passes by: `target - source`, at least 1.
    pub fn span(self) -> usize {
        self.target() - self.source()
    }

    /// The position of this shortcut among all shortcuts, in their order: 0:1, 0:2, 1:2, 0:3, 1:3,
    /// 2:3, ...
    ///
    /// It does not depend on the depth, because a deeper stack only appends shortcuts.
    pub(crate) fn position(self) -> usize {
        row_start(self.target()) + self.source()
    }
}

/// The position of the first shortcut into `target`; its `target` possible sources follow one
/// another.
pub(crate) fn row_start(target: usize) -> usize {
    target * (target - 1) / 2
}

/// How many shortcuts a stack of `depth` layers has room for: `depth * (depth + 1) / 2`.
pub(crate) fn capacity(depth: usize) -> usize {
    depth * (depth + 1) / 2
}

impl fmt::Display for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_follow_the_order_without_gaps() {
        let mut all: Vec<Shortcut> =
            (1..=9).flat_map(|target| (0..target).map(move |source| Shortcut::new(source, target).unwrap())).collect();
        all.sort();
        assert_eq!(all.len(), capacity(9));
        assert!(all.iter().map(|s| s.position()).eq(0..capacity(9)));
        let first: Vec<String> = all[..6].iter().map(ToString::to_string).collect();
        assert_eq!(first, ["0:1", "0:2", "1:2", "0:3", "1:3", "2:3"]);
    }

    #[test]
    fn only_forward_shortcuts_between_legal_nodes_exist() {
        assert!(Shortcut::new(MAX_DEPTH - 1, MAX_DEPTH).is_ok());
        assert!(matches!(Shortcut::new(0, MAX_DEPTH + 1), Err(LayoutError::BeyondOutput { .. })));
        assert!(matches!(Shortcut::new(0, 65_536 + 3), Err(LayoutError::BeyondOutput { .. })));
        assert!(matches!(Shortcut::new(usize::MAX - 1, usize::MAX), Err(LayoutError::BeyondOutput { .. })));
        assert!(matches!(Shortcut::new(3, 3), Err(LayoutError::NotForward { .. })));
        assert!(matches!(Shortcut::new(4, 3), Err(LayoutError::NotForward { .. })));
    }
}
