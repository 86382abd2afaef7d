//! Ten-step chains of both samplers against those of DiT's code, and training steps with their moving average.

mod common;

use burn::{
    backend::Flex,
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{Tensor, backend::Backend},
};
use common::{B, arm_of, diffusion, family, labels, model, read, steps, tensor, weights};
use experiment_kit::{
    Connected,
    state_dict::{self, StateDict, StoredTensor},
};
use experiments_diffusion::model::{Dit, state_dict::DitNaming};
use gaussian_diffusion::{Guidance, StepOutput};
use reference_vectors::{Tensors, assert_close};
use training::{
    average::WeightAverage,
    optimizer::{Optimizer, OptimizerSettings},
};

/// The names of the stored chains, whether they clip, and whether they are DDIM's.
const CHAINS: [(&str, bool, bool); 4] =
    [("ddim", false, true), ("ddim_clip", true, true), ("ddpm", false, false), ("ddpm_clip", true, false)];

#[test]
fn reference_dit_chains_of_both_samplers() {
    let mut checked = 0;
    for folder in reference_vectors::cases(&family("dit")) {
        let manifest = reference_vectors::manifest(&folder);
        let (case, hyper) = (manifest["case"].as_str().expect("case"), &manifest["hyper"]);
        let stored = weights(&Tensors::read(&folder.join("state_dict.safetensors")));
        let ours = model(hyper, &stored, arm_of(hyper)).valid();
        let file = Tensors::read(&folder.join("sampling.safetensors"));
        let process = diffusion(hyper, "10");
        let map: Vec<i64> = process.tables().timestep_map.iter().map(|&t| t as i64).collect();
        assert_eq!(map, file.get("timestep_map").i64s(), "{case}");
        let y = labels(file.get("y"));
        // DDIM was guided where the manifest says so: for the largest model.
        let guided = manifest["files"]["sampling.safetensors"].as_str().is_some_and(|s| s.contains("forward_with_cfg"));
        let cfg_scale = manifest["cfg_scale"].as_f64().expect("cfg_scale");
        for (name, clip, ddim) in CHAINS {
            let scale = if ddim && guided { cfg_scale } else { 1.0 };
            let mut sample = tensor::<Flex, 4>(file.get("z"));
            for step in (0..process.steps()).rev() {
                let times = vec![process.tables().timestep_map[step]; y.len()];
                let output = ours.forward_guided(sample.clone(), &times, &y, scale, Guidance::FirstThree);
                let noise = tensor::<Flex, 4>(file.get(&format!("noise_{step}")));
                let StepOutput { sample: next, predicted } = if ddim {
                    process.ddim_step(output, sample, step, noise, 0.0, clip)
                } else {
                    process.ddpm_step(output, sample, step, noise, clip)
                };
                sample = next;
                // Clipped chains stay near 1 and are compared absolutely; the others grow to 600.
                let (relative, absolute) = if clip { (0.0, 2e-4) } else { (1e-5, 0.0) };
                for (key, values) in
                    [(format!("{name}/sample_{step}"), &sample), (format!("{name}/pred_xstart_{step}"), &predicted)]
                {
                    let Some(expected) = file.find(&key) else { continue };
                    let actual = read(values.clone());
                    assert_close(&format!("{case}: {key}"), &actual, &expected.values, relative, 0.0, absolute);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 0, "no chain");
    println!("reference dit: {checked} steps of chains hold");
}

/// Weights with the connections' under stored names.
fn stored_weights<B: Backend>(model: &Dit<B>) -> StateDict {
    state_dict::from_model(model, &DitNaming::new(model.config()))
}

fn compare(case: &str, file: &Tensors, prefix: &str, ours: &StateDict, tolerance: f64) -> usize {
    let mut compared = 0;
    for key in file.names() {
        let Some(parameter) = key.strip_prefix(prefix) else { continue };
        // The table of positions never changes.
        let Some(StoredTensor { values, .. }) = ours.get(parameter) else {
            assert_eq!(parameter, "pos_embed", "{case}: {key} is not among ours");
            continue;
        };
        let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
        assert_close(&format!("{case}: {key}"), &values, &file.get(key).values, 0.0, 0.0, tolerance);
        compared += 1;
    }
    compared
}

#[test]
fn reference_dit_training_steps_and_their_average() {
    let mut checked = 0;
    for folder in reference_vectors::cases(&family("dit")) {
        let path = folder.join("train4.safetensors");
        if !path.is_file() {
            continue;
        }
        let (manifest, file) = (reference_vectors::manifest(&folder), Tensors::read(&path));
        let (case, hyper) = (manifest["case"].as_str().expect("case"), &manifest["hyper"]);
        let stored = weights(&Tensors::read(&folder.join("state_dict.safetensors")));
        let mut model = model(hyper, &stored, arm_of(hyper));
        let process = diffusion(hyper, "all");
        let mut average = WeightAverage::new(&model, 0.9999);
        let mut optimizer = Optimizer::<B>::new(OptimizerSettings::default()).expect("valid settings");
        let null = model.config().null_label().expect("a row for no label");
        for (step, &expected) in file.get("loss").values.iter().enumerate() {
            let part = |name: &str| file.get(&format!("step{step}/{name}"));
            let (t, dropped) = (steps(part("t")), part("drop").i64s());
            let y: Vec<u32> =
                labels(part("y")).into_iter().zip(dropped).map(|(y, drop)| if drop == 1 { null } else { y }).collect();
            let (images, noise) = (tensor::<B, 4>(part("x_start")), tensor::<B, 4>(part("noise")));
            let noised = process.noised(images.clone(), noise.clone(), &t);
            let losses = process.losses(model.forward(noised.clone(), &t, &y), images, noise, noised, &t);
            let batch = t.len();
            let mse = &file.get("mse").values[step * batch..(step + 1) * batch];
            assert_close(&format!("{case}: mse {step}"), &read(losses.mse.clone()), mse, 2e-5, 0.0, 0.0);
            let loss: Tensor<B, 1> = losses.total().mean();
            assert_close(&format!("{case}: loss {step}"), &read(loss.clone()), &[expected], 2e-5, 0.0, 0.0);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(model, gradients, 1e-4);
            average.update(&model);
        }
        // "2e-6 typical, isolated noise-level gradients up to 2e-4", which is what four steps at 1e-4 can move.
        let compared = compare(case, &file, "final/", &stored_weights(&model), 2e-6)
            + compare(case, &file, "ema/", &stored_weights(average.model()), 1e-6);
        assert!(compared > 0, "{case} stores no weights");
        assert_ne!(model.connections().to_vectors(), average.model().connections().to_vectors());
        checked += 1;
    }
    assert!(checked > 0, "no training run");
    println!("reference dit: {checked} training runs of 4 steps hold");
}
