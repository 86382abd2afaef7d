//! Layouts with the same reduced net train alike.
//!
//! Layer l is *alive* if node l-1 can be reached from the input and the output from node l, through shortcuts and alive
//! layers ([`Layout::alive_layers`]); the [`ReducedNet`] counts the pure-shortcut paths between the alive layers.
//!
//! **Theorem.** Take two layouts whose reduced nets are equal up to gaps, give their k-th alive layers equal weights
//! and their dead layers zero weights, and train both by gradient flow towards the same target.
//! Then their dead layers stay at zero, and their alive layers and losses are equal at all times.
//!
//! *Proof.* The gradient of layer l is `B_lᵀ E A_{l-1}ᵀ` with `A_{l-1}` the map from the input to node l-1 and `B_l`
//! the map from node l to the output, each a sum over paths of products of weights. If l is dead, every path from the
//! input to l-1 or every path from l to the output passes a dead layer, so that `A_{l-1}` or `B_l` vanishes where dead
//! layers do: this subspace is invariant. On it the end-to-end map is a polynomial in the alive weights whose
//! coefficients are the path counts of the reduced net. Equal nets have the same polynomial, hence the same loss and
//! the same gradient.
//!
//! What the theorem does not say: that dead layers which start small, but not at zero, do not matter. They do not where
//! the flow of the reduced net converges from zero weights: the spread of times then vanishes with the weights. They do
//! where it does not converge, and then layouts with the same net differ in speed. Without an alive layer the net is
//! empty and the theorem speaks of a standstill.

mod verify;

use std::collections::BTreeMap;

use connection_layout::{Layout, LayoutError, ReducedNet};
use nalgebra::DMatrix;
use thiserror::Error;

use super::measure::{arrived, largest};
use crate::Draw;
use crate::flow::{FlowSettings, GradientFlow, Tolerance};
use crate::network::{Gradient, Problem, Weights};

pub use verify::verify;

/// Why two layouts need not train alike.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DifferentNets {
    /// The reduced nets differ.
    #[error("{first} has the reduced net `{}` and {second} has `{}`", .nets.0, .nets.1)]
    Nets {
        /// The first layout.
        first: Layout,
        /// The second layout.
        second: Layout,
        /// Their reduced nets without gaps.
        nets: Box<(ReducedNet, ReducedNet)>,
    },
    /// A layout whose path counts are too large.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Two layouts, of the same depth or not, with the same reduced net up to gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct EqualNets {
    layouts: [Layout; 2],
    net: ReducedNet,
}

impl EqualNets {
    /// Checks that the reduced nets are equal up to gaps.
    ///
    /// # Errors
    ///
    /// [`DifferentNets`] when they are not.
    pub fn new(first: Layout, second: Layout) -> Result<Self, DifferentNets> {
        let nets = (first.reduced_net()?.without_gaps(), second.reduced_net()?.without_gaps());
        if nets.0 == nets.1 {
            Ok(Self { layouts: [first, second], net: nets.0 })
        } else {
            Err(DifferentNets::Nets { first, second, nets: Box::new(nets) })
        }
    }

    /// The net that they share.
    pub fn net(&self) -> &ReducedNet {
        &self.net
    }

    /// The conclusion measured: the largest difference between the losses of the two flows at the same time, relative
    /// to the loss, until the loss is 1e-8 of the first or time is `until_time`; not a number if a flow got to neither, or
    /// one ended before the other.
    ///
    /// `alive` holds the starts of the alive layers in their order, of the target's shape; dead layers start at zero.
    ///
    /// # Panics
    ///
    /// When there is another number of alive layers, or their shape is not that of the target.
    pub fn worst_difference(&self, target: &DMatrix<f64>, alive: &[DMatrix<f64>], until_time: f64) -> f64 {
        let flows = self.layouts.each_ref().map(|layout| {
            let (problem, start) = problem(layout, target, alive, &[]);
            let until_loss = 1e-8 * Gradient::new(&problem).loss(start.values());
            // Where the depths differ, so do the steps; finer ones keep that below what is looked for.
            let tolerance = Tolerance { relative: 1e-12, absolute: 1e-15 };
            let settings = FlowSettings { until_loss, until_time, tolerance, ..FlowSettings::default() };
            let (outcome, trajectory) = GradientFlow::new(&problem, settings).trajectory(&start);
            (arrived(&outcome, until_time), until_loss, trajectory)
        });
        let [(first_arrived, until_loss, first), (second_arrived, _, second)] = flows;
        if !(first_arrived && second_arrived) {
            return f64::NAN;
        }
        // The last step of each goes beyond the loss that ends it, by a step of its own.
        let points = first.points().iter().filter(|point| point.loss > until_loss);
        let differences =
            points.map(|point| second.loss_at(point.time).map_or(f64::NAN, |loss| (loss / point.loss - 1.0).abs()));
        largest(differences.chain([0.0]))
    }
}

/// The problem of a layout, and weights with the k-th alive layer at `alive[k]` and the k-th dead one at `dead[k]`, or
/// at zero where there is none.
///
/// # Panics
///
/// When there are fewer matrices than alive layers, or a shape is not that of the target.
fn problem(
    layout: &Layout,
    target: &DMatrix<f64>,
    alive: &[DMatrix<f64>],
    dead: &[DMatrix<f64>],
) -> (Problem, Weights) {
    let problem = Problem::whitened(layout, target.clone()).unwrap_or_else(|error| panic!("{error}"));
    let mut weights = problem.zeros();
    let layers = layout.alive_layers();
    for (index, &layer) in layers.iter().enumerate() {
        weights.set_layer(layer, &alive[index]);
    }
    let others = (1..=layout.depth()).filter(|layer| !layers.contains(layer));
    others.zip(dead).for_each(|(layer, matrix)| weights.set_layer(layer, matrix));
    (problem, weights)
}

