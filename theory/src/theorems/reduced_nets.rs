//! Layouts with the same reduced net train alike.
//!
//! Layer l is *alive* if node l-1 can be reached from the input and the output from node l, through shortcuts and alive
//! layers ([`Layout::alive_layers`]); the [`ReducedNet`] counts the pure-shortcut paths between the alive layers.
//!
//! **Theorem.** Take two layouts whose reduced nets are equal up to gaps, give their k-th alive layers equal weights
//! and their dead layers zero weights, and train both by gradient flow, or by gradient descent, towards the same
//! target. Then their dead layers stay at zero, and their alive layers and losses are equal at all times.
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

use std::collections::{BTreeMap, BTreeSet};

use connection_layout::{Layout, LayoutError, ReducedNet};
use nalgebra::DMatrix;
use rayon::prelude::*;
use thiserror::Error;

use crate::flow::{FlowSettings, GradientFlow, Tolerance};
use crate::network::{Gradient, Problem, Weights};
use crate::ranking::Spread;
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

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
    /// to the loss, until the loss is 1e-8 of the first or time is `until_time`.
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
            GradientFlow::new(&problem, settings).trajectory(&start).1
        });
        let points = flows[0].points().iter();
        let differences = points.filter_map(|point| Some((flows[1].loss_at(point.time)? / point.loss - 1.0).abs()));
        differences.fold(0.0, f64::max)
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
    dead.map(|layer| gradient.layer(layer).amax()).fold(0.0, f64::max)
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
        let settings = FlowSettings { until_loss, until_time, ..FlowSettings::default() };
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

/// The largest over smallest of some times, less one.
fn spread(times: &[f64]) -> f64 {
    let (low, high) = times.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &t| (low.min(t), high.max(t)));
    if low == high { 0.0 } else { high / low - 1.0 }
}

/// Checks the statements on fresh instances: all classes of depth 3 and 4.
pub fn verify(seed: u64) -> Vec<Finding> {
    let finding = |source, statement: &str, measured, bound: &str, verdict| Finding {
        section: 3,
        source,
        statement: statement.to_owned(),
        measured,
        bound: bound.to_owned(),
        verdict,
    };
    let d = 4;
    let mut findings = Vec::new();

    let counts = [3, 4].map(|depth| {
        let nets: BTreeSet<_> = Layout::all(depth).into_iter().flatten().filter_map(|l| l.reduced_net().ok()).collect();
        (nets.len(), classes(depth).map_or(0, |classes| classes.len()))
    });
    let [(three, three_plain), (four, four_plain)] = counts;
    findings.push(finding(
        Source::Measured,
        "reduced nets of depth 3 and 4, with and without gaps",
        format!("{three}, {four}; {three_plain}, {four_plain}"),
        "53, 874; 53, 860",
        Verdict::holds_if(counts == [(53, 53), (874, 860)]),
    ));

    let layouts: Vec<Layout> = [3, 4].into_iter().flat_map(|depth| Layout::all(depth).into_iter().flatten()).collect();
    let instance = |index: usize| {
        let mut draw = Draw::new(seed, index as u64);
        let target = draw.target(TargetLaw::Gaussian, d);
        (target, (0..4).map(|_| draw.gaussian(d, 0.3)).collect::<Vec<_>>())
    };
    let dead = layouts.par_iter().enumerate().map(|(index, layout)| {
        let (target, alive) = instance(index);
        largest_dead_gradient(layout, &target, &alive)
    });
    let worst = dead.reduce(|| 0.0, f64::max);
    findings.push(finding(
        Source::Proved,
        "dead layers at zero have a gradient of zero",
        format!("{worst:e}, {} layouts", layouts.len()),
        "exact",
        Verdict::holds_if(worst == 0.0),
    ));

    let classes: Vec<_> = [3, 4].into_iter().flat_map(several).collect();
    let pairs: Vec<EqualNets> = classes
        .iter()
        .flat_map(|(_, members)| members[1..].iter().map(|other| EqualNets::new(members[0].clone(), other.clone())))
        .filter_map(Result::ok)
        .collect();
    let differences = pairs.par_iter().enumerate().map(|(index, pair)| {
        let (target, alive) = instance(index);
        pair.worst_difference(&target, &alive, 30.0)
    });
    let worst = differences.reduce(|| 0.0, f64::max);
    findings.push(finding(
        Source::Proved,
        "dead layers at zero: equal nets have equal losses",
        format!("relative {worst:.1e}, {} pairs", pairs.len()),
        "1e-9",
        Verdict::holds_if(worst < 1e-9 && !pairs.is_empty()),
    ));
    findings.extend(small_weights(seed, d, &classes, finding));
    findings
}

