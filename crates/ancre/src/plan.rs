//! Where every coefficient of an arm comes from and goes to: the arm at a depth, as plain indices.

use connection_layout::Layout;

use crate::{Arm, ConnectionsError, Parameterization, Replacement};

/// The states that one block's connection takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Index of the row's first coefficient among all coefficients.
    pub first: usize,
    /// Sources, ascending; coefficient `first + k` belongs to `sources[k]`.
    pub sources: Vec<usize>,
}

/// How coefficients follow from `theta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Normalisation {
    /// Coefficients are `theta` itself.
    None,
    /// A softmax within each of `vectors`; coefficient `c` is entry `from[c]` of the result.
    Softmax { from: Vec<usize> },
}

/// An arm at a depth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub arm: Arm,
    /// One row a block, for the targets `1..=K`.
    pub rows: Vec<Row>,
    /// Number of coefficients over all rows (for the naive scalars, of the entries stored).
    pub coefficients: usize,
    /// Lengths of the vectors that `theta` is made of, in the arrangement of the authors' `shortcut_params`.
    pub vectors: Vec<usize>,
    /// What `theta` starts from, in that arrangement.
    pub initial: Vec<f32>,
    pub normalisation: Normalisation,
    /// What is added to every coefficient after that: -1 to the newest state of each row where the connection stands in the
    /// place of the block's own shortcut. Empty where nothing is.
    pub offset: Vec<f32>,
    /// `last_use[i]`: the last target that takes state `i` (0: none does).
    pub last_use: Vec<usize>,
}

impl Plan {
    pub fn new(arm: &Arm, depth: usize, tau: f64) -> Result<Self, ConnectionsError> {
        let mut weight = 1.0;
        let layout = match arm {
            Arm::Cascade | Arm::Rival(_) => Layout::none(depth)?,
            Arm::Fixed(text) => {
                let (factor, layout) = weight_and_layout(text)?;
                weight = factor;
                Layout::parse(layout, depth)?
            }
            Arm::Incoming(_) | Arm::Outgoing(_) | Arm::Replacing(_) | Arm::Scalars | Arm::ZeroScalars => {
                Layout::parse("dense", depth)?
            }
            Arm::GatedFirstState(initial) => {
                weight = initial.get();
                Layout::parse("0:l", depth)?
            }
            Arm::NaiveScalars => Layout::new(depth, (2..=depth).map(|l| (l - 1, l)))?,
        };
        let mut rows = Vec::with_capacity(depth);
        let mut coefficients = 0;
        for target in 1..=depth {
            let sources: Vec<usize> = layout.sources(target).collect();
            // The authors' vector of naive scalars has an entry for the first block, which is never used.
            let first = if *arm == Arm::NaiveScalars { target - 1 } else { coefficients };
            coefficients += sources.len();
            rows.push(Row { first, sources });
        }
        if *arm == Arm::NaiveScalars {
            coefficients = depth;
        }
        let last_use = (0..=depth).map(|i| layout.targets(i).next_back().unwrap_or(0)).collect();
        let vectors = match arm {
            Arm::Outgoing(_) => (1..=depth).rev().collect(),
            Arm::NaiveScalars => vec![depth],
            _ => rows.iter().map(|row| row.sources.len()).collect(),
        };
        let normalisation = match arm {
            Arm::Incoming(_) | Arm::Replacing(_) => Normalisation::Softmax { from: (0..coefficients).collect() },
            Arm::Outgoing(_) => Normalisation::Softmax { from: by_target_from_by_source(depth) },
            _ => Normalisation::None,
        };
        let initial = match arm {
            Arm::ZeroScalars | Arm::Replacing(Replacement::Uniform | Replacement::Constant) => vec![0.0; coefficients],
            Arm::Replacing(Replacement::Newest) => {
                (1..=depth).flat_map(|l| newest_row(l, |others| (tau * (9.0 * others).ln()) as f32, 0.0)).collect()
            }
            Arm::Scalars => (1..=depth).flat_map(|l| vec![1.0 / l as f32; l]).collect(),
            Arm::Incoming(p) | Arm::Outgoing(p) => {
                vec![if *p == Parameterization::Hadamard { 1.0 } else { 0.0 }; coefficients]
            }
            Arm::Cascade | Arm::Rival(_) | Arm::Fixed(_) | Arm::GatedFirstState(_) | Arm::NaiveScalars => {
                vec![weight; coefficients]
            }
        };
        let offset = match arm {
            Arm::Replacing(_) => (1..=depth).flat_map(|l| newest_row(l, |_| -1.0, -1.0)).collect(),
            _ => Vec::new(),
        };
        Ok(Self { arm: arm.clone(), rows, coefficients, vectors, initial, normalisation, offset, last_use })
    }

