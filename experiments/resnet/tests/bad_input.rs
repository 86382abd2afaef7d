//! Bad input gets one clear message, exit code 1 or 2, no stack trace, and loses nothing.

use std::path::Path;

use program_tests::Program;

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-resnet"));

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    PROGRAM.refuses(folder, arguments, code, words);
}

#[test]
fn impossible_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    refused(path, &["--depth", "15"], 2, &["depth = 15", "12", "16"]);
    refused(path, &["--depths", "16,30"], 2, &["depth = 30", "28", "32"]);
    // One of them was ignored.
    for command in [&[][..], &["compare"], &["classify"]] {
        refused(
            path,
            &[command, &["--depth", "4", "--depths", "8,12"]].concat(),
            2,
            &["--depth <DEPTH>", "--depths <DEPTHS>"],
        );
    }
    refused(path, &["--width", "1"], 2, &["width = 1"]);
    // Sizes whose products fit no number.
    refused(path, &["--width", "10000000000"], 2, &["width = 10000000000"]);
    refused(path, &["--depth", "4000000000000000000"], 2, &["depth = 4000000000000000000"]);
    refused(path, &["--batch", "1000000000000"], 2, &["batch"]);
    refused(path, &["--preset", "smoke", "--batch", "1000000"], 2, &["memory", "pairs of transitions"]);
    let many = ["classify", "--data", "twemoji", "--batch", "16777216", "--micro-batch", "64", "--width", "4"];
    refused(path, &many, 2, &["memory", "images of a step"]);
    let windows = ["--preset", "smoke", "--set", "collection.sampling=windows", "--batch", "10000"];
    refused(path, &windows, 2, &["data.batch = 10000", "6368 transitions"]);
    refused(path, &["--config", "/dev/zero"], 2, &["/dev/zero", "longer than"]);
    refused(path, &["--depth", "0"], 2, &["depth = 0", "4 or 8"]);
    refused(path, &["--depths", "8,1028"], 2, &["depth = 1028", "at most 1024"]);
    refused(path, &["classify", "--set", "data.batch=0"], 2, &["data.batch is 0"]);
    refused(path, &["--set", "evaluation.episodes=1000000000000"], 2, &["episodes"]);
    refused(path, &["--set", "collection.updates=4000000000000000000"], 2, &["updates"]);
    refused(path, &["classify", "--width", "10000000000"], 2, &["width = 10000000000"]);
    refused(path, &["classify", "--network", "conv", "--depth", "6000000000002"], 2, &["depth = 6000000000002"]);
    refused(path, &["classify", "--set", "model.size=4000000000"], 2, &["size"]);
    refused(path, &["--task", "point_bigmaze"], 2, &["point_bigmaze", "point_big_maze"]);
    if cfg!(not(feature = "mujoco")) {
        refused(path, &["--task", "arm_push_hard"], 2, &["arm_push_hard", "MuJoCo", "--features mujoco"]);
    }
    refused(path, &["--set", "task.evaluate_on=ant_u_maze"], 2, &["ant_u_maze", "point_big_maze"]);
    refused(path, &["--batch", "64", "--set", "data.micro_batch=32"], 2, &["micro_batch = 32", "batch = 64"]);
    refused(path, &["--set", "collection.prefill=10"], 2, &["collection.prefill = 10", "201"]);
    refused(path, &["--set", "collection.replay=10"], 2, &["collection.replay = 10"]);
    refused(path, &["--set", "learning.discount=1"], 2, &["discount"]);
    refused(path, &["--set", "learning.discount=nan"], 2, &["discount"]);
    refused(path, &["--set", "evaluation.episodes=0"], 2, &["evaluation.episodes"]);
    refused(path, &["--arms", "0:9"], 2, &["0:9", "4"]);
    refused(path, &["--arms", "attention-residuals:3"], 2, &["4 branches", "3 blocks"]);
    refused(path, &["classify", "--network", "conv", "--arms", "rezero"], 2, &["`rezero`", "pre-conv"]);
    refused(path, &["--arms", "rezero:2"], 2, &["rezero:2", "dense-former[:DILATION:PERIOD]"]);
    refused(path, &["--tau", "0"], 2, &["tau = 0"]);
    refused(path, &["--preset", "cup"], 2, &["cup", "cpu"]);
    refused(path, &["--set", "collection.environments=10000000"], 2, &["memory"]);
    refused(path, &["train", "--init-from", "x.safetensors"], 2, &["init-from"]);
    assert!(!path.join("runs").exists(), "nothing was made");
}

/// The ant's episodes are longer than the point's, and the preset's first experience was too short for them.
#[test]
fn a_task_with_longer_episodes_takes_as_much_experience_as_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--set", "collection.environments=2", "--set", "evaluation.episodes=1", "--set", "model.width=8"];
    let flags = ["train", "--arm", "ancre", "--task", "ant_u_maze", "--steps", "1", "--depth", "4", "--out", "run"];
    PROGRAM.succeeds(folder.path(), &[&flags[..], &small].concat());
    let config = std::fs::read_to_string(folder.path().join("run/config.toml")).unwrap();
    assert!(config.contains("prefill = 1001"), "{config}");
}

#[test]
fn what_is_no_run_and_places_that_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    PROGRAM.succeeds(path, &["train", "--preset", "smoke", "--steps", "3", "--out", "run"]);
    refused(path, &["train", "--preset", "smoke", "--out", "run"], 1, &["run"]);
    refused(path, &["train", "--resume", "nowhere"], 2, &["nowhere"]);
    refused(path, &["train", "--resume", "run", "--lr", "1"], 1, &["training.lr"]);
    refused(path, &["--resume", "run"], 2, &["run", "train --resume"]);
}
