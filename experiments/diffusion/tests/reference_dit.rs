//! The model against vectors computed with the authors' `DiT`: embeddings, states, predictions, guidance, losses and
//! gradients.

mod common;

use std::path::Path;

use ancre::Arm;
use burn::{
    backend::Flex,
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{Tensor, backend::AutodiffBackend},
};
use common::{B, arm_of, config, diffusion, family, labels, model, read, steps, tensor, weights};
use experiment_kit::{
    CONNECTIONS, Connected,
    state_dict::{self, StateDict},
};
use experiments_diffusion::model::{
    Dit,
    state_dict::{DitNaming, POSITIONS, with_positions},
};
use gaussian_diffusion::Guidance;
use reference_vectors::{Tensors, assert_close};
use serde_json::Value;
use training::parameters::{NamedTensor, named_parameters};

/// Manifest, stored weights and folder of every case.
fn each_case(mut check: impl FnMut(&Path, &Value, &StateDict)) {
    let mut cases = 0;
    for folder in reference_vectors::cases(&family("dit")) {
        let manifest = reference_vectors::manifest(&folder);
        check(&folder, &manifest, &weights(&Tensors::read(&folder.join("state_dict.safetensors"))));
        cases += 1;
    }
    assert!(cases > 0, "no case of dit");
    println!("reference dit: {cases} cases hold");
}

/// Gradients of the weights under their stored names and in their stored arrangement, the connections' included.
fn stored_gradients(model: &Dit<B>, gradients: <B as AutodiffBackend>::Gradients) -> StateDict {
    let vectors = model.connections().vector_gradients(&gradients).expect("theta has a gradient");
    let gradients = GradientsParams::from_grads(gradients, model);
    let mut found = Vec::new();
    for parameter in named_parameters::<B, _>(model) {
        if parameter.name.starts_with(CONNECTIONS) {
            continue;
        }
        let data = match parameter.shape.len() {
            1 => gradients.get::<Flex, 1>(parameter.id).map(Tensor::into_data),
            _ => gradients.get::<Flex, 2>(parameter.id).map(Tensor::into_data),
        };
        let data = data.unwrap_or_else(|| panic!("{} has no gradient", parameter.name));
        found.push(NamedTensor { name: parameter.name, data });
    }
    let mut stored = state_dict::to_stored(found, &DitNaming::new(model.config()));
    for (i, values) in vectors.into_iter().enumerate() {
        let shape = vec![values.len()];
        stored.insert(format!("ancre.shortcut_params.{i}"), state_dict::StoredTensor { shape, values });
    }
    stored
}

/// Every gradient and gradient norm that a file stores under these prefixes.
fn check_gradients(case: &str, file: &Tensors, ours: &StateDict, [full, norms]: [&str; 2], tolerance: f64) -> usize {
    let mut checked = 0;
    for key in file.names() {
        let Some(parameter) = key.strip_prefix(full).or_else(|| key.strip_prefix(norms)) else { continue };
        let Some(gradient) = ours.get(parameter) else {
            // That of the images is checked by the caller.
            assert_eq!(parameter, "x", "{case}: {key} is not among our gradients");
            continue;
        };
        if key.starts_with(full) {
            let values: Vec<f64> = gradient.values.iter().map(|&g| f64::from(g)).collect();
            let expected = &file.get(key).values;
            let what = format!("{case}: {key}");
            if parameter.ends_with("attn.qkv.bias") {
                // The part of the keys is zero but for rounding: a softmax does not see a shift of all its scores.
                let third = values.len() / 3;
                let keys = third..2 * third;
                let rest = |v: &[f64]| [&v[..keys.start], &v[keys.end..]].concat();
                assert_close(&what, &rest(&values), &rest(expected), tolerance, 0.0, 1e-8);
                let largest = expected.iter().fold(0.0f64, |m, g| m.max(g.abs()));
                assert!(values[keys].iter().all(|g| g.abs() <= 1e-4 * largest.max(1e-6)), "{what}: keys");
            } else {
                assert_close(&what, &values, expected, tolerance, 0.0, 1e-8);
            }
            checked += 1;
        } else {
            let norm = gradient.values.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            assert_close(&format!("{case}: {key}"), &[norm], &file.get(key).values, tolerance, 0.0, 1e-8);
            checked += 1;
        }
    }
    checked
}

