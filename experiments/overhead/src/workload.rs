//! A model of a shape and an arm, random data for it, and its loss, with the code of the experiments.

mod diffusion;
mod language;
mod resnet;

use ancre::{Arm, Cost, Work};
use anyhow::Result;

use crate::{
    ledger::Ledger,
    shape::Shape,
    step::{Lesson, Trainee, Training},
};

/// How much goes through a model in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Rows (sequences, images) of a micro-batch; none takes one for the paper's shapes, and the preset's for the others.
    pub rows: Option<usize>,
}

/// What is known of an arm's step before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Parameters of the model without connections.
    pub parameters: u64,
    /// What the connections cost, for one row of the stream.
    pub cost: Cost,
    /// Rows of the stream that all forward passes of a step have together.
    pub forward_rows: u64,
    /// The same for the backward passes.
    pub backward_rows: u64,
    /// Rows of the stream that are in the graph of a micro-batch.
    pub rows_at_once: u64,
    /// What the model itself does in a step.
    pub model: Ledger,
    /// What a step is made of, in words.
    pub description: String,
}

impl Plan {
    /// What the connections do in a step.
    pub fn connections(&self) -> Work {
        let Cost { forward, backward, .. } = self.cost;
        let times = |count: u64, work: Work| Work { flops: count * work.flops, bytes: count * work.bytes };
        times(self.forward_rows, forward) + times(self.backward_rows, backward)
    }

    /// Bytes of weights, gradients and two moments, roughly.
    pub fn resident_bytes(&self) -> u64 {
        (self.parameters + self.cost.parameters).saturating_mul(16)
    }
}

/// The plan of an arm.
///
/// # Errors
/// Where the shape's model does not have the arm, or a size is out of range.
pub fn plan(shape: Shape, arm: &Arm, size: Size) -> Result<Plan> {
    match shape {
        Shape::Language(preset, head) => Ok(language::Language::new(preset, head, arm, size)?.plan),
        Shape::Diffusion(preset) => Ok(diffusion::Diffusion::new(preset, arm, size)?.plan),
        Shape::Resnet(of) => Ok(resnet::Resnet::new(of, arm, size)?.plan),
    }
}

/// The model of an arm with its data, ready for steps.
///
/// # Errors
/// As [`plan`].
pub fn training(shape: Shape, arm: &Arm, size: Size) -> Result<Box<dyn Training>> {
    fn boxed<M: burn::module::AutodiffModule<crate::B> + 'static>(lesson: Lesson<M>) -> Result<Box<dyn Training>> {
        Ok(Box::new(Trainee::new(lesson)?))
    }
    match shape {
        Shape::Language(preset, head) => boxed(language::Language::new(preset, head, arm, size)?.lesson()?),
        Shape::Diffusion(preset) => boxed(diffusion::Diffusion::new(preset, arm, size)?.lesson()?),
        Shape::Resnet(of) => boxed(resnet::Resnet::new(of, arm, size)?.lesson()?),
    }
}