/// The largest entry of the gradient of a dead layer where dead layers are zero: exactly 0.
///
/// # Panics
///
/// As [`EqualNets::worst_difference`].
pub fn largest_dead_gradient(layout: &Layout, target: &DMatrix<f64>, alive: &[DMatrix<f64>]) -> f64 {
    let (problem, start) = problem(layout, target, alive, &[]);
    let (_, gradient) = Gradient::at(&problem, &start);
    let layers = layout.alive_layers();
    let dead = (1..=layout.depth()).filter(|layer| !layers.contains(layer));
    let entries = dead.flat_map(|layer| gradient.layer(layer).iter().map(|g| g.abs()).collect::<Vec<_>>());
    largest(entries.chain([0.0]))
}

/// The layouts of a depth by their reduced nets without gaps.
///
/// # Errors
///
/// [`LayoutError`] for a depth whose layouts are not enumerated.
pub fn classes(depth: usize) -> Result<BTreeMap<ReducedNet, Vec<Layout>>, LayoutError> {
    let mut classes: BTreeMap<ReducedNet, Vec<Layout>> = BTreeMap::new();
    for layout in Layout::all(depth)? {
        classes.entry(layout.reduced_net()?.without_gaps()).or_default().push(layout);
    }
    Ok(classes)
}

/// How the weights of the members of a class are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// The k-th alive layers of all members start at the same weights, dead layers at others.
    Matched,
    /// All layers of all members start at weights of their own.
    Independent,
}

/// Times to a relative loss of 1e-6 of the members of a class, from weights of a standard deviation; infinity for those
/// beyond `until_time`.
///
/// # Panics
///
/// When a layout is deeper than the layouts that are enumerated, or the target is empty, not square or not finite.
pub fn times(
    members: &[Layout],
    target: &DMatrix<f64>,
    deviation: f64,
    start: Start,
    draw: &mut Draw,
    until_time: f64,
) -> Vec<f64> {
    let d = target.ncols();
    let shared: Vec<_> = (0..connection_layout::MAX_ENUMERATED_DEPTH).map(|_| draw.gaussian(d, deviation)).collect();
    let mut times = Vec::new();
    for layout in members {
        let mut own = || (0..layout.depth()).map(|_| draw.gaussian(d, deviation)).collect::<Vec<_>>();
        let (dead, alive) = (own(), if start == Start::Matched { shared.clone() } else { own() });
        let (problem, start) = problem(layout, target, &alive, &dead);
        let until_loss = 1e-6 * problem.target().scale();
        // Coarser steps would differ by more than small weights do.
        let tolerance = Tolerance::FINE;
        let settings = FlowSettings { until_loss, until_time, tolerance, ..FlowSettings::default() };
        let outcome = GradientFlow::new(&problem, settings).run(&start, |_, _| ());
        times.push(outcome.reached().unwrap_or(f64::INFINITY));
    }
    times
}

/// The classes of a depth with several members and at least one alive layer.
fn several(depth: usize) -> Vec<(ReducedNet, Vec<Layout>)> {
    let classes = classes(depth).into_iter().flatten();
    classes.filter(|(net, members)| !net.is_empty() && members.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Verdict;

    #[test]
    fn hypotheses_are_checked() {
        let pair = |first: &str, second: &str| {
            EqualNets::new(Layout::parse(first, 4).unwrap(), Layout::parse(second, 4).unwrap())
        };
        assert_eq!(pair("0:2+2:3", "0:1+1:3").unwrap().net().to_string(), "v1 = W1 (x); v2 = W2 (x + v1); y = v2");
        let message = pair("0:3", "0:2+2:3").unwrap_err().to_string();
        assert!(message.contains("0:3 has the reduced net `v1 = W1 (x); y = v1`"), "{message}");
        // The depths may differ.
        assert!(EqualNets::new(Layout::parse("0:2", 3).unwrap(), Layout::parse("0:3", 4).unwrap()).is_ok());
    }

    #[test]
    fn dead_layers_that_are_not_zero_do_matter() {
        let (target, alive) = (DMatrix::identity(2, 2), [DMatrix::from_element(2, 2, 0.1)]);
        let layout = Layout::parse("0:2", 3).unwrap();
        let dead = [DMatrix::from_element(2, 2, 0.3), DMatrix::from_element(2, 2, 0.3)];
        let loss = |dead| {
            let (problem, start) = problem(&layout, &target, &alive, dead);
            Gradient::new(&problem).loss(start.values())
        };
        assert!((loss(&dead) - loss(&[])).abs() > 1e-3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn equal_nets_have_equal_losses(
            seed in any::<u64>(),
            depth in 3usize..=4,
            pick in any::<prop::sample::Index>(),
        ) {
            let classes = several(depth);
            let (_, members) = pick.get(&classes);
            let mut draw = Draw::new(seed, 0);
            let (first, second) = (draw.below(members.len()), draw.below(members.len()));
            let pair = EqualNets::new(members[first].clone(), members[second].clone()).unwrap();
            let d = 1 + draw.below(4);
            let target = draw.gaussian(d, 0.7);
            let alive: Vec<_> = (0..depth).map(|_| draw.gaussian(d, 0.3)).collect();
            prop_assert!(pair.worst_difference(&target, &alive, 5.0) < 1e-9);
            prop_assert_eq!(largest_dead_gradient(&members[first], &target, &alive), 0.0);
        }
    }

    #[test]
    fn statements_come_out() {
        let findings = verify(3);
        assert_eq!(findings.len(), 7);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }
}
