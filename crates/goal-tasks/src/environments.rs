//! Many environments of a task that start over by themselves when an episode ends.

use crate::{AutoReset, Outcome, Random, Scene, SharedTask, TaskError, TaskSpec, World};

/// Most environments that run together.
const MOST_ENVIRONMENTS: usize = 1 << 20;

/// How environments are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvironmentOptions {
    /// Number of environments.
    pub environments: usize,
    /// The seed of all draws.
    pub seed: u64,
    /// Steps after which an episode is cut off.
    pub episode_steps: u32,
    /// What follows an episode.
    pub auto_reset: AutoReset,
    /// After how many steps of an episode another goal is drawn; never where `None`.
    pub goal_every: Option<u32>,
}

impl EnvironmentOptions {
    /// As the task is trained.
    pub fn training(spec: &TaskSpec, environments: usize, seed: u64) -> Self {
        let TaskSpec { episode_steps, auto_reset, goal_every, .. } = *spec;
        Self { environments, seed, episode_steps, auto_reset, goal_every }
    }

    /// As the task is evaluated: one goal for a whole episode.
    pub fn evaluation(spec: &TaskSpec, environments: usize, seed: u64) -> Self {
        Self { goal_every: None, ..Self::training(spec, environments, seed) }
    }
}

/// What the last step came to, one entry an environment.
#[derive(Clone, Copy, Debug)]
pub struct StepView<'a> {
    /// Rewards of the task's variant.
    pub rewards: &'a [f32],
    /// Distances from the goals after the step, in metres; infinite where the simulation has left the numbers, which is
    /// a failure with a reward and metrics of zero.
    pub distances: &'a [f32],
    /// Whether the episode ended with a failure.
    pub terminated: &'a [bool],
    /// Whether the episode was cut off because of its length, without a failure.
    pub truncated: &'a [bool],
    /// Metrics `[environments, number of metrics]`, named by [`TaskSpec::metrics`].
    pub metrics: &'a [f32],
}

