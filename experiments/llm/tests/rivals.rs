//! Connections of other papers in a LLaMA: where they begin, that all of them learn, and that files keep them.

use ancre::{Arm, rivals::RivalKind};
use burn::{
    backend::{Autodiff, Flex},
    optim::GradientsParams,
    tensor::{Int, Tensor},
};
use experiment_kit::Connected;
use experiments_llm::model::{Llama, LlamaConfig, LlamaVariant, state_dict};
use training::parameters::named_parameters;

type B = Autodiff<Flex>;

fn model(arm: &str) -> Llama<B> {
    let config = LlamaConfig {
        vocabulary: 11,
        width: 8,
        feed_forward: 12,
        layers: 3,
        heads: 2,
        positions: 6,
        rotary_base: 10_000.0,
        norm_eps: 1e-6,
        init_std: 0.3,
        freeze_last_embedding: false,
        arm: arm.parse().unwrap(),
        tau: 0.01,
        variant: LlamaVariant::default(),
    };
    Llama::new(&config, 0, &Default::default()).unwrap()
}

fn tokens() -> Tensor<B, 2, Int> {
    Tensor::from_ints([[1, 5, 3, 7, 2], [9, 10, 0, 4, 4]], &Default::default())
}

fn logits(model: &Llama<B>) -> Vec<f32> {
    model.forward(tokens()).into_data().iter::<f32>().collect()
}

#[test]
fn what_begins_as_the_ordinary_network_gives_its_logits() {
    let cascade = logits(&model("cascade"));
    assert_eq!(logits(&model("residual")), cascade);
    // The sum of equal streams is normed before the head.
    for arm in [
        "layer-scale:1",
        "x0-scalars",
        "dense-former",
        "hyper-connections:2",
        "hyper-connections-static:2",
        "manifold-hyper-connections:2",
    ] {
        for (ours, expected) in logits(&model(arm)).iter().zip(&cascade) {
            assert!((ours - expected).abs() < 1e-4, "{arm}: {ours} for {expected}");
        }
    }
    assert_ne!(logits(&model("layer-norm-scaling")), cascade);
}

#[test]
fn all_observations_are_of_the_same_forward_pass() {
    for arm in RivalKind::EACH.into_iter().chain(["gated-first-state"]) {
        let model = model(arm);
        let observed = model.observe(tokens());
        assert_eq!((observed.states.len(), observed.growth.len()), (4, 4), "{arm}");
        assert!(observed.growth.iter().all(|growth| growth.is_finite()), "{arm}");
    }
}

/// A gradient reaches the connections of every kind that has parameters, unless their start cuts it off.
#[test]
fn connections_learn() {
    for arm in RivalKind::EACH.into_iter().chain(["gated-first-state"]) {
        let model = model(arm);
        let loss = model.loss(tokens(), tokens());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        let names: Vec<_> = named_parameters::<B, _>(&model)
            .into_iter()
            .filter(|parameter| parameter.name.starts_with("connections."))
            .collect();
        let arm: Arm = arm.parse().unwrap();
        assert_eq!(!names.is_empty(), arm.is_learned(), "{arm}");
        let moved = names.iter().any(|parameter| match parameter.shape.len() {
            1 => size(gradients.get::<Flex, 1>(parameter.id)) > 0.0,
            2 => size(gradients.get::<Flex, 2>(parameter.id)) > 0.0,
            _ => size(gradients.get::<Flex, 3>(parameter.id)) > 0.0,
        });
        assert_eq!(moved, arm.is_learned(), "{arm}");
    }
}

fn size<const D: usize>(gradient: Option<Tensor<Flex, D>>) -> f64 {
    gradient.map_or(0.0, |gradient| gradient.into_data().iter::<f64>().map(f64::abs).sum())
}

#[test]
fn a_file_keeps_them() {
    for arm in RivalKind::EACH.into_iter().chain(["gated-first-state:2"]) {
        let mut stored = state_dict::from_model(&model(arm));
        for (name, tensor) in &mut stored {
            if name.contains("rival") || name.contains("gate.") {
                tensor.values.iter_mut().enumerate().for_each(|(i, value)| *value += 0.01 * (i % 7) as f32);
            }
        }
        let (loaded, report) = state_dict::into_model(model(arm), &stored).unwrap();
        assert_eq!(state_dict::from_model(&loaded), stored, "{arm}");
        assert!(!report.fresh_connections && report.unused_connections.is_empty(), "{arm}: {report:?}");

        // From the ordinary network they begin afresh, and to it they are of no use.
        let (_, report) = state_dict::into_model(model(arm), &state_dict::from_model(&model("cascade"))).unwrap();
        assert_eq!(report.fresh_connections, arm.parse::<Arm>().unwrap().is_learned(), "{arm}");
        let (_, report) = state_dict::into_model(model("cascade"), &stored).unwrap();
        assert_eq!(!report.unused_connections.is_empty(), arm.parse::<Arm>().unwrap().is_learned(), "{arm}");
    }
}

/// A file left out the temperature of connections of other papers, so that a model that was configured with another one gave
/// other logits.
#[test]
fn a_file_keeps_their_temperature() {
    let cold = model("ancre-branches");
    let mut connections = cold.connections().clone();
    connections.set_tau(0.5).unwrap();
    let warm = cold.with_connections(connections);
    let stored = state_dict::from_model(&warm);
    let (loaded, report) = state_dict::into_model(model("ancre-branches"), &stored).unwrap();
    assert_eq!(loaded.connections().tau(), 0.5);
    assert_eq!(report.tau, Some((0.01, 0.5)));
    assert_eq!(logits(&loaded), logits(&warm));
}
