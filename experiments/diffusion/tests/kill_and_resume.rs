//! A run that is killed with SIGKILL at any moment and then resumed ends with the same bytes as one that was not: weights,
//! moments, moving average, data order, noise, and the scores of its samples.

use ancre::{Arm, rivals::RivalKind};
use program_tests::{Program, killed_comparison, killed_run, resumed_arms};

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-diffusion"));

/// A run of some seconds, with a checkpoint of some megabytes after every step.
const SETTINGS: &[&str] = &[
    "--preset",
    "smoke",
    "--steps",
    "25",
    "--samples",
    "0",
    "--set",
    "model.width=96",
    "--set",
    "training.checkpoint_every=1",
    "--set",
    "training.evaluate_every=10",
];

#[test]
fn a_killed_and_resumed_run_ends_with_the_same_bytes() {
    println!("{:?}", killed_run(PROGRAM, SETTINGS));
}

#[test]
fn a_killed_and_resumed_comparison_ends_with_the_same_logs_and_scores() {
    let settings = [
        "--preset",
        "smoke",
        "--steps",
        "20",
        "--arms",
        "cascade,dense-former:2:1",
        "--seeds",
        "2",
        "--samples",
        "20",
        "--set",
        "sampling.steps=ddim5",
        "--set",
        "sampling.sampler=ddim",
        "--set",
        "evaluation.score_every=8",
        "--set",
        "training.checkpoint_every=3",
    ];
    let runs = ["cascade-seed0", "dense-former-2-1-seed0", "cascade-seed1", "dense-former-2-1-seed1"];
    println!("{} kills", killed_comparison(PROGRAM, &settings, &runs));
}

#[test]
fn every_arm_resumes_to_the_same_bytes() {
    let settings = ["--preset", "smoke", "--steps", "4", "--samples", "0", "--set", "training.checkpoint_every=2"];
    let arms = [&Arm::NAMES[..], &RivalKind::EACH, &["0:l", "-0.5*0:2+2:3"]].concat();
    assert_eq!(resumed_arms(PROGRAM, &settings, &arms), arms.len());
}
