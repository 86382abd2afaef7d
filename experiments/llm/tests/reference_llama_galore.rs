//! Training with GaLore against the authors' loop. Signs of singular vectors are arbitrary: where the bases are computed anew, our
//! moments are turned around as the stored vectors are, which leaves the update as it is.

mod common;

use std::collections::BTreeMap;

use burn::{optim::GradientsParams, tensor::TensorData};
use common::{B, arm_of, batch, family, model, weights};
use experiment_kit::{Connected, state_dict::Naming};
use experiments_llm::model::{
    Llama,
    state_dict::{self, LlamaNaming},
};
use reference_vectors::{Tensors, assert_close, columns, signs};
use training::{
    optimizer::{Galore, Optimizer, OptimizerSettings, Rule},
    parameters::NamedTensor,
    schedule::{Schedule, Warmup},
};

/// Moment and vectors stand by rows where the inputs are projected, and by columns where the outputs are.
fn by_rows(basis: &TensorData, rank: usize) -> bool {
    basis.shape[1] == rank
}

fn list(data: &TensorData) -> Vec<f64> {
    data.iter::<f64>().collect()
}

fn vectors(basis: &TensorData, rank: usize) -> Vec<Vec<f64>> {
    match by_rows(basis, rank) {
        true => columns(&list(basis), rank),
        false => list(basis).chunks(basis.shape[1]).map(<[f64]>::to_vec).collect(),
    }
}

fn data<'a>(state: &'a mut [NamedTensor], name: &str) -> &'a mut TensorData {
    &mut state.iter_mut().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no {name}")).data
}

#[test]
fn reference_llama_galore_trajectory() {
    let folder = family("llama_galore");
    let manifest = reference_vectors::manifest(&folder);
    let file = Tensors::read(&folder.join("trajectory.safetensors"));
    let batches = Tensors::read(&family("llama_train").join("batches.safetensors"));
    let stored = weights(&Tensors::read(&family("llama").join("state_dict.safetensors")), "");
    let mut model: Llama<B> = model(&manifest["hyper"], &stored, arm_of(&manifest["hyper"]));

    let (galore, schedule) = (&manifest["galore"], &manifest["schedule"]);
    let number = |key: &str| galore[key].as_f64().unwrap_or_else(|| panic!("galore.{key}"));
    let size = |key: &str| schedule[key].as_u64().unwrap_or_else(|| panic!("schedule.{key}")) as usize;
    let rank = number("rank") as usize;
    let [beta1, beta2] = [0, 1].map(|index| galore["betas"][index].as_f64().expect("betas"));
    let mut optimizer = Optimizer::<B>::new(OptimizerSettings {
        rule: Rule::TransformersAdamW { beta1, beta2, eps: number("eps") },
        galore: Some(Galore {
            refresh_every: number("update_proj_gap") as usize,
            scale: number("scale"),
            ..Galore::new(["*.self_attn.*", "*.mlp.*"], rank)
        }),
        ..Default::default()
    })
    .expect("valid settings");
    let shape = Schedule::Cosine { min_ratio: schedule["min_lr_ratio"].as_f64().expect("min_lr_ratio") };
    let (warmup, total) = (Warmup::from_zero(size("warmup_steps")), size("num_training_steps"));

    let mut former: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut compared = 0;
    let updates = manifest["update_steps"].as_u64().expect("update_steps") as usize;
    for update in 0..updates {
        let lr = number("lr") * shape.multiplier(update, warmup, total);
        assert_close("lr", &[lr], &[file.get("lr_used").values[update]], 1e-12, 0.0, 0.0);
        let (tokens, targets) = batch(batches.get(&format!("batch_{update}")));
        let loss = model.loss(tokens, targets);
        let tolerance = if update < 4 { 1e-4 } else { 1e-3 };
        let found: f64 = loss.clone().into_data().iter::<f64>().sum();
        let expected = file.get("loss").values[update];
        assert_close(&format!("loss of update {update}"), &[found], &[expected], 0.0, 0.0, tolerance);
        let backward = loss.backward();
        let gradients = GradientsParams::from_grads(backward, &model);

        let prefix = format!("ortho/step{update}/");
        let bases: Vec<&str> = file.names().filter_map(|name| name.strip_prefix(&prefix)).collect();
        if !bases.is_empty() {
            // What the update would take for bases, without making it.
            let (tokens, targets) = batch(batches.get(&format!("batch_{update}")));
            let same = GradientsParams::from_grads(model.loss(tokens, targets).backward(), &model);
            let mut trial = optimizer.clone();
            trial.step(model.clone(), same, lr);
            let (mut next, mut state) = (trial.export().unwrap(), optimizer.export().unwrap());
            for stored in bases {
                let name = LlamaNaming.module_name(stored).expect("a parameter");
                let basis = data(&mut next, &format!("basis/{name}")).clone();
                let expected = file.get(&format!("{prefix}{stored}"));
                // Theirs stand transposed.
                let theirs = TensorData::new(
                    columns(&expected.values, expected.shape[1]).concat(),
                    [expected.shape[1], expected.shape[0]],
                );
                let signs = signs(stored, &vectors(&basis, rank), &vectors(&theirs, rank), 0.999);
                if let Some(former) = former.get(&name) {
                    let moment = data(&mut state, &format!("first_moment/{name}"));
                    let width = moment.shape[1];
                    let direction = |at: usize| if by_rows(&basis, rank) { at / width } else { at % width };
                    let turn = |(at, value): (usize, f64)| value * former[direction(at)] * signs[direction(at)];
                    let turned: Vec<f64> = list(moment).into_iter().enumerate().map(turn).collect();
                    *moment = TensorData::new(turned, moment.shape.clone()).convert::<f32>();
                }
                former.insert(name, signs);
            }
            optimizer.import(&model, state).unwrap();
        }
        model = optimizer.step(model, gradients, lr);

        let theta = file.get("theta_per_step");
        let width = theta.shape[1];
        let ours: Vec<f64> = model.connections().to_vectors().concat().iter().map(|&t| f64::from(t)).collect();
        let expected = &theta.values[update * width..(update + 1) * width];
        assert_close(&format!("theta {update}"), &ours, expected, 0.0, 0.0, 1e-3);
        let (prefix, tolerance) = match update {
            2 => ("after_step2/", 2e-4),
            _ if update + 1 == updates => ("final/", 1e-3),
            _ => continue,
        };
        let ours = state_dict::from_model(&model);
        for key in file.names() {
            let Some(parameter) = key.strip_prefix(prefix) else { continue };
            let values: Vec<f64> = ours[parameter].values.iter().map(|&v| f64::from(v)).collect();
            let expected = &file.get(key).values;
            assert_close(key, &values, expected, 0.0, 0.0, tolerance);
            let off: f64 = values.iter().zip(expected).map(|(a, e)| (a - e).abs()).sum();
            assert!(off / (values.len() as f64) < 2e-5, "{key}: {} off in the mean", off / values.len() as f64);
            compared += 1;
        }
    }
    assert!(compared > 0);
    println!("reference llama_galore: {compared} tensors hold");
}
