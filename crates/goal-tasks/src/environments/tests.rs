use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Maze, PointMaze, Variant, task};

fn point(name: &str) -> SharedTask {
    task(name, Variant::ScalingCrl).unwrap()
}

/// Actions that depend on the step and the environment only.
fn actions(step: u32, count: usize) -> Vec<f32> {
    (0..count as u32).map(|place| ((step * 7 + place * 13) as f32 * 0.37).sin()).collect()
}

#[test]
fn episodes_end_after_their_steps_and_start_over() {
    let task = point("point_u_maze");
    for auto_reset in [AutoReset::First, AutoReset::Fresh] {
        let options =
            EnvironmentOptions { episode_steps: 5, auto_reset, ..EnvironmentOptions::evaluation(task.spec(), 3, 9) };
        let mut environments = Environments::new(task.clone(), options).unwrap();
        let first = environments.observations().to_vec();
        for step in 1..=15 {
            let view = environments.step(&actions(step, 6)).unwrap();
            assert_eq!(view.truncated, [step % 5 == 0; 3]);
            assert_eq!(view.terminated, [false; 3]);
            assert_eq!(environments.trajectories(), [step / 5; 3]);
            if step % 5 == 0 {
                assert_eq!(environments.observations() == first, auto_reset == AutoReset::First, "step {step}");
            }
        }
    }
}

#[test]
fn goals_are_redrawn_while_the_agent_goes_on() {
    let task = point("point_hardest_maze");
    let options = EnvironmentOptions { goal_every: Some(4), ..EnvironmentOptions::training(task.spec(), 64, 2) };
    let mut environments = Environments::new(task, options).unwrap();
    let goals = |environments: &Environments| -> Vec<[f32; 2]> {
        environments.observations().chunks(6).map(|row| [row[4], row[5]]).collect()
    };
    let mut before = goals(&environments);
    for step in 1..=20 {
        environments.step(&[0.0; 128]).unwrap();
        let after = goals(&environments);
        let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        // 56 goals: hardly any draw gives the same one again.
        assert_eq!(changed > 50, step % 4 == 0, "step {step}: {changed} goals changed");
        assert_eq!(environments.trajectories(), [0; 64]);
        before = after;
    }
}

#[test]
fn environments_are_the_same_whatever_stands_beside_them() {
    let task = point("point_big_maze");
    let run = |count: usize| {
        let options = EnvironmentOptions { episode_steps: 7, ..EnvironmentOptions::training(task.spec(), count, 4) };
        let mut environments = Environments::new(task.clone(), options).unwrap();
        for step in 0..20 {
            environments.step(&actions(step, count * 2)).unwrap();
        }
        environments.observations()[..3 * 6].to_vec()
    };
    // 700 are stepped by several threads.
    assert_eq!(run(3), run(700));
}

#[test]
fn wrong_settings_and_actions_are_refused() {
    let task = point("point_u_maze");
    let good = EnvironmentOptions::training(task.spec(), 2, 0);
    for (options, words) in [
        (EnvironmentOptions { environments: 0, ..good }, "number of environments"),
        (EnvironmentOptions { environments: usize::MAX, ..good }, "number of environments"),
        (EnvironmentOptions { environments: 1 << 40, ..good }, "number of environments"),
        (EnvironmentOptions { episode_steps: 0, ..good }, "length of episodes"),
        (EnvironmentOptions { goal_every: Some(0), ..good }, "for a goal"),
    ] {
        let message = Environments::new(task.clone(), options).err().unwrap().to_string();
        assert!(message.contains(words) && message.contains("point_u_maze"), "{message}");
    }
    let mut environments = Environments::new(task, good).unwrap();
    let before = environments.observations().to_vec();
    assert!(environments.step(&[0.0; 3]).unwrap_err().to_string().contains("take 4"));
    let message = environments.step(&[0.0, 0.0, 0.0, f32::NAN]).unwrap_err().to_string();
    assert!(message.contains("entry 1 of the action of environment 1"), "{message}");
    assert_eq!(environments.observations(), before);
}

#[test]
fn damaged_and_foreign_snapshots_are_refused_and_change_nothing() {
    let task = point("point_u_maze");
    let options = EnvironmentOptions::training(task.spec(), 2, 0);
    let mut environments = Environments::new(task.clone(), options).unwrap();
    environments.step(&[1.0; 4]).unwrap();
    let snapshot = environments.snapshot().unwrap();
    for (other, words) in [
        (EnvironmentOptions { environments: 3, ..options }, "number of environments"),
        (EnvironmentOptions { seed: 1, ..options }, "seed"),
        (EnvironmentOptions { auto_reset: AutoReset::First, ..options }, "start after an episode"),
    ] {
        let mut other = Environments::new(task.clone(), other).unwrap();
        let before = other.observations().to_vec();
        let message = other.restore(&snapshot).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert_eq!(other.observations(), before);
    }
    for cut in [0, 5, 100, snapshot.len() - 1] {
        assert!(environments.restore(&snapshot[..cut]).is_err(), "{cut} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_snapshot_goes_on_bit_for_bit(
        seed: u64, before in 0u32..30, after in 1u32..30, episode_steps in 1u32..12, first: bool, goal in 1u32..9
    ) {
        let auto_reset = if first { AutoReset::First } else { AutoReset::Fresh };
        let maze: Maze = "111111/1R0GR1/1G11G1/111111".parse().unwrap();
        let task: SharedTask = Arc::new(PointMaze::new("own", maze, Variant::JaxGcrl));
        let options = EnvironmentOptions { environments: 3, seed, episode_steps, auto_reset, goal_every: Some(goal) };
        let mut whole = Environments::new(task.clone(), options).unwrap();
        for step in 0..before {
            whole.step(&actions(step, 6)).unwrap();
        }
        let mut resumed = Environments::new(task, options).unwrap();
        resumed.restore(&whole.snapshot().unwrap()).unwrap();
        prop_assert_eq!(resumed.observations(), whole.observations());
        for step in before..before + after {
            whole.step(&actions(step, 6)).unwrap();
            resumed.step(&actions(step, 6)).unwrap();
            prop_assert_eq!(resumed.observations(), whole.observations());
            prop_assert_eq!(resumed.trajectories(), whole.trajectories());
            prop_assert_eq!(resumed.last_step().rewards, whole.last_step().rewards);
        }
        prop_assert_eq!(resumed.snapshot().unwrap(), whole.snapshot().unwrap());
    }
}
