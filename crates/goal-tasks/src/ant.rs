//! The ant in a maze.
//!
//! State (29): position and quaternion (w, x, y, z) of the torso, hip and ankle of legs 1 to 4, linear (world) and
//! angular (body) velocity of the torso, rates of the joints in the same order. Goal (2): x and y. Actions (8): hip and
//! ankle of legs 4, 1, 2 and 3, with gear 150.

use spring_physics::{
    Environment, Model, Real,
    models::{self, Ant},
};

use crate::{
    AutoReset, Maze, Outcome, Precision, Random, SharedTask, Task, TaskError, TaskSpec, Thresholds, Variant, World,
    spring::{self, Agent, SUBSTEPS},
};

/// Side of a cell, in metres.
const CELL: f64 = 4.0;
/// Height of the walls.
const WALL: f64 = 2.0;
/// Heights of a torso that has not fallen.
const HEALTHY: std::ops::RangeInclusive<f64> = 0.2..=1.0;
/// Positions, velocities and joints of a start are this far from rest.
const NOISE: f64 = 0.1;
/// Positions before those of the goal.
const OWN_Q: usize = 15;
/// Velocities before those of the goal.
const OWN_QD: usize = 14;

/// The ant in one maze.
#[derive(Clone, Debug)]
pub struct AntMaze {
    spec: TaskSpec,
    model: Model,
    agent: Walker,
    precision: Precision,
}

impl AntMaze {
    /// An ant in any maze, under any name.
    ///
    /// # Errors
    /// [`TaskError::World`] where the simulation refuses the maze.
    pub fn new(name: &str, maze: &Maze, variant: Variant) -> Result<Self, TaskError> {
        let walls = spring::blocks(&maze.boxes(CELL, WALL));
        let ant = Ant { walls, ..Ant::default() };
        let step_seconds = ant.dt * SUBSTEPS as f64;
        let thresholds = Thresholds { success: 0.5, easy: 2.0, hard: None };
        let spec = TaskSpec {
            name: name.to_owned(),
            variant,
            state_len: OWN_Q + OWN_QD,
            goal_len: 2,
            action_len: 8,
            goal_in_state: 0..2,
            thresholds,
            episode_steps: variant.episode_steps(),
            step_seconds,
            auto_reset: AutoReset::First,
            goal_every: None,
            metrics: &[
                "reward_forward",
                "reward_survive",
                "reward_ctrl",
                "reward_contact",
                "x_position",
                "y_position",
                "distance_from_origin",
                "x_velocity",
                "y_velocity",
                "forward_reward",
                "dist",
                "success",
                "success_easy",
            ],
            evaluated_on: name.to_owned(),
        };
        let centres = |cells: Vec<_>| cells.into_iter().map(|cell| maze.centre(cell, CELL)).collect();
        let (starts, goals) = (centres(maze.starts()), centres(maze.goals()));
        let agent = Walker { starts, goals, variant, thresholds, step_seconds };
        let model = models::ant(&ant).map_err(|error| spring::failed(name, &error))?;
        Ok(Self { spec, model, agent, precision: Precision::default() })
    }

    /// The same task computed with other numbers.
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The same task, evaluated on another one.
    pub(crate) fn evaluated_on(mut self, name: &str) -> Self {
        name.clone_into(&mut self.spec.evaluated_on);
        self
    }
}

impl Task for AntMaze {
    fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    fn world(&self, environments: usize) -> Result<Box<dyn World>, TaskError> {
        spring::world(self.precision, self.model.clone(), self.agent.clone(), &self.spec, environments)
    }
}

impl From<AntMaze> for SharedTask {
    fn from(task: AntMaze) -> Self {
        std::sync::Arc::new(task)
    }
}

#[derive(Clone, Debug)]
struct Walker {
    starts: Vec<[f64; 2]>,
    goals: Vec<[f64; 2]>,
    variant: Variant,
    thresholds: Thresholds,
    step_seconds: f64,
}

impl Agent for Walker {
    fn draw_start(&self, random: &mut Random, q: &mut [f64], qd: &mut [f64]) {
        let [x, y] = random.choose(&self.starts);
        q.copy_from_slice(&Ant::standing(x, y));
        q[..OWN_Q].iter_mut().for_each(|value| *value += random.uniform(-NOISE, NOISE));
        if self.variant == Variant::JaxGcrl {
            q[..2].copy_from_slice(&[x, y]);
        }
        q[OWN_Q..].copy_from_slice(&random.choose(&self.goals));
        qd[..OWN_QD].iter_mut().for_each(|value| *value = NOISE * random.normal());
        qd[OWN_QD..].fill(0.0);
    }

    fn control(&self, action: f32) -> f64 {
        f64::from(action)
    }

    fn centre<F: Real>(&self, environment: Environment<'_, F>) -> [f64; 3] {
        environment.link(0).position.map(Real::to_f64)
    }

    fn measure<F: Real>(
        &self,
        environment: Environment<'_, F>,
        action: &[f32],
        before: [f64; 3],
        metrics: &mut [f32],
    ) -> Outcome {
        let [x, y, z] = self.centre(environment);
        let goal = environment.q();
        let distance = (x - goal[OWN_Q].to_f64()).hypot(y - goal[OWN_Q + 1].to_f64());
        let effort = 0.5 * action.iter().map(|&a| f64::from(a).powi(2)).sum::<f64>();
        let success = f64::from(distance < self.thresholds.success);
        let easy = f64::from(distance < self.thresholds.easy);
        let (x_velocity, y_velocity) = ((x - before[0]) / self.step_seconds, (y - before[1]) / self.step_seconds);
        let from_origin = (x * x + y * y + z * z).sqrt();
        let values = [
            x_velocity,
            1.0,
            -effort,
            0.0,
            x,
            y,
            from_origin,
            x_velocity,
            y_velocity,
            x_velocity,
            distance,
            success,
            easy,
        ];
        metrics.copy_from_slice(&values.map(|value| value as f32));
        let reward = match self.variant {
            Variant::ScalingCrl => 1.0 - distance - effort,
            Variant::JaxGcrl => success,
        };
        // A height that is no number is not healthy, either.
        Outcome { reward, distance, terminated: !HEALTHY.contains(&z) }
    }

    fn observe<F: Real>(&self, environment: Environment<'_, F>, observation: &mut [f32]) {
        let (q, qd) = (environment.q(), environment.qd());
        let values = q[..OWN_Q].iter().chain(&qd[..OWN_QD]).chain(&q[OWN_Q..]);
        observation.iter_mut().zip(values).for_each(|(to, value)| *to = value.to_f64() as f32);
    }

    fn goal_height(&self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests;
