//! The mix of a connection: a block's output plus a weighted sum of earlier states.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use burn::tensor::{DType, FloatDType, Shape, Tensor, TensorMetadata, backend::Backend, ops::FloatTensor};

use super::{primitive, tensor};
use crate::FusedOps;

/// `base + sum_i coefficients[i] * states[i]`: the connection of ANCRe (arXiv 2602.09009) and of every layout whose
/// coefficients do not depend on the token.
///
/// `coefficients` is `[n]` in `f32` whatever the type of the states, whose sum is then formed in `f32` and rounded once.
/// `base` and each of the `n` states share one shape. The gradient keeps nothing but handles to the inputs and is formed
/// in one pass over all states, adding straight into the sums that other uses of a state have begun.
///
/// # Panics
/// Where the number of states is not that of the coefficients, or shapes differ.
pub fn mix<B: FusedOps, const D: usize>(
    coefficients: Tensor<B, 1>,
    base: Tensor<B, D>,
    states: Vec<Tensor<B, D>>,
) -> Tensor<B, D> {
    assert_eq!(coefficients.dims()[0], states.len(), "mix: one coefficient for each state");
    mix_at(coefficients, 0, base, states)
}

/// [`mix()`] with the coefficients `coefficients[first..first + states.len()]`, so that all rows of a network's
/// coefficients can live in one tensor that is computed once a forward pass.
///
/// # Panics
/// Where that range is not inside `coefficients`, or shapes differ.
pub fn mix_at<B: FusedOps, const D: usize>(
    coefficients: Tensor<B, 1>,
    first: usize,
    base: Tensor<B, D>,
    states: Vec<Tensor<B, D>>,
) -> Tensor<B, D> {
    assert!(first + states.len() <= coefficients.dims()[0], "mix: one coefficient for each state");
    for state in &states {
        assert_eq!(state.dims(), base.dims(), "mix: states have the shape of the base");
    }
    if states.is_empty() {
        return base;
    }
    tensor(B::mix(primitive(coefficients), first, primitive(base), states.into_iter().map(primitive).collect()))
}

/// The states of one forward pass that are mixed again and again, and what the backward pass has found for them so far.
///
/// [`mix_at`] writes a part of a gradient to each of its states. Where one state after another is a mix of all before it, that is one
/// addition in memory for each pair of states. On a chain, a mix only leaves its own gradient behind; each state, when its turn
/// comes, gathers `sum_l c_l g_l` over the mixes `l` that took it, and finds their coefficients' gradients `g_l . h` on the way, in one pass: a third
/// of the traffic. Nothing stays open at the start of the backward pass, where memory is tightest.
///
/// ```
/// use burn::{backend::{Autodiff, Flex}, tensor::Tensor};
/// type B = Autodiff<Flex>;
/// let device = Default::default();
/// let coefficients = Tensor::<B, 1>::from_floats([1.0, 0.25, 0.5], &device).require_grad();
/// let input = Tensor::<B, 2>::full([1, 2], 3.0, &device).require_grad();
/// let mut chain = fused_ops::MixChain::default();
/// let h0 = chain.connect(coefficients.clone(), 0, input.clone(), vec![], true);
/// // Blocks that double their input, each followed by a mix.
/// let h1 = chain.connect(coefficients.clone(), 0, input.clone() * 2.0, vec![h0.clone()], true); // 2x + x = 9
/// let h2 = chain.connect(coefficients.clone(), 1, h1.clone() * 2.0, vec![h0, h1], false); // 18 + .25 x + .5 h1
/// let gradients = h2.sum().backward();
/// assert_eq!(input.grad(&gradients).unwrap().into_data().to_vec::<f32>().unwrap(), [7.75, 7.75]);
/// assert_eq!(coefficients.grad(&gradients).unwrap().into_data().to_vec::<f32>().unwrap(), [15.0, 6.0, 18.0]);
/// ```
#[derive(Clone, Debug)]
pub struct MixChain<B: Backend, const D: usize> {
    pending: PendingGradients,
    /// The last state, an ancestor of all that follow: so the backward pass comes to it after them.
    newest: Option<Tensor<B, D>>,
}

