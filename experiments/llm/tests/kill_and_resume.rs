//! A run that is killed with SIGKILL at any moment, also in the middle of writing a checkpoint, and then resumed ends with
//! the same bytes as one that was not.

use ancre::{Arm, rivals::RivalKind};
use program_tests::{Program, killed_comparison, killed_run, resumed_arms};

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-llm"));

/// A run of some seconds, with a checkpoint of some megabytes after every step.
const SETTINGS: &[&str] = &[
    "--preset",
    "smoke",
    "--steps",
    "25",
    "--set",
    "model.width=128",
    "--set",
    "model.feed_forward=352",
    "--set",
    "training.checkpoint_every=1",
    "--set",
    "training.evaluate_every=10",
    "--set",
    "data.evaluation_tokens=512",
];

#[test]
fn a_killed_and_resumed_run_ends_with_the_same_bytes() {
    println!("{:?}", killed_run(PROGRAM, SETTINGS));
}

#[test]
fn a_killed_and_resumed_run_with_galore_ends_with_the_same_bytes() {
    let galore = ["--optimizer", "galore", "--rank", "8", "--set", "training.optimizer.galore.refresh_every=7"];
    println!("{:?}", killed_run(PROGRAM, &[SETTINGS, &galore].concat()));
}

#[test]
fn a_killed_and_resumed_comparison_ends_with_the_same_logs() {
    let settings =
        ["--preset", "smoke", "--steps", "20", "--arms", "cascade,ancre,hyper-connections:2", "--seeds", "2"];
    let runs = [0, 1].map(|seed| ["cascade", "ancre", "hyper-connections-2"].map(|arm| format!("{arm}-seed{seed}")));
    println!(
        "{} kills",
        killed_comparison(PROGRAM, &settings, &runs.as_flattened().iter().map(String::as_str).collect::<Vec<_>>())
    );
}

#[test]
fn every_arm_resumes_to_the_same_bytes() {
    let settings = ["--preset", "smoke", "--steps", "4", "--set", "training.checkpoint_every=2"];
    let arms = [&Arm::NAMES[..], &RivalKind::EACH, &["0:l", "-0.5*0:2+2:3"]].concat();
    assert_eq!(resumed_arms(PROGRAM, &settings, &arms), arms.len());
}