/// Environments of a task that start over by themselves.
///
/// A step first acts, then starts over where an episode has ended: the observation after the last step of an episode is
/// the first one of the next. A [trajectory](Self::trajectories) number goes with each observation; it grows by one
/// with every start. Each environment has its own stream of random numbers, so nothing depends on the number of
/// threads.
///
/// ```
/// use goal_tasks::{EnvironmentOptions, Environments, Variant, task};
/// let task = task("point_u_maze", Variant::ScalingCrl)?;
/// let options = EnvironmentOptions::training(task.spec(), 8, 1);
/// let mut environments = Environments::new(task, options)?;
/// let observation = environments.observations()[..6].to_vec();
/// let step = environments.step(&[0.5; 16])?;
/// assert!(step.distances.iter().all(|distance| *distance < 5.0));
/// assert_ne!(environments.observations()[..6], observation);
/// # Ok::<(), goal_tasks::TaskError>(())
/// ```
pub struct Environments {
    pub(crate) task: SharedTask,
    pub(crate) world: Box<dyn World>,
    pub(crate) options: EnvironmentOptions,
    pub(crate) random: Vec<Random>,
    /// The first start of each environment, `[environments, start_len]`.
    pub(crate) firsts: Vec<f64>,
    /// Steps of the running episodes.
    pub(crate) clocks: Vec<u32>,
    pub(crate) trajectories: Vec<u32>,
    pub(crate) observations: Vec<f32>,
    outcomes: Vec<Outcome>,
    metrics: Vec<f32>,
    rewards: Vec<f32>,
    distances: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl Environments {
    /// Environments in their first states, which are drawn with the seed.
    ///
    /// # Errors
    /// [`TaskError::Setting`] for no environment, more than 2^20, or episodes without a step; else what the world says.
    pub fn new(task: SharedTask, options: EnvironmentOptions) -> Result<Self, TaskError> {
        let spec = task.spec();
        let (count, observation_len) = (options.environments, spec.observation_len());
        let wrong = |what, value: String, advice| TaskError::Setting { name: spec.name.clone(), what, value, advice };
        if count == 0 || count > MOST_ENVIRONMENTS {
            let advice = "give one at least and 2^20 at most";
            return Err(wrong("the number of environments", count.to_string(), advice));
        }
        if options.episode_steps == 0 {
            return Err(wrong("the length of episodes", "0".to_owned(), "give one step at least"));
        }
        if options.goal_every == Some(0) {
            return Err(wrong("the number of steps for a goal", "0".to_owned(), "give one step at least, or none"));
        }
        let world = task.world(count)?;
        if options.goal_every.is_some() && !world.can_redraw_goals() {
            let advice = "the goal of this task is a body of its world; give none";
            return Err(wrong("the number of steps for a goal", format!("{:?}", options.goal_every), advice));
        }
        let metrics = spec.metrics.len();
        let mut environments = Self {
            random: (0..count as u64).map(|environment| Random::new(options.seed, environment)).collect(),
            firsts: vec![0.0; count * world.start_len()],
            clocks: vec![0; count],
            trajectories: vec![0; count],
            observations: vec![0.0; count * observation_len],
            outcomes: vec![Outcome::default(); count],
            metrics: vec![0.0; count * metrics],
            rewards: vec![0.0; count],
            distances: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
            task,
            world,
            options,
        };
        environments.draw_all()?;
        Ok(environments)
    }

    fn draw_all(&mut self) -> Result<(), TaskError> {
        let length = self.world.start_len();
        for (environment, random) in self.random.iter_mut().enumerate() {
            let start = &mut self.firsts[environment * length..][..length];
            self.world.draw_start(random, start);
            self.world.begin(environment, start)?;
        }
        self.world.observe(&mut self.observations);
        Ok(())
    }

    /// The task.
    pub fn task(&self) -> &SharedTask {
        &self.task
    }

    /// How they are run.
    pub fn options(&self) -> &EnvironmentOptions {
        &self.options
    }

    /// Number of environments.
    pub fn count(&self) -> usize {
        self.options.environments
    }

    /// What the agents see now, `[environments, state_len + goal_len]`: a state, then the goal.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// To which trajectory of its environment each observation belongs, from 0.
    pub fn trajectories(&self) -> &[u32] {
        &self.trajectories
    }

    /// Acts once in every environment: `actions` `[environments, action_len]`, entries from -1 to 1.
    ///
    /// # Errors
    /// [`TaskError::Actions`] for another number of entries and [`TaskError::Action`] for an entry that is no finite
    /// number; nothing has moved then.
    pub fn step(&mut self, actions: &[f32]) -> Result<StepView<'_>, TaskError> {
        let TaskSpec { action_len, metrics, .. } = *self.task.spec();
        let (count, metrics_len) = (self.count(), metrics.len());
        if actions.len() != count * action_len {
            let expected = count * action_len;
            return Err(TaskError::Actions { found: actions.len(), environments: count, expected });
        }
        if let Some(place) = actions.iter().position(|entry| !entry.is_finite()) {
            let (environment, entry) = (place / action_len, place % action_len);
            return Err(TaskError::Action { environment, entry, value: actions[place] });
        }
        self.world.step(actions, &mut self.outcomes, &mut self.metrics);
        let length = self.world.start_len();
        let mut fresh = vec![0.0; length];
        for environment in 0..count {
            let Outcome { reward, distance, terminated } = self.outcomes[environment];
            // A simulation may leave the numbers; nothing of that may reach a learner.
            let lost = !(reward.is_finite() && distance.is_finite());
            let terminated = terminated || lost;
            self.rewards[environment] = if lost { 0.0 } else { reward as f32 };
            self.distances[environment] = if lost { f32::INFINITY } else { distance as f32 };
            if lost {
                self.metrics[environment * metrics_len..][..metrics_len].fill(0.0);
            }
            self.clocks[environment] += 1;
            let clock = self.clocks[environment];
            let truncated = !terminated && clock >= self.options.episode_steps;
            self.terminated[environment] = terminated;
            self.truncated[environment] = truncated;
            let random = &mut self.random[environment];
            if terminated || truncated {
                match self.options.auto_reset {
                    AutoReset::First => {
                        self.world.begin(environment, &self.firsts[environment * length..][..length])?;
                    }
                    AutoReset::Fresh => {
                        self.world.draw_start(random, &mut fresh);
                        self.world.begin(environment, &fresh)?;
                    }
                }
                self.clocks[environment] = 0;
                self.trajectories[environment] = self.trajectories[environment].wrapping_add(1);
            } else if self.options.goal_every.is_some_and(|every| clock.is_multiple_of(every)) {
                self.world.redraw_goal(environment, random);
            }
        }
        self.world.observe(&mut self.observations);
        Ok(self.last_step())
    }

    /// What the last step came to; zeros before the first.
    pub fn last_step(&self) -> StepView<'_> {
        StepView {
            rewards: &self.rewards,
            distances: &self.distances,
            terminated: &self.terminated,
            truncated: &self.truncated,
            metrics: &self.metrics,
        }
    }

    /// Where things are in one environment.
    ///
    /// # Panics
    /// Where there is no such environment.
    pub fn scene(&self, environment: usize) -> Scene {
        self.world.scene(environment)
    }

    /// The world, for what is the same in all environments.
    pub fn world(&self) -> &dyn World {
        &*self.world
    }
}

#[cfg(test)]
mod tests;
