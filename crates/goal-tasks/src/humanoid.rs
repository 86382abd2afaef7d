//! The humanoid, on an open floor or in a maze.
//!
//! State (268), links and joints in the order of `spring_physics::models::humanoid`:
//!
//! | entries | content |
//! |---|---|
//! | 0..7 | position and quaternion (w, x, y, z) of the torso |
//! | 7..24 | angles of the joints |
//! | 24..26 | x and y of the goal: the state gives away what was commanded, as in the paper's programs |
//! | 26..32 | linear (world) and angular (body) velocity of the torso |
//! | 32..51 | rates of the joints and of the goal |
//! | 51..171 | for each of 12 links a unit inertia moved to the centre of mass of the whole, row by row, and the mass |
//! | 171..243 | for each link the velocity of its centre times its share of the mass, and its angular velocity |
//! | 243..268 | torque of the motors for each velocity |
//!
//! Goal (3): x, y and the height 1.25. Actions (17) are 1 / 0.4 of the controls.

use spring_physics::{
    Environment, Model, Real,
    models::{self, Humanoid},
};

use crate::{
    AutoReset, Maze, Outcome, Precision, Random, SharedTask, Task, TaskError, TaskSpec, Thresholds, Variant, World,
    spring::{self, Agent, SUBSTEPS},
};

/// Side of a cell, in metres.
const CELL: f64 = 2.0;
/// Height of the walls.
const WALL: f64 = 1.0;
/// Heights of a torso that has not fallen.
const HEALTHY: std::ops::RangeInclusive<f64> = 1.0..=2.0;
/// Distances at which goals are drawn on the open floor.
const GOALS: [f64; 2] = [1.0, 5.0];
/// Height of the goal: less than that of a torso that stands, so standing at the goal is 0.15 from it.
const GOAL_HEIGHT: f64 = 1.25;
/// The control of an action of 1.
const CONTROL: f64 = 0.4;
/// Positions before those of the goal.
const OWN_Q: usize = 24;
/// Links, the goal included.
const LINKS: usize = 12;

/// The humanoid on one floor.
#[derive(Clone, Debug)]
pub struct HumanoidTask {
    spec: TaskSpec,
    model: Model,
    agent: Runner,
    precision: Precision,
}

impl HumanoidTask {
    /// On an open floor, goals 1 to 5 m away in any direction. A step is 0.03 s, as the paper's program with the
    /// versions that it pins has it, or 0.015 s with [`Variant::JaxGcrl`].
    ///
    /// # Errors
    /// [`TaskError::World`] where the simulation cannot be built.
    pub fn open(name: &str, variant: Variant) -> Result<Self, TaskError> {
        let dt = if variant == Variant::JaxGcrl { 0.0015 } else { 0.003 };
        Self::new(name, &Humanoid { dt, ..Humanoid::default() }, None, variant)
    }

    /// In any maze; a step is 0.015 s.
    ///
    /// # Errors
    /// [`TaskError::World`] where the simulation refuses the maze.
    pub fn in_maze(name: &str, maze: &Maze, variant: Variant) -> Result<Self, TaskError> {
        let walls = spring::blocks(&maze.boxes(CELL, WALL));
        let humanoid = Humanoid { dt: 0.0015, walls, target_range: 100.0, ..Humanoid::default() };
        Self::new(name, &humanoid, Some(maze), variant)
    }

