//! One step of AdamW.

use burn::tensor::{Tensor, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor};
use crate::{FusedOps, kernels::adamw::Coefficients};

/// What one step of AdamW (Loshchilov and Hutter 2019) needs to know, in PyTorch's conventions: decay first, both
/// moments bias-corrected, `eps` outside the root and after the correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep {
    /// Learning rate of this step.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the corrected second moment.
    pub eps: f64,
    /// Decoupled weight decay: the parameter is multiplied by `1 - lr * weight_decay` before the update.
    pub weight_decay: f64,
    /// Number of this step for this parameter, from 1.
    pub step: u64,
}

impl AdamWStep {
    /// The constants of the inner loop, computed in `f64` and rounded once.
    pub fn coefficients(&self) -> Coefficients {
        let correction = |beta: f64| 1.0 - beta.powf(self.step as f64);
        Coefficients {
            keep: (1.0 - self.lr * self.weight_decay) as f32,
            step_size: (self.lr / correction(self.beta1)) as f32,
            beta1: self.beta1 as f32,
            one_minus_beta1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            one_minus_beta2: (1.0 - self.beta2) as f32,
            root_correction: correction(self.beta2).sqrt() as f32,
            eps: self.eps as f32,
        }
    }
}

/// New parameter, first and second moment after one step; all of one shape. Tensors whose storage nothing else holds
/// are updated in place on the CPU, so hand over the only handle. `B` is a backend without autodiff.
///
/// # Panics
/// Where shapes differ.
pub fn adamw<B: FusedOps, const D: usize>(
    parameter: Tensor<B, D>,
    gradient: Tensor<B, D>,
    first: Tensor<B, D>,
    second: Tensor<B, D>,
    step: &AdamWStep,
) -> [Tensor<B, D>; 3] {
    for (name, other) in [("gradient", &gradient), ("first moment", &first), ("second moment", &second)] {
        assert_eq!(parameter.dims(), other.dims(), "adamw: the {name} has the shape of the parameter");
    }
    B::adamw(primitive(parameter), primitive(gradient), primitive(first), primitive(second), step).map(tensor)
}

pub(crate) fn composition<B: Backend>(
    parameter: FloatTensor<B>,
    gradient: FloatTensor<B>,
    first: FloatTensor<B>,
    second: FloatTensor<B>,
    step: &AdamWStep,
) -> [FloatTensor<B>; 3] {
    let scale = |t: FloatTensor<B>, factor: f64| B::float_mul_scalar(t, factor.into());
    let correction = |beta: f64| 1.0 - beta.powf(step.step as f64);
    let first = B::float_add(scale(first, step.beta1), scale(gradient.clone(), 1.0 - step.beta1));
    let square = B::float_mul(gradient.clone(), gradient);
    let second = B::float_add(scale(second, step.beta2), scale(square, 1.0 - step.beta2));
    let root = scale(B::float_sqrt(second.clone()), 1.0 / correction(step.beta2).sqrt());
    let denominator = B::float_add_scalar(root, step.eps.into());
    let update = scale(B::float_div(first.clone(), denominator), step.lr / correction(step.beta1));
    let parameter = B::float_sub(scale(parameter, 1.0 - step.lr * step.weight_decay), update);
    [parameter, first, second]
}
