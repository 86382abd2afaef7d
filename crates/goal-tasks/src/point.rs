//! A point mass in a maze: a task that a small network learns in minutes.
//!
//! Cells have the side 1. Velocity follows `v <- 0.8 v + 0.04 a`, so its entries stay within 0.2; the position moves by
//! `v` along one axis after the other, and an axis along which a wall is in the way stops. Starts lie within 0.1 of the
//! centre of a start cell along each axis, goals in the exact centre of a goal cell. The state is the position relative
//! to the middle of the maze and `v / 0.2`; the goal is relative to the middle, too.

use rayon::prelude::*;

use crate::{AutoReset, Maze, Outcome, Random, Scene, Task, TaskError, TaskSpec, Thresholds, Variant, WallBox, World};

/// Side of a cell.
const CELL: f64 = 1.0;
/// What remains of a velocity after a step.
const KEPT: f64 = 0.8;
/// What an action adds to a velocity.
const GAIN: f64 = 0.04;
/// The largest entry of a velocity: `GAIN / (1 - KEPT)`.
const FASTEST: f64 = 0.2;
/// How far from the centre of its cell a start lies along each axis.
const START_NOISE: f64 = 0.1;
/// Environments below which threads cost more than they bring.
const PER_THREAD: usize = 256;

/// The task of one maze.
#[derive(Clone, Debug)]
pub struct PointMaze {
    spec: TaskSpec,
    maze: Maze,
}

impl PointMaze {
    /// A point in any maze, under any name.
    pub fn new(name: &str, maze: Maze, variant: Variant) -> Self {
        let spec = TaskSpec {
            name: name.to_owned(),
            variant,
            state_len: 4,
            goal_len: 2,
            action_len: 2,
            goal_in_state: 0..2,
            thresholds: Thresholds { success: 0.5, easy: 1.0, hard: None },
            episode_steps: 200,
            step_seconds: 1.0,
            auto_reset: AutoReset::Fresh,
            goal_every: Some(50),
            metrics: &["dist", "success", "success_easy"],
            evaluated_on: name.to_owned(),
        };
        Self { spec, maze }
    }
}

impl Task for PointMaze {
    fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    fn world(&self, environments: usize) -> Result<Box<dyn World>, TaskError> {
        let points = vec![Point::default(); environments];
        let (spec, maze) = (&self.spec, &self.maze);
        Ok(Box::new(Points {
            middle: maze.middle(CELL),
            starts: maze.starts(),
            goals: maze.goals(),
            maze: maze.clone(),
            thresholds: spec.thresholds,
            variant: spec.variant,
            points,
        }))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    position: [f64; 2],
    velocity: [f64; 2],
    goal: [f64; 2],
}

impl Point {
    fn distance(&self) -> f64 {
        (self.position[0] - self.goal[0]).hypot(self.position[1] - self.goal[1])
    }

    fn step(&mut self, action: &[f32], maze: &Maze) {
        for (axis, &entry) in action.iter().enumerate() {
            let push = f64::from(entry).clamp(-1.0, 1.0);
            self.velocity[axis] = KEPT * self.velocity[axis] + GAIN * push;
            let mut moved = self.position;
            moved[axis] += self.velocity[axis];
            if maze.blocked(moved, CELL) {
                self.velocity[axis] = 0.0;
            } else {
                self.position = moved;
            }
        }
    }
}

struct Points {
    maze: Maze,
    middle: [f64; 2],
    starts: Vec<(usize, usize)>,
    goals: Vec<(usize, usize)>,
    thresholds: Thresholds,
    variant: Variant,
    points: Vec<Point>,
}

impl World for Points {
    fn start_len(&self) -> usize {
        4
    }

    fn draw_start(&self, random: &mut Random, start: &mut [f64]) {
        let centre = self.maze.centre(random.choose(&self.starts), CELL);
        let position = centre.map(|at| at + random.uniform(-START_NOISE, START_NOISE));
        let goal = self.maze.centre(random.choose(&self.goals), CELL);
        start.copy_from_slice([position, goal].as_flattened());
    }

    fn begin(&mut self, environment: usize, start: &[f64]) -> Result<(), TaskError> {
        self.points[environment] =
            Point { position: [start[0], start[1]], velocity: [0.0; 2], goal: [start[2], start[3]] };
        Ok(())
    }

