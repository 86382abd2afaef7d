//! Optimizers with PyTorch's arithmetic, whose state is keyed by parameter name.
//!
//! Each parameter has its own step counter: one without a gradient in some step is left alone in that step (it is not
//! decayed either), and its counter stays.

mod galore;
mod settings;
mod update;

use std::{collections::BTreeMap, time::Instant};

use burn::{
    module::{AutodiffModule, ModuleMapper, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{
        DType, Tensor, TensorData, TensorMetadata,
        backend::{AutodiffBackend, Backend},
        ops::FloatTensorOps,
        read_sync,
    },
};
use fused_ops::FusedOps;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use self::{galore::Job, update::ParameterState};
pub use self::{
    galore::{Galore, RefreshCost, leading_vectors},
    settings::{OptimizerSettings, ParameterGroup, Rule},
};
use crate::parameters::{NamedTensor, PathTracker, track_path};

/// What can be wrong with an optimizer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptimizerError {
    /// A number is out of range.
    #[error("the optimizer's {name} is {value}, but must be {range}")]
    Setting {
        /// Which number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// GaLore with a rule that it is not defined for.
    #[error(
        "GaLore works with the rule `transformers-adamw` only: give the optimizer's rule that kind, or leave `galore` out"
    )]
    GaloreRule,
    /// GaLore that finds nothing to project.
    #[error(
        "no matrix of the model matches GaLore's patterns {}: name others in the optimizer's `galore.parameters` \
         (`*` stands for any run of characters), or leave `galore` out",
        patterns.join(", ")
    )]
    NothingProjected {
        /// The patterns.
        patterns: Vec<String>,
    },
    /// Two names are one parameter to burn.
    #[error(
        "{first} and {second} are clones of one parameter; only the first would be trained. Use one parameter in both \
         places of the forward pass, or make the second one anew"
    )]
    Shared {
        /// The first name.
        first: String,
        /// The second name.
        second: String,
    },
    /// The device does not give a tensor back.
    #[error(
        "the optimizer's {name} cannot be read from the device: {message}; the run can go on from its newest checkpoint"
    )]
    Read {
        /// The tensor, as in [`Optimizer::export`].
        name: String,
        /// The backend's reason.
        message: String,
    },
    /// Stored state does not fit.
    #[error("the optimizer's state does not fit the model and the optimizer: {}", problems.join(", "))]
    State {
        /// Everything that does not fit.
        problems: Vec<String>,
    },
}

/// An optimizer at work on a module of the autodiff backend `B`.
///
/// ```
/// use burn::{backend::{Autodiff, Flex}, nn::LinearConfig, optim::GradientsParams, tensor::Tensor};
/// use training::optimizer::{Optimizer, OptimizerSettings, Rule};
/// type B = Autodiff<Flex>;
/// let device = Default::default();
/// let mut linear = LinearConfig::new(1, 1).with_bias(false).init::<B>(&device);
/// let mut optimizer = Optimizer::<B>::new(OptimizerSettings { rule: Rule::sgd(), ..Default::default() })?;
/// let before = linear.weight.val().into_scalar();
/// let loss = linear.forward(Tensor::<B, 2>::from_floats([[2.0]], &device)).sum();
/// let gradients = GradientsParams::from_grads(loss.backward(), &linear);
/// linear = optimizer.step(linear, gradients, 0.25);
/// assert_eq!(linear.weight.val().into_scalar(), before - 0.5);
/// # Ok::<(), training::optimizer::OptimizerError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Optimizer<B: AutodiffBackend<InnerBackend: FusedOps>> {
    settings: OptimizerSettings,
    state: BTreeMap<String, ParameterState<B::InnerBackend>>,
    refreshed: RefreshCost,
}

/// The name under which the step counters are filed.
const STEP: &str = "step";

impl<B: AutodiffBackend<InnerBackend: FusedOps>> Optimizer<B> {
    /// An optimizer that has made no step.
    ///
    /// # Errors
    /// If a number of the settings is out of range.
    pub fn new(settings: OptimizerSettings) -> Result<Self, OptimizerError> {
        settings.validate()?;
        Ok(Self { settings, state: BTreeMap::new(), refreshed: RefreshCost::default() })
    }

