//! The robot arm that pushes a cube over a table, or picks it out of one bin and puts it into another.
//!
//! A Franka Panda with two fingers, simulated by MuJoCo. State (17):
//!
//! | entries | content |
//! |---|---|
//! | 0..3 | position of the cube |
//! | 3..10 | angles of joints 1 to 7 |
//! | 10..13 | position of the hand: the origin of the last link |
//! | 13..16 | its linear velocity along the axes of the world |
//! | 16 | distance of the fingers |
//!
//! With [`Variant::JaxGcrl`] an 18th entry is 0.1 times the mean force of the motors over the 19 velocities without
//! those of the fingers. Entries from 10 on belong to the beginning of the last of the 25 steps of the simulation that
//! make a step, as in the paper's programs: they are 2 ms older than the others. Goal (3): where the cube shall be.
//! Actions (5): targets of joints 1, 2, 4 and 6 within their working ranges, and the gripper, which closes above 0.
//! Every reward is 1 at the goal and 0 elsewhere. No episode fails, but for one whose simulation leaves the numbers.

use std::sync::Arc;

use rayon::prelude::*;

use self::model::{MOTORS, Surroundings, TIME_STEP};
use crate::{
    AutoReset, Body, Outcome, Pose, Random, Scene, SharedTask, Task, TaskError, TaskSpec, Thresholds, Variant, WallBox,
    World,
    mujoco::{self, BodyId, Data, Model, Part},
};

mod model;

/// Steps of the simulation for one of the task.
const SUBSTEPS: usize = 25;
/// Positions of cube (7), marker (7), joints (7) and fingers (2), and velocities of the same (6, 6, 7, 2).
const POSITIONS: usize = 23;
const VELOCITIES: usize = 21;
/// Motors of the joints and fingers.
const CONTROLS: usize = 9;
/// Where the joints begin among positions, and among velocities.
const JOINTS: usize = 14;
const JOINT_VELOCITIES: usize = 12;
/// Joints and fingers at the beginning of an episode.
const READY: [f64; 9] = [1.571, 0.742, 0.0, -1.571, 0.0, 3.054, 1.449, 0.04, 0.04];
/// What an action spans for each joint: lowest and highest target. Actions move the first, second, fourth and sixth.
const TARGETS: [[f64; 2]; 7] =
    [[0.3491, 2.7925], [0.0, 1.48353], [0.0, 0.0], [-3.0718, -0.0698], [0.0, 0.0], [2.3562, 3.7525], [1.4487, 1.4487]];
/// What the motors of the fingers are told to open.
const OPEN: f64 = 255.0;
/// The height of the goal: that of a cube on the table.
const GOAL_HEIGHT: f64 = 0.03;
/// Numbers beyond this one, where MuJoCo itself gives a state up, are no state.
const LARGEST: f64 = 1e10;
/// Numbers of a start: x and y of the cube, x and y of the goal.
const START: usize = 4;

/// Bodies in the order of the model, but for the marker of the goal.
const BODIES: [&str; 10] =
    ["cube", "link1", "link2", "link3", "link4", "link5", "link6", "link7", "left_finger", "right_finger"];
const HAND: usize = 7;
const FINGERS: [usize; 2] = [8, 9];

/// What pictures show of each body: from its own origin towards the next one, and a radius.
const SHAPES: [([f64; 3], [f64; 3], f64); 10] = [
    ([0.0; 3], [0.0; 3], 0.03),
    ([0.0, 0.0, -0.333], [0.0; 3], 0.06),
    ([0.0; 3], [0.0, -0.316, 0.0], 0.06),
    ([0.0; 3], [0.0825, 0.0, 0.0], 0.06),
    ([0.0; 3], [-0.0825, 0.384, 0.0], 0.055),
    ([0.0; 3], [0.0; 3], 0.055),
    ([0.0; 3], [0.088, 0.0, 0.0], 0.05),
    ([0.0; 3], [0.0, 0.0, 0.142], 0.04),
    ([0.0, 0.0055, 0.0], [0.0, 0.0055, 0.07], 0.01),
    ([0.0, 0.0055, 0.0], [0.0, 0.0055, 0.07], 0.01),
];

