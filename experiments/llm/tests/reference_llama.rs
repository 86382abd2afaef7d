//! The model against vectors computed with the authors' `LlamaForCausalLM`: logits, states, loss and gradients.

mod common;

use std::path::Path;

use ancre::Arm;
use burn::{
    backend::Flex,
    optim::GradientsParams,
    tensor::{Tensor, backend::Backend},
};
use common::{B, arm_of, batch, family, model, weights};
use experiment_kit::Connected;
use experiments_llm::model::{
    Llama,
    state_dict::{self, StateDict},
};
use reference_vectors::{Tensors, assert_close};
use training::parameters::{NamedTensor, ParameterKind, named_parameters};

fn read<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Gradients of the weights under their stored names and in their stored arrangement; the connections' are left out.
fn stored_gradients(model: &Llama<B>, gradients: &GradientsParams) -> StateDict {
    let mut found = Vec::new();
    for parameter in named_parameters::<B, _>(model) {
        assert_eq!(parameter.kind, ParameterKind::Float);
        if parameter.name.starts_with("connections.") {
            continue;
        }
        let data = match parameter.shape.len() {
            1 => gradients.get::<Flex, 1>(parameter.id).map(Tensor::into_data),
            _ => gradients.get::<Flex, 2>(parameter.id).map(Tensor::into_data),
        };
        let data = data.unwrap_or_else(|| panic!("{} has no gradient", parameter.name));
        found.push(NamedTensor { name: parameter.name, data });
    }
    state_dict::to_stored(found)
}

/// The stored weights of a folder.
fn stored_weights(folder: &Path) -> StateDict {
    weights(&Tensors::read(&folder.join("state_dict.safetensors")), "")
}

#[test]
fn reference_llama_logits_losses_and_gradients() {
    let mut checked = 0;
    for folder in reference_vectors::cases(&family("llama")) {
        let manifest = reference_vectors::manifest(&folder);
        let stored = stored_weights(&folder);
        for (name, file) in reference_vectors::files(&folder) {
            if file.find("logits").is_some() && file.find("input_ids").is_some() {
                // Files of the plain model use the same weights without their connections.
                let arm = if name.contains("plain") { Arm::Cascade } else { arm_of(&manifest["hyper"]) };
                check_forward(&name, &file, &model(&manifest["hyper"], &stored, arm));
                checked += 1;
            }
        }
    }
    assert!(checked > 0, "no case of llama");
    println!("reference llama: {checked} forward cases hold");
}

/// Logits, loss, every stored gradient and gradient norm of one file.
fn check_forward(name: &str, file: &Tensors, model: &Llama<B>) {
    let (tokens, targets) = batch(file.get("input_ids"));
    let logits = read(model.forward(tokens.clone()));
    assert_close(&format!("{name}: logits"), &logits, &file.get("logits").values, 1e-5, 0.0, 0.0);
    let loss = model.loss(tokens, targets);
    assert_close(&format!("{name}: loss"), &read(loss.clone()), &file.get("loss").values, 1e-5, 0.0, 0.0);

    let gradients = loss.backward();
    let vectors = model.connections().vector_gradients(&gradients).unwrap_or_default();
    let gradients = GradientsParams::from_grads(gradients, model);
    let ours = stored_gradients(model, &gradients);
    for key in file.names() {
        let Some(parameter) = key.strip_prefix("grad/") else { continue };
        let values: Vec<f64> = match parameter.strip_prefix("model.ancre.shortcut_params.") {
            Some(i) => vectors[i.parse::<usize>().unwrap()].iter().map(|&g| f64::from(g)).collect(),
            None => ours[parameter].values.iter().map(|&g| f64::from(g)).collect(),
        };
        // The manifest's tolerance, stricter than the promised 1e-4.
        assert_close(&format!("{name}: {key}"), &values, &file.get(key).values, 3e-5, 0.0, 1e-7);
    }
    for key in file.names() {
        let Some(parameter) = key.strip_prefix("gradnorm/") else { continue };
        let Some(gradient) = ours.get(parameter) else { continue };
        let norm = gradient.values.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        assert_close(&format!("{name}: {key}"), &[norm], &file.get(key).values, 1e-4, 0.0, 0.0);
    }
}

#[test]
fn reference_llama_hidden_states() {
    for folder in reference_vectors::cases(&family("llama")) {
        check_hidden_states(&folder);
    }
}

fn check_hidden_states(folder: &Path) {
    let manifest = reference_vectors::manifest(folder);
    let inputs = Tensors::read(&folder.join("forward_ancre.safetensors"));
    let file = Tensors::read(&folder.join("hidden_ancre.safetensors"));
    let model = model(&manifest["hyper"], &stored_weights(folder), arm_of(&manifest["hyper"]));
    let seen = model.observe(batch(inputs.get("input_ids")).0);
    let mut checked = 0;
    for (i, state) in seen.states.iter().enumerate() {
        if let Some(expected) = file.find(&format!("layer_input_{i}")) {
            assert_close(&format!("layer_input_{i}"), &read(state.clone()), &expected.values, 1e-5, 0.0, 0.0);
            checked += 1;
        }
    }
    assert_close("final_norm_out", &read(seen.normed), &file.get("final_norm_out").values, 1e-5, 0.0, 0.0);
    println!("reference llama: {} states hold", checked + 1);
}

#[test]
fn reference_llama_state_dict_round_trips() {
    let folder = family("llama");
    let hyper = &reference_vectors::manifest(&folder)["hyper"];
    let stored = stored_weights(&folder);
    let model = model(hyper, &stored, arm_of(hyper));
    // The stored temperature won over the configured one.
    assert_eq!(Some(model.connections().tau()), hyper["ancre"]["softmax_temp"].as_f64());
    let mut expected = stored.clone();
    expected.retain(|name, _| !name.ends_with("inv_freq"));
    assert_eq!(state_dict::from_model::<B>(&model), expected);

    let path = std::env::temp_dir().join(format!("ancre-state-dict-{}.safetensors", std::process::id()));
    std::fs::write(&path, state_dict::to_bytes(&expected).unwrap()).unwrap();
    let read_back = state_dict::read(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read_back.unwrap(), expected);

    let mut broken = expected.clone();
    broken.remove("model.norm.weight");
    broken.insert("model.norm.bias".to_owned(), expected["model.norm.weight"].clone());
    let message = state_dict::into_model(model, &broken).unwrap_err().to_string();
    assert!(message.contains("model.norm.weight") && message.contains("model.norm.bias"), "{message}");
    println!("reference llama: 1 state dict round-trips");
}