    /// The settings.
    pub fn settings(&self) -> &OptimizerSettings {
        &self.settings
    }

    /// Updates every parameter that has a gradient, at the learning rate `lr` times the factor of its group.
    ///
    /// Hand over the only handle of the module: on the CPU, parameters that nothing else holds are updated in place.
    pub fn step<M: AutodiffModule<B>>(&mut self, module: M, gradients: GradientsParams, lr: f64) -> M {
        let bases = self.due_bases(&module, &gradients);
        module.map(&mut Step::<B> {
            path: PathTracker::default(),
            settings: &self.settings,
            state: &mut self.state,
            bases,
            gradients,
            lr,
        })
    }

    /// The new bases of those projected matrices that are due, several computed at the same time.
    fn due_bases<M: AutodiffModule<B>>(
        &mut self,
        module: &M,
        gradients: &GradientsParams,
    ) -> BTreeMap<String, Tensor<B::InnerBackend, 2>> {
        let Some(galore) = &self.settings.galore else { return BTreeMap::new() };
        let started = Instant::now();
        let (path, state) = (PathTracker::default(), &self.state);
        let mut due = Due::<B> { path, galore, state, gradients, jobs: Vec::new() };
        module.visit(&mut due);
        let bases: BTreeMap<_, _> = due.jobs.into_par_iter().map(Job::run).collect();
        if !bases.is_empty() {
            self.refreshed.bases += bases.len() as u64;
            self.refreshed.seconds += started.elapsed().as_secs_f64();
        }
        bases
    }

    /// What GaLore's bases have cost since this was last asked; `None` if none were computed.
    pub fn take_refresh_cost(&mut self) -> Option<RefreshCost> {
        let cost = std::mem::take(&mut self.refreshed);
        (cost.bases > 0).then_some(cost)
    }

    /// Copies the state out: `<slot>/<parameter>` for each tensor, and `step/<parameter>` for the counter.
    ///
    /// # Errors
    /// [`OptimizerError::Read`] if the device has lost a tensor.
    pub fn export(&self) -> Result<Vec<NamedTensor>, OptimizerError> {
        let mut tensors = Vec::new();
        for (name, state) in &self.state {
            let step = TensorData::new(vec![state.step as i64], [1]);
            tensors.push(NamedTensor { name: format!("{STEP}/{name}"), data: step });
            // Where there is no basis, there is no tensor for it.
            let slots = update::slots(self.settings.rule).iter().chain([&galore::BASIS]);
            for (slot, tensor) in slots.zip(&state.tensors) {
                let name = format!("{slot}/{name}");
                match read_sync(B::InnerBackend::float_into_data(tensor.clone())) {
                    Ok(data) => tensors.push(NamedTensor { name, data }),
                    Err(error) => return Err(OptimizerError::Read { name, message: error.to_string() }),
                }
            }
        }
        Ok(tensors)
    }

