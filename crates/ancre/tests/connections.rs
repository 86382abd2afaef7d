//! What every arm promises, against plain sums in `f64`.

use ancre::{Arm, Branches, Connections, ConnectionsConfig};
use burn::{
    backend::{Autodiff, Flex},
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::Tensor,
};
use connection_layout::Direction;
use proptest::prelude::*;

type B = Autodiff<Flex>;

fn connections(depth: usize, arm: &str) -> Connections<B> {
    ConnectionsConfig::new(depth).with_arm(arm.parse().unwrap()).init(&Default::default()).unwrap()
}

/// Runs blocks `h -> factor_l * h` from a state of ones; returns every state's first entry.
fn run(connections: &Connections<B>, factors: &[f32]) -> Vec<f64> {
    let x = Tensor::<B, 2>::ones([2, 3], &Default::default());
    let mut history = connections.start(x.clone());
    let mut h = x;
    let mut states = vec![1.0];
    for &factor in factors {
        h = connections.connect(&mut history, h * factor);
        states.push(f64::from(h.clone().into_data().as_slice::<f32>().unwrap()[0]));
    }
    states
}

#[test]
fn identity_blocks_grow_the_stream_as_the_laguerre_polynomial_says() {
    for (depth, growth) in [(4, 8.708), (12, 111.3), (16, 296.3), (28, 3294.6)] {
        for arm in ["ancre", "constant", "hadamard", "scalars"] {
            let module = connections(depth, arm);
            let last = run(&module, &vec![1.0; depth])[depth];
            assert!((last / growth - 1.0).abs() < 5e-4, "{arm} at depth {depth}: {last}");
            let predicted = module.coefficients().unwrap().identity_growth()[depth];
            assert!((last / predicted - 1.0).abs() < 1e-4, "{arm} at depth {depth}: {last} against {predicted}");
        }
    }
}

/// An arm whose blocks take no first state had its growth told from the second.
#[test]
fn growth_is_relative_to_the_first_state_of_every_arm() {
    for arm in ["cascade", "0:l", "1:3", "ancre"] {
        let module: Connections<Flex> =
            ConnectionsConfig::new(3).with_arm(arm.parse().unwrap()).init(&Default::default()).unwrap();
        let first = Tensor::<Flex, 2>::ones([2, 4], &Default::default());
        let mut history = module.start(first.clone());
        history.observe_growth();
        let second = module.connect(&mut history, first.mul_scalar(5.0));
        let of_second = second.into_data().iter::<f64>().next().unwrap();
        assert_eq!(history.growth(), [1.0, of_second], "{arm}");
    }
}

#[test]
fn observed_growth_is_that_of_the_states() {
    let module = connections(4, "ancre");
    let x = Tensor::<B, 2>::full([2, 3], 0.5, &Default::default());
    let mut history = module.start(x.clone());
    assert!(history.growth().is_empty());
    history.observe_growth();
    let mut h = x;
    for _ in 0..4 {
        h = module.connect(&mut history, h);
    }
    let growth = history.growth();
    for (actual, expected) in growth.iter().zip(module.coefficients().unwrap().identity_growth()) {
        assert!((actual - expected).abs() < 1e-5 * expected, "{growth:?}");
    }
}

