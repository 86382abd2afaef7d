//! What must hold for every network, on random ones: depths 2 to 6, widths 1 to 6, layouts of any density.
//!
//! A failure is shrunk to few layers, one unit and few shortcuts, and printed as one line: `K=2 d=1 0:1 whitened seed
//! 0`.

mod common;

use common::{Case, any_case, hidden_only, layouts, learned};
use connection_layout::{Coefficients, Direction, Layout};
use nalgebra::DMatrix;
use proptest::prelude::*;
use theory::flow::{Descent, DescentSettings, Ending, FlowSettings, GradientFlow, NOISE_FLOOR, Optimizer, Tolerance};
use theory::network::{EndToEnd, Gradient, LinearNet, Problem, Scope, Softmax, Target, Weights};
use theory::theorems::scalar_flows::ScalarFlows;
use theory::theorems::{identities, learned as ancre};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 10_000, ..ProptestConfig::default() }
}

macro_rules! at_most {
    ($measured:expr, $tolerance:expr) => {{
        let measured = $measured;
        prop_assert!(measured <= $tolerance, "{measured:e} above {:e}", $tolerance)
    }};
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn the_gradient_is_that_of_central_differences(case in any_case()) {
        let (problem, weights) = case.instance();
        at_most!(identities::gradient_deviation(&problem, &weights), 1e-7);
    }

    #[test]
    fn the_gradient_of_cold_logits_is_that_of_central_differences(case in learned(0.01..0.1)) {
        let (problem, mut weights) = case.instance();
        // As large as the temperature, for shares that are neither equal nor saturated.
        let tau = 0.01;
        weights.logits_mut().iter_mut().for_each(|logit| *logit *= 5.0 * tau);
        at_most!(identities::gradient_deviation(&problem, &weights), 1e-7);
    }

    #[test]
    fn eulers_identity(case in any_case()) {
        let (problem, weights) = case.instance();
        at_most!(identities::euler_deviation(&problem, &weights), 1e-12);
    }

    #[test]
    fn reading_backwards_keeps_loss_and_gradient(case in prop_oneof![layouts(), learned(0.1..1.0)]) {
        let (problem, weights) = case.instance();
        match identities::reversal_deviation(&problem, &weights) {
            Some(deviation) => at_most!(deviation, 1e-12),
            // Only where no shortcut may end in the output there is no network to compare with.
            None => prop_assert!(matches!(case.kind, common::Kind::Learned(s) if s.scope == Scope::HiddenOnly)),
        }
        if case.kind == common::Kind::Layout {
            let (mirror, _) = identities::reversed(&problem, &weights).unwrap();
            prop_assert_eq!(mirror.net(), &LinearNet::of_layout(&case.layout.reversed()));
        }
    }

    #[test]
    fn a_common_rotation_keeps_loss_and_gradient(case in any_case()) {
        let (problem, weights) = case.instance();
        let q = case.draw().orthogonal(case.width);
        at_most!(identities::rotation_deviation(&problem, &weights, &q).unwrap(), 1e-12);
    }

    #[test]
    fn the_squared_gradient_is_the_tangent_kernel_of_the_error(case in any_case()) {
        let (problem, weights) = case.instance();
        at_most!(identities::kernel_deviation(&problem, &weights), 1e-12);
    }

    #[test]
    fn the_tangent_kernel_of_zero_weights_is_kappa0(case in any_case()) {
        let deviation = identities::initial_kernel_deviation(&case.net(), case.width);
        // Path counts are integers; shares are not.
        at_most!(deviation, if case.kind == common::Kind::Layout { 0.0 } else { 1e-14 });
    }

    #[test]
    fn diagonal_weights_of_hidden_only_networks_are_scalar_networks(case in hidden_only()) {
        let (problem, _) = case.instance();
        let flows = ScalarFlows::new(&problem).unwrap();
        let mut draw = case.draw();
        let points: Vec<Weights> = flows.modes().iter().map(|mode| draw.weights(mode, 0.5)).collect();
        let (_, gradient) = Gradient::at(&problem, &flows.embed(&points));
        let size = gradient.values().iter().fold(1.0_f64, |size, g| size.max(g.abs()));
        at_most!(flows.defect(&points), 1e-12 * size);
    }

    #[test]
    fn the_loss_is_not_negative_and_zero_at_a_target_that_is_met(case in layouts()) {
        let (problem, mut weights) = case.instance();
        prop_assert!(Gradient::new(&problem).loss(weights.values()) >= 0.0);
        // Small integers, so that the map is exact however it is summed.
        weights.values_mut().iter_mut().for_each(|w| *w = (2.0 * *w).round());
        let target = EndToEnd::new(problem.net(), &weights).map().clone();
        let (loss, gradient) = Gradient::at(&Problem::whitened(&case.layout, target).unwrap(), &weights);
        prop_assert_eq!(loss, 0.0);
        prop_assert!(gradient.values().iter().all(|g| *g == 0.0));
    }

    #[test]
    fn general_data_with_whitened_inputs_are_whitened(case in layouts()) {
        let (problem, weights) = case.instance();
        // X = Q: Y = A* Q has the least-squares solution A*.
        let q = case.draw().orthogonal(case.width);
        let target = Target::from_data(&q, &(problem.target().map() * &q)).unwrap();
        let general = Problem::new(case.net(), target);
        let ((loss, gradient), (other, general)) =
            (Gradient::at(&problem, &weights), Gradient::at(&general, &weights));
        let scale = problem.target().scale();
        at_most!((loss - other).abs(), 1e-12 * loss.max(scale));
        let (g, h) = (DMatrix::from_row_slice(1, gradient.values().len(), gradient.values()), general.values());
        at_most!((&g - DMatrix::from_row_slice(1, h.len(), h)).norm(), 1e-12 * g.norm().max(loss).max(scale));
    }

    #[test]
    fn uniform_shares_pass_the_input_on_once(depth in 2..=6_usize, width in 1..=4_usize, outgoing in any::<bool>()) {
        let direction = if outgoing { Direction::Outgoing } else { Direction::Incoming };
        let softmax = Softmax { direction, tau: 1.0, scope: Scope::WithOutput };
        let net = LinearNet::new(depth, theory::network::Connections::Learned(softmax)).unwrap();
        let problem = Problem::new(net, Target::whitened(DMatrix::zeros(width, width)).unwrap());
        let (mut weights, identity) = (problem.zeros(), DMatrix::identity(width, width));
        let uniform = if outgoing { Coefficients::uniform_outgoing(depth) } else { Coefficients::uniform_incoming(depth) };
        let uniform = uniform.unwrap();
        for (share, expected) in problem.net().coefficients(&weights).iter().zip(uniform.iter()) {
            at_most!((share.1 - expected.1).abs(), 1e-15);
        }
        // At zero weights only shortcuts carry anything, and their shares add up to the identity.
        at_most!((EndToEnd::new(problem.net(), &weights).map() - &identity).amax(), 1e-14);
        // With identity layers the stream grows to the Laguerre polynomial of K at -1, in both directions.
        (1..=depth).for_each(|layer| weights.set_layer(layer, &identity));
        let growth = Coefficients::uniform_incoming(depth).unwrap().identity_growth()[depth];
        at_most!((EndToEnd::new(problem.net(), &weights).map() - identity * growth).amax(), 1e-13 * growth);
    }
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn balance_is_kept_exactly_at_conserved_nodes(case in layouts()) {
        let (problem, start) = case.instance();
        let conserved = identities::conserved_nodes(&case.layout);
        for node in 1..case.depth() {
            let drift = identities::balance_drift(&problem, &start, node, 2.0).unwrap();
            if conserved.contains(&node) {
                prop_assert!(drift <= 1e-9, "node {node} drifts by {drift:e}");
            } else if start_is_typical(&problem, &start) {
                prop_assert!(drift > 1e-6, "node {node} is kept to {drift:e}");
            }
        }
    }

    #[test]
    fn hidden_only_flows_from_zero_are_scalar_flows(case in hidden_only()) {
        let (problem, _) = case.instance();
        at_most!(ScalarFlows::new(&problem).unwrap().compare(&[1.0]).difference, 1e-9);
    }

    #[test]
    fn the_loss_never_rises_along_the_flow(case in any_case()) {
        let (problem, start) = case.instance();
        // At the tolerance for rankings, errors of 1e-7 in the weights already show in losses of 1e-14.
        let settings = FlowSettings { until_time: 20.0, tolerance: Tolerance::FINE, ..FlowSettings::default() };
        let (outcome, trajectory) = GradientFlow::new(&problem, settings).trajectory(&start);
        prop_assert_ne!(outcome.ending, Ending::Diverged);
        let (points, scale) = (trajectory.points(), problem.target().scale());
        for pair in points.windows(2) {
            let allowed = pair[0].loss * (1.0 + 1e-9) + NOISE_FLOOR * scale;
            prop_assert!(pair[1].loss <= allowed, "{:e} after {:e}", pair[1].loss, pair[0].loss);
            prop_assert!(pair[1].slope <= 0.0);
        }
    }

    #[test]
    fn descent_depends_on_the_logit_rate_over_tau_squared(case in learned(0.05..1.0), power in 0..6) {
        let (problem, start) = with_temperature(&case, 0.5_f64.powi(power));
        let descent = Optimizer::GradientDescent { rate: 0.01, logit_rate: 0.01 * 0.25_f64.powi(power) };
        prop_assert_eq!(ancre::rescaling_deviation(&problem, &start, descent, 50), Some(0.0));
        // Any other temperature rounds.
        let (problem, start) = case.instance();
        let descent = Optimizer::GradientDescent { rate: 0.01, logit_rate: 1e-4 };
        at_most!(ancre::rescaling_deviation(&problem, &start, descent, 50).unwrap(), 1e-10);
    }

    #[test]
    fn adam_depends_on_the_logit_rate_over_tau(case in learned(0.05..1.0), power in 0..6) {
        let (problem, start) = with_temperature(&case, 0.5_f64.powi(power));
        let adam = |epsilon| {
            Optimizer::Adam { rate: 0.01, logit_rate: 0.01 * 0.5_f64.powi(power), betas: (0.9, 0.999), epsilon }
        };
        prop_assert_eq!(ancre::rescaling_deviation(&problem, &start, adam(f64::MIN_POSITIVE), 50), Some(0.0));
    }

    #[test]
    fn flow_depends_on_the_logit_speed_over_tau_squared(case in learned(0.1..1.0)) {
        let (problem, start) = case.instance();
        at_most!(ancre::flow_rescaling_deviation(&problem, &start, 1.0, 1.0).unwrap(), 1e-8);
    }

    #[test]
    fn small_steps_of_descent_follow_the_flow(case in layouts()) {
        let (problem, start) = case.instance();
        // A share of the time in which the fastest direction of the map changes, and of the unit of time.
        let time = 0.2 / EndToEnd::new(problem.net(), &start).kernel_spectrum().max().max(1.0);
        let settings = FlowSettings {
            until_time: time, tolerance: Tolerance::FINE, stop_at_noise: false, ..FlowSettings::default()
        };
        let flow = GradientFlow::new(&problem, settings).run(&start, |_, _| ()).weights;
        let off = |steps: usize| {
            let rate = time / steps as f64;
            let descent = DescentSettings::new(Optimizer::gradient_descent(rate), 0.0, steps);
            let end = Descent::new(&problem).run(&start, &descent, |_, _, _| ()).weights;
            let apart = end.values().iter().zip(flow.values()).map(|(a, b)| (a - b).abs());
            // Not a number is the largest difference there is.
            apart.fold(0.0_f64, |m, x| if x.is_nan() { f64::INFINITY } else { m.max(x) })
        };
        // Euler's method is of order one.
        let (coarse, fine) = (off(1000), off(2000));
        prop_assert!(fine < 0.01 && (coarse < 1e-9 || (coarse / fine - 2.0).abs() < 0.1), "{coarse:e} {fine:e}");
    }
}

