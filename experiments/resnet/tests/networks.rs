//! What the networks promise: sizes, initial weights that no arm changes, connections where they belong.

use burn::{
    backend::{Autodiff, Flex},
    module::Module,
    tensor::{Tensor, TensorData},
};
use experiment_kit::{CONNECTIONS, Connected, RunSettings};
use experiments_resnet::{
    contrastive::{Agent, AgentConfig},
    model::{Classifier, LAYERS_A_BLOCK, MlpConfig, Network, NetworkConfig, ResidualMlp},
    presets::Preset,
};
use training::parameters::{NamedTensor, export, named_parameters};

type B = Autodiff<Flex>;

fn config(network: Network, depth: usize, arm: &str) -> NetworkConfig {
    let (size, channels, classes) = (8, 1, 10);
    NetworkConfig { network, depth, width: 8, size, channels, classes, arm: arm.parse().unwrap(), tau: 1.0 }
}

fn classifier(config: &NetworkConfig) -> Classifier<Flex> {
    Classifier::new(config, 0, &Default::default()).unwrap()
}

/// Parameters by name, without those of connections.
fn weights<M: Module<Flex>>(module: &M) -> Vec<NamedTensor> {
    export::<Flex, _>(module)
        .into_iter()
        .filter(|tensor| !tensor.name.contains(CONNECTIONS) && !tensor.name.contains("later."))
        .collect()
}

const NETWORKS: [(Network, usize); 4] =
    [(Network::Mlp, 16), (Network::Mlp, 64), (Network::Conv, 20), (Network::PreConv, 32)];

#[test]
fn initial_weights_do_not_depend_on_the_arm() {
    for (network, depth) in NETWORKS {
        let plain = weights(&classifier(&config(network, depth, "cascade")));
        for arm in ["ancre", "0:l", "zero-scalars", "replacing"] {
            let other = weights(&classifier(&config(network, depth, arm)));
            assert_eq!(plain, other, "{network} {depth}, {arm}");
        }
    }
    let agent = |arm: &str| {
        let network = MlpConfig { arm: arm.parse().unwrap(), ..MlpConfig::new(16, 8) };
        weights(
            &Agent::<Flex>::new(&AgentConfig { network, state: 4, action: 2, goal: 2 }, 3, &Default::default())
                .unwrap(),
        )
    };
    assert_eq!(agent("cascade"), agent("ancre"));
}

#[test]
fn sizes_that_settings_tell_are_those_of_the_networks() {
    let count = |weights: Vec<NamedTensor>| weights.iter().map(|t| t.data.num_elements() as u64).sum::<u64>();
    for (network, depth) in NETWORKS {
        let config = config(network, depth, "cascade");
        assert_eq!(config.parameters(), count(weights(&classifier(&config))), "{network} {depth}");
    }
    let settings = Preset::Smoke.settings();
    let agent = Agent::<Flex>::new(&settings.agent(settings.task().unwrap().spec()), 0, &Default::default()).unwrap();
    assert_eq!(settings.parameters(), count(weights(&agent)));
}

#[test]
fn layouts_act_within_the_stages_of_a_convolutional_network() {
    // Depth 20: 3 blocks a stage. The first stage is connected whole, the others after the block that changes the shape.
    let model = Classifier::<B>::new(&config(Network::Conv, 20, "ancre"), 0, &Default::default()).unwrap();
    let names: Vec<_> = named_parameters::<B, _>(&model).into_iter().filter(|p| p.name.contains("theta")).collect();
    let sizes: Vec<usize> = names.iter().map(|p| p.shape.iter().product()).collect();
    assert_eq!(sizes, [6, 3, 3], "{names:?}");
    assert_eq!(model.connections().depth(), 3);
    let images = Tensor::<B, 4>::from_data(TensorData::new(vec![0.5f32; 3 * 64], [3, 1, 8, 8]), &Default::default());
    let logits = model.forward(images);
    assert_eq!(logits.dims(), [3, 10]);
    let gradients = logits.square().sum().backward();
    let theta = model.connections().vector_gradients(&gradients).unwrap();
    assert!(theta[1].iter().any(|g| *g != 0.0) && theta[2].iter().any(|g| *g != 0.0), "{theta:?}");
}

#[test]
fn depths_that_are_none_are_answered_with_the_nearest() {
    let message = |network, depth| config(network, depth, "cascade").validate().unwrap_err().to_string();
    assert!(message(Network::Mlp, 18).contains("16 or 20"), "{}", message(Network::Mlp, 18));
    assert!(message(Network::Conv, 18).contains("14 or 20"), "{}", message(Network::Conv, 18));
    assert!(message(Network::PreConv, 0).contains("14 or 20"), "{}", message(Network::PreConv, 0));
    // A layout that fits the first stage has to fit the later ones, too.
    assert!(config(Network::Conv, 20, "0:3").validate().is_err());
}

#[test]
fn leaving_a_block_out_leaves_its_connection() {
    // With no shortcut a network without any of its blocks is the first layer alone, whatever the block that is left out.
    let mlp = |arm: &str| {
        let config = MlpConfig { arm: arm.parse().unwrap(), ..MlpConfig::new(LAYERS_A_BLOCK, 8) };
        ResidualMlp::<Flex>::new(&config, 3, 0, "test", &Default::default()).unwrap()
    };
    let x = || Tensor::<Flex, 2>::from_data(TensorData::new(vec![0.3f32, -1.0, 2.0], [1, 3]), &Default::default());
    let read = |t: Tensor<Flex, 2>| t.into_data().iter::<f32>().collect::<Vec<_>>();
    let (plain, doubled) = (read(mlp("cascade").forward_without(x(), 0)), read(mlp("0:1").forward_without(x(), 0)));
    assert!(plain.iter().zip(&doubled).all(|(a, b)| (2.0 * a - b).abs() < 1e-6), "{plain:?} {doubled:?}");
    assert_ne!(read(mlp("cascade").forward(x())), plain);
}

#[test]
fn the_stream_grows_as_the_uniform_mix_says_where_blocks_do_little() {
    // 16 blocks: 296 for identity blocks; each block of swishes after a layer norm adds to that.
    let config = MlpConfig { arm: "constant".parse().unwrap(), ..MlpConfig::new(64, 32) };
    let mlp = ResidualMlp::<Flex>::new(&config, 3, 0, "test", &Default::default()).unwrap();
    let x = Tensor::<Flex, 2>::from_data(TensorData::new(vec![0.3f32, -1.0, 2.0], [1, 3]), &Default::default());
    let (state, growth) = mlp.observe(x.clone());
    assert_eq!(growth.len(), 17);
    assert!(growth[16] > 296.0 && growth[16] < 3000.0, "{growth:?}");
    let read = |t: Tensor<Flex, 2>| t.into_data().iter::<f32>().collect::<Vec<_>>();
    assert_eq!(read(state), read(mlp.forward(x.clone())), "looking changes nothing");
    let normed = MlpConfig { norm_before_heads: true, ..config };
    let mlp = ResidualMlp::<Flex>::new(&normed, 3, 0, "test", &Default::default()).unwrap();
    let size = read(mlp.forward(x)).iter().map(|v| v * v).sum::<f32>() / 32.0;
    assert!((size - 1.0).abs() < 1e-3, "{size}");
}