#[test]
fn reference_dit_predictions_states_and_gradients() {
    each_case(|folder, manifest, stored| {
        let case = manifest["case"].as_str().expect("case");
        let hyper = &manifest["hyper"];
        let file = Tensors::read(&folder.join("forward.safetensors"));
        let (t, y) = (steps(file.get("t")), labels(file.get("y")));
        let ours = model(hyper, stored, arm_of(hyper));

        let x = tensor::<B, 4>(file.get("x")).require_grad();
        let out = ours.forward(x.clone(), &t, &y);
        assert_close(&format!("{case}: out"), &read(out.clone()), &file.get("out").values, 2e-5, 0.0, 0.0);
        let plain = model(hyper, stored, Arm::Cascade);
        let plain_out = read(plain.forward(x.clone(), &t, &y));
        assert_close(&format!("{case}: plain"), &plain_out, &file.get("plain/out").values, 2e-5, 0.0, 0.0);

        let loss = (out * tensor::<B, 4>(file.get("R"))).mean();
        assert_close(&format!("{case}: loss"), &read(loss.clone()), &file.get("loss").values, 2e-5, 0.0, 1e-7);
        let gradients = loss.backward();
        let x_gradient = read(x.grad(&gradients).expect("a gradient of the images"));
        if let Some(expected) = file.find("grad/x") {
            assert_close(&format!("{case}: grad/x"), &x_gradient, &expected.values, 5e-4, 0.0, 1e-9);
        }
        let stored_gradients = stored_gradients(&ours, gradients);
        let checked = check_gradients(case, &file, &stored_gradients, ["grad/", "f64/gradnorm/"], 5e-4);
        assert!(checked > 0, "{case} stores no gradient");

        check_observation(case, &file, &ours, &t, &y);
        check_guidance(case, &file, &ours, &plain, manifest["cfg_scale"].as_f64().expect("cfg_scale"));
    });
}

fn check_observation(case: &str, file: &Tensors, model: &Dit<B>, t: &[usize], y: &[u32]) {
    let seen = model.observe(tensor(file.get("x")), t, y);
    let check = |name: &str, actual: Vec<f64>| {
        if let Some(expected) = file.find(&format!("act/{name}")) {
            assert_close(&format!("{case}: {name}"), &actual, &expected.values, 2e-5, 0.0, 0.0);
        }
    };
    check("patch_embed", read(seen.patches));
    check("t_emb", read(seen.timesteps));
    check("y_emb", read(seen.labels));
    for (i, state) in seen.states.into_iter().enumerate() {
        check(&format!("block_in_{i}"), read(state));
    }
    for (i, output) in seen.outputs.into_iter().enumerate() {
        check(&format!("block_out_{i}"), read(output));
    }
    let features = model.config().frequency_features;
    let table = experiments_diffusion::model::frequencies(t, features);
    let expected = file.get("timestep_embedding");
    for ((row, expected), &step) in table.chunks(features).zip(expected.values.chunks(features)).zip(t) {
        let row: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
        // 1.5e-4 at step 999, 1e-6 at 0.
        let allowed = 1e-6 + 1.5e-7 * step as f64;
        assert_close(&format!("{case}: timestep {step}"), &row, expected, 0.0, 0.0, allowed);
    }
}