/// One of the tasks of the arm.
#[derive(Clone, Debug)]
pub struct ArmTask {
    spec: TaskSpec,
    model: Arc<Model>,
    surroundings: Surroundings,
}

impl ArmTask {
    /// The cube starts anywhere in a square of 50 cm on one side of the table, and its goal lies anywhere in another
    /// one on the other side.
    ///
    /// # Errors
    /// [`TaskError::NeedsLibrary`] where MuJoCo is missing or of another version.
    pub fn push_hard(name: &str, variant: Variant) -> Result<Self, TaskError> {
        Self::new(name, variant, Surroundings::Table)
    }

    /// The cube starts in one bin, its goal lies in the other, each anywhere in a square of 30 cm.
    ///
    /// # Errors
    /// As [`push_hard`](Self::push_hard).
    pub fn binpick_hard(name: &str, variant: Variant) -> Result<Self, TaskError> {
        Self::new(name, variant, Surroundings::Bins)
    }

    fn new(name: &str, variant: Variant, surroundings: Surroundings) -> Result<Self, TaskError> {
        let missing = |message| TaskError::NeedsLibrary { name: name.to_owned(), message };
        let library = mujoco::library().map_err(missing)?;
        let failed = |message| TaskError::World { name: name.to_owned(), message };
        let model = Model::compile(&library, &model::xml(surroundings, variant, true)).map_err(failed)?;
        let state_len = match variant {
            Variant::ScalingCrl => 17,
            Variant::JaxGcrl => 18,
        };
        let spec = TaskSpec {
            name: name.to_owned(),
            variant,
            state_len,
            goal_len: 3,
            action_len: 5,
            goal_in_state: 0..3,
            thresholds: Thresholds { success: 0.1, easy: 0.3, hard: Some(0.03) },
            episode_steps: variant.episode_steps(),
            step_seconds: TIME_STEP * SUBSTEPS as f64,
            auto_reset: AutoReset::First,
            goal_every: None,
            metrics: &["success", "success_easy", "success_hard"],
            evaluated_on: name.to_owned(),
        };
        Ok(Self { spec, model: Arc::new(model), surroundings })
    }

    /// The version of MuJoCo that simulates it: 3.17.0, or 3.2.6 where the environment variable `MUJOCO_LIBRARY` names
    /// that one, whose dynamics are those of the paper's programs.
    pub fn mujoco_version(&self) -> &'static str {
        self.model.library().version().name()
    }
}

impl Task for ArmTask {
    fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    fn world(&self, environments: usize) -> Result<Box<dyn World>, TaskError> {
        let failed = |message| TaskError::World { name: self.spec.name.clone(), message };
        Ok(Box::new(Arms::new(self, environments).map_err(failed)?))
    }
}

impl From<ArmTask> for SharedTask {
    fn from(task: ArmTask) -> Self {
        Arc::new(task)
    }
}

/// The arms of all environments.
struct Arms {
    name: String,
    variant: Variant,
    thresholds: Thresholds,
    surroundings: Surroundings,
    model: Arc<Model>,
    bodies: [BodyId; BODIES.len()],
    arms: Vec<Arm>,
}

/// One arm with its cube.
struct Arm {
    data: Data,
    goal: [f64; 3],
    positions: [f64; POSITIONS],
    late: Late,
}

/// What belongs to the beginning of the last step of the simulation.
#[derive(Clone, Copy, Debug)]
struct Late {
    poses: [Pose; BODIES.len()],
    hand_velocity: [f64; 3],
    force: f64,
}

impl Late {
    /// Numbers of it in a snapshot.
    const LEN: usize = BODIES.len() * 7 + 3 + 1;

