//! A run that is killed with SIGKILL at any moment and then resumed ends with the same bytes as one that was not: weights,
//! moments, the states of the environments, the replay, random numbers.

use program_tests::{Program, killed_comparison, killed_run};

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-resnet"));

/// A run of some seconds, with a checkpoint after every few steps.
const SETTINGS: &[&str] = &[
    "--preset",
    "smoke",
    "--steps",
    "40",
    "--set",
    "model.width=16",
    "--set",
    "evaluation.episodes=8",
    "--set",
    "training.checkpoint_every=2",
    "--set",
    "training.evaluate_every=10",
];

#[test]
fn a_killed_and_resumed_run_ends_with_the_same_bytes() {
    println!("{:?}", killed_run(PROGRAM, SETTINGS));
}

#[test]
fn a_killed_and_resumed_comparison_over_depths_ends_with_the_same_logs() {
    let more = ["--arms", "cascade,ancre", "--depths", "4,8", "--set", "training.checkpoint_every=5"];
    let settings: Vec<&str> = SETTINGS[..8].iter().copied().chain(more).collect();
    let runs = ["cascade-depth4-seed0", "ancre-depth4-seed0", "cascade-depth8-seed0", "ancre-depth8-seed0"];
    println!("{} kills", killed_comparison(PROGRAM, &settings, &runs));
}

#[test]
fn windows_of_a_round_go_on_where_they_were() {
    let more = [
        "--set",
        "collection.sampling=windows",
        "--set",
        "collection.unroll=5",
        "--set",
        "collection.updates=7",
        "--set",
        "collection.environments=8",
    ];
    let settings: Vec<&str> = SETTINGS.iter().copied().chain(more).collect();
    println!("{:?}", killed_run(PROGRAM, &settings));
}
