//! The trait through which a backend takes part, with a composition of ordinary operations as the default of each.

use burn::tensor::{
    DType,
    backend::Backend,
    ops::{FloatTensor, IntTensor},
};

use crate::ops::{
    adamw, adamw::AdamWStep, attention, attention::AttentionShape, bias, bias_norm_swish, cross_entropy, distances,
    gated_add, gated_shortcut, mix, mix::Link, modulated_layer_norm, residual_block, rms_norm, self_attention,
    sinkhorn, softmax, streams, swiglu,
};

/// What the fused operations need of a backend.
///
/// Every method that has no `_backward` in its name defaults to a composition of ordinary operations, so
/// `impl FusedOps for MyBackend {}` is enough for a backend of one's own; burn's are implemented here, under the features
/// of their names. A backend with kernels of its own overrides [`fused`](Self::fused) and
/// the pairs of methods. `Autodiff<B>` implements the trait for every `B: FusedOps`: it records one node for each
/// operation where `B` is fused, and the composition's own nodes where it is not; [`mix`](Self::mix),
/// [`connect`](Self::connect) and [`row_softmax`](Self::row_softmax) are always one node.
///
/// These are methods on primitives; use the crate's functions on [`Tensor`](burn::tensor::Tensor)s instead.
pub trait FusedOps: Backend {
    /// Whether the backend has kernels for the operations on tensors of this type. The `_backward` methods (but for
    /// that of [`mix`](Self::mix)) are only called where this is true.
    fn fused(_dtype: DType) -> bool {
        false
    }

    /// `base + sum_i coefficients[first + i] * states[i]`; see [`mix_at`](crate::mix_at()).
    fn mix(
        coefficients: FloatTensor<Self>,
        first: usize,
        base: FloatTensor<Self>,
        states: Vec<FloatTensor<Self>>,
    ) -> FloatTensor<Self> {
        mix::composition::<Self>(coefficients, first, base, states)
    }

    /// Gradients of [`mix`](Self::mix): of all coefficients (where asked for; 0 outside the range that was used), and
    /// `gradients[i] + coefficients[first + i] * upstream` for every state that has a place in `gradients` (`None`: not wanted, `Some(None)`: none yet).
    fn mix_backward(
        coefficients: FloatTensor<Self>,
        first: usize,
        states: Vec<FloatTensor<Self>>,
        upstream: FloatTensor<Self>,
        want_coefficients: bool,
        gradients: Vec<Option<Option<FloatTensor<Self>>>>,
    ) -> (Option<FloatTensor<Self>>, Vec<Option<FloatTensor<Self>>>) {
        mix::composition_backward::<Self>(coefficients, first, states, upstream, want_coefficients, gradients)
    }

    /// The next state of a [`MixChain`](crate::MixChain).
    fn connect(link: Link<Self>) -> FloatTensor<Self> {
        match link.states.is_empty() {
            true => link.base,
            false => Self::mix(link.coefficients, link.first, link.base, link.states),
        }
    }

    /// The gradient of a state of a chain, `upstream + sum_k coefficients[indices[k]] * gradients[k]`, and, where `state` is given, that of
    /// the coefficients: `gradients[k] . state` at `indices[k]`, and 0 elsewhere. There is at least one gradient.
    fn gather(
        coefficients: FloatTensor<Self>,
        indices: &[usize],
        upstream: Option<FloatTensor<Self>>,
        gradients: Vec<FloatTensor<Self>>,
        state: Option<FloatTensor<Self>>,
    ) -> (Option<FloatTensor<Self>>, FloatTensor<Self>) {
        mix::composition_gather::<Self>(coefficients, indices, upstream, gradients, state)
    }

    /// See [`row_softmax`](crate::row_softmax()).
    fn row_softmax(logits: FloatTensor<Self>) -> FloatTensor<Self> {
        softmax::composition::<Self>(logits)
    }

    /// See [`rms_norm`](crate::rms_norm()); `input` is `[rows, width]`.
    fn rms_norm(input: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        rms_norm::composition::<Self>(input, weight, eps)
    }

    /// Gradients of the input and the weight.
    fn rms_norm_backward(
        _input: FloatTensor<Self>,
        _weight: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
        _eps: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("rms_norm")
    }

