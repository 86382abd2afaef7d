//! A run that is killed with SIGKILL at any moment and then resumed ends with the same bytes as one that was not: weights,
//! moments, the states of the environments, the replay, random numbers.

use ancre::{Arm, rivals::RivalKind};
use program_tests::{Program, killed_comparison, killed_run, resumed_arms};

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

/// The advice named the command of the other family, which cannot read the run.
#[test]
fn every_command_that_is_interrupted_says_how_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--steps", "300", "--depth", "4", "--width", "8", "--set", "training.evaluate_every=100"];
    for (command, arm) in
        [("compare", "--arms"), ("train", "--arm"), ("classify", "--arms"), ("train-classifier", "--arm")]
    {
        let run = [&[command, arm, "cascade", "--out", command][..], &small].concat();
        let advice = PROGRAM.interrupted(folder.path(), &run, "run directory");
        let advice: Vec<&str> = advice.iter().map(String::as_str).collect();
        PROGRAM.succeeds(folder.path(), &advice);
    }
}

/// The groups that come after one were counted one by one.
#[test]
fn more_seeds_than_anyone_can_wait_for_begin_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = i64::MAX.to_string();
    let run = ["--preset", "smoke", "--arms", "cascade", "--seeds", &seeds, "--out", "run"];
    PROGRAM.interrupted(folder.path(), &run, "step 20/60");
}

/// It went on deaf until all experience was there, longer than a scheduler waits.
#[test]
fn a_run_that_is_interrupted_in_its_first_experience_makes_it_anew() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out| {
        let task = ["train", "--arm", "ancre", "--task", "ant_u_maze", "--steps", "2", "--depth", "4", "--width", "8"];
        let sizes = ["--set", "collection.environments=64", "--set", "evaluation.episodes=1", "--out", out];
        [&task[..], &sizes].concat()
    };
    let advice = PROGRAM.interrupted(folder.path(), &run("stopped"), "run directory");
    let log = |out: &str| std::fs::read_to_string(folder.path().join(out).join("metrics.jsonl")).unwrap();
    assert_eq!(log("stopped"), "", "no step was made");
    PROGRAM.succeeds(folder.path(), &advice.iter().map(String::as_str).collect::<Vec<_>>());
    PROGRAM.succeeds(folder.path(), &run("whole"));
    assert_eq!(log("stopped"), log("whole"));
}

#[test]
fn a_killed_and_resumed_comparison_over_depths_ends_with_the_same_logs() {
    let more = ["--arms", "x0-scalars,ancre", "--depths", "4,8", "--set", "training.checkpoint_every=5"];
    let settings: Vec<&str> = SETTINGS[..8].iter().copied().chain(more).collect();
    let runs = ["x0-scalars-depth4-seed0", "ancre-depth4-seed0", "x0-scalars-depth8-seed0", "ancre-depth8-seed0"];
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

/// In reinforcement learning and in the classification of images.
#[test]
fn every_arm_resumes_to_the_same_bytes() {
    let arms = [&Arm::NAMES[..], &RivalKind::EACH, &["0:l", "-0.5*0:2+2:3"]].concat();
    let small = ["--steps", "4", "--depth", "16", "--width", "8", "--set", "training.checkpoint_every=2"];
    for more in [&["--preset", "smoke", "--set", "evaluation.episodes=2"][..], &["classify"]] {
        assert_eq!(resumed_arms(PROGRAM, &[more, &small].concat(), &arms), arms.len());
    }
}
