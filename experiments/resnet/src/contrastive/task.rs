//! What a reinforcement-learning run supplies to the training loop: experience, batches, losses, evaluations.

use std::{collections::BTreeMap, sync::Mutex};

use burn::{
    module::AutodiffModule,
    optim::GradientsParams,
    tensor::{Tensor, TensorData, backend::AutodiffBackend},
};
use fused_ops::FusedOps;
use goal_tasks::{EnvironmentOptions, Environments, EpisodeRecord, EvaluationOptions, SharedTask, TaskError, evaluate};
use hindsight_replay::{Hindsight, Pair, Replay, ReplayShape};
use rand_distr::{Distribution, StandardNormal};
use serde_json::json;
use training::{
    interrupt::Interrupt,
    parameters::NamedTensor,
    trainer::{Task, TaskState, TrainError},
};

use super::{
    Agent, Batch, actor_loss, critic_loss,
    settings::{PARTS, Sampling, Settings},
};

/// Names of the numbers in `metrics.jsonl`.
pub mod metric {
    /// Share of evaluation episodes with a step at the goal, with the policy's mean action, which the paper evaluates.
    pub const SUCCESS: &str = "success_any";
    /// The same with actions drawn from the policy, as while training. A point that the mean action pushes into a corner
    /// stays there; drawn actions get it out.
    pub const SAMPLED_SUCCESS: &str = "success_any_sampled";
    /// Steps of an evaluation episode at the goal, with drawn actions.
    pub const SAMPLED_TIME_AT_GOAL: &str = "time_at_goal_sampled";
    /// Steps of an evaluation episode at the goal, with the mean action: what the paper plots.
    pub const TIME_AT_GOAL: &str = "time_at_goal";
    /// Distance from the goal at the end of an evaluation episode, in metres.
    pub const FINAL_DISTANCE: &str = "final_distance";
    /// Share of evaluation episodes that ended early, with a fall.
    pub const FAILURES: &str = "failures";
    /// Steps that all training environments have made together.
    pub const ENVIRONMENT_STEPS: &str = "environment_steps";
    /// Root mean square of the actor's last state relative to its first.
    pub const STREAM_GROWTH: &str = "stream_growth";
    /// Mean size of the entries of the policy's mean action, after the tanh: 1 is saturated.
    pub const SATURATION: &str = "action_size";
    /// The critic's loss.
    pub const CRITIC_LOSS: &str = "critic_loss";
    /// The actor's loss.
    pub const ACTOR_LOSS: &str = "actor_loss";
    /// Entropy of the policy in nats.
    pub const ENTROPY: &str = "policy_entropy";
    /// Weight of the entropy in the actor's loss.
    pub const ALPHA: &str = "alpha";
    /// Mean entropy of the connections' softmaxes that have a choice, in nats, over the three networks.
    pub const CONNECTION_ENTROPY: &str = "connection_entropy";
    /// Before the name of a network: Euclidean norm of the gradient of its connections' parameters.
    pub const THETA_GRADIENT: &str = "theta_gradient_norm_";
}

/// A part of a step.
#[derive(Clone, Debug)]
pub enum Part {
    /// Of the actor and the weight of its entropy, with the noise of its actions.
    Actor(hindsight_replay::Batch, Vec<f32>),
    /// Of both encoders.
    Critic(hindsight_replay::Batch),
}

/// Contrastive reinforcement learning on one task.
pub struct ContrastiveRl<B: AutodiffBackend> {
    settings: Settings,
    evaluation_task: SharedTask,
    hindsight: Hindsight,
    state_len: usize,
    action_len: usize,
    environments: Environments,
    replay: Replay,
    /// Steps that each environment has made.
    steps: u64,
    /// The transitions of the round under way, where they come from windows.
    round: Option<(u64, Vec<Pair>)>,
    /// The policy that the first experience is gathered with, until that is done or a checkpoint brings its own.
    initial: Option<Agent<B::InnerBackend>>,
    /// What the losses of the last step came to.
    seen: Mutex<BTreeMap<&'static str, f64>>,
    device: B::Device,
}

fn task_error(error: impl std::fmt::Display) -> TrainError {
    TrainError::task(error.to_string())
}

/// More than a snapshot of a replay has besides its numbers.
const SNAPSHOT_HEADER: usize = 1024;

/// Actions that are no numbers come from a policy that has diverged, and everything else from a fault.
fn world_error(error: TaskError, step: usize) -> TrainError {
    match error {
        TaskError::Action { .. } => {
            TrainError::Diverged { step, reason: "the policy's actions are not finite".to_owned() }
        }
        other => task_error(other),
    }
}