    /// See [`swiglu`](crate::swiglu()).
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        swiglu::composition::<Self>(gate, up)
    }

    /// Gradients of the gate and of what it gates.
    fn swiglu_backward(
        _gate: FloatTensor<Self>,
        _up: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("swiglu")
    }

    /// See [`causal_attention`](crate::causal_attention()); `table` is `[2, length, head_size / 2]`, cosines then sines.
    /// The second tensor is whatever the backward pass needs beyond the inputs.
    fn causal_attention(
        queries: FloatTensor<Self>,
        keys: FloatTensor<Self>,
        values: FloatTensor<Self>,
        table: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>) {
        (attention::composition::<Self>(queries, keys, values, table, shape), None)
    }

    /// Gradients of queries, keys and values.
    fn causal_attention_backward(
        _inputs: [FloatTensor<Self>; 3],
        _table: FloatTensor<Self>,
        _saved: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
        _shape: AttentionShape,
    ) -> [FloatTensor<Self>; 3] {
        no_kernel::<Self>("causal_attention")
    }

    /// See [`self_attention`](crate::self_attention()). The second tensor is whatever the backward pass needs beyond
    /// the input.
    fn self_attention(
        packed: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> (FloatTensor<Self>, Option<FloatTensor<Self>>) {
        (self_attention::composition::<Self>(packed, shape), None)
    }

    /// Gradient of the packed queries, keys and values.
    fn self_attention_backward(
        _packed: FloatTensor<Self>,
        _saved: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
        _shape: AttentionShape,
    ) -> FloatTensor<Self> {
        no_kernel::<Self>("self_attention")
    }

    /// See [`modulated_layer_norm`](crate::modulated_layer_norm()).
    fn modulated_layer_norm(
        input: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self> {
        modulated_layer_norm::composition::<Self>(input, shift, scale, eps)
    }

    /// Gradients of the input, the shift and the scale.
    fn modulated_layer_norm_backward(
        _input: FloatTensor<Self>,
        _scale: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
        _eps: f64,
    ) -> [FloatTensor<Self>; 3] {
        no_kernel::<Self>("modulated_layer_norm")
    }

    /// See [`gated_add`](crate::gated_add()).
    fn gated_add(x: FloatTensor<Self>, gate: FloatTensor<Self>, branch: FloatTensor<Self>) -> FloatTensor<Self> {
        gated_add::composition::<Self>(x, gate, branch)
    }

    /// Gradients of the gate and the branch; that of `x` is the upstream gradient.
    fn gated_add_backward(
        _gate: FloatTensor<Self>,
        _branch: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("gated_add")
    }

    /// See [`gated_shortcut`](crate::gated_shortcut()): base and state; weight and query.
    fn gated_shortcut(rows: [FloatTensor<Self>; 2], parameters: [FloatTensor<Self>; 2], eps: f64) -> FloatTensor<Self> {
        gated_shortcut::composition::<Self>(rows, parameters, eps)
    }

    /// Gradients of base, state, weight and query.
    fn gated_shortcut_backward(
        _rows: [FloatTensor<Self>; 2],
        _parameters: [FloatTensor<Self>; 2],
        _upstream: FloatTensor<Self>,
        _eps: f64,
    ) -> [FloatTensor<Self>; 4] {
        no_kernel::<Self>("gated_shortcut")
    }

    /// See [`add_bias`](crate::add_bias()).
    fn add_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        bias::add_composition::<Self>(x, bias)
    }

    /// Gradient of the bias, `[width]`; that of `x` is the upstream gradient.
    fn add_bias_backward(_upstream: FloatTensor<Self>) -> FloatTensor<Self> {
        no_kernel::<Self>("add_bias")
    }

    /// See [`bias_gelu`](crate::bias_gelu()).
    fn bias_gelu(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        bias::gelu_composition::<Self>(x, bias)
    }

    /// The output and the derivative of GELU at `x + bias`, in one go.
    fn bias_gelu_with_derivative(
        _x: FloatTensor<Self>,
        _bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("bias_gelu")
    }

    /// Gradients of `x` and the bias.
    fn bias_gelu_backward(
        _derivative: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("bias_gelu")
    }

    /// See [`bias_norm_swish`](crate::bias_norm_swish()); the affine part is bias, gain, offset.
    fn bias_norm_swish(x: FloatTensor<Self>, affine: [FloatTensor<Self>; 3], eps: f64) -> FloatTensor<Self> {
        bias_norm_swish::composition::<Self>(x, affine, eps)
    }

    /// Gradients of `x`, bias, gain and offset.
    fn bias_norm_swish_backward(
        _x: FloatTensor<Self>,
        _affine: [FloatTensor<Self>; 3],
        _upstream: FloatTensor<Self>,
        _eps: f64,
    ) -> [FloatTensor<Self>; 4] {
        no_kernel::<Self>("bias_norm_swish")
    }

    /// See [`pairwise_distances`](crate::pairwise_distances()).
    fn pairwise_distances(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        distances::composition::<Self>(left, right)
    }

    /// Gradients of those of the two matrices that are wanted; the third saved tensor is the distances.
    fn pairwise_distances_backward(
        _saved: [FloatTensor<Self>; 3],
        _upstream: FloatTensor<Self>,
        _wanted: [bool; 2],
    ) -> [Option<FloatTensor<Self>>; 2] {
        no_kernel::<Self>("pairwise_distances")
    }

    /// See [`mix_streams`](crate::mix_streams()) and [`update_streams`](crate::update_streams()).
    fn mix_streams(
        weights: FloatTensor<Self>,
        streams: FloatTensor<Self>,
        added: Option<FloatTensor<Self>>,
        n: usize,
    ) -> FloatTensor<Self> {
        streams::composition::<Self>(weights, streams, added, n)
    }

    /// Gradients of the weights, the streams and what is added.
    fn mix_streams_backward(
        _weights: FloatTensor<Self>,
        _streams: FloatTensor<Self>,
        _added: Option<FloatTensor<Self>>,
        _upstream: FloatTensor<Self>,
        _n: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, Option<FloatTensor<Self>>) {
        no_kernel::<Self>("mix_streams")
    }

    /// See [`sinkhorn`](crate::sinkhorn()).
    fn sinkhorn(logits: FloatTensor<Self>, n: usize, rounds: usize) -> FloatTensor<Self> {
        sinkhorn::composition::<Self>(logits, n, rounds)
    }

    /// Gradient of the logits.
    fn sinkhorn_backward(
        _logits: FloatTensor<Self>,
        _upstream: FloatTensor<Self>,
        _n: usize,
        _rounds: usize,
    ) -> FloatTensor<Self> {
        no_kernel::<Self>("sinkhorn")
    }

    /// See [`residual_block`](crate::residual_block()).
    fn residual_block(x: FloatTensor<Self>, parameters: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        residual_block::composition::<Self>(x, parameters, eps)
    }

    /// The output, and what the backward pass needs beyond the inputs.
    fn residual_block_keeping(
        _x: FloatTensor<Self>,
        _parameters: FloatTensor<Self>,
        _eps: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("residual_block")
    }

    /// Gradients of `x` and of the parameters, those that are wanted; the third saved tensor is what the forward pass kept.
    fn residual_block_backward(
        _saved: [FloatTensor<Self>; 3],
        _upstream: FloatTensor<Self>,
        _wanted: [bool; 2],
    ) -> [Option<FloatTensor<Self>>; 2] {
        no_kernel::<Self>("residual_block")
    }

    /// See [`cross_entropy`](crate::cross_entropy()).
    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        cross_entropy::composition::<Self>(logits, targets)
    }

    /// The loss and its gradient with respect to the logits, in one go.
    fn cross_entropy_with_gradient(
        _logits: FloatTensor<Self>,
        _targets: IntTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        no_kernel::<Self>("cross_entropy")
    }

    /// See [`adamw`](crate::adamw()): new parameter, first and second moment.
    fn adamw(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: &AdamWStep,
    ) -> [FloatTensor<Self>; 3] {
        adamw::composition::<Self>(parameter, gradient, first, second, step)
    }
}

/// A fused kernel was asked for where [`FusedOps::fused`] is false: a fault of the calling code, not of any input.
fn no_kernel<B: Backend>(operation: &str) -> ! {
    unreachable!("{operation} has no fused kernel on {}", std::any::type_name::<B>())
}

#[cfg(feature = "cuda")]
impl FusedOps for burn::backend::Cuda {}

#[cfg(feature = "wgpu")]
impl FusedOps for burn::backend::Wgpu {}

#[cfg(feature = "ndarray")]
impl FusedOps for burn::backend::NdArray {}
