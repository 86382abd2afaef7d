//! An exponential moving average of a model's weights, which samplers of diffusion models use in their place.

use std::collections::VecDeque;

use burn::{
    module::{AutodiffModule, Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Tensor, backend::AutodiffBackend, backend::Backend},
};

use crate::parameters::{self, NamedTensor, ParameterError};

/// The average of all floating-point parameters, frozen ones too: `average = decay * average + (1 - decay) * weights` after
/// each update. It begins as an exact copy.
///
/// ```
/// use burn::{backend::{Autodiff, Flex}, nn::LinearConfig, tensor::Tensor};
/// use training::average::WeightAverage;
/// type B = Autodiff<Flex>;
/// let mut model = LinearConfig::new(1, 1).init::<B>(&Default::default());
/// let mut average = WeightAverage::new(&model, 0.75);
/// let before = model.weight.val().into_scalar();
/// model.weight = model.weight.map(|weight| weight + 1.0);
/// average.update(&model);
/// let after = average.model().weight.val().into_scalar();
/// assert!((after - before - 0.25).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct WeightAverage<B: AutodiffBackend, M: AutodiffModule<B>> {
    /// Always there, but for the moment of an update, which takes it apart.
    average: Option<M::InnerModule>,
    decay: f64,
    backend: std::marker::PhantomData<B>,
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> WeightAverage<B, M> {
    /// The average that begins at this model.
    pub fn new(model: &M, decay: f64) -> Self {
        Self { average: Some(model.valid()), decay, backend: std::marker::PhantomData }
    }

    /// Takes the weights of an update into the average.
    pub fn update(&mut self, model: &M) {
        let mut weights = Weights { flat: VecDeque::new() };
        model.valid().visit(&mut weights);
        let mut blend = Blend { flat: weights.flat, decay: self.decay };
        self.average = self.average.take().map(|average| average.map(&mut blend));
    }

    /// The model with averaged weights.
    pub fn model(&self) -> &M::InnerModule {
        self.average.as_ref().unwrap_or_else(|| unreachable!("the average is only taken for the moment of an update"))
    }

    /// The averaged weights, for a checkpoint.
    pub fn export(&self) -> Vec<NamedTensor> {
        parameters::export::<B::InnerBackend, _>(self.model())
    }

    /// Takes up what [`export`](Self::export) gave.
    ///
    /// # Errors
    /// If names or shapes are not those of the model.
    pub fn import(&mut self, tensors: Vec<NamedTensor>) -> Result<(), ParameterError> {
        self.average = Some(parameters::import::<B::InnerBackend, _>(self.model().clone(), tensors)?);
        Ok(())
    }
}

/// Parameters in the order of the module's fields, as vectors: their ranks differ.
struct Weights<I: Backend> {
    flat: VecDeque<Tensor<I, 1>>,
}

impl<I: Backend> ModuleVisitor<I> for Weights<I> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<I, D>>) {
        let tensor = param.val();
        let elements = tensor.dims().iter().product::<usize>();
        self.flat.push_back(tensor.reshape([elements]));
    }
}

struct Blend<I: Backend> {
    flat: VecDeque<Tensor<I, 1>>,
    decay: f64,
}

impl<I: Backend> ModuleMapper<I> for Blend<I> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<I, D>>) -> Param<Tensor<I, D>> {
        let Some(weights) = self.flat.pop_front() else { unreachable!("both models have the same parameters") };
        let (id, average, mapper) = param.consume();
        let weights = weights.reshape(average.dims());
        let blended = average.mul_scalar(self.decay) + weights.mul_scalar(1.0 - self.decay);
        Param::from_mapped_value(id, blended, mapper)
    }
}