    /// Takes up the state that [`export`](Self::export) gave, for the parameters of `module`.
    ///
    /// # Errors
    /// If tensors are missing, do not belong, or have another shape than the parameter. The state is then unchanged.
    pub fn import<M: AutodiffModule<B>>(
        &mut self,
        module: &M,
        tensors: impl IntoIterator<Item = NamedTensor>,
    ) -> Result<(), OptimizerError> {
        let mut by_name: BTreeMap<String, TensorData> =
            tensors.into_iter().map(|tensor| (tensor.name, tensor.data)).collect();
        let mut targets = Targets::<B>::default();
        module.visit(&mut targets);
        let (mut state, mut problems) = (BTreeMap::new(), Vec::new());
        for target in targets.found {
            let Some(step) = by_name.remove(&format!("{STEP}/{}", target.name)) else { continue };
            let step = match step.as_slice::<i64>() {
                Ok(&[step]) if step > 0 => step as u64,
                _ => {
                    problems.push(format!("{STEP}/{} is no step count", target.name));
                    continue;
                }
            };
            let mut tensors = Vec::new();
            for (slot, shape) in self.settings.state_shapes(&target.name, &target.shape) {
                let name = format!("{slot}/{}", target.name);
                match by_name.remove(&name) {
                    None => problems.push(format!("{name} is missing")),
                    Some(data) if data.shape.as_slice() != shape => {
                        let (found, expected) = (data.shape.as_slice(), &shape);
                        problems.push(format!("{name} has the shape {found:?}, not {expected:?}"));
                    }
                    Some(data) if data.dtype != target.dtype => {
                        problems.push(format!("{name} has elements {:?}, not {:?}", data.dtype, target.dtype));
                    }
                    Some(data) => tensors.push(B::InnerBackend::float_from_data(data, &target.device)),
                }
            }
            state.insert(target.name, ParameterState { step, tensors });
        }
        problems.extend(by_name.into_keys().map(|name| format!("{name} belongs to nothing here")));
        if !problems.is_empty() {
            return Err(OptimizerError::State { problems });
        }
        self.state = state;
        Ok(())
    }

    /// How many bytes the state takes.
    pub fn state_bytes(&self) -> usize {
        let tensors = self.state.values().flat_map(|state| &state.tensors);
        tensors.map(|tensor| tensor.shape().num_elements() * tensor.dtype().size()).sum()
    }
}

struct Step<'a, B: AutodiffBackend> {
    path: PathTracker,
    settings: &'a OptimizerSettings,
    state: &'a mut BTreeMap<String, ParameterState<B::InnerBackend>>,
    /// Of projected matrices whose basis was due.
    bases: BTreeMap<String, Tensor<B::InnerBackend, 2>>,
    gradients: GradientsParams,
    lr: f64,
}

impl<B: AutodiffBackend<InnerBackend: FusedOps>> ModuleMapper<B> for Step<'_, B> {
    track_path!();

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let trainable = tensor.is_require_grad();
        let tensor = match self.gradients.remove::<B::InnerBackend, D>(id) {
            Some(gradient) if trainable => {
                let name = self.path.name();
                let (weight_decay, lr_factor) = self.settings.of(&name);
                let (rule, lr) = (self.settings.rule, self.lr * lr_factor);
                let projection = self.settings.galore.as_ref().and_then(|g| g.projection(&name, &tensor.dims()));
                let basis = self.bases.remove(&name);
                let state = self.state.entry(name).or_default();
                let updated = match projection {
                    None => update::update(rule, tensor.inner(), gradient, state, lr, weight_decay),
                    Some(projection) => {
                        let rule = (rule, projection);
                        let [parameter, gradient] = [tensor.inner(), gradient].map(recast::<B::InnerBackend, D, 2>);
                        let updated =
                            update::projected_update(rule, parameter, gradient, basis, state, lr, weight_decay);
                        recast(updated)
                    }
                };
                Tensor::from_inner(updated).require_grad()
            }
            _ => tensor,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// The same tensor, where the number of its dimensions is known to be `E`.
fn recast<I: Backend, const D: usize, const E: usize>(tensor: Tensor<I, D>) -> Tensor<I, E> {
    Tensor::from_primitive(tensor.into_primitive())
}

/// Gathers the projected matrices whose basis is due.
struct Due<'a, B: AutodiffBackend> {
    path: PathTracker,
    galore: &'a Galore,
    state: &'a BTreeMap<String, ParameterState<B::InnerBackend>>,
    gradients: &'a GradientsParams,
    jobs: Vec<Job<B::InnerBackend>>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Due<'_, B> {
    track_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let (name, tensor) = (self.path.name(), param.val());
        let Some(projection) = self.galore.projection(&name, &tensor.dims()) else { return };
        let step = self.state.get(&name).map_or(0, |state| state.step);
        if !(tensor.is_require_grad() && projection.is_due(step)) {
            return;
        }
        if let Some(gradient) = self.gradients.get::<B::InnerBackend, D>(param.id) {
            self.jobs.push(Job { name, projection, gradient: recast(gradient) });
        }
    }
}