    fn push(&self, to: &mut Vec<f64>) {
        for Pose { position, rotation } in self.poses {
            to.extend(position);
            to.extend(rotation);
        }
        to.extend(self.hand_velocity);
        to.push(self.force);
    }

    fn from_snapshot(from: &[f64]) -> Self {
        let (poses, rest) = from.split_at(BODIES.len() * 7);
        let pose = |body: usize| {
            let at = &poses[body * 7..];
            Pose { position: std::array::from_fn(|i| at[i]), rotation: std::array::from_fn(|i| at[3 + i]) }
        };
        Self { poses: std::array::from_fn(pose), hand_velocity: std::array::from_fn(|axis| rest[axis]), force: rest[3] }
    }
}

/// What the motors are told for an action.
fn controls(action: &[f32]) -> [f64; CONTROLS] {
    let moved = [action[0], action[1], 0.0, action[2], 0.0, action[3], 0.0];
    let fingers = if action[4] > 0.0 { 0.0 } else { OPEN };
    let mut controls = [fingers; CONTROLS];
    for ((control, [low, high]), part) in controls.iter_mut().zip(TARGETS).zip(moved) {
        *control = (low + high) / 2.0 + f64::from(part) * (high - low) / 2.0;
    }
    controls
}

/// 0.1 times the mean of the motors' forces over all velocities but those of the fingers.
fn mean_force(controls: &[f64; CONTROLS], positions: &[f64], velocities: &[f64]) -> f64 {
    let (angles, rates) = (&positions[JOINTS..], &velocities[JOINT_VELOCITIES..]);
    let forces = MOTORS.iter().zip(controls).zip(angles.iter().zip(rates));
    let sum: f64 = forces.map(|((motor, &control), (&angle, &rate))| motor.force(control, angle, rate)).sum();
    0.1 * sum / (VELOCITIES - 2) as f64
}

impl Arm {
    fn new(model: &Arc<Model>) -> Result<Self, String> {
        let still = Pose { position: [0.0; 3], rotation: [1.0, 0.0, 0.0, 0.0] };
        let late = Late { poses: [still; BODIES.len()], hand_velocity: [0.0; 3], force: 0.0 };
        Ok(Self { data: Data::new(model)?, goal: [0.0; 3], positions: [0.0; POSITIONS], late })
    }

    fn begin(&mut self, bodies: &[BodyId; BODIES.len()], rest: [f64; 3], start: &[f64]) -> Result<(), String> {
        let Self { data, goal, positions, late } = self;
        data.reset()?;
        *goal = [start[2], start[3], GOAL_HEIGHT];
        positions.fill(0.0);
        positions[..4].copy_from_slice(&[start[0], start[1], rest[2], 1.0]);
        positions[7..11].copy_from_slice(&[goal[0], goal[1], goal[2], 1.0]);
        positions[JOINTS..].copy_from_slice(&READY);
        data.write(Part::Positions, positions);
        data.forward()?;
        // Nothing has been told to the motors yet.
        *late = look(data, bodies, mean_force(&[0.0; CONTROLS], positions, &[0.0; VELOCITIES]));
        Ok(())
    }

    /// Takes a step. The state is lost where this fails.
    fn step(&mut self, bodies: &[BodyId; BODIES.len()], action: &[f32]) -> Result<(), String> {
        let Self { data, positions, late, .. } = self;
        let controls = controls(action);
        data.write(Part::Controls, &controls);
        data.step(SUBSTEPS - 1)?;
        let mut velocities = [0.0; VELOCITIES];
        data.read(Part::Positions, positions);
        data.read(Part::Velocities, &mut velocities);
        let force = mean_force(&controls, positions, &velocities);
        data.step(1)?;
        *late = look(data, bodies, force);
        data.read(Part::Positions, positions);
        data.read(Part::Velocities, &mut velocities);
        // What is no number is not within, either.
        let within = positions.iter().chain(&velocities).all(|value| value.abs() <= LARGEST);
        if within { Ok(()) } else { Err("the simulation has left the numbers".to_owned()) }
    }

