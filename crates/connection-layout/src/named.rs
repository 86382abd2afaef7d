//! The layouts that have a name, because papers and tables speak of them.

use std::fmt;

use crate::layout::{Layout, LayoutError};

/// A family of layouts with one member per depth.
///
/// ```
/// use connection_layout::NamedLayout;
///
/// assert_eq!(NamedLayout::Cascade.at_depth(3)?.to_string(), "0:1+1:2+2:3");
/// assert_eq!(NamedLayout::InputToLastHidden.at_depth(4)?.to_string(), "0:3");
/// assert_eq!(NamedLayout::from_name("hidden-cascade"), Some(NamedLayout::HiddenCascade));
/// # Ok::<(), connection_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NamedLayout {
    /// `none`: no shortcut, a plain chain.
    None,
    /// `cascade`: `(l-1):l` for every layer l, the usual residual connection, the output included.
    Cascade,
    /// `hidden-cascade`: the cascade without its last shortcut, so that none ends in the output.
    HiddenCascade,
    /// `dense`: every shortcut there is.
    Dense,
    /// `hidden-dense`: every shortcut that does not end in the output.
    HiddenDense,
    /// `0:K-1`: a single shortcut from the input to the last hidden node. It needs two layers.
    InputToLastHidden,
    /// `0:l`: the input is added to the output of every layer. Also read as `input-to-all`, because
    /// `l` looks like the digit 1.
    InputToAll,
}

impl NamedLayout {
    /// Every named layout, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Cascade,
        Self::HiddenCascade,
        Self::Dense,
        Self::HiddenDense,
        Self::InputToLastHidden,
        Self::InputToAll,
    ];

    /// The name, as [`Layout::parse`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cascade => "cascade",
            Self::HiddenCascade => "hidden-cascade",
            Self::Dense => "dense",
            Self::HiddenDense => "hidden-dense",
            Self::InputToLastHidden => "0:K-1",
            Self::InputToAll => "0:l",
        }
    }

    /// The layout with this name, upper and lower case being the same; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("input-to-all") {
            return Some(Self::InputToAll);
        }
        Self::ALL.into_iter().find(|named| named.name().eq_ignore_ascii_case(name))
    }

    /// The member of the family for a stack of `depth` layers.
    ///
    /// # Errors
    ///
    /// [`LayoutError::DepthOutOfRange`] for an illegal depth, and [`LayoutError::TooShallow`] for
    /// `0:K-1` at depth 1, where the last hidden node is the input itself.
    pub fn at_depth(self, depth: usize) -> Result<Layout, LayoutError> {
        match self {
            Self::None => Layout::none(depth),
            Self::Cascade => Layout::from_fn(depth, |source, target| source + 1 == target),
            Self::HiddenCascade => Layout::from_fn(depth, |source, target| source + 1 == target && target < depth),
            Self::Dense => Layout::from_fn(depth, |_, _| true),
            Self::HiddenDense => Layout::from_fn(depth, |_, target| target < depth),
            Self::InputToLastHidden if depth == 1 => {
                Err(LayoutError::TooShallow { name: self.name(), needed: 2, depth })
            }
            Self::InputToLastHidden => Layout::from_fn(depth, |source, target| source == 0 && target + 1 == depth),
            Self::InputToAll => Layout::from_fn(depth, |source, _| source == 0),
        }
    }
}

impl fmt::Display for NamedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_named_layouts_by_depth() {
        let mut table = String::new();
        for depth in [1, 2, 4] {
            for named in NamedLayout::ALL {
                let layout = named.at_depth(depth).map_or_else(|error| error.to_string(), |l| l.to_string());
                table += &format!("{depth} {named:<14} {layout}\n");
            }
        }
        expect![[r#"
            1 none           none
            1 cascade        0:1
            1 hidden-cascade none
            1 dense          0:1
            1 hidden-dense   none
            1 0:K-1          the layout `0:K-1` needs at least 2 layers, and the depth is 1
            1 0:l            0:1
            2 none           none
            2 cascade        0:1+1:2
            2 hidden-cascade 0:1
            2 dense          0:1+0:2+1:2
            2 hidden-dense   0:1
            2 0:K-1          0:1
            2 0:l            0:1+0:2
            4 none           none
            4 cascade        0:1+1:2+2:3+3:4
            4 hidden-cascade 0:1+1:2+2:3
            4 dense          0:1+0:2+1:2+0:3+1:3+2:3+0:4+1:4+2:4+3:4
            4 hidden-dense   0:1+0:2+1:2+0:3+1:3+2:3
            4 0:K-1          0:3
            4 0:l            0:1+0:2+0:3+0:4
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn names_are_read_back_whatever_their_case() {
        for named in NamedLayout::ALL {
            assert_eq!(NamedLayout::from_name(named.name()), Some(named));
            assert_eq!(NamedLayout::from_name(&named.name().to_uppercase()), Some(named));
        }
        assert_eq!(NamedLayout::from_name("input-to-all"), Some(NamedLayout::InputToAll));
        assert_eq!(NamedLayout::from_name("0:1"), None);
        assert_eq!(NamedLayout::from_name(""), None);
    }

    #[test]
    fn illegal_depths_are_refused_by_every_name() {
        for named in NamedLayout::ALL {
            for depth in [0, crate::MAX_DEPTH + 1] {
                assert_eq!(named.at_depth(depth), Err(LayoutError::DepthOutOfRange { depth }));
            }
        }
    }
}