/// Where state can belong.
struct Target<B: Backend> {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    device: B::Device,
}

struct Targets<B: Backend> {
    path: PathTracker,
    found: Vec<Target<B>>,
}

impl<B: Backend> Default for Targets<B> {
    fn default() -> Self {
        Self { path: PathTracker::default(), found: Vec::new() }
    }
}

impl<B: Backend> ModuleVisitor<B> for Targets<B> {
    track_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let tensor = param.val();
        let (shape, dtype, device) = (tensor.dims().to_vec(), tensor.dtype(), tensor.device());
        self.found.push(Target { name: self.path.name(), shape, dtype, device });
    }
}

#[cfg(test)]
mod tests {
    use burn::{
        backend::{Autodiff, Flex},
        module::Module,
        nn::{Linear, LinearConfig},
        tensor::TensorPrimitive,
    };

    use super::*;
    use crate::parameters;

    type A = Autodiff<Flex>;

    fn rules() -> [Rule; 6] {
        [
            Rule::adamw(),
            Rule::transformers_adamw(),
            Rule::AdamW { beta1: 0.9, beta2: 0.99, eps: 1e-8, amsgrad: true },
            Rule::adam(),
            Rule::sgd(),
            Rule::Sgd { momentum: 0.9, dampening: 0.0, nesterov: false },
        ]
    }

    fn optimizer(rule: Rule) -> Optimizer<A> {
        Optimizer::new(OptimizerSettings { rule, weight_decay: 0.1, ..Default::default() }).unwrap()
    }

    fn linear() -> Linear<A> {
        LinearConfig::new(3, 2).init(&Default::default())
    }

    fn gradients(model: &Linear<A>, factor: f32) -> GradientsParams {
        let x = Tensor::<A, 2>::from_floats([[factor, 2.0, -1.0]], &Default::default());
        GradientsParams::from_grads(model.forward(x).square().sum().backward(), model)
    }

    #[test]
    fn state_that_is_exported_and_imported_goes_on_to_the_same_bits() {
        for rule in rules() {
            let mut first = optimizer(rule);
            let mut model = linear();
            for step in 0..3 {
                let gradients = gradients(&model, step as f32);
                model = first.step(model, gradients, 0.01);
            }
            let mut second = optimizer(rule);
            second.import(&model, first.export().unwrap()).unwrap();
            assert_eq!(second.export().unwrap(), first.export().unwrap());
            // The same values in another module: names are what links them.
            let other = parameters::import(linear(), parameters::export(&model)).unwrap();
            let (a, b) = (gradients(&model, 5.0), gradients(&other, 5.0));
            let (model, other) = (first.step(model, a, 0.01), second.step(other, b, 0.01));
            assert_eq!(parameters::export(&other), parameters::export(&model));
            assert_eq!(first.state_bytes(), update::slots(rule).len() * 8 * 4);
        }
    }

