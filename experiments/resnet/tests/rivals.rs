//! Connections of other papers in residual MLPs and convolutional networks: where they begin, and that all of them learn.

use ancre::{Arm, rivals::RivalKind};
use burn::{
    backend::{Autodiff, Flex},
    optim::GradientsParams,
    tensor::{Tensor, TensorData},
};
use experiments_resnet::model::{Activation, Classifier, MlpConfig, Network, NetworkConfig, ResidualMlp};
use training::parameters::named_parameters;

type B = Autodiff<Flex>;

/// What begins as the ordinary network, and has nothing before the head that would hide another size of the stream.
const ORDINARY: [&str; 4] = ["residual", "layer-scale:1", "x0-scalars", "dense-former"];

fn config(network: Network, depth: usize, arm: &str) -> NetworkConfig {
    let (size, channels, classes) = (8, 1, 10);
    NetworkConfig { network, depth, width: 8, size, channels, classes, arm: arm.parse().unwrap(), tau: 1.0 }
}

fn classifier(network: Network, depth: usize, arm: &str) -> Classifier<B> {
    Classifier::new(&config(network, depth, arm), 0, &Default::default()).unwrap()
}

fn images() -> Tensor<B, 4> {
    let values: Vec<f32> = (0..3 * 64).map(|i| (i as f32 * 0.37).sin()).collect();
    Tensor::from_data(TensorData::new(values, [3, 1, 8, 8]), &Default::default())
}

fn values<const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Depth 26 has 4 blocks in the first stage, and 3 connected ones in the others.
const NETWORKS: [(Network, usize); 2] = [(Network::Mlp, 16), (Network::PreConv, 26)];

#[test]
fn what_begins_as_the_ordinary_network_gives_its_scores() {
    for (network, depth) in NETWORKS {
        let cascade = values(classifier(network, depth, "cascade").forward(images()));
        for arm in ORDINARY {
            for (ours, expected) in values(classifier(network, depth, arm).forward(images())).iter().zip(&cascade) {
                assert!(
                    (ours - expected).abs() < 1e-4 * expected.abs().max(1.0),
                    "{network}, {arm}: {ours} for {expected}"
                );
            }
        }
        for arm in ["layer-norm-scaling", "rezero", "attention-residuals"] {
            assert_ne!(values(classifier(network, depth, arm).forward(images())), cascade, "{network}, {arm}");
        }
    }
}

#[test]
fn relu_blocks_are_open_too() {
    let logits = |arm: &str| {
        let config = MlpConfig { activation: Activation::Relu, arm: arm.parse().unwrap(), ..MlpConfig::new(8, 8) };
        let mlp = ResidualMlp::<B>::new(&config, 3, 0, "test", &Default::default()).unwrap();
        values(mlp.forward(Tensor::from_floats([[0.3, -1.0, 2.0]], &Default::default())))
    };
    assert_eq!(logits("residual"), logits("cascade"));
}

#[test]
fn connections_learn() {
    for (network, depth) in NETWORKS {
        for arm in RivalKind::EACH.into_iter().chain(["gated-first-state"]) {
            let odd = network == Network::PreConv && (arm.starts_with("open-") || arm.starts_with("attention"));
            if odd && config(network, depth, arm).validate().is_err() {
                // Three blocks are not cut into two.
                continue;
            }
            let model = classifier(network, depth, arm);
            let gradients = GradientsParams::from_grads(model.forward(images()).square().sum().backward(), &model);
            let of_connections =
                named_parameters::<B, _>(&model).into_iter().filter(|p| p.name.contains("connections."));
            let moved = of_connections.into_iter().any(|parameter| match parameter.shape.len() {
                1 => size(gradients.get::<Flex, 1>(parameter.id)) > 0.0,
                2 => size(gradients.get::<Flex, 2>(parameter.id)) > 0.0,
                _ => size(gradients.get::<Flex, 3>(parameter.id)) > 0.0,
            });
            assert_eq!(moved, arm.parse::<Arm>().unwrap().is_learned(), "{network}, {arm}");
        }
    }
}

fn size<const D: usize>(gradient: Option<Tensor<Flex, D>>) -> f64 {
    gradient.map_or(0.0, |gradient| gradient.into_data().iter::<f64>().map(f64::abs).sum())
}

#[test]
fn leaving_a_block_out_leaves_what_is_around_it() {
    let config = MlpConfig { arm: "rezero".parse().unwrap(), ..MlpConfig::new(8, 8) };
    let mlp = ResidualMlp::<B>::new(&config, 3, 0, "test", &Default::default()).unwrap();
    let x = || Tensor::<B, 2>::from_floats([[0.3, -1.0, 2.0]], &Default::default());
    // Every branch begins with the weight 0.
    assert_eq!(values(mlp.forward_without(x(), 1)), values(mlp.forward(x())));
    assert_eq!(mlp.observe(x()).1, [1.0; 3]);
}

#[test]
fn blocks_that_end_activated_are_refused_with_advice() {
    let message = config(Network::Conv, 20, "rezero").validate().unwrap_err().to_string();
    assert!(message.contains("`rezero`") && message.contains("pre-conv"), "{message}");
}

/// Of a convolutional network the features are the channels, which are not the last dimension of its states.
#[test]
fn a_gate_acts_on_channels() {
    for (network, depth) in [(Network::Mlp, 16), (Network::PreConv, 26), (Network::Conv, 26)] {
        let [gated, fixed] = ["gated-first-state", "0:l"].map(|arm| classifier(network, depth, arm));
        // The gate begins open by one.
        for (ours, expected) in values(gated.forward(images())).iter().zip(values(fixed.forward(images()))) {
            assert!((ours - expected).abs() < 1e-4 * expected.abs().max(1.0), "{network}: {ours} for {expected}");
        }
        let widths: Vec<usize> = named_parameters::<B, _>(&gated)
            .into_iter()
            .filter(|p| p.name.ends_with("gate.weight"))
            .map(|p| p.shape[1])
            .collect();
        assert_eq!(widths, if network == Network::Mlp { vec![8] } else { vec![8, 16, 32] });
    }
}
