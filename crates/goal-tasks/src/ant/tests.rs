use super::*;
use crate::{EnvironmentOptions, Environments, task};

fn starts(variant: Variant, name: &str, count: usize) -> (TaskSpec, Vec<f32>) {
    let task = task(name, variant).unwrap();
    let spec = task.spec().clone();
    let environments = Environments::new(task, EnvironmentOptions::training(&spec, count, 8)).unwrap();
    (spec, environments.observations().to_vec())
}

#[test]
fn starts_and_goals_are_where_the_maze_says() {
    for variant in [Variant::ScalingCrl, Variant::JaxGcrl] {
        let (spec, observations) = starts(variant, "ant_big_maze_eval", 400);
        let mut goals: Vec<[i32; 2]> = Vec::new();
        let mut spread = 0.0f32;
        for row in observations.chunks(31) {
            let off = (row[0] - 4.0).abs().max((row[1] - 4.0).abs());
            spread = spread.max(off);
            assert!(off <= 0.1 && (row[2] - 0.55).abs() <= 0.1 && (row[3] - 1.0).abs() <= 0.1, "{row:?}");
            assert!(row[15..29].iter().all(|rate| rate.abs() < 0.6), "{row:?}");
            goals.push([row[29] as i32, row[30] as i32]);
        }
        // Exact in JaxGCRL.
        assert_eq!(spread == 0.0, variant == Variant::JaxGcrl);
        assert!(spread == 0.0 || spread > 0.09);
        goals.sort_unstable();
        goals.dedup();
        // All goals of the layout appear: 9 or 10.
        assert_eq!(goals.len(), if variant == Variant::JaxGcrl { 10 } else { 9 });
        assert!(goals.contains(&[24, 8]), "{goals:?}");
        assert_eq!(
            (spec.episode_steps, spec.step_seconds),
            (if variant == Variant::JaxGcrl { 1001 } else { 1000 }, 0.05)
        );
    }
}

#[test]
fn rewards_are_dense_or_sparse() {
    for (variant, expected) in [(Variant::ScalingCrl, -0.5 * 8.0 * 0.25 + 1.0), (Variant::JaxGcrl, 0.0)] {
        let task = task("ant_u_maze", variant).unwrap();
        let options = EnvironmentOptions::training(task.spec(), 2, 0);
        let mut environments = Environments::new(task, options).unwrap();
        let step = environments.step(&[0.5; 16]).unwrap();
        for (reward, distance) in step.rewards.iter().zip(step.distances) {
            let expected = if variant == Variant::JaxGcrl { 0.0 } else { expected - distance };
            assert!((reward - expected).abs() < 1e-5, "{reward} {distance}");
        }
    }
}

/// One environment above what is healthy, one at rest, one so fast that the simulation leaves the numbers.
#[test]
fn an_ant_that_is_lost_fails_and_does_not_harm_others() {
    let task = task("ant_u_maze", Variant::ScalingCrl).unwrap();
    let options = EnvironmentOptions::training(task.spec(), 3, 0);
    let mut environments = Environments::new(task, options).unwrap();
    let first = environments.observations().to_vec();
    let rest = [Ant::standing(4.0, 4.0).as_slice(), &[0.0; 16]].concat();
    let (mut high, mut fast) = (rest.clone(), rest.clone());
    high[2] = 3.0;
    fast[17..31].fill(1e30);
    for (environment, start) in [high, rest, fast].iter().enumerate() {
        environments.world.begin(environment, start).unwrap();
    }
    let step = environments.step(&[0.0; 24]).unwrap();
    assert_eq!(step.terminated, [true, false, true]);
    assert_eq!((step.rewards[2], step.distances[2]), (0.0, f32::INFINITY));
    assert!(step.rewards.iter().chain(step.metrics).all(|value| value.is_finite()), "{:?}", step.metrics);
    assert_eq!(environments.trajectories(), [1, 0, 1]);
    let after = environments.observations();
    assert!(after.iter().all(|value| value.is_finite()));
    // Those that failed have begun again where they began.
    assert_eq!((&after[..31], &after[62..]), (&first[..31], &first[62..]));
    let steps: Vec<f32> = (0..5).map(|_| environments.step(&[0.0; 24]).unwrap().distances[1]).collect();
    assert!(steps.iter().all(|distance| distance.is_finite()));
}

#[test]
fn pictures_show_the_maze_and_the_legs() {
    let task = task("ant_big_maze", Variant::ScalingCrl).unwrap();
    let environments = Environments::new(task.clone(), EnvironmentOptions::training(task.spec(), 1, 0)).unwrap();
    let (walls, bodies, scene) = (environments.world().walls(), environments.world().bodies(), environments.scene(0));
    assert_eq!((walls.len(), bodies.len(), scene.bodies.len()), (38, 9, 9));
    assert_eq!(walls[0].half, [2.0, 2.0, 1.0]);
    assert_eq!(bodies.iter().map(|body| body.capsules.len()).collect::<Vec<_>>(), [5, 1, 2, 1, 2, 1, 2, 1, 2]);
    assert_eq!(scene.agent, scene.bodies[0].position);
    let observation = environments.observations();
    assert_eq!([scene.goal[0] as f32, scene.goal[1] as f32], observation[29..]);
}

#[test]
fn goals_cannot_be_redrawn_on_the_way() {
    let task = task("ant_u_maze", Variant::ScalingCrl).unwrap();
    let options = EnvironmentOptions { goal_every: Some(50), ..EnvironmentOptions::training(task.spec(), 1, 0) };
    let message = Environments::new(task, options).err().unwrap().to_string();
    assert!(message.contains("ant_u_maze") && message.contains("for a goal"), "{message}");
}

/// Thrown at the walls around its start from all sides, no ant gets through.
#[test]
fn walls_hold() {
    let maze: Maze = "111/1R1/1G1/111".parse().unwrap();
    let task = AntMaze::new("cell", &maze, Variant::ScalingCrl).unwrap();
    let mut world = task.world(16).unwrap();
    for environment in 0..16 {
        let mut start = [Ant::standing(4.0, 4.0).as_slice(), &[0.0; 16]].concat();
        let angle = environment as f64 * std::f64::consts::TAU / 16.0;
        (start[17], start[18]) = (8.0 * angle.cos(), 8.0 * angle.sin());
        world.begin(environment, &start).unwrap();
    }
    let (mut outcomes, mut metrics) = ([Outcome::default(); 16], vec![0.0; 16 * 13]);
    let mut farthest = [0.0f64; 16];
    for _ in 0..60 {
        world.step(&[0.0; 128], &mut outcomes, &mut metrics);
        for (environment, farthest) in farthest.iter_mut().enumerate() {
            let [x, y, _] = world.scene(environment).agent;
            assert!(!maze.blocked([x, y], CELL), "environment {environment} is in a wall at {x}, {y}");
            *farthest = farthest.max((x - 4.0).abs()).max((y - 4.0).abs());
        }
    }
    // They do get there: the torso's radius is 0.25, and walls are 2 m away but for the side that is open.
    assert!(farthest.iter().filter(|far| **far > 1.0).count() >= 12, "{farthest:?}");
}
