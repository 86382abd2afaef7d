//! Bad input gets one clear message, exit code 1 or 2, no stack trace, and loses nothing.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use program_tests::Program;

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-llm"));

fn run(folder: &Path, arguments: &[&str]) -> Output {
    PROGRAM.run(folder, arguments)
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    PROGRAM.refuses(folder, arguments, code, words);
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A short run in `folder/run`.
fn trained(folder: &Path) {
    let output = run(folder, &["train", "--preset", "smoke", "--steps", "12", "--out", "run"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn impossible_settings() {
    let folder = folder();
    let path = folder.path();
    refused(path, &["--set", "model.heads=7"], 2, &["7 heads do not divide", "2, 4 or 8"]);
    refused(path, &["--set", "model.widht=128"], 2, &["model.widht", "model.width"]);
    refused(path, &["--set", "width"], 2, &["KEY=VALUE"]);
    refused(path, &["--set", "training.steps=many"], 2, &["training.steps"]);
    refused(path, &["--arms", "ancer"], 2, &["ancer", "cascade"]);
    refused(path, &["--arms", "0:2+3"], 2, &["0:2+3", "column 6"]);
    refused(path, &["--arms", "0:99"], 2, &["0:99", "12"]);
    refused(path, &["--tau", "0"], 2, &["tau = 0"]);
    refused(path, &["--lr=-1"], 2, &["lr"]);
    refused(path, &["--embedding-lr", "0"], 2, &["--embedding-lr", "positive number"]);
    refused(path, &["--set", "model.variant.embedding_std=-1.0"], 2, &["of the embeddings is -1", "positive"]);
    refused(path, &["--rank", "8"], 2, &["--rank 8", "--optimizer galore"]);
    refused(path, &["--optimizer", "galore", "--rank", "0"], 2, &["galore.rank is 0", "at least 1"]);
    let galore = |set: &'static str| ["--optimizer", "galore", "--set", set];
    refused(path, &galore("training.optimizer.galore.refresh_every=0"), 2, &["refresh_every", "at least 1"]);
    refused(path, &galore("training.optimizer.galore.scale=nan"), 2, &["galore.scale", "above 0"]);
    refused(path, &galore("training.optimizer.rule.kind=\"adamw\""), 2, &["`transformers-adamw`"]);
    refused(path, &["--steps", "0"], 2, &["steps"]);
    refused(path, &["--micro-batch", "3"], 2, &["micro_batch = 3", "batch = 8"]);
    refused(path, &["--seeds", "0"], 2, &["seeds"]);
    refused(path, &["--preset", "llama-7b"], 2, &["llama-7b", "llama-1b"]);
    refused(path, &["--tokenizer", "words"], 2, &["words", "bytes"]);
    refused(path, &["--config", "none.toml"], 2, &["none.toml"]);
    fs::write(path.join("broken.toml"), "seed = = 3").unwrap();
    refused(path, &["--config", "broken.toml"], 2, &["broken.toml"]);
    assert!(!path.join("runs").exists(), "nothing was made");
}

#[test]
fn a_model_that_does_not_fit_into_memory() {
    let folder = folder();
    let huge = ["--set", "model.width=131072", "--set", "model.feed_forward=400000"];
    refused(folder.path(), &huge, 2, &["weights", "GiB", "--preset"]);
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn devices_that_are_not_there() {
    let folder = folder();
    refused(folder.path(), &["--device", "tpu"], 2, &["tpu", "cuda"]);
    if cfg!(not(feature = "cuda")) {
        refused(folder.path(), &["--device", "cuda"], 2, &["--features cuda"]);
    }
}

#[test]
fn texts_that_cannot_be_read() {
    let folder = folder();
    let path = folder.path();
    let write = |name: &str, bytes: &[u8]| fs::write(path.join(name), bytes).unwrap();
    write("empty.txt", b"");
    write("latin1.txt", b"caf\xe9 au lait");
    write("cut.json.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b]);
    write("broken.jsonl", b"{\"text\": \"a\"}\n{\"text\": ");
    write("other.jsonl", b"{\"body\": \"a\"}\n");
    write("cut.parquet", b"PAR1 and then nothing");
    write("notes.pdf", b"%PDF");
    write("short.txt", b"a");
    let train = |name| ["train", "--preset", "smoke", "--data", name];
    refused(path, &train("missing.txt"), 1, &["missing.txt"]);
    refused(path, &train("empty.txt"), 1, &["empty.txt"]);
    refused(path, &train("latin1.txt"), 1, &["latin1.txt", "3"]);
    refused(path, &train("cut.json.gz"), 1, &["cut.json.gz"]);
    refused(path, &train("broken.jsonl"), 1, &["broken.jsonl", "2"]);
    refused(path, &train("other.jsonl"), 1, &["other.jsonl", "body"]);
    refused(path, &train("cut.parquet"), 1, &["cut.parquet"]);
    refused(path, &train("notes.pdf"), 1, &["notes.pdf"]);
    write("bad.json", b"{\"version\": \"1.0\"");
    refused(path, &["train", "--preset", "smoke", "--tokenizer", "bad.json"], 1, &["bad.json"]);
    refused(path, &["train", "--preset", "smoke", "--tokenizer", "none.json"], 1, &["none.json"]);
    refused(path, &["train", "--preset", "smoke", "--set", "model.vocabulary=100"], 2, &["257", "100"]);
    let made: Vec<_> =
        fs::read_dir(path.join("runs")).map(|d| d.flatten().map(|e| e.path()).collect()).unwrap_or_default();
    assert!(made.iter().all(|p: &std::path::PathBuf| p.ends_with("tokenizers")), "{made:?}");
}

#[test]
fn directories_that_exist_or_do_not() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("mine")).unwrap();
    fs::write(path.join("mine/thesis.tex"), "years of work").unwrap();
    refused(path, &["train", "--preset", "smoke", "--out", "mine"], 1, &["mine", "--resume"]);
    refused(path, &["--preset", "smoke", "--out", "mine"], 1, &["mine", "--resume"]);
    assert_eq!(fs::read_to_string(path.join("mine/thesis.tex")).unwrap(), "years of work");
    refused(path, &["--resume", "nowhere"], 2, &["nowhere"]);
    refused(path, &["train", "--resume", "nowhere"], 2, &["nowhere"]);
    refused(path, &["evaluate", "nowhere"], 1, &["nowhere"]);
    refused(path, &["generate", "mine"], 1, &["mine"]);
    refused(path, &["export", "mine", "--to", "x.safetensors"], 1, &["mine"]);
}

#[test]
fn checkpoints_that_are_cut_or_of_other_settings() {
    let folder = folder();
    let path = folder.path();
    trained(path);
    refused(path, &["train", "--resume", "run", "--lr", "0.5"], 1, &["other settings", "lr"]);

    let checkpoints = path.join("run/checkpoints");
    let mut files: Vec<_> = fs::read_dir(&checkpoints).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let newest = files.last().unwrap();
    let whole = fs::read(newest).unwrap();
    fs::write(newest, &whole[..whole.len() / 2]).unwrap();
    let output = run(path, &["train", "--resume", "run"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the one before is used: {stderr}");
    let name = newest.file_name().unwrap().to_str().unwrap();
    assert!(stderr.contains(name) && stderr.contains("damaged"), "{stderr}");
    assert_eq!(fs::read(newest).unwrap(), whole, "the run ends with the same bytes all the same");

    for file in fs::read_dir(&checkpoints).unwrap() {
        let file = file.unwrap().path();
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..100.min(bytes.len())]).unwrap();
    }
    refused(path, &["train", "--resume", "run"], 1, &["no checkpoint", "step-"]);
}

#[test]
fn weights_that_do_not_fit() {
    let folder = folder();
    let path = folder.path();
    trained(path);
    assert!(run(path, &["export", "run", "--to", "w.safetensors"]).status.success());
    refused(path, &["export", "run", "--to", "w.safetensors"], 2, &["w.safetensors", "exists"]);
    let train = ["train", "--preset", "smoke", "--steps", "2", "--init-from"];
    let with = |more: &[&'static str]| [&train[..], more].concat();
    refused(path, &with(&["none.safetensors"]), 1, &["none.safetensors"]);
    fs::write(path.join("cut.safetensors"), &fs::read(path.join("w.safetensors")).unwrap()[..5000]).unwrap();
    refused(path, &with(&["cut.safetensors"]), 1, &["cut.safetensors", "whole"]);
    refused(path, &with(&["w.safetensors", "--set", "model.layers=5"]), 1, &["missing", "model.layers.4.mlp"]);
    refused(path, &with(&["w.safetensors", "--set", "model.width=64"]), 1, &["shape", "lm_head.weight"]);
    // A stored temperature wins, and that is said.
    let output = run(path, &with(&["w.safetensors", "--tau", "0.5", "--out", "warm"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("stores tau = 0.01"), "{stderr}");
}

/// A file-size limit stands in for a full disk: both end a write half-way.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full() {
    let folder = folder();
    let path = folder.path();
    let script = format!(
        "trap '' XFSZ; ulimit -f 300; exec {} train --preset smoke --steps 12 --set model.width=64 --out run",
        PROGRAM.0
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(path).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write the checkpoint") && !stderr.contains("panicked"), "{stderr}");
    let left: Vec<_> = fs::read_dir(path.join("run/checkpoints")).unwrap().flatten().map(|e| e.path()).collect();
    assert!(left.iter().all(|p| p.extension().is_none_or(|e| e != "safetensors")), "no half checkpoint: {left:?}");
    // With room, the run goes on.
    let output = run(path, &["train", "--resume", "run"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
