use super::*;
use crate::{EnvironmentOptions, Environments, EvaluationOptions, evaluate, task};

#[test]
fn goals_on_the_open_floor_are_one_to_five_metres_away() {
    let task = task("humanoid", Variant::ScalingCrl).unwrap();
    let environments = Environments::new(task.clone(), EnvironmentOptions::training(task.spec(), 1000, 8)).unwrap();
    let (mut far, mut left) = (Vec::new(), 0);
    for row in environments.observations().chunks(271) {
        assert_eq!(row[..7], [0.0, 0.0, 1.4, 1.0, 0.0, 0.0, 0.0]);
        // The state gives the goal away.
        assert_eq!((row[24..26].to_vec(), row[270]), (row[268..270].to_vec(), 1.25));
        assert!(row[26..51].iter().chain(&row[243..268]).all(|value| *value == 0.0));
        far.push(row[268].hypot(row[269]));
        left += usize::from(row[268] < 0.0);
    }
    assert!(far.iter().all(|far| (0.999..5.001).contains(far)));
    // Uniform in the radius: a mean of 3 (of 3.44 were it uniform over the area), and 1.155 as the deviation.
    let mean = far.iter().sum::<f32>() / 1000.0;
    assert!((mean - 3.0).abs() < 5.0 * 1.155 / 1000.0f32.sqrt(), "{mean}");
    assert!((left as f64 - 500.0).abs() < 5.0 * 250.0f64.sqrt(), "{left}");
}

#[test]
fn torques_are_gear_times_control() {
    let task = task("humanoid", Variant::ScalingCrl).unwrap();
    let mut environments = Environments::new(task.clone(), EnvironmentOptions::training(task.spec(), 1, 8)).unwrap();
    // abdomen y, z, x of different size; controls beyond the range are cut.
    let mut actions = [0.0; 17];
    (actions[0], actions[1], actions[2], actions[16]) = (0.25, -0.5, 3.0, 1.0);
    environments.step(&actions).unwrap();
    let row = environments.observations();
    // In the order of velocities, z comes before y.
    for (place, expected) in
        [(249, -0.5 * 0.4 * 350.0), (250, 0.25 * 0.4 * 350.0), (251, 0.4 * 350.0), (265, 0.4 * 100.0)]
    {
        assert!((row[place] - expected).abs() < 1e-4, "{place}: {} {expected}", row[place]);
    }
    assert_eq!(row[252..265], [0.0; 13]);
}

#[test]
fn one_that_does_nothing_falls() {
    let task = task("humanoid", Variant::ScalingCrl).unwrap();
    let scores = evaluate(&task, EvaluationOptions { episodes: 3, seed: 0, steps: None }, |_, _| ()).unwrap();
    assert_eq!(scores.failures(), 1.0);
    assert!((10.0..200.0).contains(&scores.steps()), "{}", scores.steps());
    // It stands 0.15 above the goal's height and at least 1 m away.
    assert_eq!(scores.time_at_goal(), 0.0);
    assert!(scores.episodes.iter().all(|episode| episode.nearest > 0.5));
}

#[test]
fn mazes_have_the_smaller_step_and_cell() {
    for (name, variant, seconds) in [
        ("humanoid", Variant::ScalingCrl, 0.03),
        ("humanoid", Variant::JaxGcrl, 0.015),
        ("humanoid_big_maze_eval", Variant::ScalingCrl, 0.015),
    ] {
        assert!((task(name, variant).unwrap().spec().step_seconds - seconds).abs() < 1e-12, "{name}");
    }
    let task = task("humanoid_big_maze_eval", Variant::ScalingCrl).unwrap();
    let environments = Environments::new(task.clone(), EnvironmentOptions::training(task.spec(), 300, 8)).unwrap();
    let walls = environments.world().walls();
    assert_eq!((walls.len(), walls[0].half), (38, [1.0, 1.0, 0.5]));
    let mut goals: Vec<[i32; 2]> = Vec::new();
    for row in environments.observations().chunks(271) {
        assert_eq!(row[..3], [2.0, 2.0, 1.4]);
        goals.push([row[268] as i32, row[269] as i32]);
    }
    goals.sort_unstable();
    goals.dedup();
    assert_eq!(goals.len(), 10);
}