/// The statements about dead layers that start small.
fn small_weights(
    seed: u64,
    d: usize,
    classes: &[(ReducedNet, Vec<Layout>)],
    finding: impl Fn(Source, &str, String, &str, Verdict) -> Finding,
) -> Vec<Finding> {
    let scales = [1e-4, 1e-5];
    // For each target the largest spread of all classes, by the kind of start and the scale. A flow that does not get
    // there from zero weights is another matter, see below; a target on the verge of this counts little in the median.
    let spreads = (0..5).into_par_iter().map(|instance| {
        let target = Draw::new(seed, 1000 + instance).target(TargetLaw::Gaussian, d);
        let mut worst = [[0.0_f64; 2]; 2];
        for (index, (_, members)) in classes.iter().enumerate() {
            let zero = times(&members[..1], &target, 0.0, Start::Matched, &mut Draw::new(seed, 0), 50.0);
            if zero[0].is_infinite() {
                continue;
            }
            for (start, worst) in [Start::Matched, Start::Independent].into_iter().zip(&mut worst) {
                for (eps, worst) in scales.into_iter().zip(worst) {
                    let mut draw = Draw::new(seed, 2000 + index as u64);
                    *worst = worst.max(spread(&times(members, &target, eps, start, &mut draw, 1e4)));
                }
            }
        }
        worst
    });
    let spreads: Vec<[[f64; 2]; 2]> = spreads.collect();
    let mut findings = Vec::new();
    for (start, what, order, least) in [(0, "equal", 2, 15.0), (1, "other", 1, 5.0)] {
        let [large, small] = [0, 1].map(|scale| {
            Spread::of(spreads.iter().map(|worst| worst[start][scale])).map_or(f64::NAN, |spread| spread.median)
        });
        findings.push(finding(
            Source::Measured,
            &format!("equal nets, {what} alive weights: spread ~ eps^{order}"),
            format!("{large:.1e}, {small:.1e} at eps 1e-4, 1e-5"),
            &format!("falls {least}-fold, 5 targets"),
            Verdict::holds_if(small * least < large),
        ));
    }
    let stuck = Layout::parse("0:1+1:3+0:4+1:4", 4).ok().and_then(|layout| layout.reduced_net().ok());
    let stuck = stuck.map(ReducedNet::without_gaps);
    let spreads = classes.iter().filter(|(net, _)| Some(net) == stuck.as_ref()).flat_map(|(_, members)| {
        (0..7)
            .into_par_iter()
            .map(move |instance| {
                let mut draw = Draw::new(seed, 3000 + instance);
                // The map is (I + W_2) (I + W_1) + I, and the determinant of its first part stays positive from zero.
                let mut rest = draw.target(TargetLaw::Gaussian, d) - DMatrix::identity(d, d);
                if rest.determinant() > 0.0 {
                    rest.column_mut(0).neg_mut();
                }
                let target = rest + DMatrix::identity(d, d);
                spread(&times(members, &target, 1e-5, Start::Matched, &mut draw, 1e4))
            })
            .collect::<Vec<_>>()
    });
    let median = Spread::of(spreads).map_or(0.0, |spread| spread.median);
    findings.push(finding(
        Source::Measured,
        "the same for y = 2x + v1 + v2 with det(Y - I) < 0",
        format!("{:.0}% at eps 1e-5, 11 layouts, 7 targets", 100.0 * median),
        "6e-5",
        Verdict::refuted_if(median > 0.05),
    ));
    let (first, second) = (Layout::parse("0:1", 3), Layout::none(3));
    let slow = first.ok().zip(second.ok()).map(|(first, second)| {
        let target = Draw::new(seed, 4000).target(TargetLaw::Gaussian, d);
        let settings = FlowSettings { until_time: 1e5, ..FlowSettings::default() };
        [first, second].map(|layout| {
            let (problem, _) = problem(&layout, &target, &[], &[]);
            let start = Draw::new(seed, 4001).weights(&problem, 1e-2);
            let until_loss = 0.9 * problem.target().scale();
            let settings = FlowSettings { until_loss, ..settings };
            GradientFlow::new(&problem, settings).run(&start, |_, _| ()).reached().unwrap_or(f64::INFINITY)
        })
    });
    if let Some([first, second]) = slow {
        findings.push(finding(
            Source::Measured,
            "the same without an alive layer: 0:1 and none, K = 3",
            format!("loss falls by a tenth in {first:.1}, {second:.0}"),
            "equal",
            Verdict::refuted_if(second > 2.0 * first),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        for finding in verify(3) {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }
}