/// `forward_with_cfg` gives both halves; the second one is not guided beyond its channels and never used, so that ours has
/// only the first.
fn check_guidance(case: &str, file: &Tensors, model: &Dit<B>, plain: &Dit<B>, scale: f64) {
    let (x, t, y) = (tensor::<B, 4>(file.get("cfg/x")), steps(file.get("cfg/t")), labels(file.get("cfg/y")));
    let half = t.len() / 2;
    for (model, key) in [(model, "cfg/out"), (plain, "plain/cfg_out")] {
        let Some(expected) = file.find(key) else { continue };
        let images = x.clone().narrow(0, 0, half);
        let out = model.forward_guided(images, &t[..half], &y[..half], scale, Guidance::FirstThree);
        let expected = &expected.values[..expected.values.len() / 2];
        assert_close(&format!("{case}: {key}"), &read(out), expected, 2e-5, 0.0, 0.0);
        assert!(y[half..].iter().all(|&label| Some(label) == model.config().null_label()), "{case}: labels");
    }
}

#[test]
fn reference_dit_losses_and_their_gradients() {
    each_case(|folder, manifest, stored| {
        let case = manifest["case"].as_str().expect("case");
        let hyper = &manifest["hyper"];
        let file = Tensors::read(&folder.join("losses.safetensors"));
        let (t, y) = (steps(file.get("t")), labels(file.get("y")));
        let (process, ours) = (diffusion(hyper, "all"), model(hyper, stored, arm_of(hyper)));
        let (images, noise) = (tensor::<B, 4>(file.get("x_start")), tensor::<B, 4>(file.get("noise")));
        let noised = process.noised(images.clone(), noise.clone(), &t);
        assert_close(&format!("{case}: x_t"), &read(noised.clone()), &file.get("x_t").values, 1e-6, 0.0, 0.0);
        let output = ours.forward(noised.clone(), &process.model_steps(&t), &y);
        let losses = process.losses(output, images, noise, noised, &t);
        assert_close(&format!("{case}: mse"), &read(losses.mse.clone()), &file.get("mse").values, 2e-5, 0.0, 0.0);
        if let Some(expected) = file.find("vb") {
            let vb = read(losses.vb.clone().expect("a bound for learned variance"));
            for ((a, e), step) in vb.iter().zip(&expected.values).zip(&t) {
                let tolerance = if *step == 0 { 5e-4 } else { 5e-5 };
                assert_close(&format!("{case}: vb at {step}"), &[*a], &[*e], tolerance, 0.0, 0.0);
            }
        }
        let tolerance = if hyper["learn_sigma"] == true { 2e-3 } else { 1e-4 };
        let gradients = losses.total().mean().backward();
        let gradients = stored_gradients(&ours, gradients);
        let prefixes = ["grad_mean_loss/", "f64/gradnorm_mean_loss/"];
        assert!(check_gradients(case, &file, &gradients, prefixes, tolerance) > 0, "{case} stores no gradient");
    });
}

#[test]
fn reference_dit_state_dict_round_trips() {
    each_case(|_, manifest, stored| {
        let hyper = &manifest["hyper"];
        let ours = model(hyper, stored, arm_of(hyper));
        let naming = DitNaming::new(&config(hyper, arm_of(hyper)));
        // The stored temperature won over the configured one.
        assert_eq!(Some(ours.connections().tau()), hyper["ancre"]["softmax_temp"].as_f64());
        let table: Vec<f32> = ours.positions().into_data().iter::<f32>().collect();
        let mut again = with_positions(state_dict::from_model(&ours.valid(), &naming), table, ours.config().tokens());
        // The table of positions is computed: equal but for the last digit.
        let positions = |dict: &mut StateDict| -> Vec<f64> {
            dict.remove(POSITIONS).expect("positions").values.iter().map(|&v| f64::from(v)).collect()
        };
        let mut expected = stored.clone();
        assert_close("positions", &positions(&mut again), &positions(&mut expected), 0.0, 0.0, 1e-6);
        assert_eq!(again, expected);

        let mut broken = stored.clone();
        let weight = broken.remove("blocks.0.adaLN_modulation.1.weight").expect("a weight");
        broken.insert("blocks.0.modulation.weight2".to_owned(), weight);
        let message = state_dict::into_model(ours, &broken, &naming).unwrap_err().to_string();
        assert!(message.contains("blocks.0.adaLN_modulation.1.weight"), "{message}");
        assert!(message.contains("weight2"), "{message}");
    });
}
