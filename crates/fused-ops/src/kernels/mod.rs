//! The arithmetic of the fused operations on plain `f32` slices, vectorised and threaded, without a tensor library.
//!
//! Every kernel gives the same bits for any number of threads and any SIMD level: element-wise loops are the same
//! expression at each level (no fused multiply-add), and sums run over a fixed number of lanes and chunks. (Matrix
//! products inside attention are fused where the CPU can, so their rounding may differ between SIMD levels.)
//!
//! Kernels panic where slices do not fit each other; the functions on tensors check shapes before.

/// Checks that slices which an operation reads or writes together have one length: the kernels would otherwise stop at
/// the shortest, or run past an end.
macro_rules! same_length {
    ($operation:literal, $first:expr $(, $other:expr)+ $(,)?) => {
        $(assert_eq!($first.len(), $other.len(), concat!($operation, ": slices have one length"));)+
    };
}

pub mod adamw;
pub mod attention;
pub mod bias;
pub mod bias_norm_swish;
pub mod cross_entropy;
pub mod distances;
pub mod gated_add;
pub mod gated_shortcut;
pub mod mix;
pub mod modulated_layer_norm;
mod products;
pub mod residual_block;
pub mod rms_norm;
pub mod self_attention;
pub mod sequences;
pub mod simd;
pub mod sinkhorn;
mod small_attention;
pub mod streams;
pub mod swiglu;

/// Elements that one task of a threaded element-wise kernel handles: 32 KiB of `f32`, so that a few operands fit L2.
pub(crate) const CHUNK: usize = 8192;

/// As [`CHUNK`], for kernels that do next to nothing with an element: below it the hand-over to another thread costs
/// more than the work.
pub(crate) const LIGHT_CHUNK: usize = 8 * CHUNK;
