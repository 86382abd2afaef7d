//! LLaMA (RMSNorm, rotary embedding, causal attention, SwiGLU, untied head) with any connections between its layers.
//!
//! The forward pass and every name follow the authors' `LlamaForCausalLM`, so that their state dicts load
//! ([`state_dict`]). Padding is attended to, as there; it only disappears from the loss. What later LLaMA models do otherwise is
//! a [`LlamaVariant`].

mod config;
mod layers;
mod llama;
mod pass;
pub mod state_dict;
mod variant;
mod weights;

pub use config::{LlamaConfig, ModelError};
pub use llama::{Llama, Observation};
pub use pass::Pass;
pub use variant::{LlamaVariant, RotaryScaling, RotaryScalingError, rotary_frequencies};
pub use weights::{Drawn, Weights};
