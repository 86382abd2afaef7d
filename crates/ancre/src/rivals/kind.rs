//! The names of rivals.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{HyperNorm, ManifoldForm};
use crate::InitialWeight;

/// Which rival, as text such as `dense-former:2:1`; see the table of the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RivalKind {
    /// The ordinary stream.
    Residual,
    /// A scalar a branch, from 0.
    ReZero,
    /// A scalar a channel.
    LayerScale {
        /// What they begin at.
        initial: InitialWeight,
    },
    /// Scalars on the stream and on its first state.
    FirstStateScalars,
    /// Norms that get smaller with depth.
    LayerNormScaling,
    /// A weighted sum of block outputs.
    DenseFormer {
        /// Every how-many-th output takes part.
        dilation: usize,
        /// Every how-many-th block is followed by a sum.
        period: usize,
    },
    /// Several streams.
    HyperConnections {
        /// How many.
        streams: usize,
        /// Whether weights depend on the token.
        dynamic: bool,
        /// The norm before those functions.
        norm: HyperNorm,
    },
    /// Several streams with a doubly stochastic mix.
    ManifoldHyperConnections {
        /// How many.
        streams: usize,
        /// Whose form.
        form: ManifoldForm,
    },
    /// A softmax over branch outputs.
    AttentionResiduals {
        /// How many blocks branches are summed in, a divisor of their number; `None` for each on its own.
        blocks: Option<usize>,
        /// Whether what the network goes on with is an attention, too, as in the paper, or else a sum.
        final_query: bool,
    },
    /// ANCRe's softmax over branch outputs.
    AncreBranches,
    /// A softmax over cumulative states.
    OpenAttentionResiduals {
        /// In how many blocks layers are remembered, each of `ceil(layers / blocks)` layers of two branches; `None` for every branch on
        /// its own.
        blocks: Option<usize>,
    },
}

/// The largest number of streams and blocks, and the largest dilation and period.
const LARGEST: usize = 64;

/// A text that names no rival.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a rival: give {}; INIT is a number, the others are whole, from 1 to {LARGEST}",
    RivalKind::NOTATION
)]
pub struct ParseRivalError {
    text: String,
}

impl RivalKind {
    /// How rivals are written.
    pub const NOTATION: &'static str = "residual, rezero, layer-scale[:INIT], x0-scalars, layer-norm-scaling, \
         dense-former[:DILATION:PERIOD], hyper-connections[-static|-rms][:STREAMS], \
         manifold-hyper-connections[-package][:STREAMS], attention-residuals[-sum][:BLOCKS], ancre-branches or open-attention-residuals[:BLOCKS]";

    /// Each of them once, with small numbers where it takes some: for tests and tables of all arms. They fit blocks of two branches, in
    /// even numbers.
    pub const EACH: [&'static str; 16] = [
        "residual",
        "rezero",
        "layer-scale:0.1",
        "x0-scalars",
        "layer-norm-scaling",
        "dense-former:2:1",
        "hyper-connections:2",
        "hyper-connections-rms:2",
        "hyper-connections-static:2",
        "manifold-hyper-connections:2",
        "manifold-hyper-connections-package:2",
        "attention-residuals",
        "attention-residuals-sum:2",
        "ancre-branches",
        "open-attention-residuals",
        "open-attention-residuals:2",
    ];

    /// Whether a text is the name of a rival, whatever stands after the name.
    pub(crate) fn is_name(text: &str) -> bool {
        text.split(':').next().is_some_and(|name| parse(name).is_some())
    }

    /// Whether its numbers are those that a text can have.
    pub(super) fn is_valid(&self) -> bool {
        parse(&self.to_string()).is_some()
    }

    /// Whether the temperature of the softmax has an effect on it.
    pub fn uses_tau(&self) -> bool {
        matches!(self, Self::AncreBranches)
    }

    /// Whether it has parameters.
    pub fn is_learned(&self) -> bool {
        !matches!(self, Self::Residual | Self::LayerNormScaling)
    }
}

impl FromStr for RivalKind {
    type Err = ParseRivalError;

