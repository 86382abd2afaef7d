//! A module's parameters by name.
//!
//! A name is the path through the module, joined by dots: `layers.3.attention.query.weight`. Elements of a `Vec`, an
//! array or a tuple are numbered from 0. Neither an `Option` nor the variant of an enum adds a part: both are choices
//! of what stands there, not places of their own.
//!
//! Everything that outlives a process is keyed by these names. burn's own `ParamId`s are drawn anew in every process and
//! are not kept when a record is loaded (burn issue 5130); here they only link a parameter to its gradient within a step.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::{self, Write},
};

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId},
    tensor::{Bool, DType, Int, Tensor, TensorData, backend::Backend},
};

/// The path to where a walk through a module stands.
#[derive(Debug, Default)]
pub(crate) struct PathTracker(Vec<String>);

impl PathTracker {
    /// The name of the parameter at this place.
    pub(crate) fn name(&self) -> String {
        self.0.join(".")
    }

    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_owned());
        }
    }

    pub(crate) fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }
}

/// The `enter_module` and `exit_module` of a visitor or mapper with a field `path: PathTracker`.
macro_rules! track_path {
    () => {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }

        fn exit_module(&mut self, _name: &str, container: &str) {
            self.path.exit(container);
        }
    };
}
pub(crate) use track_path;

/// The kind of a parameter's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// Floating point; the only kind that can be trained.
    Float,
    /// Whole numbers.
    Int,
    /// Truth values.
    Bool,
}

impl ParameterKind {
    fn holds(self, dtype: DType) -> bool {
        match self {
            Self::Float => dtype.is_float(),
            Self::Int => dtype.is_int() || dtype.is_uint(),
            Self::Bool => dtype.is_bool(),
        }
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Float => "float",
            Self::Int => "integer",
            Self::Bool => "bool",
        })
    }
}

/// What can be said about a parameter without looking at its values.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterInfo {
    /// The path through the module.
    pub name: String,
    /// burn's identity of the parameter in this process, which its gradient is filed under.
    pub id: ParamId,
    /// The sizes of its dimensions.
    pub shape: Vec<usize>,
    /// The kind of its elements.
    pub kind: ParameterKind,
    /// Whether gradients are taken for it; never so on a backend without autodiff.
    pub trainable: bool,
}

impl ParameterInfo {
    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A tensor with the name it is filed under.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// The name.
    pub name: String,
    /// Shape, element type and values.
    pub data: TensorData,
}

/// Tensors that do not fit a module; every misfit of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("the tensors do not fit the model{}", self.list())]
pub struct ParameterError {
    /// Parameters of the module that there is no tensor for.
    pub missing: Vec<String>,
    /// Tensors that the module has no parameter for, or of a name that appears twice.
    pub unexpected: Vec<String>,
    /// Tensors of another shape or kind than the parameter, with both.
    pub mismatched: Vec<String>,
}

impl ParameterError {
    fn list(&self) -> String {
        let mut text = String::new();
        for (what, names) in [
            ("missing", &self.missing),
            ("unexpected", &self.unexpected),
            ("of another shape or kind", &self.mismatched),
        ] {
            if !names.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n  {what} ({}): {}", names.len(), names.join(", "));
            }
        }
        text
    }

    fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.mismatched.is_empty()
    }
}

/// The parameters of a module, in the order of its fields.
///
/// Parameters that burn initialises lazily are initialised by this, in that order.
///
/// ```
/// use burn::{backend::Flex, nn::LinearConfig};
/// let linear = LinearConfig::new(3, 2).init::<Flex>(&Default::default());
/// let parameters = training::parameters::named_parameters(&linear);
/// assert_eq!((parameters[0].name.as_str(), parameters[0].shape.as_slice()), ("weight", &[3, 2][..]));
/// assert_eq!((parameters[1].name.as_str(), parameters[1].elements()), ("bias", 2));
/// ```
pub fn named_parameters<B: Backend, M: Module<B>>(module: &M) -> Vec<ParameterInfo> {
    struct Names {
        path: PathTracker,
        found: Vec<ParameterInfo>,
    }
    impl Names {
        fn add(&mut self, id: ParamId, shape: Vec<usize>, kind: ParameterKind, trainable: bool) {
            self.found.push(ParameterInfo { name: self.path.name(), id, shape, kind, trainable });
        }
    }
    impl<B: Backend> ModuleVisitor<B> for Names {
        track_path!();

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let tensor = param.val();
            self.add(param.id, tensor.dims().to_vec(), ParameterKind::Float, tensor.is_require_grad());
        }

        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<B, D, Int>>) {
            self.add(param.id, param.val().dims().to_vec(), ParameterKind::Int, false);
        }

        fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<B, D, Bool>>) {
            self.add(param.id, param.val().dims().to_vec(), ParameterKind::Bool, false);
        }
    }
    let mut names = Names { path: PathTracker::default(), found: Vec::new() };
    module.visit(&mut names);
    names.found
}