#[test]
fn replacing_arms_mix_in_the_place_of_the_blocks_own_shortcut() {
    // Blocks h -> h + f h with f = 1, 2, 4: the shares of the softmax stand where `h` was.
    let factors = [2.0, 3.0, 5.0];
    for arm in ["replacing", "replacing-constant"] {
        let still = run(&connections(3, arm), &[1.0; 3]);
        assert!(
            still.iter().all(|state| (state - 1.0).abs() < 1e-6),
            "identity blocks leave the stream as it is: {still:?}"
        );
        let (h0, h1) = (1.0, 2.0);
        let h2 = 2.0 * h1 + (h0 + h1) / 2.0;
        let h3 = 4.0 * h2 + (h0 + h1 + h2) / 3.0;
        let states = run(&connections(3, arm), &factors);
        for (found, expected) in states.iter().zip([h0, h1, h2, h3]) {
            assert!((found - expected).abs() < 1e-5 * expected, "{arm}: {found} against {expected}");
        }
    }
    // Nine tenths on the newest state, the rest shared, whatever the temperature.
    for tau in [0.01, 1.0] {
        let config = ConnectionsConfig::new(3).with_arm("replacing-newest".parse().unwrap()).with_tau(tau);
        let coefficients = config.init::<B>(&Default::default()).unwrap().coefficients().unwrap();
        for (target, sources) in [(1, vec![0.0]), (2, vec![0.1, -0.1]), (3, vec![0.05, 0.05, -0.1])] {
            for (source, expected) in sources.into_iter().enumerate() {
                let found = coefficients.get(source, target).unwrap();
                assert!((found - expected).abs() < 1e-6, "{source}:{target} {found}");
            }
        }
    }
    assert!(
        connections(4, "replacing")
            .entropies()
            .unwrap()
            .iter()
            .zip([2.0f64, 3.0, 4.0])
            .all(|(e, n)| (e - n.ln()).abs() < 1e-6)
    );
}

#[test]
fn the_cascade_and_the_empty_layout_change_nothing() {
    for arm in ["cascade", "none"] {
        assert_eq!(run(&connections(3, arm), &[2.0, 3.0, 5.0]), [1.0, 2.0, 6.0, 30.0]);
    }
}

#[test]
fn fixed_layouts_add_the_states_they_name() {
    assert_eq!(run(&connections(3, "0:l"), &[2.0, 3.0, 5.0]), [1.0, 3.0, 10.0, 51.0]);
    assert_eq!(run(&connections(3, "0:2+2:3"), &[2.0, 3.0, 5.0]), [1.0, 2.0, 7.0, 42.0]);
}

#[test]
fn a_wrong_configuration_is_an_error_that_says_what() {
    let message = |config: ConnectionsConfig| config.init::<Flex>(&Default::default()).unwrap_err().to_string();
    assert!(message(ConnectionsConfig::new(0)).contains("depth of 0"));
    assert!(message(ConnectionsConfig::new(4).with_tau(0.0)).contains("tau = 0"));
    assert!(message(ConnectionsConfig::new(4).with_tau(f64::NAN)).contains("tau = NaN"));
    // Below f32's range the logits would be infinite, and above it all equal.
    assert!(message(ConnectionsConfig::new(4).with_tau(1e-60)).contains("is not a temperature"));
    assert!(message(ConnectionsConfig::new(4).with_tau(f64::INFINITY)).contains("tau = inf"));
    let layout = message(ConnectionsConfig::new(4).with_arm(Arm::Fixed("0:9".to_owned())));
    assert!(layout.contains("0:9") && layout.contains("column"), "{layout}");
    let stored = connections(3, "ancre").with_vectors(&[vec![0.0], vec![0.0; 3]]).unwrap_err().to_string();
    assert!(stored.contains("[1, 2, 3]") && stored.contains("[1, 3]"), "{stored}");
}

#[test]
#[should_panic(expected = "have 2 blocks")]
fn connecting_past_the_last_block_panics_with_a_message() {
    run(&connections(2, "ancre"), &[1.0, 1.0, 1.0]);
}

/// It passed the output on, as if the arm were the cascade.
#[test]
#[should_panic(expected = "rezero stands inside blocks")]
fn a_rival_does_not_follow_blocks() {
    let config = ConnectionsConfig::new(2).with_arm("rezero".parse().unwrap());
    let module = config.with_branches(Branches { per_block: 1, width: 3 }).init::<B>(&Default::default()).unwrap();
    let x = Tensor::<B, 2>::ones([2, 3], &Default::default());
    module.connect(&mut module.start(x.clone()), x);
}

#[test]
#[should_panic(expected = "ancre follows whole blocks")]
fn only_states_of_rivals_are_recorded() {
    let module = connections(2, "ancre");
    let x = Tensor::<B, 2>::ones([2, 3], &Default::default());
    module.record(&mut module.start(x.clone()), x);
}

