//! What holds for every task of the registry.

use goal_tasks::{EnvironmentOptions, Environments, EvaluationOptions, Variant, evaluate, record, task, task_names};

/// Tasks of the registry that this build simulates.
fn simulated(name: &str) -> bool {
    cfg!(feature = "mujoco") || !name.starts_with("arm_")
}

/// Actions that depend on the step only.
fn actions(step: u32, count: usize) -> Vec<f32> {
    (0..count as u32).map(|place| ((step * 7 + place * 13) as f32 * 0.37).sin()).collect()
}

fn every_task(mut check: impl FnMut(&str, goal_tasks::SharedTask)) {
    for variant in [Variant::ScalingCrl, Variant::JaxGcrl] {
        for name in task_names(variant).iter().filter(|name| simulated(name)) {
            check(name, task(name, variant).unwrap_or_else(|error| panic!("{error}")));
        }
    }
}

#[test]
fn the_distance_is_that_of_the_achieved_goal_from_the_goal() {
    every_task(|name, task| {
        let spec = task.spec().clone();
        let options = EnvironmentOptions::evaluation(&spec, 3, 11);
        let mut environments = Environments::new(task, options).unwrap();
        for step in 0..4 {
            let distances = environments.step(&actions(step, 3 * spec.action_len)).unwrap().distances.to_vec();
            assert_eq!(environments.trajectories(), [0; 3], "{name}: nobody falls so soon");
            let rows = environments.observations().chunks(spec.observation_len());
            for (row, distance) in rows.zip(distances) {
                let (state, goal) = row.split_at(spec.state_len);
                let achieved = &state[spec.goal_in_state.clone()];
                assert_eq!(achieved.len(), goal.len(), "{name}");
                let square: f32 = achieved.iter().zip(goal).map(|(a, b)| (a - b).powi(2)).sum();
                assert!((square.sqrt() - distance).abs() < 1e-4, "{name}: {} and {distance}", square.sqrt());
            }
            let metric = |name| spec.metrics.iter().position(|metric| *metric == name);
            let success_metric = metric("success").expect("all have it");
            let step = environments.last_step();
            for (metrics, distance) in step.metrics.chunks(spec.metrics.len()).zip(step.distances) {
                if let Some(dist) = metric("dist") {
                    assert_eq!(metrics[dist], *distance, "{name}");
                }
                let success = f64::from(*distance) < spec.thresholds.success;
                assert_eq!(metrics[success_metric], f32::from(u8::from(success)), "{name}");
            }
        }
    });
}

#[test]
fn a_snapshot_of_any_task_goes_on_bit_for_bit() {
    every_task(|name, task| {
        let spec = task.spec().clone();
        // 9 environments are more than a group of the simulation; episodes of 5 steps start over on the way.
        let options = EnvironmentOptions { episode_steps: 5, ..EnvironmentOptions::training(&spec, 9, 3) };
        let mut whole = Environments::new(task.clone(), options).unwrap();
        let count = 9 * spec.action_len;
        for step in 0..3 {
            whole.step(&actions(step, count)).unwrap();
        }
        let mut resumed = Environments::new(task, options).unwrap();
        resumed.restore(&whole.snapshot().unwrap()).unwrap();
        for step in 3..12 {
            assert_eq!(resumed.observations(), whole.observations(), "{name}, step {step}");
            assert_eq!(resumed.trajectories(), whole.trajectories(), "{name}, step {step}");
            whole.step(&actions(step, count)).unwrap();
            resumed.step(&actions(step, count)).unwrap();
            assert_eq!(resumed.last_step().rewards, whole.last_step().rewards, "{name}, step {step}");
            assert_eq!(resumed.last_step().metrics, whole.last_step().metrics, "{name}, step {step}");
        }
    });
}

#[test]
fn an_environment_does_not_depend_on_the_number_of_others_or_of_threads() {
    let names = ["ant_u_maze", "humanoid", "humanoid_u_maze", "point_u_maze", "arm_push_hard", "arm_binpick_hard"];
    for name in names.into_iter().filter(|name| simulated(name)) {
        let task = task(name, Variant::ScalingCrl).unwrap();
        let spec = task.spec().clone();
        let run = |count: usize, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let options = EnvironmentOptions::training(&spec, count, 5);
                let mut environments = Environments::new(task.clone(), options).unwrap();
                for step in 0..6 {
                    environments.step(&actions(step, count * spec.action_len)).unwrap();
                }
                environments.observations()[..2 * spec.observation_len()].to_vec()
            })
        };
        assert_eq!(run(2, 1), run(70, 3), "{name}");
    }
}

#[test]
fn evaluations_and_records_are_finite_and_the_same_again() {
    let names = ["ant_big_maze_eval", "humanoid", "humanoid_big_maze", "point_hardest_maze", "arm_push_hard"];
    for name in names.into_iter().filter(|name| simulated(name)) {
        let task = task(name, Variant::ScalingCrl).unwrap();
        let options = EvaluationOptions { episodes: 5, seed: 1, steps: Some(40) };
        let policy = |_: &[f32], actions: &mut [f32]| {
            actions.iter_mut().zip([0.9, -0.7, 0.4].iter().cycle()).for_each(|(to, value)| *to = *value)
        };
        let scores = evaluate(&task, options, policy).unwrap();
        assert_eq!(scores, evaluate(&task, options, policy).unwrap(), "{name}");
        assert!(scores.final_distance().is_finite() && scores.metrics.iter().all(|value| value.is_finite()), "{name}");
        assert!(scores.steps() > 0.0 && scores.steps() <= 40.0, "{name}");
        let shown = record(&task, 1, Some(40), policy).unwrap();
        assert_eq!(shown.distances.len(), scores.episodes[0].steps as usize, "{name}");
        assert_eq!(f64::from(*shown.distances.last().unwrap()), scores.episodes[0].final_distance, "{name}");
        assert_eq!(shown.terminated, scores.episodes[0].terminated, "{name}");
        assert!(shown.scenes.iter().all(|scene| scene.bodies.len() == shown.bodies.len()), "{name}");
    }
}