impl<B: Backend, const D: usize> Default for MixChain<B, D> {
    fn default() -> Self {
        Self { pending: PendingGradients::default(), newest: None }
    }
}

impl<B: FusedOps, const D: usize> MixChain<B, D> {
    /// The next state, [`mix_at`] of states of this chain; `base` itself where there are none. `kept` says whether a later state may take
    /// this one.
    ///
    /// All states of a chain use the same tensor of coefficients. What is mixed has to come from this function, on this chain or on one that it
    /// is a clone of.
    ///
    /// # Panics
    /// Where the range is not inside `coefficients`, or shapes differ.
    pub fn connect(
        &mut self,
        coefficients: Tensor<B, 1>,
        first: usize,
        base: Tensor<B, D>,
        states: Vec<Tensor<B, D>>,
        kept: bool,
    ) -> Tensor<B, D> {
        assert!(first + states.len() <= coefficients.dims()[0], "mix: one coefficient for each state");
        for state in states.iter().chain(&self.newest) {
            assert_eq!(state.dims(), base.dims(), "mix: states have the shape of the base");
        }
        let link = Link {
            pending: self.pending.clone(),
            coefficients: primitive(coefficients),
            first,
            base: primitive(base),
            states: states.into_iter().map(primitive).collect(),
            previous: self.newest.take().map(primitive),
            kept,
        };
        let state: Tensor<B, D> = tensor(B::connect(link));
        self.newest = Some(state.clone());
        state
    }
}

/// One state of a [`MixChain`], for [`FusedOps::connect`].
#[derive(Clone, Debug)]
pub struct Link<B: Backend> {
    /// What the backward pass leaves for states.
    pub pending: PendingGradients,
    /// All coefficients.
    pub coefficients: FloatTensor<B>,
    /// Index of the first that is used.
    pub first: usize,
    /// What the sum is added to.
    pub base: FloatTensor<B>,
    /// What is mixed.
    pub states: Vec<FloatTensor<B>>,
    /// The state before.
    pub previous: Option<FloatTensor<B>>,
    /// Whether a later state may take this one.
    pub kept: bool,
}

/// Gradients of mixes, left for the states that these took.
#[derive(Clone, Debug, Default)]
pub struct PendingGradients(Arc<Mutex<HashMap<u64, Vec<Pending>>>>);

/// Index of a coefficient, and the gradient of the mix that used it, of the type of a backend.
type Pending = (usize, Box<dyn Any + Send>);

impl PendingGradients {
    /// Leaves a mix's gradient for a state.
    pub(super) fn push<B: Backend>(&self, state: u64, coefficient: usize, gradient: FloatTensor<B>) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.entry(state).or_default().push((coefficient, Box::new(gradient)));
    }

    /// Takes what was left for a state: indices of coefficients, and gradients.
    pub(super) fn take<B: Backend>(&self, state: u64) -> (Vec<usize>, Vec<FloatTensor<B>>) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&state).unwrap_or_default();
        let gradient = |gradient: Box<dyn Any + Send>| *gradient.downcast().expect("a graph has one backend");
        taken.into_iter().map(|(index, any)| (index, gradient(any))).unzip()
    }
}

/// A tensor in `f32`, unless it is `f64` or `f32` already.
fn widened<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    match tensor.dtype() {
        DType::F64 | DType::F32 => tensor,
        _ => B::float_cast(tensor, FloatDType::F32),
    }
}

fn cast_like<B: Backend>(tensor: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    if tensor.dtype() == dtype { tensor } else { B::float_cast(tensor, dtype.into()) }
}

fn flat<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let elements = tensor.shape().num_elements();
    B::float_reshape(tensor, Shape::new([elements]))
}

/// Coefficient `i` as a `[1]` tensor in the type in which states are summed.
fn coefficient<B: Backend>(coefficients: &FloatTensor<B>, i: usize, dtype: DType) -> FloatTensor<B> {
    cast_like::<B>(B::float_slice(coefficients.clone(), &[(i..i + 1).into()]), dtype)
}

