//! Bad input gets one clear message, exit code 1 or 2, no stack trace, and loses nothing.

use std::{fs, path::Path};

use program_tests::Program;

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-diffusion"));

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    PROGRAM.refuses(folder, arguments, code, words);
}

/// A short run in `folder/run`, without scores.
fn trained(folder: &Path) {
    PROGRAM.succeeds(folder, &["train", "--preset", "smoke", "--steps", "6", "--samples", "0", "--out", "run"]);
}

#[test]
fn impossible_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    refused(path, &["--set", "model.heads=7"], 2, &["7 heads do not divide", "2, 4 or 8"]);
    refused(path, &["--set", "model.width=66"], 2, &["66", "64 or 68"]);
    refused(path, &["--set", "model.widht=128"], 2, &["model.widht", "model.width"]);
    refused(path, &["--arms", "ancer"], 2, &["ancer", "cascade"]);
    refused(path, &["--arms", "0:99"], 2, &["0:99", "12"]);
    refused(path, &["--tau", "0"], 2, &["tau = 0"]);
    refused(path, &["--lr=-1"], 2, &["lr"]);
    refused(path, &["--steps", "0"], 2, &["steps"]);
    refused(path, &["--micro-batch", "3"], 2, &["micro_batch = 3", "batch = 64"]);
    refused(path, &["--preset", "dit-s-3"], 2, &["dit-s-3", "dit-s-2"]);
    refused(path, &["--data", "cifar"], 2, &["cifar", "digits", "twemoji"]);
    refused(path, &["--samples", "3"], 2, &["3", "at least 8"]);
    refused(path, &["--set", "sampling.steps=2000"], 2, &["2000", "1000"]);
    refused(path, &["--set", "sampling.steps=ddim300"], 2, &["ddim334"]);
    refused(path, &["--set", "model.label_dropout=0"], 2, &["guidance", "label_dropout"]);
    refused(path, &["--set", "ema_decay=1"], 2, &["ema_decay"]);
    refused(path, &["--set", "ema_decay=nan"], 2, &["ema_decay"]);
    refused(path, &["--set", "data.held_out=0"], 2, &["held_out"]);
    refused(path, &["--config", "none.toml"], 2, &["none.toml"]);
    assert!(!path.join("runs").exists(), "nothing was made");
}

#[test]
fn images_that_do_not_fit_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // The digits are 8 x 8.
    refused(path, &["--patch", "3"], 2, &["8 x 8", "patches of 3", "6 and 9", "1, 2, 4 or 8"]);
    refused(path, &["--set", "model.size=16"], 2, &["model.size = 16", "8"]);
    refused(path, &["--set", "model.channels=3"], 2, &["model.channels = 3", "1"]);
    refused(path, &["--set", "model.classes=12"], 1, &["12", "10"]);
    assert!(!path.join("runs").exists(), "nothing was made");
}

#[test]
fn files_that_are_cut_short_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // IDX: a header for 10 images of 8 x 8, and 100 bytes.
    fs::create_dir(path.join("idx")).unwrap();
    let mut idx = vec![0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 8, 0, 0, 0, 8];
    idx.extend([7; 100]);
    fs::write(path.join("idx/train-images-idx3-ubyte"), idx).unwrap();
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, 10];
    labels.extend([0, 1].repeat(5));
    fs::write(path.join("idx/train-labels-idx1-ubyte"), labels).unwrap();
    refused(path, &["--data", "./idx"], 1, &["train-images-idx3-ubyte", "656", "116"]);
    // CIFAR: not a whole number of records of 3073 bytes.
    fs::create_dir(path.join("cifar")).unwrap();
    fs::write(path.join("cifar/data_batch_1.bin"), vec![0; 5000]).unwrap();
    refused(path, &["--data", "./cifar"], 1, &["data_batch_1.bin", "5000"]);
    // Latents: no safetensors file at all, and half of one.
    fs::write(path.join("empty.safetensors"), "").unwrap();
    refused(path, &["--preset", "dit-s-2", "--data", "empty.safetensors"], 1, &["empty.safetensors"]);
    refused(path, &["--preset", "dit-s-2", "--data", "none.safetensors"], 1, &["none.safetensors"]);
    refused(path, &["--preset", "dit-s-2"], 1, &["latents.safetensors"]);
    assert!(!path.join("runs").exists(), "nothing was made");
}

#[test]
fn samples_of_what_is_no_run_and_places_that_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    trained(path);
    refused(path, &["sample", "nowhere"], 1, &["nowhere"]);
    refused(path, &["sample", "run", "--count", "0"], 2, &["--count 0"]);
    refused(path, &["sample", "run", "--class", "10"], 2, &["10 classes", "0 to 9"]);
    refused(path, &["sample", "run", "--class", "zebra"], 2, &["zebra", "7"]);
    refused(path, &["sample", "run", "--steps", "5000"], 2, &["5000"]);
    fs::create_dir(path.join("taken")).unwrap();
    refused(path, &["sample", "run", "--out", "taken"], 2, &["taken exists"]);
    refused(path, &["train", "--preset", "smoke", "--out", "run"], 1, &["run"]);
    fs::write(path.join("there.safetensors"), "x").unwrap();
    refused(path, &["export", "run", "--to", "there.safetensors"], 2, &["there.safetensors exists"]);
    refused(path, &["train", "--resume", "run", "--lr", "1"], 1, &["training.lr"]);
    assert_eq!(fs::read(path.join("there.safetensors")).unwrap(), b"x");
    // No end of bytes to read.
    refused(path, &["train", "--preset", "smoke", "--init-from", "/dev/zero"], 1, &["/dev/zero", "not a file"]);
    // Drawn first, and then not written down.
    refused(path, &["sample", "run", "--seed", "9223372036854775808"], 2, &["--seed"]);
}

#[test]
fn features_that_cannot_be_scored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let score = |samples: &str, references: &str, code, words: &[&str]| {
        let names = ["--extractor", "Inception-v3 pool3", "--resize", "bicubic"];
        let files = ["score", "--samples", samples, "--references", references];
        refused(path, &[&files[..], &names[..]].concat(), code, words);
    };
    score("none.safetensors", "none.safetensors", 1, &["none.safetensors"]);
    fs::write(path.join("short.safetensors"), "{").unwrap();
    score("short.safetensors", "short.safetensors", 1, &["short.safetensors"]);
}

#[test]
fn a_run_is_sampled_exported_and_begun_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    trained(path);
    PROGRAM.succeeds(path, &["sample", "run", "--count", "12", "--steps", "5", "--out", "some"]);
    for file in ["samples.png", "samples.npz", "sampling.toml", "000000-class0.png", "000011-class1.png"] {
        assert!(path.join("some").join(file).is_file(), "{file}");
    }
    // The same samples again, whatever goes through the model at once.
    PROGRAM.succeeds(path, &["sample", "run", "--count", "12", "--steps", "5", "--batch", "5", "--out", "again"]);
    let read = |folder: &str| fs::read(path.join(folder).join("samples.npz")).unwrap();
    assert!(read("some") == read("again"));
    PROGRAM.succeeds(path, &["export", "run", "--to", "weights.safetensors", "--weights", "raw"]);
    let arguments =
        ["train", "--preset", "smoke", "--steps", "3", "--samples", "0", "--init-from", "weights.safetensors"];
    PROGRAM.succeeds(path, &[&arguments[..], &["--out", "second"]].concat());
}
