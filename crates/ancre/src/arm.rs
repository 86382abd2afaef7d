//! The arms of a comparison: which connections follow the blocks.

use std::{fmt, str::FromStr};

use connection_layout::NamedLayout;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{InitialWeight, rivals::RivalKind};

/// How the coefficients of a normalised arm follow from its parameters `theta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameterization {
    /// `softmax(theta / tau)` from `theta = 0`.
    Softmax,
    /// The same softmax from `theta = 1`: what the authors' code runs under the name "hadamard". It starts at the same
    /// coefficients, with logits near `1 / tau` that cost some digits in `f32`.
    Hadamard,
    /// Frozen at `theta = 0`: uniform for ever, whatever `tau`.
    Constant,
}

/// How the softmax of a [replacing](Arm::Replacing) arm begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Learned, from uniform shares.
    Uniform,
    /// Learned, from nine tenths on the newest state: nearly the cascade.
    Newest,
    /// Frozen at uniform shares.
    Constant,
}

/// Which connections follow the blocks of a network.
///
/// As text (and in configuration files) an arm is one word, see [`Arm::NAMES`], or a fixed layout in the notation
/// `0:2+2:3` or by name, `layout:dense`; a weight may stand before it, `2*0:l`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arm {
    /// `h_l = B_l(h_{l-1})`: the ordinary network, and the baseline of every comparison.
    Cascade,
    /// `h_l = B_l(h_{l-1}) + sum h_i` over the shortcuts `i:l` of a fixed layout, in the notation or under the names of
    /// the `connection-layout` crate, all of one frozen weight (1 unless one is given); parsed when the depth is known.
    Fixed(String),
    /// Coefficients normalised over the sources of each target. With [`Parameterization::Softmax`] this is ANCRe.
    Incoming(Parameterization),
    /// Coefficients normalised over the targets of each source: the authors' outgoing variant.
    Outgoing(Parameterization),
    /// `h_l = B_l(h_{l-1}) + s_l h_{l-1}` from the second block on, one free scalar a block from 1: the authors' naive
    /// learnable residuals.
    NaiveScalars,
    /// `h_l = B_l(h_{l-1}) + sum_i s_{l,i} h_i` with free scalars from `1/l`: ANCRe without its normalisation.
    Scalars,
    /// `h_l = F_l(h_{l-1}) + sum_i p_{l,i} h_i` with `F_l(h) = B_l(h) - h`: the softmax of ANCRe stands in the place of the
    /// block's own shortcut instead of beside it. Shares sum to one, so that blocks that begin as the identity leave the
    /// size of the stream as it is, where ANCRe multiplies it.
    Replacing(Replacement),
    /// The same free scalars as `scalars`, from 0: the network begins as the cascade, whatever its depth, and learns which states to add
    /// or to take away.
    ZeroScalars,
    /// `y = B_l(h_{l-1})`, `h_l = y + (1 + tanh(q_l . rms_norm(y))) w_l * h_0`: the first state after every block, feature by feature and
    /// through a gate that each row opens. Weights begin at the number given, queries at 0: the network begins as the layout `WEIGHT*0:l`.
    /// Needs the [width](crate::Branches::width) of the stream.
    GatedFirstState(InitialWeight),
    /// The connections of another paper, around the residual branches inside the blocks; see [`rivals`](crate::rivals).
    Rival(RivalKind),
}

/// ANCRe: softmax over the sources of each target.
impl Default for Arm {
    fn default() -> Self {
        Self::Incoming(Parameterization::Softmax)
    }
}

use Parameterization::{Constant, Hadamard, Softmax};

/// Every arm that is one word, with its name.
const NAMED: [(&str, Arm); 14] = [
    ("cascade", Arm::Cascade),
    ("ancre", Arm::Incoming(Softmax)),
    ("hadamard", Arm::Incoming(Hadamard)),
    ("constant", Arm::Incoming(Constant)),
    ("outgoing", Arm::Outgoing(Softmax)),
    ("outgoing-hadamard", Arm::Outgoing(Hadamard)),
    ("outgoing-constant", Arm::Outgoing(Constant)),
    ("replacing", Arm::Replacing(Replacement::Uniform)),
    ("replacing-newest", Arm::Replacing(Replacement::Newest)),
    ("replacing-constant", Arm::Replacing(Replacement::Constant)),
    ("naive", Arm::NaiveScalars),
    ("scalars", Arm::Scalars),
    ("zero-scalars", Arm::ZeroScalars),
    (GATED, Arm::GatedFirstState(InitialWeight::ONE)),
];

/// The gated first state; a weight may follow, `gated-first-state:2`.
const GATED: &str = "gated-first-state";

/// Before the name of a fixed layout, where the bare name would be that of an arm.
const LAYOUT_PREFIX: &str = "layout:";

impl Arm {
    /// The arms that are one word. Any fixed layout is an arm too, and the last of these may have a weight, `gated-first-state:2`.
    pub const NAMES: [&'static str; NAMED.len()] = {
        let mut names = [""; NAMED.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = NAMED[i].0;
            i += 1;
        }
        names
    };