    fn new(name: &str, humanoid: &Humanoid, maze: Option<&Maze>, variant: Variant) -> Result<Self, TaskError> {
        let model = models::humanoid(humanoid).map_err(|error| spring::failed(name, &error))?;
        let step_seconds = humanoid.dt * SUBSTEPS as f64;
        let thresholds = Thresholds { success: 0.5, easy: 2.0, hard: None };
        let spec = TaskSpec {
            name: name.to_owned(),
            variant,
            state_len: 268,
            goal_len: 3,
            action_len: 17,
            goal_in_state: 0..3,
            thresholds,
            episode_steps: variant.episode_steps(),
            step_seconds,
            auto_reset: AutoReset::First,
            goal_every: None,
            metrics: &[
                "forward_reward",
                "reward_linvel",
                "reward_quadctrl",
                "reward_alive",
                "x_position",
                "y_position",
                "x_velocity",
                "y_velocity",
                "distance_from_origin",
                "dist",
                "success",
                "success_easy",
            ],
            evaluated_on: name.to_owned(),
        };
        let centres = |cells: Vec<_>, maze: &Maze| cells.into_iter().map(|cell| maze.centre(cell, CELL)).collect();
        let agent = Runner {
            rest: model.rest(),
            cells: maze.map(|maze| Cells { starts: centres(maze.starts(), maze), goals: centres(maze.goals(), maze) }),
            masses: (0..model.links().len()).map(|link| model.mass(link)).collect(),
            variant,
            thresholds,
            step_seconds,
        };
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

impl Task for HumanoidTask {
    fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    fn world(&self, environments: usize) -> Result<Box<dyn World>, TaskError> {
        spring::world(self.precision, self.model.clone(), self.agent.clone(), &self.spec, environments)
    }
}

impl From<HumanoidTask> for SharedTask {
    fn from(task: HumanoidTask) -> Self {
        std::sync::Arc::new(task)
    }
}

#[derive(Clone, Debug)]
struct Cells {
    starts: Vec<[f64; 2]>,
    goals: Vec<[f64; 2]>,
}

#[derive(Clone, Debug)]
struct Runner {
    rest: Vec<f64>,
    /// Where it starts and where goals lie in a maze.
    cells: Option<Cells>,
    /// Kilograms of each link.
    masses: Vec<f64>,
    variant: Variant,
    thresholds: Thresholds,
    step_seconds: f64,
}

impl Agent for Runner {
    fn draw_start(&self, random: &mut Random, q: &mut [f64], qd: &mut [f64]) {
        q.copy_from_slice(&self.rest);
        qd.fill(0.0);
        let goal = match &self.cells {
            None => {
                let (far, angle) = (random.uniform(GOALS[0], GOALS[1]), random.uniform(0.0, std::f64::consts::TAU));
                [far * angle.cos(), far * angle.sin()]
            }
            Some(Cells { starts, goals }) => {
                q[..2].copy_from_slice(&random.choose(starts));
                random.choose(goals)
            }
        };
        q[OWN_Q..].copy_from_slice(&goal);
    }

    fn control(&self, action: f32) -> f64 {
        CONTROL * f64::from(action)
    }

    /// The centre of mass; that of the goal's marker is part of it, as in the paper's programs.
    fn centre<F: Real>(&self, environment: Environment<'_, F>) -> [f64; 3] {
        let centres = (0..LINKS).map(|link| environment.link(link).center_of_mass.map(Real::to_f64));
        mean(&self.masses, centres)
    }

    fn measure<F: Real>(
        &self,
        environment: Environment<'_, F>,
        action: &[f32],
        before: [f64; 3],
        metrics: &mut [f32],
    ) -> Outcome {
        let torso = environment.link(0).position.map(Real::to_f64);
        let [to_x, to_y, _] = environment.link(LINKS - 1).position.map(Real::to_f64);
        let distance =
            ((torso[0] - to_x).powi(2) + (torso[1] - to_y).powi(2) + (torso[2] - GOAL_HEIGHT).powi(2)).sqrt();
        let effort = 0.1 * action.iter().map(|&a| self.control(a).powi(2)).sum::<f64>();
        let [x, y, z] = self.centre(environment);
        let (x_velocity, y_velocity) = ((x - before[0]) / self.step_seconds, (y - before[1]) / self.step_seconds);
        let forward = 1.25 * x_velocity;
        let success = f64::from(distance < self.thresholds.success);
        let easy = f64::from(distance < self.thresholds.easy);
        let from_origin = (x * x + y * y + z * z).sqrt();
        let values =
            [forward, forward, -effort, 5.0, x, y, x_velocity, y_velocity, from_origin, distance, success, easy];
        metrics.copy_from_slice(&values.map(|value| value as f32));
        let reward = match self.variant {
            Variant::ScalingCrl => 5.0 - distance - effort,
            Variant::JaxGcrl => success,
        };
        // A height that is no number is not healthy, either.
        Outcome { reward, distance, terminated: !HEALTHY.contains(&torso[2]) }
    }

    fn observe<F: Real>(&self, environment: Environment<'_, F>, observation: &mut [f32]) {
        let links: [_; LINKS] = std::array::from_fn(|link| environment.link(link));
        let centre = mean(&self.masses, links.iter().map(|link| link.center_of_mass.map(Real::to_f64)));
        let total: f64 = self.masses.iter().sum();
        let mut place = observation.iter_mut();
        // The lengths fit: the state has as many numbers as its table says.
        let mut put = |value: f64| {
            if let Some(to) = place.next() {
                *to = value as f32;
            }
        };
        environment.q().into_iter().for_each(|value| put(value.to_f64()));
        environment.qd().into_iter().for_each(|value| put(value.to_f64()));
        for (link, &mass) in links.iter().zip(&self.masses) {
            let at = link.center_of_mass.map(Real::to_f64);
            let offset: [f64; 3] = std::array::from_fn(|axis| at[axis] - centre[axis]);
            let square: f64 = offset.iter().map(|value| value * value).sum();
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                let diagonal = if i == j { 1.0 + mass * square } else { 0.0 };
                put(diagonal - mass * offset[i] * offset[j]);
            }
            put(mass);
        }
        for (link, mass) in links.iter().zip(&self.masses) {
            link.center_velocity.into_iter().for_each(|value| put(value.to_f64() * mass / total));
            link.angular_velocity.into_iter().for_each(|value| put(value.to_f64()));
        }
        environment.torques().into_iter().for_each(|value| put(value.to_f64()));
        let [x, y, _] = links[LINKS - 1].position.map(Real::to_f64);
        [x, y, GOAL_HEIGHT].into_iter().for_each(put);
    }

    fn goal_height(&self) -> f64 {
        GOAL_HEIGHT
    }
}

fn mean(masses: &[f64], points: impl Iterator<Item = [f64; 3]>) -> [f64; 3] {
    let total: f64 = masses.iter().sum();
    let mut sum = [0.0; 3];
    for (mass, point) in masses.iter().zip(points) {
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += mass * value);
    }
    sum.map(|value| value / total)
}

#[cfg(test)]
mod tests;
