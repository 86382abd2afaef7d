//! One episode as data, for pictures.

use serde::{Deserialize, Serialize};

use crate::{Body, EnvironmentOptions, Environments, Scene, SharedTask, TaskError, WallBox};

/// An episode of one environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeRecord {
    /// Name of the task.
    pub task: String,
    /// Seconds between two scenes.
    pub step_seconds: f64,
    /// Distance from the goal below which a state is a success, in metres.
    pub success_within: f64,
    /// The walls.
    pub walls: Vec<WallBox>,
    /// The bodies of the agent.
    pub bodies: Vec<Body>,
    /// The start and the state after each step, but for a step that failed.
    pub scenes: Vec<Scene>,
    /// Distance from the goal after each step, in metres.
    pub distances: Vec<f32>,
    /// Whether the episode failed.
    pub terminated: bool,
}

/// Records one episode of environment 0 of an [`evaluation`](crate::evaluate) with this seed. The step
/// with which an episode fails has a distance and no scene: the environment has started over by then.
///
/// # Errors
/// As [`evaluate`](crate::evaluate).
pub fn record(
    task: &SharedTask,
    seed: u64,
    steps: Option<u32>,
    mut policy: impl FnMut(&[f32], &mut [f32]),
) -> Result<EpisodeRecord, TaskError> {
    let spec = task.spec();
    let mut options = EnvironmentOptions::evaluation(spec, 1, seed);
    let steps = steps.unwrap_or(options.episode_steps);
    // One more, so that the environment does not start over before its last scene is taken.
    options.episode_steps = steps.saturating_add(1);
    let mut environments = Environments::new(task.clone(), options)?;
    let mut record = EpisodeRecord {
        task: spec.name.clone(),
        step_seconds: spec.step_seconds,
        success_within: spec.thresholds.success,
        walls: environments.world().walls(),
        bodies: environments.world().bodies(),
        scenes: vec![environments.scene(0)],
        distances: Vec::new(),
        terminated: false,
    };
    let mut actions = vec![0.0; spec.action_len];
    for _ in 0..steps {
        policy(environments.observations(), &mut actions);
        let step = environments.step(&actions)?;
        record.distances.push(step.distances[0]);
        record.terminated = step.terminated[0];
        if record.terminated {
            break;
        }
        record.scenes.push(environments.scene(0));
    }
    Ok(record)
}
