//! Linear maps and how their weights begin.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, TensorData, backend::Backend},
};
use fused_ops::FusedOps;
use rand_distr::{Distribution, StandardNormal, Uniform};

/// What a parameter begins as. Random ones are drawn from the stream that carries the parameter's name, so they are the same
/// in every arm, on every device, and whatever else the model holds.
#[derive(Clone, Copy, Debug)]
pub enum Init {
    Zero,
    /// Uniform with the variance `2 / (inputs + outputs)` (Glorot and Bengio 2010).
    Xavier,
    /// Normal with this standard deviation.
    Normal(f64),
}

impl Init {
    /// A `[inputs, outputs]` matrix.
    pub fn matrix<B: Backend>(
        self,
        seed: u64,
        name: &str,
        [inputs, outputs]: [usize; 2],
        device: &B::Device,
    ) -> Param<Tensor<B, 2>> {
        let (count, rng) = (inputs * outputs, training::seed::stream(seed, name, 0));
        let values: Vec<f32> = match self {
            Self::Zero => vec![0.0; count],
            Self::Xavier => {
                let bound = (6.0 / (inputs + outputs) as f64).sqrt();
                match Uniform::new_inclusive(-bound, bound) {
                    Ok(uniform) => uniform.sample_iter(rng).take(count).map(|x| x as f32).collect(),
                    // Only for sizes of zero, which no configuration has.
                    Err(_) => vec![0.0; count],
                }
            }
            Self::Normal(std) => {
                let normal = Distribution::<f64>::sample_iter(StandardNormal, rng);
                normal.take(count).map(|z| (z * std) as f32).collect()
            }
        };
        Param::from_tensor(Tensor::from_data(TensorData::new(values, [inputs, outputs]), device))
    }
}

/// `x W + b`; the weight is `[inputs, outputs]`, the bias begins at zero.
#[derive(Module, Debug)]
pub struct Linear<B: Backend> {
    weight: Param<Tensor<B, 2>>,
    bias: Param<Tensor<B, 1>>,
}

impl<B: FusedOps> Linear<B> {
    pub fn new(name: &str, sizes: [usize; 2], init: Init, seed: u64, device: &B::Device) -> Self {
        let bias = Param::from_tensor(Tensor::zeros([sizes[1]], device));
        Self { weight: init.matrix(seed, name, sizes, device), bias }
    }

    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        fused_ops::add_bias(x.matmul(self.weight.val()), self.bias.val())
    }

    /// `gelu(x W + b)`, in the tanh form.
    pub fn forward_gelu(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        fused_ops::bias_gelu(x.matmul(self.weight.val()), self.bias.val())
    }
}
