use std::sync::Arc;

use super::*;
use crate::{Body, Maze, Outcome, PointMaze, Random, Scene, Task, TaskSpec, Variant, World, record, task};

/// Goes along the shortest way, cell by cell: a policy that reaches every goal.
fn along_the_way(maze: &Maze) -> impl FnMut(&[f32], &mut [f32]) {
    let middle = maze.middle(1.0);
    move |observations, actions| {
        for (row, action) in observations.chunks(6).zip(actions.chunks_mut(2)) {
            let at = [f64::from(row[0]) + middle[0], f64::from(row[1]) + middle[1]];
            let goal = [f64::from(row[4]) + middle[0], f64::from(row[5]) + middle[1]].map(|v| v.round() as usize);
            let cell = at.map(|v| v.round() as usize);
            let distances = maze.distances((goal[0], goal[1]));
            let far = |(row, column): (usize, usize)| distances[row * maze.columns() + column].unwrap_or(u32::MAX);
            let (row_, column) = (cell[0], cell[1]);
            let around =
                [(row_, column), (row_ - 1, column), (row_ + 1, column), (row_, column - 1), (row_, column + 1)];
            let next = around.into_iter().min_by_key(|cell| far(*cell)).unwrap();
            let centre = maze.centre(next, 1.0);
            for axis in 0..2 {
                action[axis] = ((centre[axis] - at[axis]) * 3.0 - f64::from(row[2 + axis])).clamp(-1.0, 1.0) as f32;
            }
        }
    }
}

#[test]
fn a_policy_that_knows_the_way_reaches_every_goal_and_one_that_rests_reaches_none() {
    let name = "point_big_maze_eval";
    let task = task(name, Variant::ScalingCrl).unwrap();
    let maze = crate::named_maze("big_maze_eval", Variant::ScalingCrl).unwrap();
    let options = EvaluationOptions { episodes: 40, seed: 3, steps: None };
    let good = evaluate(&task, options, along_the_way(&maze)).unwrap();
    assert_eq!((good.success_any(), good.steps(), good.failures()), (1.0, 200.0, 0.0));
    assert!(
        good.time_at_goal() > 60.0 && good.final_distance() < 0.1,
        "{} {}",
        good.time_at_goal(),
        good.final_distance()
    );
    assert_eq!(good.metrics[1], good.time_at_goal());
    let idle = evaluate(&task, options, |_, actions| actions.fill(0.0)).unwrap();
    assert_eq!((idle.success_any(), idle.time_at_goal()), (0.0, 0.0));
    assert!(idle.episodes.iter().all(|episode| episode.nearest == episode.final_distance));
    assert_eq!(idle, evaluate(&task, options, |_, actions| actions.fill(0.0)).unwrap());
}

#[test]
fn a_record_shows_the_episode_that_is_evaluated() {
    let task = task("point_u_maze", Variant::ScalingCrl).unwrap();
    let maze = crate::named_maze("u_maze", Variant::ScalingCrl).unwrap();
    let shown = record(&task, 5, None, along_the_way(&maze)).unwrap();
    let scored =
        evaluate(&task, EvaluationOptions { episodes: 1, seed: 5, steps: None }, along_the_way(&maze)).unwrap();
    assert_eq!((shown.scenes.len(), shown.distances.len(), shown.walls.len()), (201, 200, 18));
    assert_eq!(f64::from(*shown.distances.last().unwrap()), scored.final_distance());
    let text = serde_json::to_string(&shown).unwrap();
    assert_eq!(serde_json::from_str::<crate::EpisodeRecord>(&text).unwrap().distances, shown.distances);
}

/// Environment e fails at step e + 1, and stands at its goal until then; after `lost` steps its distance is no number.
struct Falling {
    spec: TaskSpec,
    lost: f64,
}

struct FallingWorld {
    steps: Vec<f64>,
    lost: f64,
}

impl Task for Falling {
    fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    fn world(&self, environments: usize) -> Result<Box<dyn World>, TaskError> {
        Ok(Box::new(FallingWorld { steps: vec![0.0; environments], lost: self.lost }))
    }
}

impl World for FallingWorld {
    fn start_len(&self) -> usize {
        0
    }

    fn draw_start(&self, _: &mut Random, _: &mut [f64]) {}

    fn begin(&mut self, environment: usize, _: &[f64]) -> Result<(), TaskError> {
        self.steps[environment] = 0.0;
        Ok(())
    }

    fn redraw_goal(&mut self, _: usize, _: &mut Random) {}

    fn step(&mut self, _: &[f32], outcomes: &mut [Outcome], metrics: &mut [f32]) {
        for (environment, steps) in self.steps.iter_mut().enumerate() {
            *steps += 1.0;
            let distance = if *steps > self.lost { f64::NAN } else { 0.0 };
            outcomes[environment] = Outcome { reward: 2.0, distance, terminated: *steps as usize > environment };
        }
        metrics.fill(1.0);
    }

    fn observe(&self, observations: &mut [f32]) {
        observations.fill(0.0);
    }

    fn snapshot(&self) -> Vec<f64> {
        self.steps.clone()
    }

    fn restore(&mut self, snapshot: &[f64]) -> Result<(), TaskError> {
        self.steps.copy_from_slice(snapshot);
        Ok(())
    }

    fn scene(&self, _: usize) -> Scene {
        Scene { agent: [0.0; 3], goal: [0.0; 3], bodies: Vec::new() }
    }

    fn bodies(&self) -> Vec<Body> {
        Vec::new()
    }
}

fn falling(lost: f64) -> SharedTask {
    let maze: Maze = "1111/1RG1/1111".parse().unwrap();
    let spec = PointMaze::new("falling", maze, Variant::ScalingCrl).spec().clone();
    Arc::new(Falling { spec, lost })
}

#[test]
fn a_simulation_that_leaves_the_numbers_is_a_failure() {
    let options = EvaluationOptions { episodes: 4, seed: 0, steps: Some(9) };
    let scores = evaluate(&falling(2.0), options, |_, _| ()).unwrap();
    let steps: Vec<u32> = scores.episodes.iter().map(|episode| episode.steps).collect();
    assert_eq!((steps.as_slice(), scores.failures()), ([1, 2, 3, 3].as_slice(), 1.0));
    // The step that was lost counts nothing: neither time at the goal, nor reward, nor metrics, nor distance.
    assert_eq!((scores.time_at_goal(), scores.reward(), scores.final_distance()), (1.75, 3.5, 0.0));
    assert_eq!(scores.metrics, [1.75; 3]);
}

#[test]
fn steps_after_a_failure_do_not_count() {
    let task = falling(f64::INFINITY);
    let mut asked = 0;
    let options = EvaluationOptions { episodes: 4, seed: 0, steps: Some(3) };
    let scores = evaluate(&task, options, |_, _| asked += 1).unwrap();
    let steps: Vec<u32> = scores.episodes.iter().map(|episode| episode.steps).collect();
    assert_eq!((steps.as_slice(), asked), ([1, 2, 3, 3].as_slice(), 3));
    assert_eq!((scores.time_at_goal(), scores.failures(), scores.reward()), (2.25, 0.75, 4.5));
    assert_eq!(scores.metrics, [2.25; 3]);
    // Nobody is left after the third step, however long episodes may be.
    let mut asked = 0;
    evaluate(&task, EvaluationOptions { episodes: 3, seed: 0, steps: None }, |_, _| asked += 1).unwrap();
    assert_eq!(asked, 3);
}