    fn from_str(text: &str) -> Result<Self, ParseRivalError> {
        parse(text.trim()).ok_or_else(|| ParseRivalError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<RivalKind> {
    let mut parts = text.split(':');
    let name = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    let count = |text: &&str| text.parse::<usize>().ok().filter(|count| (1..=LARGEST).contains(count));
    // One count, or what there is without it.
    let one = |default: usize| match rest.as_slice() {
        [] => Some(default),
        [only] => count(only),
        _ => None,
    };
    let maybe = || match rest.as_slice() {
        [] => Some(None),
        [only] => count(only).map(Some),
        _ => None,
    };
    let hyper = |dynamic, norm| one(4).map(|streams| RivalKind::HyperConnections { streams, dynamic, norm });
    let manifold = |form| one(4).map(|streams| RivalKind::ManifoldHyperConnections { streams, form });
    let attention = |final_query| maybe().map(|blocks| RivalKind::AttentionResiduals { blocks, final_query });
    let plain = |kind| rest.is_empty().then_some(kind);
    match name {
        "residual" => plain(RivalKind::Residual),
        "rezero" => plain(RivalKind::ReZero),
        "x0-scalars" => plain(RivalKind::FirstStateScalars),
        "layer-norm-scaling" => plain(RivalKind::LayerNormScaling),
        "layer-scale" => {
            let initial = match rest.as_slice() {
                [] => InitialWeight::new(0.1),
                [only] => only.parse().ok().and_then(InitialWeight::new),
                _ => None,
            };
            initial.map(|initial| RivalKind::LayerScale { initial })
        }
        "dense-former" => match rest.as_slice() {
            [] => Some(RivalKind::DenseFormer { dilation: 1, period: 1 }),
            [dilation, period] => Some(RivalKind::DenseFormer { dilation: count(dilation)?, period: count(period)? }),
            _ => None,
        },
        "hyper-connections" => hyper(true, HyperNorm::Layer),
        "hyper-connections-rms" => hyper(true, HyperNorm::Rms),
        "hyper-connections-static" => hyper(false, HyperNorm::Layer),
        "manifold-hyper-connections" => manifold(ManifoldForm::Paper),
        "manifold-hyper-connections-package" => manifold(ManifoldForm::Package),
        // The second is its name of the time when the first was the sum.
        "attention-residuals" | "attention-residuals-query" => attention(true),
        "attention-residuals-sum" => attention(false),
        "ancre-branches" => plain(RivalKind::AncreBranches),
        "open-attention-residuals" => maybe().map(|blocks| RivalKind::OpenAttentionResiduals { blocks }),
        _ => None,
    }
}

impl fmt::Display for RivalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = |blocks: &Option<usize>| blocks.map_or_else(String::new, |blocks| format!(":{blocks}"));
        f.pad(&match self {
            Self::Residual => "residual".to_owned(),
            Self::ReZero => "rezero".to_owned(),
            Self::LayerScale { initial } => format!("layer-scale:{}", initial.get()),
            Self::FirstStateScalars => "x0-scalars".to_owned(),
            Self::LayerNormScaling => "layer-norm-scaling".to_owned(),
            Self::DenseFormer { dilation, period } => format!("dense-former:{dilation}:{period}"),
            Self::HyperConnections { streams, dynamic: false, .. } => format!("hyper-connections-static:{streams}"),
            Self::HyperConnections { streams, norm: HyperNorm::Layer, .. } => format!("hyper-connections:{streams}"),
            Self::HyperConnections { streams, norm: HyperNorm::Rms, .. } => format!("hyper-connections-rms:{streams}"),
            Self::ManifoldHyperConnections { streams, form: ManifoldForm::Paper } => {
                format!("manifold-hyper-connections:{streams}")
            }
            Self::ManifoldHyperConnections { streams, form: ManifoldForm::Package } => {
                format!("manifold-hyper-connections-package:{streams}")
            }
            Self::AttentionResiduals { blocks: b, final_query: true } => format!("attention-residuals{}", blocks(b)),
            Self::AttentionResiduals { blocks: b, final_query: false } => {
                format!("attention-residuals-sum{}", blocks(b))
            }
            Self::AncreBranches => "ancre-branches".to_owned(),
            Self::OpenAttentionResiduals { blocks: b } => format!("open-attention-residuals{}", blocks(b)),
        })
    }
}

impl From<RivalKind> for String {
    fn from(kind: RivalKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for RivalKind {
    type Error = ParseRivalError;

    fn try_from(text: String) -> Result<Self, ParseRivalError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_have_defaults() {
        for (text, whole) in [
            ("residual", "residual"),
            ("rezero", "rezero"),
            ("layer-scale", "layer-scale:0.1"),
            ("layer-scale:0.0001", "layer-scale:0.0001"),
            ("x0-scalars", "x0-scalars"),
            ("layer-norm-scaling", "layer-norm-scaling"),
            ("dense-former", "dense-former:1:1"),
            ("dense-former:4:5", "dense-former:4:5"),
            ("hyper-connections", "hyper-connections:4"),
            ("hyper-connections-rms:2", "hyper-connections-rms:2"),
            ("hyper-connections-static:1", "hyper-connections-static:1"),
            ("manifold-hyper-connections", "manifold-hyper-connections:4"),
            ("manifold-hyper-connections-package:2", "manifold-hyper-connections-package:2"),
            ("attention-residuals", "attention-residuals"),
            ("attention-residuals-sum:8", "attention-residuals-sum:8"),
            ("attention-residuals-query:8", "attention-residuals:8"),
            ("ancre-branches", "ancre-branches"),
            ("open-attention-residuals:2", "open-attention-residuals:2"),
        ] {
            let kind: RivalKind = text.parse().unwrap();
            assert_eq!(kind.to_string(), whole);
            assert_eq!(whole.parse(), Ok(kind));
        }
    }

    #[test]
    fn each_of_them_is_in_the_list_of_all() {
        let names: Vec<&str> = RivalKind::EACH.iter().filter_map(|text| text.split(':').next()).collect();
        for text in RivalKind::EACH {
            assert_eq!(text.parse::<RivalKind>().unwrap().to_string(), text);
        }
        // The notation without what may follow a name: a bracket with a dash is a longer name.
        for word in RivalKind::NOTATION.replace(" or ", ", ").split(", ") {
            let (name, rest) = word.trim().split_once('[').unwrap_or((word.trim(), ""));
            assert!(names.contains(&name), "{name}");
            let longer = rest.split_once(']').map_or("", |(inside, _)| inside);
            for suffix in longer.split('|').filter(|suffix| suffix.starts_with('-')) {
                assert!(names.contains(&format!("{name}{suffix}").as_str()), "{name}{suffix}");
            }
        }
    }

    #[test]
    fn what_names_none_is_answered_with_the_list() {
        for text in [
            "",
            "ancre",
            "rezero:2",
            "dense-former:0:1",
            "dense-former:2",
            "hyper-connections:65",
            "layer-scale:nan",
            "layer-scale:1e39",
        ] {
            let message = text.parse::<RivalKind>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")) && message.contains("rezero, layer-scale"), "{message}");
        }
    }
}