    /// How many of the coefficients training changes, for arms that mix states by them.
    pub fn trained_coefficients(&self) -> usize {
        match self.arm {
            _ if !self.arm.is_learned() => 0,
            Arm::Scalars | Arm::ZeroScalars => self.coefficients,
            // These are no coefficients.
            Arm::GatedFirstState(_) | Arm::Rival(_) | Arm::Cascade | Arm::Fixed(_) => 0,
            // One entry fewer than is stored: the first of ANCRe, the last of outgoing, the first of the naive scalars.
            Arm::Incoming(_) | Arm::Outgoing(_) | Arm::Replacing(_) | Arm::NaiveScalars => self.coefficients - 1,
        }
    }

    pub fn depth(&self) -> usize {
        self.rows.len()
    }
}

/// A dense row of target `l` that is zero but for its newest state: there it is `value(l - 1)`, of the number of other
/// states, or `alone` where there are none.
fn newest_row(l: usize, value: impl Fn(f64) -> f32, alone: f32) -> Vec<f32> {
    let mut row = vec![0.0; l];
    row[l - 1] = if l == 1 { alone } else { value((l - 1) as f64) };
    row
}

/// The weight before a layout, as in `-0.5*0:l`, and the layout; 1 where there is none.
fn weight_and_layout(text: &str) -> Result<(f32, &str), ConnectionsError> {
    let Some((weight, layout)) = text.split_once('*') else { return Ok((1.0, text)) };
    match weight.trim().parse::<f32>() {
        Ok(weight) if weight.is_finite() => Ok((weight, layout)),
        _ => Err(ConnectionsError::Weight(weight.trim().to_owned())),
    }
}

/// For coefficients listed by target, their places in a list by source (source `k` has targets `k+1..=K`).
fn by_target_from_by_source(depth: usize) -> Vec<usize> {
    let start = |source: usize| source * depth - source * source.saturating_sub(1) / 2;
    (1..=depth).flat_map(|target| (0..target).map(move |source| start(source) + target - source - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outgoing_vectors_are_read_by_target() {
        // Vectors by source: 0 -> 1 2 3, 1 -> 2 3, 2 -> 3, at places 0..6.
        assert_eq!(by_target_from_by_source(3), [0, 1, 3, 2, 4, 5]);
    }

    #[test]
    fn a_layout_may_have_a_weight() {
        let plan = |text: &str| Plan::new(&text.parse().unwrap(), 3, 1.0);
        assert_eq!(plan("0:l").unwrap().initial, [1.0; 3]);
        assert_eq!(plan("-0.5*0:1+0:3").unwrap().initial, [-0.5; 2]);
        assert_eq!(plan("x*0:1"), Err(ConnectionsError::Weight("x".to_owned())));
        assert!(plan("nan*0:1").is_err() && plan("2*0:9").is_err());
    }

    #[test]
    fn states_are_needed_until_their_last_target() {
        let plan = Plan::new(&"0:2+2:3".parse().unwrap(), 4, 1.0).unwrap();
        assert_eq!(plan.last_use, [2, 0, 3, 0, 0]);
        assert_eq!(plan.rows[1], Row { first: 0, sources: vec![0] });
        assert_eq!(plan.rows[2], Row { first: 1, sources: vec![2] });
        assert_eq!(Plan::new(&Arm::Cascade, 4, 1.0).unwrap().coefficients, 0);
    }
}
