//! Tensor operations with hand-written gradients: the handful of operations in which a small transformer or a deep
//! residual MLP spends its time outside matrix products, each as *one* node of the autodiff graph with *one* fast CPU kernel forward and one
//! backward.
//!
//! | operation | formula | saved for the backward pass (fused) |
//! |---|---|---|
//! | [`mix`] | `base + sum_i c_i h_i` | nothing beyond its inputs, which the caller holds anyway |
//! | [`MixChain`] | a mix after each block, of all states before | the same, and of the backward pass the gradients of later mixes |
//! | [`row_softmax`] | softmax of each row | its output |
//! | [`rms_norm`] | `x / rms(x) * weight` | its inputs |
//! | [`swiglu`] | `silu(gate) * up` | its inputs |
//! | [`causal_attention`] | rotary embedding, then causal softmax attention | its inputs and one number a row and head |
//! | [`self_attention`] | bidirectional softmax attention on packed queries, keys, values | its input and one number a row and head |
//! | [`modulated_layer_norm`] | `layer_norm(x) * (1 + scale) + shift` | its input and the scale |
//! | [`gated_add`] | `x + gate * branch` | the gate and the branch |
//! | [`gated_shortcut`] | `base + (1 + tanh(query . rms_norm(base))) * weight * state` | its inputs |
//! | [`add_bias`] | `x + bias` | nothing |
//! | [`bias_gelu`] | `gelu(x + bias)`, tanh form | the derivative of GELU |
//! | [`bias_norm_swish`] | `swish(layer_norm(x + bias) * gain + offset)` | its inputs |
//! | [`pairwise_distances`] | `|left_i - right_j|` | its inputs and the distances |
//! | [`residual_block`] | `x + layers(x)`, each layer `swish(layer_norm(h W + bias) * gain + offset)` | of each layer its normalised rows and what leaves it |
//! | [`mix_streams`], [`update_streams`] | `sum_s w_{s,t} h_s` with weights for every row | its inputs |
//! | [`sinkhorn`] | doubly stochastic matrices out of logits | its input |
//! | [`concatenate`] | `Tensor::cat`, safe beside backward passes of other threads | (burn's own node) |
//! | [`cross_entropy`] | mean over the targets that count | the gradient of the logits |
//! | [`adamw`] | PyTorch's AdamW | (an update, not differentiated) |
//!
//! # How it is put together
//! - [`kernels`]: the arithmetic, on plain slices. They know no tensor library.
//! - `ops`: for each operation its *composition* of ordinary tensor operations (what a backend without a fast path
//!   runs, and what the kernels are tested against) and its node in the autodiff graph.
//! - [`FusedOps`]: the trait a backend implements to take part; `flex` holds the CPU backend's fast paths. Other backends
//!   run the compositions: those of burn under the features `cuda`, `wgpu` and `ndarray`, and a backend of your own with
//!   `impl FusedOps for MyBackend {}`.
//!
//! Results do not depend on the number of threads: reductions are summed over chunks of fixed size in a fixed order.
//!
//! ```
//! use burn::{backend::{Autodiff, Flex}, tensor::Tensor};
//! type B = Autodiff<Flex>;
//! let device = Default::default();
//! let base = Tensor::<B, 2>::ones([2, 3], &device).require_grad();
//! let state = Tensor::<B, 2>::full([2, 3], 2.0, &device).require_grad();
//! let coefficients = Tensor::<B, 1>::from_floats([0.5], &device).require_grad();
//! let mixed = fused_ops::mix(coefficients.clone(), base, vec![state]);
//! assert_eq!(mixed.clone().sum().into_scalar(), 12.0);
//! let gradients = mixed.sum().backward();
//! assert_eq!(coefficients.grad(&gradients).unwrap().into_scalar(), 12.0);
//! ```

mod backend;
mod flex;
pub mod kernels;
mod ops;

pub use backend::FusedOps;
pub use ops::adamw::{AdamWStep, adamw};
pub use ops::attention::{AttentionShape, RotaryTable, causal_attention};
pub use ops::bias::{add_bias, bias_gelu};
pub use ops::bias_norm_swish::bias_norm_swish;
pub use ops::concatenate::concatenate;
pub use ops::cross_entropy::{IGNORE_TARGET, cross_entropy};
pub use ops::distances::pairwise_distances;
pub use ops::gated_add::gated_add;
pub use ops::gated_shortcut::gated_shortcut;
pub use ops::mix::{Link, MixChain, PendingGradients, mix, mix_at};
pub use ops::modulated_layer_norm::modulated_layer_norm;
pub use ops::residual_block::residual_block;
pub use ops::rms_norm::rms_norm;
pub use ops::self_attention::self_attention;
pub use ops::sinkhorn::sinkhorn;
pub use ops::softmax::row_softmax;
pub use ops::streams::{mix_streams, update_streams};
pub use ops::swiglu::swiglu;