    fn distance(&self) -> f64 {
        let square = |axis: usize| (self.positions[axis] - self.goal[axis]).powi(2);
        (square(0) + square(1) + square(2)).sqrt()
    }

    fn observe(&self, variant: Variant, observation: &mut [f32]) {
        let Late { poses, hand_velocity, force } = &self.late;
        let [left, right] = FINGERS.map(|finger| poses[finger].position);
        let opening = (0..3).map(|axis| (left[axis] - right[axis]).powi(2)).sum::<f64>().sqrt();
        let force = (variant == Variant::JaxGcrl).then_some(force);
        let state = self.positions[..3].iter().chain(&self.positions[JOINTS..JOINTS + 7]);
        let state = state.chain(&poses[HAND].position).chain(hand_velocity).chain([&opening]).chain(force);
        observation.iter_mut().zip(state.chain(&self.goal)).for_each(|(to, value)| *to = *value as f32);
    }
}

/// What the library holds of the beginning of the last step.
fn look(data: &mut Data, bodies: &[BodyId; BODIES.len()], force: f64) -> Late {
    let poses = bodies.map(|body| {
        let (position, rotation) = data.pose(body);
        Pose { position, rotation }
    });
    Late { poses, hand_velocity: data.velocity(bodies[HAND]), force }
}

impl Arms {
    fn new(task: &ArmTask, environments: usize) -> Result<Self, String> {
        let ArmTask { spec, model, surroundings } = task;
        let expected = [(Part::Positions, POSITIONS), (Part::Velocities, VELOCITIES), (Part::Controls, CONTROLS)];
        if let Some((part, length)) = expected.iter().find(|(part, length)| model.len(*part) != *length) {
            return Err(format!("the model has {} numbers as {part:?}, not {length}", model.len(*part)));
        }
        let find = |name: &str| model.body(name).ok_or_else(|| format!("the model has no body {name}"));
        let bodies: Result<Vec<BodyId>, String> = BODIES.iter().map(|name| find(name)).collect();
        let bodies = bodies?.try_into().map_err(|_| "the model has other bodies".to_owned())?;
        let mut arms = Vec::new();
        arms.try_reserve_exact(environments).map_err(|error| error.to_string())?;
        for _ in 0..environments {
            arms.push(Arm::new(model)?);
        }
        Ok(Self {
            name: spec.name.clone(),
            variant: spec.variant,
            thresholds: spec.thresholds,
            surroundings: *surroundings,
            model: model.clone(),
            bodies,
            arms,
        })
    }

    /// A place for the cube or, on the other side, for its goal.
    fn draw(&self, random: &mut Random, side: f64) -> [f64; 2] {
        let [x, y, _] = self.surroundings.rest();
        let half = match self.surroundings {
            Surroundings::Table => 0.25,
            Surroundings::Bins => 0.15,
        };
        [side * x, y].map(|middle| middle + random.uniform(-half, half))
    }

    /// Numbers of one environment in a snapshot.
    fn snapshot_len(&self) -> usize {
        self.model.len(Part::Integration) + 3 + Late::LEN
    }
}

impl World for Arms {
    fn start_len(&self) -> usize {
        START
    }

    fn draw_start(&self, random: &mut Random, start: &mut [f64]) {
        let (cube, goal) = (self.draw(random, 1.0), self.draw(random, -1.0));
        start.copy_from_slice([cube, goal].as_flattened());
    }

    fn begin(&mut self, environment: usize, start: &[f64]) -> Result<(), TaskError> {
        let failed = |message| TaskError::World { name: self.name.clone(), message };
        if start.len() != START || start.iter().any(|value| !value.is_finite()) {
            return Err(failed(format!("{start:?} is no beginning of an episode")));
        }
        self.arms[environment].begin(&self.bodies, self.surroundings.rest(), start).map_err(failed)
    }

