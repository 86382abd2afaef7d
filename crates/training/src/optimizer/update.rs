//! The arithmetic of one update of one parameter.

use burn::tensor::{Tensor, TensorPrimitive, backend::Backend, ops::FloatTensor};
use fused_ops::{AdamWStep, FusedOps};

use super::{
    galore::{self, Projection},
    settings::Rule,
};

/// What an optimizer remembers of one parameter.
#[derive(Clone, Debug)]
pub(super) struct ParameterState<I: Backend> {
    /// How many updates the parameter has had; a step in which it has no gradient does not count.
    pub(super) step: u64,
    /// The tensors, in the order of [`slots`], and then the basis of a projected matrix. The others have the parameter's
    /// shape, or that of its projection. Empty before the first update.
    pub(super) tensors: Vec<FloatTensor<I>>,
}

impl<I: Backend> Default for ParameterState<I> {
    fn default() -> Self {
        Self { step: 0, tensors: Vec::new() }
    }
}

/// The names of the tensors that a rule keeps for each parameter.
pub(super) fn slots(rule: Rule) -> &'static [&'static str] {
    match rule {
        Rule::AdamW { amsgrad: true, .. } => &["first_moment", "second_moment", "largest_second_moment"],
        Rule::AdamW { amsgrad: false, .. } | Rule::TransformersAdamW { .. } | Rule::Adam { .. } => {
            &["first_moment", "second_moment"]
        }
        Rule::Sgd { momentum, .. } if momentum != 0.0 => &["direction"],
        Rule::Sgd { .. } => &[],
    }
}

fn tensor<I: Backend, const D: usize>(primitive: FloatTensor<I>) -> Tensor<I, D> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}

/// The parameter after one update. `state` is brought up to date.
pub(super) fn update<I: FusedOps, const D: usize>(
    rule: Rule,
    parameter: Tensor<I, D>,
    gradient: Tensor<I, D>,
    state: &mut ParameterState<I>,
    lr: f64,
    weight_decay: f64,
) -> Tensor<I, D> {
    state.step += 1;
    let step = state.step;
    // Taken out, so that nothing else holds them and the backend may write in place.
    let mut kept = std::mem::take(&mut state.tensors).into_iter().map(tensor::<I, D>);
    let (parameter, kept) = match rule {
        Rule::AdamW { beta1, beta2, eps, amsgrad } => {
            let first = kept.next().unwrap_or_else(|| gradient.zeros_like());
            let second = kept.next().unwrap_or_else(|| gradient.zeros_like());
            let step = AdamWStep { lr, beta1, beta2, eps, weight_decay, step };
            if amsgrad {
                let largest = kept.next().unwrap_or_else(|| gradient.zeros_like());
                let (parameter, kept) = amsgrad_update(parameter, gradient, [first, second, largest], &step);
                (parameter, kept.into())
            } else {
                let [parameter, first, second] = fused_ops::adamw(parameter, gradient, first, second, &step);
                (parameter, vec![first, second])
            }
        }
        Rule::TransformersAdamW { beta1, beta2, eps } => {
            let first = kept.next().unwrap_or_else(|| gradient.zeros_like());
            let second = kept.next().unwrap_or_else(|| gradient.zeros_like());
            let rule = transformers_step(lr, [beta1, beta2], eps, step);
            let [parameter, first, second] = fused_ops::adamw(parameter, gradient, first, second, &rule);
            (decayed(parameter, lr * weight_decay), vec![first, second])
        }
        Rule::Adam { beta1, beta2, eps } => {
            let first = kept.next().unwrap_or_else(|| gradient.zeros_like());
            let second = kept.next().unwrap_or_else(|| gradient.zeros_like());
            let gradient = penalised(gradient, &parameter, weight_decay);
            let step = AdamWStep { lr, beta1, beta2, eps, weight_decay: 0.0, step };
            let [parameter, first, second] = fused_ops::adamw(parameter, gradient, first, second, &step);
            (parameter, vec![first, second])
        }
        Rule::Sgd { momentum, dampening, nesterov } => {
            let gradient = penalised(gradient, &parameter, weight_decay);
            if momentum == 0.0 {
                (parameter - gradient.mul_scalar(lr), vec![])
            } else {
                let direction = match kept.next() {
                    Some(direction) => direction.mul_scalar(momentum) + gradient.clone().mul_scalar(1.0 - dampening),
                    None => gradient.clone(),
                };
                let movement = match nesterov {
                    true => gradient + direction.clone().mul_scalar(momentum),
                    false => direction.clone(),
                };
                (parameter - movement.mul_scalar(lr), vec![direction])
            }
        }
    };
    state.tensors = kept.into_iter().map(primitive).collect();
    parameter
}

