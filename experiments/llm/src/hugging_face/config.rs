//! `config.json`: what transformers writes, in the keys of version 5 (`rope_parameters`) and before (`rope_theta`, `rope_scaling`).

use std::{fs, io, path::Path};

use ancre::{Arm, DEFAULT_TAU};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::model::{LlamaConfig, LlamaVariant, ModelError, RotaryScaling};

/// A configuration, as far as this program needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct FolderConfig {
    /// The sizes and constants of the model.
    pub model: LlamaConfig,
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is no JSON, or a value is missing or of the wrong kind.
    #[error("{0}; is it the config.json of a LLaMA model?")]
    Json(#[from] serde_json::Error),
    /// A model of another kind.
    #[error(
        "model_type is `{0}`: only `llama` is read, because other models compute something else under the same names"
    )]
    ModelType(String),
    /// A setting that changes what the model computes, and that is not supported.
    #[error("{key} is {value}: {reason}")]
    Unsupported {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// Why it is refused, and what would do.
        reason: &'static str,
    },
    /// A number of the rotary embedding's settings is missing or no number.
    #[error("the rotary embedding `{kind}` needs a number `{key}`, found {found}")]
    Rotary {
        /// Which embedding.
        kind: String,
        /// What it needs.
        key: &'static str,
        /// What stands there.
        found: String,
    },
    /// Sizes that no model can have.
    #[error("{0}")]
    Model(#[from] ModelError),
}

/// The keys that matter, with the defaults of transformers where a file may leave them out.
#[derive(Deserialize)]
struct Raw {
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    #[serde(default = "silu")]
    hidden_act: String,
    #[serde(default = "default_positions")]
    max_position_embeddings: usize,
    #[serde(default = "default_eps")]
    rms_norm_eps: f64,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    tie_word_embeddings: bool,
    rope_theta: Option<f64>,
    rope_scaling: Option<Map<String, Value>>,
    rope_parameters: Option<Map<String, Value>>,
    partial_rotary_factor: Option<f64>,
    quantization_config: Option<Value>,
}

fn silu() -> String {
    "silu".to_owned()
}

fn default_positions() -> usize {
    2048
}

fn default_eps() -> f64 {
    1e-6
}

const DEFAULT_ROTARY_BASE: f64 = 10_000.0;

impl FolderConfig {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// If it cannot be read, or is of a model that would be computed wrongly.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    /// Reads the text of one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(json: &str) -> Result<Self, ConfigError> {
        // The kind of model first: another kind has other keys.
        let value: Value = serde_json::from_str(json)?;
        if let Some(kind) = value.get("model_type").and_then(Value::as_str).filter(|kind| *kind != "llama") {
            return Err(ConfigError::ModelType(kind.to_owned()));
        }
        let raw: Raw = serde_json::from_value(value)?;
        raw.refuse_unsupported()?;
        let (rotary_base, rotary_scaling) = raw.rotary()?;
        let heads = raw.num_attention_heads;
        let variant = LlamaVariant {
            key_value_heads: raw.num_key_value_heads.filter(|key_value_heads| *key_value_heads != heads),
            head_size: raw.head_dim.filter(|size| size.checked_mul(heads) != Some(raw.hidden_size)),
            tied_head: raw.tie_word_embeddings,
            rotary_scaling,
            embedding_std: None,
        };
        let model = LlamaConfig {
            vocabulary: raw.vocab_size,
            width: raw.hidden_size,
            feed_forward: raw.intermediate_size,
            layers: raw.num_hidden_layers,
            heads,
            positions: raw.max_position_embeddings,
            rotary_base,
            norm_eps: raw.rms_norm_eps,
            init_std: 0.02,
            freeze_last_embedding: false,
            arm: Arm::Cascade,
            tau: DEFAULT_TAU,
            variant,
        };
        model.validate()?;
        Ok(Self { model })
    }
}

impl Raw {
    fn refuse_unsupported(&self) -> Result<(), ConfigError> {
        let refuse = |key, value: String, reason| Err(ConfigError::Unsupported { key, value, reason });
        if self.model_type != "llama" {
            return Err(ConfigError::ModelType(self.model_type.clone()));
        }
        if self.hidden_act != "silu" {
            return refuse("hidden_act", format!("`{}`", self.hidden_act), "the feed-forward networks here have silu");
        }
        if self.attention_bias {
            return refuse("attention_bias", "true".to_owned(), "projections here have no bias");
        }
        if self.mlp_bias {
            return refuse("mlp_bias", "true".to_owned(), "projections here have no bias");
        }
        if let Some(factor) = self.partial_rotary_factor.filter(|factor| *factor != 1.0) {
            return refuse("partial_rotary_factor", factor.to_string(), "heads here are turned as a whole");
        }
        if let Some(quantization) = self.quantization_config.as_ref().filter(|value| !value.is_null()) {
            let method = quantization.get("quant_method").and_then(Value::as_str).unwrap_or("present");
            let reason = "quantized weights are not read: take the folder of the model in F32, BF16 or F16";
            return refuse("quantization_config", format!("`{method}`"), reason);
        }
        Ok(())
    }

    /// Base and scaling of the rotary embedding.
    fn rotary(&self) -> Result<(f64, Option<RotaryScaling>), ConfigError> {
        let empty = Map::new();
        let settings = self.rope_parameters.as_ref().or(self.rope_scaling.as_ref()).unwrap_or(&empty);
        let base = match settings.get("rope_theta") {
            None | Some(Value::Null) => self.rope_theta.unwrap_or(DEFAULT_ROTARY_BASE),
            Some(_) => number(settings, "rope_theta", "default")?,
        };
        if let Some(Value::Number(factor)) = settings.get("partial_rotary_factor")
            && factor.as_f64() != Some(1.0)
        {
            return Err(ConfigError::Unsupported {
                key: "partial_rotary_factor",
                value: factor.to_string(),
                reason: "heads here are turned as a whole",
            });
        }
        // Older files say `type`.
        let kind = settings.get("rope_type").or_else(|| settings.get("type")).and_then(Value::as_str);
        let kind = kind.unwrap_or("default");
        let number = |key| number(settings, key, kind);
        let scaling = match kind {
            "default" => None,
            "linear" => Some(RotaryScaling::Linear { factor: number("factor")? }),
            "llama3" => Some(RotaryScaling::Llama3 {
                factor: number("factor")?,
                low_frequency_factor: number("low_freq_factor")?,
                high_frequency_factor: number("high_freq_factor")?,
                original_positions: number("original_max_position_embeddings")?,
            }),
            other => {
                return Err(ConfigError::Unsupported {
                    key: "rope_type",
                    value: format!("`{other}`"),
                    reason: "the rotary embeddings `default`, `linear` and `llama3` are computed here",
                });
            }
        };
        Ok((base, scaling))
    }
}

fn number(settings: &Map<String, Value>, key: &'static str, kind: &str) -> Result<f64, ConfigError> {
    let found = settings.get(key);
    found.and_then(Value::as_f64).ok_or_else(|| ConfigError::Rotary {
        kind: kind.to_owned(),
        key,
        found: found.map_or_else(|| "none".to_owned(), Value::to_string),
    })
}

#[cfg(test)]
mod tests;
