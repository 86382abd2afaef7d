//! What the reference tests share: the model of a manifest, batches in the authors' form, gradients by stored name.

use std::path::PathBuf;

use ancre::Arm;
use burn::{
    backend::{Autodiff, Flex},
    tensor::{Int, Tensor, TensorData},
};
use experiments_llm::model::{
    Llama, LlamaConfig, LlamaVariant,
    state_dict::{self, StateDict, StoredTensor},
};
use reference_vectors::{Reference, Tensors};
use serde_json::Value;

/// The backend of the tests.
pub type B = Autodiff<Flex>;

/// The folder of a family of vectors.
pub fn family(name: &str) -> PathBuf {
    reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), name)
}

/// The model of a manifest with the stored weights, and with the connections of an arm.
pub fn model(hyper: &Value, weights: &StateDict, arm: Arm) -> Llama<B> {
    let size = |key: &str| hyper[key].as_u64().unwrap_or_else(|| panic!("hyper.{key}")) as usize;
    let config = LlamaConfig {
        vocabulary: size("vocab_size"),
        width: size("hidden_size"),
        feed_forward: size("intermediate_size"),
        layers: size("num_hidden_layers"),
        heads: size("num_attention_heads"),
        positions: size("max_position_embeddings"),
        rotary_base: hyper["rope_theta"].as_f64().expect("rope_theta"),
        norm_eps: hyper["rms_norm_eps"].as_f64().expect("rms_norm_eps"),
        init_std: 0.02,
        freeze_last_embedding: hyper["pad_token_id"].as_i64() == Some(-1),
        arm,
        // Not the stored one, to see that the stored one wins.
        tau: 0.5,
        variant: LlamaVariant::default(),
    };
    let model = Llama::new(&config, 0, &Default::default()).expect("a valid configuration");
    let (model, _) = state_dict::into_model(model, weights).expect("weights that fit");
    model
}

/// The connections that a manifest names.
pub fn arm_of(hyper: &Value) -> Arm {
    match hyper["ancre"]["parameterization"].as_str() {
        Some("softmax") => Arm::default(),
        Some(other) => other.parse().unwrap_or_else(|e| panic!("{e}")),
        None => Arm::Cascade,
    }
}

/// The weights under the prefix of a reference file.
pub fn weights(file: &Tensors, prefix: &str) -> StateDict {
    file.names()
        .filter_map(|name| Some((name.strip_prefix(prefix)?.to_owned(), file.get(name))))
        .map(|(name, r)| (name, StoredTensor { shape: r.shape.clone(), values: r.f32s() }))
        .collect()
}

/// The authors' batch: all tokens are inputs; targets are the next tokens, where they exist and are not padding (id 0).
pub fn batch(ids: &Reference) -> (Tensor<B, 2, Int>, Tensor<B, 2, Int>) {
    let [rows, length] = ids.shape[..] else { panic!("a batch is a matrix") };
    let ids = ids.i64s();
    let mut targets = vec![fused_ops::IGNORE_TARGET; rows * length];
    for (row, targets) in ids.chunks(length).zip(targets.chunks_mut(length)) {
        for (target, &next) in targets.iter_mut().zip(&row[1..]) {
            if next != 0 {
                *target = next;
            }
        }
    }
    let tensor = |values: Vec<i64>| Tensor::from_data(TensorData::new(values, [rows, length]), &Default::default());
    (tensor(ids), tensor(targets))
}