/// Whether a node that is not conserved must be seen to drift: the start has somewhere to go, and no layer is so small
/// that a shortcut around it hardly matters.
fn start_is_typical(problem: &Problem, start: &Weights) -> bool {
    let (loss, gradient) = Gradient::at(problem, start);
    let large = |weights: &Weights, least| (1..=problem.depth()).all(|layer| weights.layer(layer).norm() > least);
    loss > 1e-2 && large(start, 0.1) && large(&gradient, 1e-2)
}

/// The instance of a learned case at another temperature, with logits of its size.
fn with_temperature(case: &Case, tau: f64) -> (Problem, Weights) {
    let common::Kind::Learned(softmax) = case.kind else { unreachable!("a learned case") };
    let (problem, mut start) =
        Case { kind: common::Kind::Learned(Softmax { tau, ..softmax }), ..case.clone() }.instance();
    start.logits_mut().iter_mut().for_each(|logit| *logit *= tau);
    (problem, start)
}

#[test]
fn the_conserved_nodes_of_known_layouts() {
    let conserved = |notation, depth| identities::conserved_nodes(&Layout::parse(notation, depth).unwrap());
    assert_eq!(conserved("none", 4), [1, 2, 3]);
    assert_eq!(conserved("cascade", 4), [1, 2, 3]);
    // The nodes between the ends of a shortcut are not touched by it.
    assert_eq!(conserved("0:3", 4), [1, 2]);
    assert_eq!(conserved("1:3", 4), [2]);
    assert_eq!(conserved("0:2+2:3", 4), [1, 3]);
    assert!(conserved("dense", 4).is_empty());
}