    fn redraw_goal(&mut self, environment: usize, random: &mut Random) {
        self.points[environment].goal = self.maze.centre(random.choose(&self.goals), CELL);
    }

    fn step(&mut self, actions: &[f32], outcomes: &mut [Outcome], metrics: &mut [f32]) {
        let (maze, thresholds, variant) = (&self.maze, self.thresholds, self.variant);
        self.points
            .par_iter_mut()
            .with_min_len(PER_THREAD)
            .zip(actions.par_chunks_exact(2))
            .zip(outcomes)
            .zip(metrics.par_chunks_exact_mut(3))
            .for_each(|(((point, action), outcome), metrics)| {
                point.step(action, maze);
                let distance = point.distance();
                let success = f64::from(distance < thresholds.success);
                let reward = if variant == Variant::JaxGcrl { success } else { -distance };
                *outcome = Outcome { reward, distance, terminated: false };
                let easy = f64::from(distance < thresholds.easy);
                metrics.copy_from_slice(&[distance, success, easy].map(|value| value as f32));
            });
    }

    fn observe(&self, observations: &mut [f32]) {
        for (point, observation) in self.points.iter().zip(observations.chunks_exact_mut(6)) {
            for axis in 0..2 {
                observation[axis] = (point.position[axis] - self.middle[axis]) as f32;
                observation[2 + axis] = (point.velocity[axis] / FASTEST) as f32;
                observation[4 + axis] = (point.goal[axis] - self.middle[axis]) as f32;
            }
        }
    }

    fn snapshot(&self) -> Vec<f64> {
        self.points.iter().flat_map(|point| [point.position, point.velocity, point.goal]).flatten().collect()
    }

    fn restore(&mut self, snapshot: &[f64]) -> Result<(), TaskError> {
        let (found, rest) = snapshot.as_chunks::<6>();
        if found.len() != self.points.len() || !rest.is_empty() {
            let message = format!("{} numbers for {} points of 6", snapshot.len(), self.points.len());
            return Err(TaskError::Snapshot { message });
        }
        for (point, &[x, y, u, v, to_x, to_y]) in self.points.iter_mut().zip(found) {
            *point = Point { position: [x, y], velocity: [u, v], goal: [to_x, to_y] };
        }
        Ok(())
    }

    fn scene(&self, environment: usize) -> Scene {
        let Point { position: [x, y], goal: [to_x, to_y], .. } = self.points[environment];
        Scene { agent: [x, y, 0.0], goal: [to_x, to_y, 0.0], bodies: Vec::new() }
    }

    fn walls(&self) -> Vec<WallBox> {
        self.maze.boxes(CELL, CELL)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn corridor() -> Maze {
        "11111/1RGG1/11111".parse().unwrap()
    }

    #[test]
    fn a_push_moves_it_as_stated() {
        let mut point = Point { position: [1.0, 1.0], velocity: [0.0, 0.1], goal: [1.0, 3.0] };
        point.step(&[0.0, 1.0], &corridor());
        // 0.8 * 0.1 + 0.04.
        assert!((point.velocity[1] - 0.12).abs() < 1e-15 && (point.position[1] - 1.12).abs() < 1e-15);
        assert_eq!(point.position[0], 1.0);
        assert!((point.distance() - 1.88).abs() < 1e-15);
    }

    #[test]
    fn a_wall_stops_one_axis_only() {
        let mut point = Point { position: [1.45, 1.0], velocity: [0.2, 0.1], goal: [1.0, 3.0] };
        point.step(&[1.0, 0.0], &corridor());
        assert_eq!((point.position[0], point.velocity[0]), (1.45, 0.0));
        assert!((point.position[1] - 1.08).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn no_policy_leaves_the_free_cells_or_the_largest_velocity(
            actions in prop::collection::vec([-3.0f32..3.0, -3.0f32..3.0], 1..200)
        ) {
            let maze = corridor();
            let mut point = Point { position: [1.0, 1.0], ..Point::default() };
            for action in actions {
                point.step(&action, &maze);
                prop_assert!(!maze.blocked(point.position, CELL));
                prop_assert!(point.velocity.iter().all(|v| v.abs() <= FASTEST + 1e-12));
            }
        }
    }
}
