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

/// The entries of an `[inputs, outputs]` matrix, uniform within `±sqrt(1 / inputs)`. They are drawn from the stream that carries
/// its name, so that they are the same in every arm and whatever else the model holds.
fn uniform(seed: u64, name: &str, [inputs, outputs]: [usize; 2]) -> Vec<f32> {
    let bound = 1.0 / (inputs as f64).sqrt();
    let rng = training::seed::stream(seed, name, 0);
    match Uniform::new_inclusive(-bound, bound) {
        Ok(uniform) => uniform.sample_iter(rng).take(inputs * outputs).map(|x: f64| x as f32).collect(),
        // Only for no inputs, which no configuration has.
        Err(_) => vec![0.0; inputs * outputs],
    }
}

fn matrix<B: Backend>(seed: u64, name: &str, sizes: [usize; 2], device: &B::Device) -> Param<Tensor<B, 2>> {
    Param::from_tensor(Tensor::from_data(TensorData::new(uniform(seed, name, sizes), sizes), device))
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
        let product = x.matmul(self.weight.val());
        let (bias, gain, offset) = (self.bias.val(), self.gain.val(), self.offset.val());
        match activation {
            Activation::Swish => fused_ops::bias_norm_swish(product, bias, gain, offset, EPSILON),
            Activation::Relu => norm_relu(product, [bias.unsqueeze(), gain.unsqueeze(), offset.unsqueeze()]),
        }
    }
}

/// What follows the matrix product with ReLU; bias, gain and offset are `[1, outputs]`.
fn norm_relu<B: Backend>(product: Tensor<B, 2>, [bias, gain, offset]: [Tensor<B, 2>; 3]) -> Tensor<B, 2> {
    let x = product + bias;
    let centred = x.clone() - x.mean_dim(1);
    let deviation = centred.clone().square().mean_dim(1).add_scalar(EPSILON).sqrt();
    relu(centred / deviation * gain + offset)
}

/// Layers of one width with a shortcut around them. Their parameters are one tensor, so that a block is one node of the graph and
/// one step of the optimizer: at these widths that costs more than the arithmetic.
#[derive(Module, Debug)]
pub struct Block<B: Backend> {
    /// `[layers, width + 3, width]`: of each layer the rows of its weight `[inputs, outputs]`, then bias, gain and offset.
    pub parameters: Param<Tensor<B, 3>>,
}

impl<B: FusedOps> Block<B> {
    /// A block with the weights of a seed; the names tell its layers from others, and each begins as a [`Layer`] of its name.
    pub fn new(seed: u64, names: &[String], width: usize, device: &B::Device) -> Self {
        let mut values = Vec::with_capacity(names.len() * (width + 3) * width);
        for name in names {
            values.extend(uniform(seed, name, [width, width]));
            for begins in [0.0, 1.0, 0.0] {
                values.extend(std::iter::repeat_n(begins, width));
            }
        }
        let data = TensorData::new(values, [names.len(), width + 3, width]);
        Self { parameters: Param::from_tensor(Tensor::from_data(data, device)) }
    }

    /// `[rows, width]` to `[rows, width]`: `x + layers(x)`.
    pub fn forward(&self, x: Tensor<B, 2>, activation: Activation) -> Tensor<B, 2> {
        match activation {
            Activation::Swish => fused_ops::residual_block(x, self.parameters.val(), EPSILON),
            Activation::Relu => x.clone() + self.branch(x, activation, 1.0),
        }
    }

    /// The layers without the shortcut; what leaves their norms is multiplied by `norm_scale`.
    pub fn branch(&self, x: Tensor<B, 2>, activation: Activation, norm_scale: f64) -> Tensor<B, 2> {
        let parameters = self.parameters.val();
        let [layers, _, width] = parameters.dims();
        (0..layers).fold(x, |h, layer| {
            let of_layer = parameters.clone().narrow(0, layer, 1).squeeze_dim::<2>(0);
            let row = |i: usize| of_layer.clone().narrow(0, width + i, 1);
            let scaled = |i: usize| if norm_scale == 1.0 { row(i) } else { row(i).mul_scalar(norm_scale) };
            let product = h.matmul(of_layer.clone().narrow(0, 0, width));
            let (bias, gain, offset) = (row(0), scaled(1), scaled(2));
            match activation {
                Activation::Swish => {
                    let [bias, gain, offset] = [bias, gain, offset].map(|row| row.reshape([width]));
                    fused_ops::bias_norm_swish(product, bias, gain, offset, EPSILON)
                }
                Activation::Relu => norm_relu(product, [bias, gain, offset]),
            }
        })
    }
}
