//! Models of Hugging Face folders against vectors computed with transformers: states, logits, loss, and the logits without each
//! layer.

use std::{fs, path::Path};

use burn::{
    backend::Flex,
    tensor::{Int, Tensor, TensorData, backend::Backend},
};
use experiments_llm::{hugging_face::Folder, model::rotary_frequencies};
use reference_vectors::{Tensors, assert_close};

/// The manifest's, of the largest entry or 1.
const TOLERANCE: f64 = 2e-5;

fn read<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

#[test]
fn reference_hf_llama_logits_states_and_left_out_layers() {
    let mut checked = 0;
    let family = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "hf_llama");
    for family in reference_vectors::cases(&family) {
        for entry in fs::read_dir(&family).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
            let folder = entry.path();
            check(&folder);
            // The same model with the keys of older configurations.
            let older = tempfile::tempdir().unwrap();
            for file in fs::read_dir(&folder).unwrap().flatten() {
                fs::copy(file.path(), older.path().join(file.file_name())).unwrap();
            }
            fs::remove_file(older.path().join("config.json")).unwrap();
            fs::rename(older.path().join("config_v4.json"), older.path().join("config.json")).unwrap();
            assert_eq!(Folder::open(older.path()).unwrap().config(), Folder::open(&folder).unwrap().config());
            checked += 1;
        }
    }
    assert!(checked > 0, "no case of hf_llama");
    println!("reference hf_llama: {checked} folders hold");
}

fn check(path: &Path) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let expected = Tensors::read(&path.join("expected.safetensors"));
    let folder = Folder::open(path).unwrap_or_else(|e| panic!("{name}: {e}"));
    let ids = expected.get("input_ids");
    let [rows, length] = ids.shape[..] else { panic!("a batch is a matrix") };
    let mut parameters = 0;
    let model = folder.model::<Flex>(length, &Default::default(), |read| parameters += read as u64).unwrap();
    assert_eq!((model.positions(), parameters), (length, folder.config().parameters()), "{name}");

    let tokens = || -> Tensor<Flex, 2, Int> {
        Tensor::from_data(TensorData::new(ids.i64s(), [rows, length]), &Default::default())
    };
    let close = |what: &str, actual: &[f64], key: &str, tolerance: f64, scale: f64| {
        assert_close(&format!("{name}: {what}"), actual, &expected.get(key).values, tolerance, scale, 0.0);
    };
    let logits = model.forward(tokens());
    close("logits", &read(logits), "logits", TOLERANCE, 1.0);

    let seen = model.observe(tokens());
    let depth = model.depth();
    for (i, state) in seen.states[..depth].iter().enumerate() {
        close(&format!("hidden {i}"), &read(state.clone()), &format!("hidden_{i}"), TOLERANCE, 1.0);
    }
    close("last hidden", &read(seen.normed), &format!("hidden_{depth}"), TOLERANCE, 1.0);

    // Every token but the first of a row is a target.
    let mut targets = vec![fused_ops::IGNORE_TARGET; rows * length];
    for (row, targets) in ids.i64s().chunks(length).zip(targets.chunks_mut(length)) {
        targets[..length - 1].copy_from_slice(&row[1..]);
    }
    let targets = Tensor::from_data(TensorData::new(targets, [rows, length]), &Default::default());
    close("loss", &read(model.loss(tokens(), targets)), "loss", 1e-5, 0.0);

    for left_out in 0..depth {
        let mut pass = model.begin(tokens());
        for layer in 0..depth {
            pass = if layer == left_out { model.pass_over(pass) } else { model.advance(pass) };
        }
        let logits = read(model.head(model.finish(pass)));
        close(&format!("without layer {left_out}"), &logits, &format!("logits_skip_{left_out}"), TOLERANCE, 1.0);
    }

    if let Some(frequencies) = expected.find("inv_freq") {
        let config = folder.config();
        let ours = rotary_frequencies(config.head_size(), config.rotary_base, config.variant.rotary_scaling);
        for (ours, expected) in ours.iter().zip(&frequencies.values) {
            assert!((f64::from(*ours) / expected - 1.0).abs() <= 1e-6, "{name}: {ours} for {expected}");
        }
        assert_eq!(ours.len(), frequencies.values.len(), "{name}");
    }
}
