//! What one run of a comparison differs in from the others of its seed.

use std::fmt;

use ancre::Arm;

/// An arm, at a depth of its own where depths are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The connections.
    pub arm: Arm,
    /// The depth; none is that of the comparison's settings.
    pub depth: Option<usize>,
}

impl Variant {
    /// The part of a directory's name that tells the variant from others.
    pub(crate) fn directory_name(&self) -> String {
        let mut name = self.arm.to_string().replace(':', "-").replace('*', "x");
        // File names end at 255 bytes; a long layout is told apart by its hash.
        if name.len() > 100 {
            let hash =
                name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
            name.truncate(80);
            name += &format!("-{hash:016x}");
        }
        match self.depth {
            Some(depth) => format!("{name}-depth{depth}"),
            None => name,
        }
    }
}

/// `ancre`, or `ancre, depth 64`.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.depth {
            Some(depth) => write!(f, "{}, depth {depth}", self.arm),
            None => self.arm.fmt(f),
        }
    }
}