/// Pairs of names that are the same parameter to burn.
///
/// burn updates such copies separately, and only the first gets the gradient: weights cannot be tied by cloning a
/// parameter. Use one parameter in two places of the forward pass instead.
pub fn shared_parameters(parameters: &[ParameterInfo]) -> Vec<(String, String)> {
    let mut first: BTreeMap<ParamId, &str> = BTreeMap::new();
    let mut shared = Vec::new();
    for parameter in parameters {
        match first.get(&parameter.id) {
            Some(name) => shared.push(((*name).to_owned(), parameter.name.clone())),
            None => _ = first.insert(parameter.id, &parameter.name),
        }
    }
    shared
}

/// Copies all parameters out of a module, in the order of [`named_parameters`] and to the bit.
///
/// What batch normalisation keeps between steps (burn's `RunningState`) is among them, up to date.
pub fn export<B: Backend, M: Module<B>>(module: &M) -> Vec<NamedTensor> {
    struct Export {
        path: PathTracker,
        tensors: Vec<NamedTensor>,
    }
    impl Export {
        fn add(&mut self, data: TensorData) {
            self.tensors.push(NamedTensor { name: self.path.name(), data });
        }
    }
    impl<B: Backend> ModuleVisitor<B> for Export {
        track_path!();

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            self.add(param.val().into_data());
        }

        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<B, D, Int>>) {
            self.add(param.val().into_data());
        }

        fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<B, D, Bool>>) {
            self.add(param.val().into_data());
        }
    }
    settle(module);
    let mut export = Export { path: PathTracker::default(), tensors: Vec::new() };
    module.visit(&mut export);
    export.tensors
}

/// Brings what a `RunningState` has pending into its value. A visitor sees the value only, but the conversion to a record
/// settles the state, which is shared between the clones of a module.
fn settle<B: Backend, M: Module<B>>(module: &M) {
    // First, or the clone would initialise its lazy parameters and draw random numbers for it.
    named_parameters(module);
    drop(module.clone().into_record());
}

/// Puts tensors in the place of all parameters of a module. Identity and gradient requirement of each parameter stay,
/// and so does its element type: other floats are converted.
///
/// On a backend without autodiff, burn takes the result for frozen; to train on, import into the autodiff module.
///
/// # Errors
/// If any parameter is missing, any tensor unexpected, or any shape or kind different; all of them are listed.
pub fn import<B: Backend, M: Module<B>>(
    module: M,
    tensors: impl IntoIterator<Item = NamedTensor>,
) -> Result<M, ParameterError> {
    let mut problems = ParameterError::default();
    let mut by_name: BTreeMap<String, TensorData> = BTreeMap::new();
    for tensor in tensors {
        match by_name.entry(tensor.name) {
            Entry::Vacant(place) => _ = place.insert(tensor.data),
            Entry::Occupied(place) => problems.unexpected.push(place.key().clone()),
        }
    }
    settle(&module);
    let parameters = named_parameters(&module);
    for parameter in &parameters {
        let Some(data) = by_name.get(&parameter.name) else {
            problems.missing.push(parameter.name.clone());
            continue;
        };
        if data.shape.as_slice() != parameter.shape {
            let found = data.shape.as_slice();
            problems.mismatched.push(format!("{} (model {:?}, tensor {found:?})", parameter.name, parameter.shape));
        } else if !parameter.kind.holds(data.dtype) {
            let dtype = data.dtype;
            problems.mismatched.push(format!("{} (model {}, tensor {dtype:?})", parameter.name, parameter.kind));
        }
    }
    problems
        .unexpected
        .extend(by_name.keys().filter(|name| !parameters.iter().any(|parameter| parameter.name == **name)).cloned());
    if !problems.is_empty() {
        return Err(problems);
    }

    struct Import {
        path: PathTracker,
        tensors: BTreeMap<String, TensorData>,
    }
    impl Import {
        fn take(&mut self) -> Option<TensorData> {
            self.tensors.remove(&self.path.name())
        }
    }
    impl<B: Backend> ModuleMapper<B> for Import {
        track_path!();

        fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
            let (id, old, mapper) = param.consume();
            let new = match self.take() {
                Some(data) => {
                    Tensor::from_data(data, (&old.device(), old.dtype())).set_require_grad(old.is_require_grad())
                }
                // Checked above: every parameter has its tensor.
                None => old,
            };
            Param::from_mapped_value(id, new, mapper)
        }

        fn map_int<const D: usize>(&mut self, param: Param<Tensor<B, D, Int>>) -> Param<Tensor<B, D, Int>> {
            let (id, old, mapper) = param.consume();
            let new =
                self.take().map_or_else(|| old.clone(), |data| Tensor::from_data(data, (&old.device(), old.dtype())));
            Param::from_mapped_value(id, new, mapper)
        }

        fn map_bool<const D: usize>(&mut self, param: Param<Tensor<B, D, Bool>>) -> Param<Tensor<B, D, Bool>> {
            let (id, old, mapper) = param.consume();
            let new = self.take().map_or_else(|| old.clone(), |data| Tensor::from_data(data, &old.device()));
            Param::from_mapped_value(id, new, mapper)
        }
    }
    Ok(module.map(&mut Import { path: PathTracker::default(), tensors: by_name }))
}