    #[test]
    fn galore_keeps_moments_and_a_basis_of_its_rank() {
        let galore = Some(Galore { refresh_every: 2, ..Galore::new(["weight"], 1) });
        let settings = OptimizerSettings { rule: Rule::transformers_adamw(), galore, ..Default::default() };
        let mut first = Optimizer::<A>::new(settings.clone()).unwrap();
        let mut model = linear();
        let mut computed = Vec::new();
        for step in 0..3 {
            let gradients = gradients(&model, step as f32);
            model = first.step(model, gradients, 0.01);
            computed.push(first.take_refresh_cost().map(|cost| cost.bases));
        }
        assert_eq!(computed, [Some(1), None, Some(1)]);
        let shapes: Vec<_> = first.export().unwrap().into_iter().map(|t| (t.name, t.data.shape.to_vec())).collect();
        let expected = [
            ("step/bias", vec![1]),
            ("first_moment/bias", vec![2]),
            ("second_moment/bias", vec![2]),
            ("step/weight", vec![1]),
            ("first_moment/weight", vec![3, 1]),
            ("second_moment/weight", vec![3, 1]),
            ("basis/weight", vec![1, 2]),
        ];
        assert_eq!(shapes, expected.map(|(name, shape)| (name.to_owned(), shape)));
        assert_eq!(first.state_bytes(), 4 * (2 + 2 + 3 + 3 + 2));
        let planned = settings.state_elements("weight", &[3, 2]) + settings.state_elements("bias", &[2]);
        assert_eq!(first.state_bytes(), 4 * planned);

        let mut second = Optimizer::<A>::new(settings.clone()).unwrap();
        second.import(&model, first.export().unwrap()).unwrap();
        let other = parameters::import(linear(), parameters::export(&model)).unwrap();
        let (a, b) = (gradients(&model, 5.0), gradients(&other, 5.0));
        let (model, other) = (first.step(model, a, 0.01), second.step(other, b, 0.01));
        assert_eq!(parameters::export(&other), parameters::export(&model));

        let without = OptimizerSettings { galore: None, ..settings };
        let message = Optimizer::<A>::new(without).unwrap().import(&model, first.export().unwrap()).unwrap_err();
        assert!(message.to_string().contains("basis/weight belongs to nothing here"), "{message}");
    }

    #[test]
    fn state_that_does_not_fit_is_refused_with_every_reason() {
        let mut model = linear();
        let mut trained = optimizer(Rule::adamw());
        let g = gradients(&model, 1.0);
        model = trained.step(model, g, 0.01);
        let mut state = trained.export().unwrap();
        state.retain(|tensor| tensor.name != "first_moment/weight");
        for tensor in &mut state {
            match tensor.name.as_str() {
                "second_moment/weight" => tensor.data = TensorData::new(vec![0.0f32], [1]),
                "step/bias" => tensor.data = TensorData::new(vec![0.5f32], [1]),
                _ => {}
            }
        }
        state.push(NamedTensor { name: "first_moment/gone".into(), data: TensorData::new(vec![0.0f32], [1]) });
        let mut fresh = optimizer(Rule::adamw());
        let message = fresh.import(&model, state).unwrap_err().to_string();
        for part in [
            "first_moment/weight is missing",
            "second_moment/weight has the shape [1], not [3, 2]",
            "step/bias is no step count",
            "first_moment/gone belongs to nothing here",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(fresh.export().unwrap().is_empty(), "unchanged after an error");
        assert!(optimizer(Rule::sgd()).import(&model, trained.export().unwrap()).is_err(), "the state of another rule");
    }

    #[test]
    fn frozen_parameters_and_those_without_gradient_stay() {
        for rule in rules() {
            let model = linear();
            let mut both = gradients(&model, 1.0);
            both.remove::<Flex, 1>(model.bias.as_ref().unwrap().id);
            let before = parameters::export(&model);
            let mut optimizer = optimizer(rule);
            let after = optimizer.step(model, both, 0.01);
            assert!(after.weight.is_require_grad());
            let after = parameters::export(&after);
            assert_ne!(after[0], before[0]);
            assert_eq!(after[1], before[1], "not even decayed");

            let frozen = linear().no_grad();
            let stale = gradients(&linear(), 1.0);
            let before = parameters::export(&frozen);
            assert_eq!(parameters::export(&optimizer.step(frozen, stale, 0.01)), before);
        }
    }

    #[test]
    fn a_step_updates_in_place_where_it_holds_the_only_handle() {
        fn address(model: &Linear<A>) -> usize {
            match model.weight.val().inner().into_primitive() {
                TensorPrimitive::Float(primitive) => primitive.bytes().as_ptr() as usize,
                TensorPrimitive::QFloat(_) => unreachable!(),
            }
        }
        let mut optimizer = optimizer(Rule::sgd());
        let mut model = linear();
        let before = address(&model);
        for _ in 0..3 {
            let gradients = gradients(&model, 1.0);
            model = optimizer.step(model, gradients, 0.01);
            assert_eq!(address(&model), before);
        }
    }
}
