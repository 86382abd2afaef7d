//! Training against the authors' loop: every loss, learning rate and final weight over all updates, accumulation too, and
//! their evaluation.

mod common;

use ancre::Arm;
use burn::{
    backend::Flex,
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{Tensor, backend::Backend},
};
use common::{B, arm_of, batch, family, model, weights};
use experiment_kit::Connected;
use experiments_llm::model::{Llama, state_dict};
use reference_vectors::{Tensors, assert_close};
use training::{
    gradients,
    optimizer::{Optimizer, OptimizerSettings},
    schedule::{Schedule, Warmup},
};

fn number<B: Backend>(tensor: Tensor<B, 1>) -> f64 {
    tensor.into_data().iter::<f64>().sum()
}

#[test]
fn reference_llama_train_losses_and_final_weights() {
    let folder = family("llama_train");
    let manifest = reference_vectors::manifest(&folder);
    let initial = weights(&Tensors::read(&family("llama").join("state_dict.safetensors")), "");
    let batches = Tensors::read(&folder.join("batches.safetensors"));
    let runs = manifest["runs"].as_object().expect("runs");
    for (name, run) in runs {
        let file = Tensors::read(&folder.join(format!("{name}.safetensors")));
        let size = |key: &str| run[key].as_u64().unwrap_or_else(|| panic!("{name}.{key}")) as usize;
        let (updates, total, accumulation) =
            (size("update_steps"), size("num_training_steps"), size("grad_accumulation"));
        let mut stored = initial.clone();
        if run["start"].as_str().is_some_and(|s| s.contains("ZERO")) {
            for (_, vector) in stored.iter_mut().filter(|(name, _)| name.contains("shortcut_params")) {
                vector.values.fill(0.0);
            }
        }
        let arm = if run["ancre"] == true { arm_of(&manifest["hyper"]) } else { Arm::Cascade };
        let mut model: Llama<B> = model(&manifest["hyper"], &stored, arm);
        let mut optimizer = Optimizer::<B>::new(OptimizerSettings::default()).expect("valid settings");
        let schedule = Schedule::Cosine { min_ratio: run["min_lr_ratio"].as_f64().expect("min_lr_ratio") };
        let (peak, warmup) = (run["lr"].as_f64().expect("lr"), Warmup::from_zero(size("warmup_steps")));

        for update in 0..updates {
            let lr = peak * schedule.multiplier(update, warmup, total);
            assert_close(
                &format!("{name}: lr {update}"),
                &[lr],
                &[file.get("lr_used").values[update]],
                1e-12,
                0.0,
                0.0,
            );
            let mut sum = GradientsParams::new();
            for micro in 0..accumulation {
                let (tokens, targets) = batch(batches.get(&format!("batch_{}", update * accumulation + micro)));
                let loss = model.loss(tokens, targets);
                let expected = file.get("loss").values[update * accumulation + micro];
                let what = format!("{name}: loss of update {update}, micro-batch {micro}");
                assert_close(&what, &[number(loss.clone())], &[expected], 1e-5, 0.0, 0.0);
                let scaled = loss.div_scalar(accumulation as f64);
                sum = gradients::accumulate(&model, sum, GradientsParams::from_grads(scaled.backward(), &model));
            }
            model = optimizer.step(model, sum, lr);
            if let Some(theta) = file.find("theta_per_step") {
                let width = theta.shape[1];
                let ours: Vec<f64> = model.connections().to_vectors().concat().iter().map(|&t| f64::from(t)).collect();
                let expected = &theta.values[update * width..(update + 1) * width];
                assert_close(&format!("{name}: theta {update}"), &ours, expected, 0.0, 0.0, 2e-5);
            }
        }
        let ours = state_dict::from_model(&model);
        let mut compared = 0;
        for key in file.names() {
            let Some(parameter) = key.strip_prefix("final/") else { continue };
            let values: Vec<f64> = ours[parameter].values.iter().map(|&v| f64::from(v)).collect();
            assert_close(&format!("{name}: {key}"), &values, &file.get(key).values, 0.0, 0.0, 1e-5);
            compared += 1;
        }
        assert!(compared > 0, "{name} has no final weights");
    }
    assert!(!runs.is_empty());
    println!("reference llama_train: {} runs hold", runs.len());
}

/// The authors' evaluation: batches in order until the target of non-pad input tokens is passed; mean of batch means,
/// with one batch too many in the divisor.
#[test]
fn reference_llama_train_evaluation_in_the_authors_convention() {
    let folder = family("llama_train");
    let manifest = reference_vectors::manifest(&folder);
    let stored = weights(&Tensors::read(&family("llama").join("state_dict.safetensors")), "");
    let batches = Tensors::read(&folder.join("batches.safetensors"));
    let file = Tensors::read(&folder.join("eval.safetensors"));
    let model: Llama<Flex> = model(&manifest["hyper"], &stored, arm_of(&manifest["hyper"])).valid();
    let losses: Vec<f64> = (0..file.get("batch_losses").values.len())
        .map(|i| {
            let (tokens, targets) = batch(batches.get(&format!("batch_{i}")));
            number(model.loss(tokens.inner(), targets.inner()))
        })
        .collect();
    assert_close("batch losses", &losses, &file.get("batch_losses").values, 1e-5, 0.0, 0.0);
    let mut checked = 0;
    for (entry, &target) in file.get("target_tokens").values.iter().enumerate() {
        let (mut evaluated, mut used) = (0.0, 0);
        while used < losses.len() && evaluated <= target {
            let ids = batches.get(&format!("batch_{used}"));
            evaluated += ids.values.iter().filter(|&&id| id != 0.0).count() as f64;
            used += 1;
        }
        assert_eq!(evaluated, file.get("evaluated_tokens").values[entry]);
        let sum: f64 = losses[..used].iter().sum();
        let official = experiments_llm::task::authors_loss(sum, used);
        assert_close("official", &[official], &[file.get("official_eval_loss").values[entry]], 1e-5, 0.0, 0.0);
        let mean = sum / used as f64;
        assert_close("mean", &[mean], &[file.get("mean_of_batch_means").values[entry]], 1e-5, 0.0, 0.0);
        checked += 1;
    }
    println!("reference llama_train: {checked} evaluations hold");
}
