//! Connections of other papers in a DiT: where they begin, and that all of them learn.

use ancre::{Arm, rivals::RivalKind};
use burn::{
    backend::{Autodiff, Flex},
    optim::GradientsParams,
    tensor::{Tensor, TensorData},
};
use experiment_kit::CONNECTIONS;
use experiments_diffusion::{model::Dit, presets::Preset};
use training::parameters::{self, NamedTensor, named_parameters};

type B = Autodiff<Flex>;

/// With weights that are nowhere zero: gates and the last layer begin there, and would hide all.
fn model(arm: &str) -> Dit<B> {
    let mut config = Preset::Smoke.settings().model;
    (config.size, config.channels, config.classes) = (8, 1, 10);
    (config.width, config.heads, config.layers, config.arm) = (8, 2, 4, arm.parse().unwrap());
    let model = Dit::<B>::new(&config, 0, &Default::default()).unwrap();
    let moved = |(index, tensor): (usize, NamedTensor)| {
        let values = tensor.data.iter::<f32>().enumerate().map(|(i, value)| {
            let moved = if tensor.name.starts_with(CONNECTIONS) { 0.0 } else { 0.1 };
            value + moved * ((i * 7 + index) as f32).sin()
        });
        NamedTensor { data: TensorData::new(values.collect::<Vec<f32>>(), tensor.data.shape.clone()), ..tensor }
    };
    let weights = parameters::export::<B, _>(&model).into_iter().enumerate().map(moved).collect::<Vec<_>>();
    parameters::import::<B, _>(model, weights).unwrap()
}

fn images() -> Tensor<B, 4> {
    let values: Vec<f32> = (0..2 * 64).map(|i| (i as f32 * 0.37).sin()).collect();
    Tensor::from_data(TensorData::new(values, [2, 1, 8, 8]), &Default::default())
}

fn prediction(model: &Dit<B>) -> Tensor<B, 4> {
    model.forward(images(), &[3, 900], &[1, 7])
}

fn values(tensor: Tensor<B, 4>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

#[test]
fn what_begins_as_the_ordinary_network_gives_its_prediction() {
    let cascade = values(prediction(&model("cascade")));
    assert!(cascade.iter().any(|value| value.abs() > 0.1));
    // The sum of equal streams is normed before the last layer.
    for arm in ["residual", "layer-scale:1", "x0-scalars", "dense-former", "hyper-connections:2"] {
        for (ours, expected) in values(prediction(&model(arm))).iter().zip(&cascade) {
            assert!((ours - expected).abs() < 1e-4, "{arm}: {ours} for {expected}");
        }
    }
    for arm in ["layer-norm-scaling", "rezero", "attention-residuals"] {
        assert_ne!(values(prediction(&model(arm))), cascade, "{arm}");
    }
}

#[test]
fn observations_are_of_the_same_forward_pass() {
    for arm in RivalKind::EACH {
        let observed = model(arm).observe(images(), &[3, 900], &[1, 7]);
        assert_eq!((observed.states.len(), observed.growth.len()), (5, 5), "{arm}");
        assert!(observed.outputs.is_empty() && observed.growth.iter().all(|growth| growth.is_finite()), "{arm}");
    }
    assert_eq!(model("ancre").observe(images(), &[3, 900], &[1, 7]).outputs.len(), 4);
}

#[test]
fn connections_learn() {
    for arm in RivalKind::EACH.into_iter().chain(["gated-first-state"]) {
        let model = model(arm);
        let gradients = GradientsParams::from_grads(prediction(&model).square().sum().backward(), &model);
        let of_connections = named_parameters::<B, _>(&model).into_iter().filter(|p| p.name.starts_with(CONNECTIONS));
        let moved = of_connections.into_iter().any(|parameter| match parameter.shape.len() {
            1 => size(gradients.get::<Flex, 1>(parameter.id)) > 0.0,
            2 => size(gradients.get::<Flex, 2>(parameter.id)) > 0.0,
            _ => size(gradients.get::<Flex, 3>(parameter.id)) > 0.0,
        });
        assert_eq!(moved, arm.parse::<Arm>().unwrap().is_learned(), "{arm}");
    }
}

fn size<const D: usize>(gradient: Option<Tensor<Flex, D>>) -> f64 {
    gradient.map_or(0.0, |gradient| gradient.into_data().iter::<f64>().map(f64::abs).sum())
}
