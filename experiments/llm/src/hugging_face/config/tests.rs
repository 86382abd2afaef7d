use super::*;

/// The configuration of a small model with some keys changed or, where null, taken out.
fn parse(changes: Value) -> Result<FolderConfig, ConfigError> {
    let mut config = serde_json::json!({
        "model_type": "llama", "vocab_size": 70, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu", "rms_norm_eps": 1e-5,
        "max_position_embeddings": 128, "tie_word_embeddings": true, "rope_theta": 500_000.0,
    });
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => _ = config.as_object_mut().unwrap().remove(key),
            value => config[key] = value.clone(),
        }
    }
    FolderConfig::parse(&config.to_string())
}

#[track_caller]
fn refused(changes: Value, words: &[&str]) {
    let message = parse(changes).unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

#[test]
fn both_forms_of_the_keys_give_one_model() {
    let scaling = serde_json::json!({
        "rope_type": "llama3", "factor": 8, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192
    });
    let before = parse(serde_json::json!({ "rope_scaling": scaling, "torch_dtype": "bfloat16" })).unwrap();
    let mut parameters = scaling.clone();
    parameters["rope_theta"] = 500_000.0.into();
    let now = serde_json::json!({ "rope_theta": null, "rope_parameters": parameters, "dtype": "bfloat16" });
    assert_eq!(parse(now).unwrap(), before);
    let expected = RotaryScaling::Llama3 {
        factor: 8.0,
        low_frequency_factor: 1.0,
        high_frequency_factor: 4.0,
        original_positions: 8192.0,
    };
    let LlamaConfig { variant, rotary_base, norm_eps, .. } = before.model;
    assert_eq!((variant.rotary_scaling, rotary_base, norm_eps), (Some(expected), 500_000.0, 1e-5));
    assert_eq!((variant.key_value_heads, variant.head_size, variant.tied_head), (Some(2), None, true));
}

#[test]
fn what_a_file_leaves_out_is_what_transformers_takes() {
    let bare = serde_json::json!({
        "num_key_value_heads": null, "head_dim": null, "hidden_act": null, "rms_norm_eps": null,
        "max_position_embeddings": null, "tie_word_embeddings": null, "rope_theta": null
    });
    let model = parse(bare).unwrap().model;
    assert_eq!(model.variant, LlamaVariant::default());
    assert_eq!((model.positions, model.norm_eps, model.rotary_base), (2048, 1e-6, 10_000.0));
    let old = serde_json::json!({ "rope_scaling": { "type": "linear", "factor": 2.0 } });
    assert_eq!(parse(old).unwrap().model.variant.rotary_scaling, Some(RotaryScaling::Linear { factor: 2.0 }));
    let wide = parse(serde_json::json!({ "head_dim": 16 })).unwrap().model;
    assert_eq!((wide.variant.head_size, wide.head_size()), (Some(16), 16));
}

#[test]
fn what_would_be_computed_otherwise_is_refused_by_name() {
    refused(serde_json::json!({ "model_type": "qwen2" }), &["qwen2", "llama"]);
    refused(serde_json::json!({ "model_type": null }), &["model_type"]);
    refused(serde_json::json!({ "hidden_act": "gelu" }), &["hidden_act", "gelu", "silu"]);
    refused(serde_json::json!({ "attention_bias": true }), &["attention_bias"]);
    refused(serde_json::json!({ "mlp_bias": true }), &["mlp_bias"]);
    refused(serde_json::json!({ "partial_rotary_factor": 0.5 }), &["partial_rotary_factor", "0.5"]);
    refused(serde_json::json!({ "quantization_config": { "quant_method": "awq" } }), &["awq", "BF16"]);
    for kind in ["dynamic", "yarn", "longrope"] {
        let scaling = serde_json::json!({ "rope_scaling": { "rope_type": kind, "factor": 2.0 } });
        refused(scaling, &[kind, "llama3", "linear"]);
    }
    let parameters = serde_json::json!({ "rope_theta": 1e4, "rope_type": "default", "partial_rotary_factor": 0.25 });
    refused(serde_json::json!({ "rope_parameters": parameters }), &["partial_rotary_factor", "0.25"]);
}

#[test]
fn values_that_make_no_sense_are_named() {
    refused(serde_json::json!({ "hidden_size": null }), &["hidden_size"]);
    refused(serde_json::json!({ "hidden_size": "wide" }), &["wide"]);
    refused(serde_json::json!({ "num_hidden_layers": -3 }), &["-3"]);
    refused(serde_json::json!({ "num_key_value_heads": 3 }), &["3", "1, 2 or 4"]);
    refused(serde_json::json!({ "num_key_value_heads": 0 }), &["0"]);
    refused(serde_json::json!({ "num_attention_heads": 0 }), &["heads is 0"]);
    refused(serde_json::json!({ "head_dim": 7 }), &["head size is 7"]);
    refused(serde_json::json!({ "rms_norm_eps": 0.0 }), &["eps"]);
    refused(serde_json::json!({ "rope_scaling": { "rope_type": "linear" } }), &["linear", "factor", "none"]);
    refused(serde_json::json!({ "rope_scaling": { "rope_type": "linear", "factor": "2" } }), &["factor", "\"2\""]);
    refused(serde_json::json!({ "rope_scaling": { "rope_type": "linear", "factor": -2 } }), &["factor", "-2"]);
    let message = FolderConfig::parse("{\"model_type\": ").unwrap_err().to_string();
    assert!(message.contains("line 1") && message.contains("config.json"), "{message}");
}
