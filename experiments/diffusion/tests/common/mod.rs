//! What the reference tests share: the model of a manifest, tensors, gradients by stored name.

use std::path::PathBuf;

use ancre::Arm;
use burn::{
    backend::{Autodiff, Flex},
    tensor::{Tensor, TensorData, backend::Backend},
};
use experiment_kit::state_dict::{self, StateDict, StoredTensor};
use experiments_diffusion::model::{Dit, DitConfig, state_dict::DitNaming};
use gaussian_diffusion::{Diffusion, Respacing, Tables, Variance};
use reference_vectors::{Reference, Tensors};
use serde_json::Value;

/// The backend of the tests.
pub type B = Autodiff<Flex>;

/// The folder of a family of vectors.
pub fn family(name: &str) -> PathBuf {
    reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), name)
}

/// The configuration of a manifest, with the connections of an arm.
pub fn config(hyper: &Value, arm: Arm) -> DitConfig {
    let size = |key: &str| hyper[key].as_u64().unwrap_or_else(|| panic!("hyper.{key}")) as usize;
    DitConfig {
        size: size("input_size"),
        channels: size("in_channels"),
        classes: size("num_classes"),
        patch: size("patch_size"),
        width: size("hidden_size"),
        layers: size("depth"),
        heads: size("num_heads"),
        mlp_ratio: hyper["mlp_ratio"].as_f64().expect("mlp_ratio"),
        frequency_features: size("frequency_embedding_size"),
        learn_sigma: hyper["learn_sigma"].as_bool().expect("learn_sigma"),
        label_dropout: hyper["class_dropout_prob"].as_f64().expect("class_dropout_prob"),
        arm,
        // Not the stored one, to see that the stored one wins.
        tau: 0.5,
    }
}

/// The connections that a manifest names.
pub fn arm_of(hyper: &Value) -> Arm {
    match hyper["ancre"]["parameterization"].as_str() {
        Some("softmax") => Arm::default(),
        Some(other) => other.parse().unwrap_or_else(|e| panic!("{e}")),
        None => Arm::Cascade,
    }
}

/// The model of a manifest with the stored weights, and with the connections of an arm.
pub fn model(hyper: &Value, weights: &StateDict, arm: Arm) -> Dit<B> {
    let config = config(hyper, arm);
    let model = Dit::new(&config, 0, &Default::default()).expect("a valid configuration");
    let (model, _) = state_dict::into_model(model, weights, &DitNaming::new(&config)).expect("weights that fit");
    model
}

/// The process that a manifest's model is trained with, or sampled with on fewer steps.
pub fn diffusion(hyper: &Value, respacing: &str) -> Diffusion {
    let respacing: Respacing = respacing.parse().expect("a choice of steps");
    let variance = if hyper["learn_sigma"] == true { Variance::Learned } else { Variance::FixedLarge };
    Diffusion::new(Tables::dit(&respacing).expect("steps that exist"), variance)
}

/// The tensors of a reference file as a state dict.
pub fn weights(file: &Tensors) -> StateDict {
    file.iter().map(|(name, r)| (name.to_owned(), StoredTensor { shape: r.shape.clone(), values: r.f32s() })).collect()
}

/// A reference tensor on the backend.
pub fn tensor<B: Backend, const D: usize>(reference: &Reference) -> Tensor<B, D> {
    let dims: [usize; D] = reference.shape.clone().try_into().expect("rank");
    Tensor::from_data(TensorData::new(reference.f32s(), dims), &Default::default())
}

/// The entries of a tensor.
pub fn read<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Integers as timesteps.
pub fn steps(reference: &Reference) -> Vec<usize> {
    reference.i64s().into_iter().map(|t| t as usize).collect()
}

/// Integers as labels.
pub fn labels(reference: &Reference) -> Vec<u32> {
    reference.i64s().into_iter().map(|y| y as u32).collect()
}
