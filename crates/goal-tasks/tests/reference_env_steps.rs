//! Control steps of the ant and the humanoid against those of the packages' environments.

use std::{fs, sync::Arc};

use goal_tasks::{AntMaze, HumanoidTask, Outcome, Precision, Task, Variant, World, named_maze};
use reference_vectors::assert_close;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().map(|number| number.as_f64().expect("a number")).collect()
}

/// Steps one environment as the record does, and compares everything that it holds.
fn check(name: &str, case: &Value, task: Arc<dyn Task>, tolerance: f64) -> usize {
    let spec = task.spec();
    assert_eq!(spec.observation_len() as u64, case["obs_size"].as_u64().expect("a size"), "{name}");
    assert_eq!(spec.action_len as u64, case["action_size"].as_u64().expect("a size"), "{name}");
    assert_close(name, &[spec.step_seconds], &numbers(&Value::Array(vec![case["dt"].clone()])), 1e-12, 0.0, 0.0);
    // The environment of interest stands between others.
    let mut world: Box<dyn World> = task.world(3).expect("a world");
    let records = case["records"].as_array().expect("records");
    let start = [numbers(&records[0]["q"]), numbers(&records[0]["qd"])].concat();
    for environment in 0..3 {
        world.begin(environment, &start).expect("a start");
    }
    let length = spec.observation_len();
    let mut observations = vec![0.0f32; 3 * length];
    for (index, record) in records.iter().enumerate() {
        let at = format!("{name}, record {index}");
        if index > 0 {
            let action: Vec<f32> = numbers(&record["action"]).into_iter().map(|value| value as f32).collect();
            let mut actions = vec![0.1; 3 * action.len()];
            actions[action.len()..2 * action.len()].copy_from_slice(&action);
            let mut outcomes = [Outcome::default(); 3];
            let mut metrics = vec![0.0f32; 3 * spec.metrics.len()];
            world.step(&actions, &mut outcomes, &mut metrics);
            let reward = record["reward"].as_f64().expect("a reward");
            assert_close(&format!("{at}, reward"), &[outcomes[1].reward], &[reward], 0.0, 0.0, tolerance);
            assert_eq!(outcomes[1].terminated, record["done"].as_f64() == Some(1.0), "{at}");
            let stated = record["metrics"].as_object().expect("metrics");
            assert_eq!(stated.len(), spec.metrics.len(), "{at}: {:?}", stated.keys());
            for (metric, value) in spec.metrics.iter().zip(&metrics[spec.metrics.len()..]) {
                let expected = stated[*metric].as_f64().unwrap_or_else(|| panic!("{at}: no metric {metric}"));
                // Velocities are differences over a step of .03 to .05 s.
                let loss = if metric.contains("velocity") || metric.starts_with("forward") { 40.0 } else { 1.0 };
                assert_close(
                    &format!("{at}, {metric}"),
                    &[f64::from(*value)],
                    &[expected],
                    1e-6,
                    0.0,
                    loss * tolerance,
                );
            }
            let distance = stated["dist"].as_f64().expect("a distance");
            assert_close(&at, &[outcomes[1].distance], &[distance], 0.0, 0.0, tolerance);
        }
        world.observe(&mut observations);
        let observation: Vec<f64> = observations[length..2 * length].iter().map(|value| f64::from(*value)).collect();
        let expected = numbers(&record["obs"]);
        // Observations are single: 1e-7 of an entry is their rounding.
        for (entry, (actual, expected)) in observation.iter().zip(&expected).enumerate() {
            let what = format!("{at}, entry {entry}");
            assert_close(&what, &[*actual], &[*expected], 1e-7, 0.0, tolerance);
        }
        assert_eq!(observation.len(), expected.len(), "{at}");
        let poses: Vec<f64> = world.scene(1).bodies.iter().flat_map(|pose| pose.position).collect();
        let expected = numbers(&record["xpos"]);
        // The last link is the goal, which is not a body of the agent.
        assert_close(&format!("{at}, links"), &poses, &expected[..expected.len() - 3], 0.0, 0.0, tolerance);
    }
    records.len()
}

#[test]
fn reference_env_steps() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");
    let path = reference_vectors::family(default, "rl_tasks").join("env_steps.json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let maze = named_maze("big_maze_eval", Variant::JaxGcrl).expect("a maze");
    let mut checked = 0;
    for (precision, tolerance) in [(Precision::Double, 1e-6), (Precision::Single, 1e-4)] {
        for (name, case) in file.as_object().expect("cases") {
            let task: Arc<dyn Task> = match name.as_str() {
                "ant_big_maze_eval_spring" => {
                    Arc::new(AntMaze::new("ant", &maze, Variant::JaxGcrl).expect("an ant").with_precision(precision))
                }
                // Rewards are dense in both records.
                "humanoid_spring_dt0.003" => {
                    let task = HumanoidTask::open("humanoid", Variant::ScalingCrl).expect("a humanoid");
                    Arc::new(task.with_precision(precision))
                }
                _ => continue,
            };
            checked += check(&format!("{name}, {precision:?}"), case, task, tolerance);
        }
    }
    assert!(checked > 0, "{} holds no ant and no humanoid", path.display());
    println!("{checked} records");
}
