//! LLaMA (RMSNorm, rotary embedding, causal attention, SwiGLU, untied head) with any connections between its layers.
//!
//! The forward pass and every name follow the authors' `LlamaForCausalLM`, so that their state dicts load
//! ([`state_dict`]). Padding is attended to, as there; it only disappears from the loss.

mod config;
mod layers;
mod llama;
pub mod state_dict;

pub use config::{LlamaConfig, ModelError};
pub use llama::{Llama, Observation};