pub(crate) fn composition<B: Backend>(
    coefficients: FloatTensor<B>,
    first: usize,
    base: FloatTensor<B>,
    states: Vec<FloatTensor<B>>,
) -> FloatTensor<B> {
    let (shape, dtype) = (base.shape(), base.dtype());
    let mut sum = widened::<B>(flat::<B>(base));
    for (i, state) in states.into_iter().enumerate() {
        let c = coefficient::<B>(&coefficients, first + i, sum.dtype());
        sum = B::float_add(sum, B::float_mul(widened::<B>(flat::<B>(state)), c));
    }
    cast_like::<B>(B::float_reshape(sum, shape), dtype)
}

/// See [`FusedOps::gather`].
pub(crate) fn composition_gather<B: Backend>(
    coefficients: FloatTensor<B>,
    indices: &[usize],
    upstream: Option<FloatTensor<B>>,
    gradients: Vec<FloatTensor<B>>,
    state: Option<FloatTensor<B>>,
) -> (Option<FloatTensor<B>>, FloatTensor<B>) {
    let (shape, dtype) = (gradients[0].shape(), gradients[0].dtype());
    let gradients: Vec<_> = gradients.into_iter().map(|g| widened::<B>(flat::<B>(g))).collect();
    let coefficient_gradient = state.map(|state| {
        let state = widened::<B>(flat::<B>(state));
        let (device, dtype) = (B::float_device(&coefficients), coefficients.dtype());
        let zeros = B::float_zeros(coefficients.shape(), &device, dtype.into());
        indices.iter().zip(&gradients).fold(zeros, |all, (&i, gradient)| {
            let dot = B::float_sum(B::float_mul(gradient.clone(), state.clone()));
            let place = [(i..i + 1).into()];
            let sum = B::float_add(B::float_slice(all.clone(), &place), cast_like::<B>(dot, dtype));
            B::float_slice_assign(all, &place, sum)
        })
    });
    let mut sum = upstream.map(|upstream| widened::<B>(flat::<B>(upstream)));
    for (gradient, &i) in gradients.into_iter().zip(indices) {
        let c = coefficient::<B>(&coefficients, i, gradient.dtype());
        let part = B::float_mul(gradient, c);
        sum = Some(match sum {
            Some(sum) => B::float_add(sum, part),
            None => part,
        });
    }
    let sum = sum.expect("there is a gradient to gather");
    (coefficient_gradient, cast_like::<B>(B::float_reshape(sum, shape), dtype))
}

pub(crate) fn composition_backward<B: Backend>(
    coefficients: FloatTensor<B>,
    first: usize,
    states: Vec<FloatTensor<B>>,
    upstream: FloatTensor<B>,
    want_coefficients: bool,
    gradients: Vec<Option<Option<FloatTensor<B>>>>,
) -> (Option<FloatTensor<B>>, Vec<Option<FloatTensor<B>>>) {
    let (shape, dtype) = (upstream.shape(), upstream.dtype());
    let wide = widened::<B>(flat::<B>(upstream));
    let coefficient_gradient = want_coefficients.then(|| {
        let dots: Vec<_> = states
            .into_iter()
            .map(|state| B::float_sum(B::float_mul(widened::<B>(flat::<B>(state)), wide.clone())))
            .collect();
        let (device, dtype) = (B::float_device(&coefficients), coefficients.dtype());
        let slots = first..first + dots.len();
        let zeros = B::float_zeros(coefficients.shape(), &device, dtype.into());
        B::float_slice_assign(zeros, &[slots.into()], cast_like::<B>(B::float_cat(dots, 0), dtype))
    });
    let state_gradients = gradients
        .into_iter()
        .enumerate()
        .map(|(i, wanted)| {
            wanted.map(|sum| {
                let part = B::float_mul(wide.clone(), coefficient::<B>(&coefficients, first + i, wide.dtype()));
                let part = cast_like::<B>(B::float_reshape(part, shape.clone()), dtype);
                match sum {
                    Some(sum) => B::float_add(sum, part),
                    None => part,
                }
            })
        })
        .collect();
    (coefficient_gradient, state_gradients)
}
