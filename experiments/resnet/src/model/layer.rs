//! Layers of the residual MLP, and how their weights begin.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, TensorData, activation::relu, backend::Backend},
};
use fused_ops::FusedOps;
use rand_distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};

/// Added to variances in layer normalisation, as in flax.
const EPSILON: f64 = 1e-6;

/// What follows the layer normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `u * sigmoid(u)`, as in the paper.
    #[default]
    Swish,
    /// `max(u, 0)`.
    Relu,
}

/// A `[inputs, outputs]` matrix, uniform within `±sqrt(1 / inputs)`. It is drawn from the stream that carries its name, so
/// that it is the same in every arm and whatever else the model holds.
fn matrix<B: Backend>(seed: u64, name: &str, [inputs, outputs]: [usize; 2], device: &B::Device) -> Param<Tensor<B, 2>> {
    let bound = 1.0 / (inputs as f64).sqrt();
    let rng = training::seed::stream(seed, name, 0);
    let values: Vec<f32> = match Uniform::new_inclusive(-bound, bound) {
        Ok(uniform) => uniform.sample_iter(rng).take(inputs * outputs).map(|x: f64| x as f32).collect(),
        // Only for no inputs, which no configuration has.
        Err(_) => vec![0.0; inputs * outputs],
    };
    Param::from_tensor(Tensor::from_data(TensorData::new(values, [inputs, outputs]), device))
}

/// `x W + b`; the weight is `[inputs, outputs]`, the bias begins at zero.
#[derive(Module, Debug)]
pub struct Linear<B: Backend> {
    /// `[inputs, outputs]`.
    pub weight: Param<Tensor<B, 2>>,
    /// `[outputs]`.
    pub bias: Param<Tensor<B, 1>>,
}

impl<B: FusedOps> Linear<B> {
    /// A layer with the weights of a seed; `name` tells it from others.
    pub fn new(seed: u64, name: &str, sizes: [usize; 2], device: &B::Device) -> Self {
        Self { weight: matrix(seed, name, sizes, device), bias: Param::from_tensor(Tensor::zeros([sizes[1]], device)) }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        fused_ops::add_bias(x.matmul(self.weight.val()), self.bias.val())
    }
}

/// `activation(layer_norm(x W + b) * gain + offset)`.
#[derive(Module, Debug)]
pub struct Layer<B: Backend> {
    /// `[inputs, outputs]`.
    pub weight: Param<Tensor<B, 2>>,
    /// `[outputs]`.
    pub bias: Param<Tensor<B, 1>>,
    /// `[outputs]`, from one.
    pub gain: Param<Tensor<B, 1>>,
    /// `[outputs]`, from zero.
    pub offset: Param<Tensor<B, 1>>,
}

impl<B: FusedOps> Layer<B> {
    /// A layer with the weights of a seed; `name` tells it from others.
    pub fn new(seed: u64, name: &str, sizes: [usize; 2], device: &B::Device) -> Self {
        Self {
            weight: matrix(seed, name, sizes, device),
            bias: Param::from_tensor(Tensor::zeros([sizes[1]], device)),
            gain: Param::from_tensor(Tensor::ones([sizes[1]], device)),
            offset: Param::from_tensor(Tensor::zeros([sizes[1]], device)),
        }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: Tensor<B, 2>, activation: Activation) -> Tensor<B, 2> {
        let x = x.matmul(self.weight.val());
        let (bias, gain, offset) = (self.bias.val(), self.gain.val(), self.offset.val());
        match activation {
            Activation::Swish => fused_ops::bias_norm_swish(x, bias, gain, offset, EPSILON),
            Activation::Relu => {
                let x = x + bias.unsqueeze();
                let centred = x.clone() - x.mean_dim(1);
                let deviation = centred.clone().square().mean_dim(1).add_scalar(EPSILON).sqrt();
                relu(centred / deviation * gain.unsqueeze() + offset.unsqueeze())
            }
        }
    }
}
