//! How well a policy reaches goals: one episode in each of many fresh environments.

use crate::{AutoReset, EnvironmentOptions, Environments, SharedTask, TaskError};

/// How a policy is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationOptions {
    /// Number of episodes, all at the same time.
    pub episodes: usize,
    /// The seed of starts and goals; give each evaluation of a run another one.
    pub seed: u64,
    /// Steps of an episode; `None` for those of the task.
    pub steps: Option<u32>,
}

/// What one episode came to. Steps after a failure do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpisodeScore {
    /// Steps until the episode failed or was cut off; the failing one included.
    pub steps: u32,
    /// Steps within the success threshold.
    pub at_goal: u32,
    /// Steps within the easy threshold.
    pub at_goal_easy: u32,
    /// Steps within the hard threshold; 0 where the task has none.
    pub at_goal_hard: u32,
    /// Distance from the goal after the last step, in metres.
    pub final_distance: f64,
    /// The smallest distance after any step.
    pub nearest: f64,
    /// Sum of the rewards.
    pub reward: f64,
    /// Whether the episode failed.
    pub terminated: bool,
}

/// What all episodes came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Episode by episode.
    pub episodes: Vec<EpisodeScore>,
    /// Sum of each metric over an episode, averaged over episodes; named by
    /// [`TaskSpec::metrics`](crate::TaskSpec::metrics).
    pub metrics: Vec<f64>,
}

impl Evaluation {
    fn mean(&self, of: impl Fn(&EpisodeScore) -> f64) -> f64 {
        self.episodes.iter().map(of).sum::<f64>() / self.episodes.len() as f64
    }

    /// Steps of an episode within the success threshold: the number that the paper plots.
    pub fn time_at_goal(&self) -> f64 {
        self.mean(|episode| f64::from(episode.at_goal))
    }

    /// Share of episodes with a success at any time.
    pub fn success_any(&self) -> f64 {
        self.mean(|episode| f64::from(episode.at_goal > 0))
    }

    /// Distance from the goal at the end, in metres.
    pub fn final_distance(&self) -> f64 {
        self.mean(|episode| episode.final_distance)
    }

    /// Sum of rewards of an episode.
    pub fn reward(&self) -> f64 {
        self.mean(|episode| episode.reward)
    }

    /// Steps of an episode.
    pub fn steps(&self) -> f64 {
        self.mean(|episode| f64::from(episode.steps))
    }

    /// Share of episodes that failed.
    pub fn failures(&self) -> f64 {
        self.mean(|episode| f64::from(episode.terminated))
    }
}

/// Runs one episode in each of `episodes` fresh environments. The policy reads the observations `[episodes,
/// observation_len]` and writes the actions `[episodes, action_len]`.
///
/// # Errors
/// [`TaskError::Setting`] for no episode or no step, [`TaskError::Action`] for an action that is no finite number, and
/// what the world says.
pub fn evaluate(
    task: &SharedTask,
    options: EvaluationOptions,
    mut policy: impl FnMut(&[f32], &mut [f32]),
) -> Result<Evaluation, TaskError> {
    let spec = task.spec();
    let mut run = EnvironmentOptions::evaluation(spec, options.episodes, options.seed);
    run.episode_steps = options.steps.unwrap_or(run.episode_steps);
    // What follows an episode is not looked at, so the cheap start is taken.
    run.auto_reset = AutoReset::First;
    let mut environments = Environments::new(task.clone(), run)?;
    let mut actions = vec![0.0; options.episodes * spec.action_len];
    let mut episodes = vec![EpisodeScore { nearest: f64::INFINITY, ..EpisodeScore::default() }; options.episodes];
    let mut metrics = vec![0.0; spec.metrics.len()];
    let mut over = vec![false; options.episodes];
    for _ in 0..run.episode_steps {
        policy(environments.observations(), &mut actions);
        let step = environments.step(&actions)?;
        for (environment, score) in episodes.iter_mut().enumerate().filter(|(environment, _)| !over[*environment]) {
            let distance = f64::from(step.distances[environment]);
            let within = |threshold: f64| u32::from(distance < threshold);
            score.steps += 1;
            score.at_goal += within(spec.thresholds.success);
            score.at_goal_easy += within(spec.thresholds.easy);
            score.at_goal_hard += spec.thresholds.hard.map_or(0, within);
            // A simulation that has left the numbers keeps the distance it had.
            if distance.is_finite() {
                score.final_distance = distance;
            }
            score.nearest = score.nearest.min(distance);
            score.reward += f64::from(step.rewards[environment]);
            score.terminated = step.terminated[environment];
            let of_step = &step.metrics[environment * metrics.len()..][..metrics.len()];
            metrics.iter_mut().zip(of_step).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        over.iter_mut().zip(step.terminated).for_each(|(over, terminated)| *over |= terminated);
        if over.iter().all(|over| *over) {
            break;
        }
    }
    metrics.iter_mut().for_each(|sum| *sum /= options.episodes as f64);
    Ok(Evaluation { episodes, metrics })
}

#[cfg(test)]
mod tests;
