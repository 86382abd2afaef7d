//! What a task is: its numbers, and many environments of it side by side.

use std::{ops::Range, sync::Arc};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Random, WallBox};

/// Which of two programs a task follows where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The program scaling-crl, with which the paper's numbers were made: dense rewards.
    #[default]
    ScalingCrl,
    /// The package JaxGCRL: rewards are 1 at the goal and 0 elsewhere, and some layouts and time steps differ.
    JaxGcrl,
}

impl Variant {
    /// Steps after which the programs cut an episode off.
    pub(crate) fn episode_steps(self) -> u32 {
        match self {
            Self::ScalingCrl => 1000,
            Self::JaxGcrl => 1001,
        }
    }
}

/// What an environment becomes after its episode has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutoReset {
    /// What it was at the very beginning: the same start and the same goal for the whole run, as in the paper's
    /// programs.
    First,
    /// A fresh draw.
    Fresh,
}

/// Distances to the goal, in metres, below which (strictly) a state counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Success.
    pub success: f64,
    /// Success in an easy sense.
    pub easy: f64,
    /// Success in a hard sense, where the task has one.
    pub hard: Option<f64>,
}

/// The numbers of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    /// Its name in the registry.
    pub name: String,
    /// Whose rewards and layouts it has.
    pub variant: Variant,
    /// Entries of a state.
    pub state_len: usize,
    /// Entries of a goal.
    pub goal_len: usize,
    /// Entries of an action, each from -1 to 1.
    pub action_len: usize,
    /// Where the achieved goal stands within a state.
    pub goal_in_state: Range<usize>,
    /// When a state counts as a success.
    pub thresholds: Thresholds,
    /// Steps after which an episode is cut off.
    pub episode_steps: u32,
    /// Seconds that a step takes in the simulated world.
    pub step_seconds: f64,
    /// What follows an episode.
    pub auto_reset: AutoReset,
    /// After how many steps of an episode another goal is drawn while training; never where `None`.
    pub goal_every: Option<u32>,
    /// Names of the metrics of a step, in order.
    pub metrics: &'static [&'static str],
    /// The name of the task on which one trained here is evaluated; often its own.
    pub evaluated_on: String,
}

impl TaskSpec {
    /// Entries of an observation: a state, then the goal.
    pub fn observation_len(&self) -> usize {
        self.state_len + self.goal_len
    }
}

/// A goal-conditioned task. The crate's own are found by [`task`](crate::task); users may bring others.
pub trait Task: Send + Sync {
    /// Its numbers.
    fn spec(&self) -> &TaskSpec;

    /// So many environments, each in a state that no one should rely on before [`World::begin`].
    ///
    /// # Errors
    /// Where the world cannot be built.
    fn world(&self, environments: usize) -> Result<Box<dyn World>, TaskError>;
}

/// What a step came to in one environment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The reward of the task's variant.
    pub reward: f64,
    /// Distance of the new state from the goal, in metres.
    pub distance: f64,
    /// Whether the episode failed. [`Environments`](crate::Environments) take it for a failure, too, if reward or
    /// distance are not finite.
    pub terminated: bool,
}

/// Environments of one task, stepped together. All of them have the same sizes; none influences another.
pub trait World: Send + Sync {
    /// How many numbers describe the beginning of an episode.
    fn start_len(&self) -> usize;

    /// Draws the beginning of an episode, the goal included, and writes it as numbers whose meaning only the world
    /// knows.
    fn draw_start(&self, random: &mut Random, start: &mut [f64]);

    /// Puts one environment at the beginning of an episode that [`draw_start`](Self::draw_start) wrote.
    ///
    /// # Errors
    /// Where the numbers are no beginning.
    fn begin(&mut self, environment: usize, start: &[f64]) -> Result<(), TaskError>;

    /// Whether goals may change within an episode.
    fn can_redraw_goals(&self) -> bool {
        true
    }

    /// Draws another goal for one environment and leaves its agent where it is. Only asked of worlds that
    /// [can](Self::can_redraw_goals).
    fn redraw_goal(&mut self, environment: usize, random: &mut Random);