fn matrix<B: FusedOps>(values: Vec<f32>, width: usize, device: &B::Device) -> Tensor<B, 2> {
    let rows = values.len() / width.max(1);
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

fn read<B: FusedOps, const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

impl<B> ContrastiveRl<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    /// The task of a run that begins with `agent`, which will gather the first experience.
    ///
    /// # Errors
    /// If the environments or the replay cannot be made.
    pub fn new(settings: &Settings, agent: &Agent<B>, device: &B::Device) -> Result<Self, TrainError> {
        let task = settings.task().map_err(task_error)?;
        let spec = task.spec().clone();
        let options = EnvironmentOptions::training(&spec, settings.collection.environments, settings.seed);
        let shape = ReplayShape {
            environments: settings.collection.environments,
            steps: settings.collection.replay,
            state_len: spec.state_len,
            goal_len: spec.goal_len,
            action_len: spec.action_len,
        };
        Ok(Self {
            settings: settings.clone(),
            evaluation_task: settings.evaluation_task().map_err(task_error)?,
            hindsight: Hindsight {
                window: spec.episode_steps as usize,
                discount: settings.learning.discount,
                goal: spec.goal_in_state.clone(),
            },
            state_len: spec.state_len,
            action_len: spec.action_len,
            environments: Environments::new(task, options).map_err(task_error)?,
            replay: Replay::new(shape).map_err(task_error)?,
            steps: 0,
            round: None,
            initial: Some(agent.valid()),
            seen: Mutex::new(BTreeMap::new()),
            device: device.clone(),
        })
    }

    /// Gathers the first experience, where that has not been done. Where it is interrupted, none counts.
    fn prefill(&mut self) -> Result<(), TrainError> {
        if let Some(policy) = self.initial.take() {
            let interrupt = Interrupt::current();
            for _ in 0..self.settings.collection.prefill {
                if interrupt.is_set() {
                    self.initial = Some(policy);
                    return Err(TrainError::Interrupted { step: 1 });
                }
                self.collect(&policy, 0)?;
            }
        }
        Ok(())
    }

    /// One step of every environment with actions drawn from the policy that `updates` updates have made.
    fn collect(&mut self, agent: &Agent<B::InnerBackend>, updates: usize) -> Result<(), TrainError> {
        let observations = self.environments.observations().to_vec();
        let trajectories = self.environments.trajectories().to_vec();
        let width = observations.len() / self.environments.count();
        let [mean, log_std] = agent.actor.forward(matrix(observations.clone(), width, &self.device)).map(read);
        let noise = self.noise("exploration", self.steps, mean.len());
        let actions: Vec<f32> = mean
            .iter()
            .zip(&log_std)
            .zip(noise)
            .map(|((mean, log_std), z)| (mean + log_std.exp() * z).tanh())
            .collect();
        self.environments.step(&actions).map_err(|error| world_error(error, updates))?;
        self.replay.push(&observations, &actions, &trajectories).map_err(task_error)?;
        self.steps += 1;
        Ok(())
    }

    fn noise(&self, name: &str, index: u64, count: usize) -> Vec<f32> {
        let rng = training::seed::stream(self.settings.seed, name, index);
        Distribution::<f32>::sample_iter(StandardNormal, rng).take(count).collect()
    }

    /// The transitions of a step. They follow from the replay as it is and from the number of the step.
    fn draw(&mut self, step: usize) -> Result<hindsight_replay::Batch, TrainError> {
        let (seed, rows) = (self.settings.seed, self.settings.data.batch);
        let updates = self.settings.collection.updates;
        match self.settings.collection.sampling {
            Sampling::Direct => {
                let pairs = self.replay.draws(&self.hindsight, rows, seed, step as u64).map_err(task_error)?;
                Ok(self.replay.gather(&self.hindsight, &pairs))
            }
            Sampling::Windows => {
                let (round, place) = ((step / updates) as u64, step % updates);
                if self.round.as_ref().is_none_or(|(number, _)| *number != round) {
                    let pairs =
                        self.replay.windows(&self.hindsight, rows * updates, seed, round).map_err(task_error)?;
                    self.round = Some((round, pairs));
                }
                let pairs = self.round.as_ref().map_or(&[][..], |(_, pairs)| pairs);
                // A round that has fewer transitions than its updates take goes through them again.
                let batches = pairs.len() / rows;
                if batches == 0 {
                    return Err(task_error("a round of windows has fewer transitions than data.batch"));
                }
                let first = place % batches * rows;
                Ok(self.replay.gather(&self.hindsight, &pairs[first..first + rows]))
            }
        }
    }

    fn tensors(&self, batch: hindsight_replay::Batch) -> Batch<B> {
        let hindsight_replay::Batch { rows, states, actions, goals } = batch;
        let goal = goals.len() / rows.max(1);
        Batch {
            states: matrix(states, self.state_len, &self.device),
            actions: matrix(actions, self.action_len, &self.device),
            goals: matrix(goals, goal, &self.device),
        }
    }

    /// What each block does for the policy: how much its mean action (before the tanh) changes when the block's layers are
    /// left out, relative to its size, over the observations that the environments have now.
    pub fn block_drop(&self, agent: &Agent<B>) -> Vec<f64> {
        let agent = agent.valid();
        let width = self.state_len + self.hindsight.goal.len();
        let observations = || matrix(self.environments.observations().to_vec(), width, &self.device);
        let [whole, _] = agent.actor.forward(observations()).map(read);
        let size = whole.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let change = |block: usize| {
            let without = read(agent.actor.mean_without(observations(), block));
            let apart = without.iter().zip(&whole).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            (apart / size).sqrt()
        };
        (0..self.settings.model.blocks()).map(change).collect()
    }

    /// The name of the task that evaluations are made on.
    pub fn evaluation_task_name(&self) -> &str {
        &self.evaluation_task.spec().name
    }

    /// Episodes of the evaluation task with the policy's mean action, for pictures; the same starts and goals in every run.
    ///
    /// # Errors
    /// If the task cannot be made, or the actions are not finite.
    pub fn episodes(&self, agent: &Agent<B>, count: u64) -> Result<Vec<EpisodeRecord>, TaskError> {
        let agent = agent.valid();
        let width = self.evaluation_task.spec().observation_len();
        let policy = |observations: &[f32], actions: &mut [f32]| {
            let [mean, _] = agent.actor.forward(matrix(observations.to_vec(), width, &self.device));
            actions.copy_from_slice(&read(mean.tanh()));
        };
        (0..count).map(|seed| goal_tasks::record(&self.evaluation_task, seed, None, policy)).collect()
    }

    fn note(&self, values: &[(&'static str, f64)]) {
        if let Ok(mut seen) = self.seen.lock() {
            seen.extend(values.iter().copied());
        }
    }
}

fn one<B: FusedOps>(tensor: &Tensor<B, 1>) -> f64 {
    tensor.to_data().iter::<f64>().sum()
}

impl<B> Task<B, Agent<B>> for ContrastiveRl<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Batch = Part;

    fn batches(&mut self, step: usize) -> Result<Vec<Part>, TrainError> {
        self.prefill()?;
        let batch = self.draw(step)?;
        let noise = self.noise("policy noise", step as u64, batch.rows * self.action_len);
        Ok(vec![Part::Actor(batch.clone(), noise), Part::Critic(batch)])
    }

    /// Half of the transitions, so that a step counts each once.
    fn weight(&self, _: &Part) -> f64 {
        self.settings.data.batch as f64 / PARTS as f64
    }

    /// Times the number of parts, whose mean is taken: the step follows the gradient of their sum.
    fn loss(&self, agent: &Agent<B>, part: Part) -> Result<Tensor<B, 1>, TrainError> {
        let loss = match part {
            Part::Actor(batch, noise) => {
                let target = self.settings.learning.entropy * self.action_len as f64;
                let noise = matrix(noise, self.action_len, &self.device);
                let losses = actor_loss(agent, self.tensors(batch), noise, target);
                let rows = losses.log_prob.dims()[0] as f64;
                self.note(&[
                    (metric::ACTOR_LOSS, one(&losses.actor)),
                    (metric::ENTROPY, -one(&losses.log_prob) / rows),
                    (metric::ALPHA, one(&agent.log_alpha.val()).exp()),
                ]);
                losses.actor + losses.alpha
            }
            Part::Critic(batch) => {
                let loss = critic_loss(agent, self.tensors(batch)).loss;
                self.note(&[(metric::CRITIC_LOSS, one(&loss))]);
                loss
            }
        };
        Ok(loss.mul_scalar(PARTS as f64))
    }

    fn evaluate(&mut self, agent: &Agent<B::InnerBackend>, step: usize) -> Result<Vec<(String, f64)>, TrainError> {
        let device = self.device.clone();
        let seed = training::seed::stream(self.settings.seed, "evaluation", step as u64);
        let seed = rand::Rng::next_u64(&mut { seed });
        let options = EvaluationOptions { episodes: self.settings.evaluation.episodes, seed, steps: None };
        let width = self.evaluation_task.spec().observation_len();
        let result = evaluate(&self.evaluation_task, options, |observations, actions| {
            let [mean, _] = agent.actor.forward(matrix(observations.to_vec(), width, &device));
            actions.copy_from_slice(&read(mean.tanh()));
        })
        .map_err(|error| world_error(error, step))?;
        let mut rng = training::seed::stream(self.settings.seed, "evaluation noise", step as u64);
        let sampled = evaluate(&self.evaluation_task, options, |observations, actions| {
            let parts = agent.actor.forward(matrix(observations.to_vec(), width, &device));
            let [mean, log_std] = parts.map(read);
            let noise = Distribution::<f32>::sample_iter(StandardNormal, &mut rng);
            for (((action, mean), log_std), z) in actions.iter_mut().zip(mean).zip(log_std).zip(noise) {
                *action = (mean + log_std.exp() * z).tanh();
            }
        })
        .map_err(|error| world_error(error, step))?;
        let (means, growth) = agent.actor.observe(matrix(self.environments.observations().to_vec(), width, &device));
        let [mean, _] = means;
        let sizes = read(mean.tanh().abs());
        let mut values = vec![
            // The first is the one that progress shows.
            (metric::SAMPLED_SUCCESS, sampled.success_any()),
            (metric::SUCCESS, result.success_any()),
            (metric::TIME_AT_GOAL, result.time_at_goal()),
            (metric::SAMPLED_TIME_AT_GOAL, sampled.time_at_goal()),
            (metric::FINAL_DISTANCE, result.final_distance()),
            (metric::FAILURES, result.failures()),
            (metric::ENVIRONMENT_STEPS, (self.steps * self.environments.count() as u64) as f64),
            (metric::SATURATION, sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / sizes.len() as f64),
        ];
        values.extend(growth.last().map(|&growth| (metric::STREAM_GROWTH, growth)));
        Ok(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn observe(&mut self, agent: &Agent<B>, gradients: &GradientsParams, _: usize) -> Vec<(String, f64)> {
        let seen = self.seen.lock().map(|seen| seen.clone()).unwrap_or_default();
        let mut values: Vec<(String, f64)> = seen.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let networks = [
            ("actor", agent.actor.connections()),
            ("state_action", agent.critic.state_action.connections()),
            ("goal", agent.critic.goal.connections()),
        ];
        let entropies: Vec<f64> = networks.iter().filter_map(|(_, c)| c.entropies()).flatten().collect();
        if !entropies.is_empty() {
            values.push((metric::CONNECTION_ENTROPY.to_owned(), plotting::mean(&entropies)));
        }
        for (name, connections) in networks {
            let norm = connections.theta_gradient_norm(gradients);
            values.extend(norm.map(|norm| (format!("{}{name}", metric::THETA_GRADIENT), norm)));
        }
        values
    }

    fn after_update(&mut self, agent: &Agent<B>, step: usize) -> Result<(), TrainError> {
        if step.is_multiple_of(self.settings.collection.updates) {
            let policy = agent.valid();
            for _ in 0..self.settings.collection.unroll {
                self.collect(&policy, step)?;
            }
        }
        Ok(())
    }

    fn state(&self) -> Result<TaskState, TrainError> {
        let bytes = |name: &str, bytes: Vec<u8>| {
            let shape = [bytes.len()];
            NamedTensor { name: name.to_owned(), data: TensorData::new(bytes, shape) }
        };
        let environments = self.environments.snapshot().map_err(task_error)?;
        // Room for all of it at once: a buffer that grows takes up to three times as much while it moves.
        let held = ReplayShape { steps: self.replay.filled(), ..*self.replay.shape() }.bytes().unwrap_or(0);
        let mut replay = Vec::with_capacity(usize::try_from(held).unwrap_or(0) + SNAPSHOT_HEADER);
        self.replay.snapshot(&mut replay).map_err(task_error)?;
        Ok(TaskState {
            // Before its first step a run has no experience, and gathers it when it goes on.
            extra: json!({ "steps": self.steps, "prefilled": self.initial.is_none() }),
            tensors: vec![bytes("environments", environments), bytes("replay", replay)],
        })
    }

    fn restore(&mut self, state: TaskState) -> Result<(), TrainError> {
        if state.extra["prefilled"] == false {
            // Everything is as it is at the very beginning.
            return Ok(());
        }
        let find = |name: &str| {
            let tensor = state.tensors.iter().find(|tensor| tensor.name == name);
            tensor.and_then(|tensor| tensor.data.as_slice::<u8>().ok()).ok_or_else(|| {
                TrainError::task(format!("the checkpoint has no `{name}`: it is not of a reinforcement-learning run"))
            })
        };
        self.environments.restore(find("environments")?).map_err(task_error)?;
        self.replay.restore(&mut find("replay")?).map_err(task_error)?;
        self.steps = state.extra["steps"]
            .as_u64()
            .ok_or_else(|| TrainError::task("the checkpoint does not say how many steps the environments have made"))?;
        self.round = None;
        self.initial = None;
        Ok(())
    }
}