    /// Whether the arm has parameters that training changes.
    pub fn is_learned(&self) -> bool {
        match self {
            Self::Cascade | Self::Fixed(_) => false,
            Self::Incoming(p) | Self::Outgoing(p) => *p != Constant,
            Self::Replacing(r) => *r != Replacement::Constant,
            Self::NaiveScalars | Self::Scalars | Self::ZeroScalars | Self::GatedFirstState(_) => true,
            Self::Rival(kind) => kind.is_learned(),
        }
    }

    /// Whether it acts on the features of the stream, which are the last dimension then: needs to know their number.
    pub fn acts_on_features(&self) -> bool {
        matches!(self, Self::GatedFirstState(_) | Self::Rival(_))
    }

    /// Whether `tau` has an effect on the arm.
    pub fn uses_tau(&self) -> bool {
        match self {
            Self::Incoming(p) | Self::Outgoing(p) => *p != Constant,
            Self::Replacing(r) => *r != Replacement::Constant,
            Self::Rival(kind) => kind.uses_tau(),
            _ => false,
        }
    }
}

/// A text that names no arm.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not an arm: give one of {}[:WEIGHT] (a finite number), or a fixed layout such as `0:2+2:3`, `0:l` or `layout:dense`, or a rival: {}",
    Arm::NAMES.join(", "),
    RivalKind::NOTATION
)]
pub struct ParseArmError {
    text: String,
}

impl FromStr for Arm {
    type Err = ParseArmError;

    fn from_str(text: &str) -> Result<Self, ParseArmError> {
        let word = text.trim();
        if let Some((_, arm)) = NAMED.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            return Ok(arm);
        }
        if let Some(layout) = word.strip_prefix(LAYOUT_PREFIX) {
            return Ok(Self::Fixed(layout.trim().to_owned()));
        }
        if let Some(weight) = word.strip_prefix(GATED).and_then(|rest| rest.strip_prefix(':')) {
            let weight = weight.parse().ok().and_then(InitialWeight::new);
            return weight.map(Self::GatedFirstState).ok_or_else(|| ParseArmError { text: text.to_owned() });
        }
        if let Ok(kind) = word.parse() {
            return Ok(Self::Rival(kind));
        }
        if RivalKind::is_name(word) {
            return Err(ParseArmError { text: text.to_owned() });
        }
        // Whether the rest is right shows at the depth of the network; here it only has to look like a layout.
        let layout = word.split_once('*').map_or(word, |(_, layout)| layout);
        if layout.contains(':') || NamedLayout::from_name(layout).is_some() {
            return Ok(Self::Fixed(word.to_owned()));
        }
        Err(ParseArmError { text: text.to_owned() })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(layout) => {
                // `0:2`, `0:l` and `dense` are plain; a layout that shares an arm's name needs the prefix.
                let plain = matches!(layout.parse(), Ok(Self::Fixed(text)) if text == *layout);
                write!(f, "{}{layout}", if plain { "" } else { LAYOUT_PREFIX })
            }
            Self::Rival(kind) => kind.fmt(f),
            Self::GatedFirstState(weight) if *weight != InitialWeight::ONE => write!(f, "{GATED}:{}", weight.get()),
            _ => match NAMED.iter().find(|(_, arm)| arm == self) {
                Some((name, _)) => f.pad(name),
                None => unreachable!("every arm but a fixed layout and a rival has a name"),
            },
        }
    }
}

impl From<Arm> for String {
    fn from(arm: Arm) -> Self {
        arm.to_string()
    }
}

impl TryFrom<String> for Arm {
    type Error = ParseArmError;

    fn try_from(text: String) -> Result<Self, ParseArmError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in Arm::NAMES.into_iter().chain([
            "0:l",
            "0:2+2:3",
            "-0.5*0:l",
            "2*dense",
            "layout:cascade",
            "dense",
            "layout:nonsense",
            "rezero",
            "dense-former:2:1",
            "layer-scale:0.0001",
            "gated-first-state:2.5",
            "gated-first-state:-1",
        ]) {
            let arm: Arm = text.parse().unwrap();
            assert_eq!(arm.to_string(), text);
            assert_eq!(arm.to_string().parse(), Ok(arm));
        }
    }

    #[test]
    fn the_cascade_arm_is_not_the_cascade_layout() {
        assert_eq!("cascade".parse(), Ok(Arm::Cascade));
        assert_eq!("layout:cascade".parse(), Ok(Arm::Fixed("cascade".to_owned())));
    }

    #[test]
    fn an_unknown_arm_is_answered_with_the_list() {
        let message = "ancer".parse::<Arm>().unwrap_err().to_string();
        assert!(message.contains("`ancer`") && message.contains("ancre, hadamard") && message.contains("0:2+2:3"));
        assert!(message.contains("dense-former[:DILATION:PERIOD]"));
        for text in ["gated-first-state:", "gated-first-state:nan", "gated-first-state:1e39", "gated-first-state:l"] {
            assert!(text.parse::<Arm>().is_err(), "{text}");
        }
        // No layout, though it has a colon.
        assert!("rezero:2".parse::<Arm>().is_err() && "hyper-connections:0".parse::<Arm>().is_err());
    }

    #[test]
    fn the_authors_capitalised_names_are_read() {
        assert_eq!("Hadamard".parse(), Ok(Arm::Incoming(Hadamard)));
    }
}