#[test]
fn frozen_arms_have_no_gradient_and_learned_ones_a_norm() {
    for (arm, learned) in [
        ("cascade", false),
        ("0:l", false),
        ("constant", false),
        ("ancre", true),
        ("naive", true),
        ("replacing", true),
        ("replacing-constant", false),
    ] {
        let module = connections(3, arm);
        let x = Tensor::<B, 2>::ones([2, 3], &Default::default()).require_grad();
        let mut history = module.start(x.clone());
        let mut h = x;
        for factor in [0.5, 2.0, 3.0] {
            h = module.connect(&mut history, h * factor);
        }
        let gradients = GradientsParams::from_grads(h.square().sum().backward(), &module);
        let norm = module.theta_gradient_norm(&gradients);
        assert_eq!(norm.is_some_and(|n| n > 0.0), learned, "{arm}: {norm:?}");
    }
}

#[test]
fn entropies_are_those_of_the_rows_with_a_choice() {
    let of = |arm: &str| connections(4, arm).entropies();
    let close = |found: Option<Vec<f64>>, counts: &[usize]| {
        let found = found.unwrap();
        assert_eq!(found.len(), counts.len());
        found.iter().zip(counts).all(|(f, &n)| (f - (n as f64).ln()).abs() < 1e-6)
    };
    assert!(close(of("ancre"), &[2, 3, 4]));
    assert!(close(of("outgoing"), &[4, 3, 2]));
    assert_eq!(of("scalars"), None);
    assert_eq!(of("cascade"), None);
}

#[test]
fn the_number_of_trained_parameters_is_counted() {
    let count = |arm: &str| ConnectionsConfig::new(12).with_arm(arm.parse().unwrap()).trained_parameters().unwrap();
    assert_eq!(
        ["cascade", "0:l", "constant", "ancre", "outgoing", "naive", "scalars"].map(count),
        [0, 0, 0, 77, 77, 11, 78]
    );
}

/// The arms whose states are sums of earlier states with one coefficient each.
fn mixes() -> Vec<&'static str> {
    Arm::NAMES.into_iter().filter(|name| !name.parse::<Arm>().unwrap().acts_on_features()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any arm with any parameters equals the sum that its coefficients describe, and its rows are normalised.
    #[test]
    fn states_are_the_sums_that_the_coefficients_describe(
        depth in 1usize..7,
        arm in prop::sample::select(mixes()),
        seed in prop::collection::vec(-0.02f32..0.02, 28),
        factors in prop::collection::vec(-1.0f32..1.0, 7),
    ) {
        let module = connections(depth, arm);
        let mut values = seed.into_iter();
        let vectors: Vec<Vec<f32>> =
            module.to_vectors().iter().map(|v| v.iter().map(|x| x + values.next().unwrap_or(0.0)).collect()).collect();
        let module = module.with_vectors(&vectors).unwrap();
        let c = module.coefficients().unwrap();
        let mut expected = vec![1.0];
        for target in 1..=depth {
            let mixed: f64 = c.row(target).iter().zip(&expected).map(|(c, h)| c * h).sum();
            expected.push(f64::from(factors[target - 1]) * expected[target - 1] + mixed);
        }
        let actual = run(&module, &factors[..depth]);
        for (a, e) in actual.iter().zip(&expected) {
            prop_assert!((a - e).abs() < 1e-5 * (1.0 + e.abs()), "{arm}: {actual:?} against {expected:?}");
        }
        for ((_, without_graph), (_, with_graph)) in module.valid().coefficients().unwrap().iter().zip(c.iter()) {
            prop_assert!((without_graph - with_graph).abs() < 1e-6);
        }
        let sums = match module.arm() {
            Arm::Incoming(_) => c.sums(Direction::Incoming),
            Arm::Outgoing(_) => c.sums(Direction::Outgoing),
            _ => vec![],
        };
        prop_assert!(sums.iter().all(|s| (s - 1.0).abs() < 1e-5), "{arm}: {sums:?}");
    }
}