    fn redraw_goal(&mut self, environment: usize, random: &mut Random) {
        let [x, y] = self.draw(random, -1.0);
        self.arms[environment].goal = [x, y, GOAL_HEIGHT];
    }

    fn step(&mut self, actions: &[f32], outcomes: &mut [Outcome], metrics: &mut [f32]) {
        let Self { bodies, thresholds, arms, .. } = self;
        arms.par_iter_mut()
            .zip(actions.par_chunks_exact(5))
            .zip(outcomes)
            .zip(metrics.par_chunks_exact_mut(3))
            .for_each(|(((arm, action), outcome), metrics)| {
                // A state that is lost has no distance, which ends the episode.
                let distance = arm.step(bodies, action).map_or(f64::NAN, |()| arm.distance());
                let within = |threshold: f64| f64::from(distance < threshold);
                let reward = within(thresholds.success);
                *outcome = Outcome { reward, distance, terminated: distance.is_nan() };
                let hard = thresholds.hard.map_or(0.0, within);
                metrics.copy_from_slice(&[reward, within(thresholds.easy), hard].map(|value| value as f32));
            });
    }

    fn observe(&self, observations: &mut [f32]) {
        let length = observations.len() / self.arms.len().max(1);
        for (arm, observation) in self.arms.iter().zip(observations.chunks_exact_mut(length.max(1))) {
            arm.observe(self.variant, observation);
        }
    }

    fn snapshot(&self) -> Vec<f64> {
        let mut snapshot = Vec::with_capacity(1 + self.arms.len() * self.snapshot_len());
        // Another version goes on differently.
        snapshot.push(f64::from(self.model.library().version().number()));
        let mut state = vec![0.0; self.model.len(Part::Integration)];
        for arm in &self.arms {
            arm.data.read(Part::Integration, &mut state);
            snapshot.extend_from_slice(&state);
            snapshot.extend(arm.goal);
            arm.late.push(&mut snapshot);
        }
        snapshot
    }

    fn restore(&mut self, snapshot: &[f64]) -> Result<(), TaskError> {
        let wrong = |message: String| TaskError::Snapshot { message };
        let (length, version) = (self.snapshot_len(), self.model.library().version());
        let (Some((number, states)), count) = (snapshot.split_first(), self.arms.len()) else {
            return Err(wrong("it is empty".to_owned()));
        };
        if *number != f64::from(version.number()) {
            let message = format!("it was taken with another version of MuJoCo than {}: give that one", version.name());
            return Err(wrong(message));
        }
        if states.len() != count * length {
            return Err(wrong(format!("{} numbers for {count} arms of {length}", states.len())));
        }
        if let Some(place) = states.iter().position(|value| !value.is_finite()) {
            return Err(wrong(format!("arm {} is not finite", place / length)));
        }
        for (arm, numbers) in self.arms.iter_mut().zip(states.chunks_exact(length)) {
            let (state, rest) = numbers.split_at(self.model.len(Part::Integration));
            let (goal, late) = rest.split_at(3);
            arm.data.write(Part::Integration, state);
            arm.data.read(Part::Positions, &mut arm.positions);
            arm.goal.copy_from_slice(goal);
            arm.late = Late::from_snapshot(late);
        }
        Ok(())
    }

    fn scene(&self, environment: usize) -> Scene {
        let Arm { goal, late: Late { poses, .. }, .. } = &self.arms[environment];
        Scene { agent: poses[HAND].position, goal: *goal, bodies: poses.to_vec() }
    }

    fn walls(&self) -> Vec<WallBox> {
        self.surroundings.walls()
    }

    fn bodies(&self) -> Vec<Body> {
        let body = |(name, shape): (&&str, &_)| Body { name: (*name).to_owned(), capsules: vec![*shape] };
        BODIES.iter().zip(&SHAPES).map(body).collect()
    }
}

#[cfg(test)]
mod tests;
