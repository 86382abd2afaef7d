//! Goal-conditioned tasks: an agent sees its state and a goal, and succeeds while it is near the goal.
//!
//! A [`Task`] is found by its name with [`task`]: a point, an ant or a humanoid in one of the named mazes
//! ([`maze_names`]), or one that a user brings. [`Environments`] runs many environments of it at a time. They start
//! over by themselves, their draws come from one stream of random numbers each, and their
//! [`snapshot`](Environments::snapshot) lets a run go on bit for bit. [`evaluate`] scores a policy; [`record`] keeps
//! one episode for pictures.
//!
//! The tasks of a robot arm are part of builds with the feature `mujoco`, and need the physics library MuJoCo when they
//! are made; `docs/mujoco.md` says how to install it.
//!
//! Tasks follow the programs with which the numbers of the paper on depth in contrastive reinforcement learning were
//! made (Wang et al. 2025, scaling-crl), or JaxGCRL (Bortkiewicz et al. 2024) where they differ and the [`Variant`]
//! says so. The crate holds no tensors and learns nothing.

mod ant;
#[cfg(feature = "mujoco")]
mod arm;
mod environments;
mod evaluation;
mod grids;
mod humanoid;
mod maze;
#[cfg(feature = "mujoco")]
mod mujoco;
mod point;
mod random;
mod record;
mod registry;
mod snapshot;
mod spring;
mod task;

pub use ant::AntMaze;
#[cfg(feature = "mujoco")]
pub use arm::ArmTask;
pub use environments::{EnvironmentOptions, Environments, StepView};
pub use evaluation::{EpisodeScore, Evaluation, EvaluationOptions, evaluate};
pub use grids::{maze_names, named_maze};
pub use humanoid::HumanoidTask;
pub use maze::{Cell, Maze, MazeError, WallBox};
pub use point::PointMaze;
pub use random::Random;
pub use record::{EpisodeRecord, record};
pub use registry::{task, task_names};
pub use spring::Precision;
pub use task::{
    AutoReset, Body, Outcome, Pose, Scene, SharedTask, Task, TaskError, TaskSpec, Thresholds, Variant, World,
};