/// As [`update`], of a projected matrix. `fresh` is its new basis, where one is due.
pub(super) fn projected_update<I: FusedOps>(
    (rule, projection): (Rule, Projection),
    parameter: Tensor<I, 2>,
    gradient: Tensor<I, 2>,
    fresh: Option<Tensor<I, 2>>,
    state: &mut ParameterState<I>,
    lr: f64,
    weight_decay: f64,
) -> Tensor<I, 2> {
    let Rule::TransformersAdamW { beta1, beta2, eps } = rule else { unreachable!("validated with the settings") };
    state.step += 1;
    let mut kept = std::mem::take(&mut state.tensors).into_iter().map(tensor::<I, 2>);
    let (moments, former) = ([kept.next(), kept.next()], kept.next());
    let Some(basis) = fresh.or(former) else { unreachable!("the first update comes with a basis") };
    let step = transformers_step(lr, [beta1, beta2], eps, state.step);
    let [parameter, first, second] = galore::update(projection, parameter, gradient, moments, &basis, step);
    state.tensors = [first, second, basis].map(primitive).into();
    decayed(parameter, lr * weight_decay)
}

fn primitive<I: Backend, const D: usize>(tensor: Tensor<I, D>) -> FloatTensor<I> {
    match tensor.into_primitive() {
        TensorPrimitive::Float(primitive) => primitive,
        TensorPrimitive::QFloat(_) => unreachable!("arithmetic on float tensors gives float tensors"),
    }
}

/// The step of PyTorch's AdamW that is one of the early `transformers`, but for the decay: adding `eps` before the correction
/// is adding `eps` over the correction after it.
fn transformers_step(lr: f64, [beta1, beta2]: [f64; 2], eps: f64, step: u64) -> AdamWStep {
    let eps = eps / (1.0 - beta2.powf(step as f64)).sqrt();
    AdamWStep { lr, beta1, beta2, eps, weight_decay: 0.0, step }
}

fn decayed<I: Backend, const D: usize>(parameter: Tensor<I, D>, share: f64) -> Tensor<I, D> {
    match share == 0.0 {
        true => parameter,
        false => parameter.mul_scalar(1.0 - share),
    }
}

/// The gradient of the loss plus `weight_decay / 2` times the squared norm of the parameter.
fn penalised<I: Backend, const D: usize>(
    gradient: Tensor<I, D>,
    parameter: &Tensor<I, D>,
    weight_decay: f64,
) -> Tensor<I, D> {
    match weight_decay == 0.0 {
        true => gradient,
        false => gradient + parameter.clone().mul_scalar(weight_decay),
    }
}

/// AdamW that divides by the largest (uncorrected) second moment so far, corrected for the current step.
fn amsgrad_update<I: Backend, const D: usize>(
    parameter: Tensor<I, D>,
    gradient: Tensor<I, D>,
    [first, second, largest]: [Tensor<I, D>; 3],
    step: &AdamWStep,
) -> (Tensor<I, D>, [Tensor<I, D>; 3]) {
    let correction = |beta: f64| 1.0 - beta.powf(step.step as f64);
    let first = first.mul_scalar(step.beta1) + gradient.clone().mul_scalar(1.0 - step.beta1);
    let second = second.mul_scalar(step.beta2) + gradient.square().mul_scalar(1.0 - step.beta2);
    let largest = largest.max_pair(second.clone());
    let root = largest.clone().sqrt().div_scalar(correction(step.beta2).sqrt());
    let movement = first.clone() / root.add_scalar(step.eps);
    let decayed = parameter.mul_scalar(1.0 - step.lr * step.weight_decay);
    (decayed - movement.mul_scalar(step.lr / correction(step.beta1)), [first, second, largest])
}