    /// Takes `actions` `[environments, action_len]` for one step, and writes what it came to: one outcome an
    /// environment, and `metrics` `[environments, number of metrics]`.
    fn step(&mut self, actions: &[f32], outcomes: &mut [Outcome], metrics: &mut [f32]);

    /// Writes the observations `[environments, state_len + goal_len]`.
    fn observe(&self, observations: &mut [f32]);

    /// Everything that the future depends on, but for random numbers, of all environments.
    fn snapshot(&self) -> Vec<f64>;

    /// Goes on, bit for bit, from what [`snapshot`](Self::snapshot) gave for as many environments.
    ///
    /// # Errors
    /// [`TaskError::Snapshot`] where the numbers do not fit; nothing has changed then.
    fn restore(&mut self, snapshot: &[f64]) -> Result<(), TaskError>;

    /// What a picture of one environment shows.
    fn scene(&self, environment: usize) -> Scene;

    /// The walls, the same in all environments.
    fn walls(&self) -> Vec<WallBox> {
        Vec::new()
    }

    /// The bodies of the agent, whose places the [`Scene`] gives in the same order.
    fn bodies(&self) -> Vec<Body> {
        Vec::new()
    }
}

/// Position and rotation of a body.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pose {
    /// x, y, z in metres.
    pub position: [f64; 3],
    /// Quaternion w, x, y, z.
    pub rotation: [f64; 4],
}

/// One body of an agent: capsules, in its own frame. A sphere is a capsule whose ends coincide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Its name.
    pub name: String,
    /// Both ends and the radius of each capsule, in metres.
    pub capsules: Vec<([f64; 3], [f64; 3], f64)>,
}

/// Where things are in one environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// Position of the agent, in metres.
    pub agent: [f64; 3],
    /// Position of the goal.
    pub goal: [f64; 3],
    /// Poses of the [`bodies`](World::bodies).
    pub bodies: Vec<Pose>,
}

/// What can go wrong with a task.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TaskError {
    /// No such name.
    #[error("there is no task `{name}`; did you mean {}? All tasks: {}", nearest.join(" or "), all.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names most like it.
        nearest: Vec<String>,
        /// All names.
        all: Vec<String>,
    },
    /// The task needs a part that this build does not have.
    #[error("the task `{name}` needs {needs}, which this build does not have: {advice}")]
    NeedsFeature {
        /// The task.
        name: String,
        /// What it needs.
        needs: &'static str,
        /// What to install and how to build.
        advice: &'static str,
    },
    /// The physics library of the task is missing, or cannot be used.
    #[error("the task `{name}` needs the physics library MuJoCo: {message}")]
    NeedsLibrary {
        /// The task.
        name: String,
        /// What is wrong, where it was looked for, and what to do.
        message: String,
    },
    /// A setting makes no sense.
    #[error("{what} of the task `{name}` is {value}: {advice}")]
    Setting {
        /// The task.
        name: String,
        /// The setting.
        what: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        advice: &'static str,
    },
    /// An action that is no number.
    #[error(
        "entry {entry} of the action of environment {environment} is {value}: actions must be finite; has the policy \
         diverged?"
    )]
    Action {
        /// The environment.
        environment: usize,
        /// Entry of its action.
        entry: usize,
        /// What stands there.
        value: f32,
    },
    /// Not as many actions as there are environments.
    #[error("{found} numbers were given as actions of {environments} environments, which take {expected}")]
    Actions {
        /// Numbers given.
        found: usize,
        /// Number of environments.
        environments: usize,
        /// Numbers needed.
        expected: usize,
    },
    /// A snapshot that does not fit.
    #[error("the snapshot of the environments cannot be restored: {message}")]
    Snapshot {
        /// What is wrong, and where.
        message: String,
    },
    /// The simulation cannot be built.
    #[error("the world of the task `{name}` cannot be built: {message}")]
    World {
        /// The task.
        name: String,
        /// What is in the way.
        message: String,
    },
}

/// A task that is shared between threads.
pub type SharedTask = Arc<dyn Task>;
