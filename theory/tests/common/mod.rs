//! Random cases for the property tests, which shrink to small layouts and print as one line.

use std::fmt;

use connection_layout::{Direction, Layout};
use nalgebra::DMatrix;
use proptest::prelude::*;
use theory::network::{Connections, LinearNet, Problem, Scope, Softmax, Target, Weights};
use theory::{Draw, TargetLaw};

/// The deepest network of a case.
const DEEPEST: usize = 6;
/// The shortcuts at that depth.
const MOST: usize = DEEPEST * (DEEPEST + 1) / 2;

/// What the coefficients of a case are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// 1 for the shortcuts of the layout.
    Layout,
    /// A softmax of this temperature; the layout does not matter.
    Learned(Softmax),
}

/// An instance by its few numbers: everything else is drawn from the seed. It prints as
/// `K=3 d=1 0:2 whitened seed 0`.
#[derive(Clone, PartialEq)]
pub struct Case {
    pub layout: Layout,
    pub width: usize,
    pub kind: Kind,
    /// General data in place of whitened inputs.
    pub general: bool,
    pub seed: u64,
}

impl Case {
    pub fn depth(&self) -> usize {
        self.layout.depth()
    }

    pub fn draw(&self) -> Draw {
        Draw::new(self.seed, 0)
    }

    /// The problem and a point with weights of standard deviation 1/2 and logits of a fifth.
    pub fn instance(&self) -> (Problem, Weights) {
        let mut draw = self.draw();
        let d = self.width;
        let target = if self.general {
            let deviation = (2.0 * d as f64).sqrt().recip();
            let inputs = DMatrix::from_fn(d, 2 * d, |_, _| draw.normal() * deviation);
            let outputs = DMatrix::from_fn(d, 2 * d, |_, _| draw.normal() * deviation);
            Target::from_data(&inputs, &outputs)
        } else {
            Target::whitened(draw.target(TargetLaw::Gaussian, d))
        };
        let problem = Problem::new(self.net(), target.unwrap());
        let mut weights = draw.weights(&problem, 0.5);
        weights.logits_mut().iter_mut().for_each(|logit| *logit = 0.2 * draw.normal());
        (problem, weights)
    }

    pub fn net(&self) -> LinearNet {
        let connections = match self.kind {
            Kind::Layout => Connections::from(&self.layout),
            Kind::Learned(softmax) => Connections::Learned(softmax),
        };
        LinearNet::new(self.depth(), connections).unwrap()
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "K={} d={} ", self.depth(), self.width)?;
        match self.kind {
            Kind::Layout => write!(f, "{}", self.layout)?,
            Kind::Learned(Softmax { direction, tau, scope }) => {
                write!(f, "softmax {direction:?} {scope:?} tau {tau}")?;
            }
        }
        write!(f, " {} seed {}", if self.general { "general" } else { "whitened" }, self.seed)
    }
}

/// Layouts of depth 2 to 6 on whitened data.
pub fn layouts() -> impl Strategy<Value = Case> {
    sized(Just(Kind::Layout), Just(false))
}

/// Hidden-only layouts on whitened data.
pub fn hidden_only() -> impl Strategy<Value = Case> {
    layouts().prop_map(|mut case| {
        let depth = case.depth();
        let hidden = case.layout.iter().filter(|s| s.target() < depth).map(|s| (s.source(), s.target()));
        case.layout = Layout::new(depth, hidden.collect::<Vec<_>>()).unwrap();
        case
    })
}

/// Layouts and learned coefficients of either direction and scope, on whitened and on general data.
pub fn any_case() -> impl Strategy<Value = Case> {
    sized(prop_oneof![1 => Just(Kind::Layout), 1 => softmax(0.1..1.0).prop_map(Kind::Learned)], any::<bool>())
}

/// Learned coefficients with a temperature from a range, on whitened data.
pub fn learned(tau: std::ops::Range<f64>) -> impl Strategy<Value = Case> {
    sized(softmax(tau).prop_map(Kind::Learned), Just(false))
}

fn softmax(tau: std::ops::Range<f64>) -> impl Strategy<Value = Softmax> {
    (any::<bool>(), any::<bool>(), tau).prop_map(|(outgoing, hidden, tau)| Softmax {
        direction: if outgoing { Direction::Outgoing } else { Direction::Incoming },
        scope: if hidden { Scope::HiddenOnly } else { Scope::WithOutput },
        tau,
    })
}

/// Depth, width and layout around a kind of coefficients and of data.
///
/// Every part shrinks for itself, in this order: fewer layers, whose shortcuts are those of the deeper layout that fit;
/// a narrower network; simpler coefficients and data; fewer shortcuts, one at a time; a smaller seed.
fn sized(kind: impl Strategy<Value = Kind>, general: impl Strategy<Value = bool>) -> impl Strategy<Value = Case> {
    let kept = |density| prop::collection::vec(prop::bool::weighted(density), MOST);
    let kept = prop_oneof![kept(0.15), kept(0.5), kept(0.85)];
    (2..=DEEPEST, 1..=6_usize, kind, general, kept, 0..1_000_000_u64).prop_map(
        |(depth, width, kind, general, kept, seed)| {
            // Positions run by target, so that those of a smaller depth come first.
            let pairs = (1..=depth).flat_map(|target| (0..target).map(move |source| (source, target)));
            let pairs = pairs.zip(kept).filter_map(|(pair, kept)| kept.then_some(pair));
            Case { layout: Layout::new(depth, pairs).unwrap(), width, kind, general, seed }
        },
    )
}
