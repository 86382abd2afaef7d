//! Everything that the values of a reinforcement-learning run depend on: what `config.toml` holds.

use std::path::Path;

use ancre::Arm;
use experiment_kit::{
    RunSettings,
    checks::{self, CheckError},
};
use goal_tasks::{SharedTask, TaskError, TaskSpec, Variant};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use training::trainer::{TrainError, TrainSettings};

use super::AgentConfig;
use crate::model::{MlpConfig, MlpError};

/// The settings of one run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Source of all randomness: initial weights, tasks, exploration, batches.
    pub seed: u64,
    /// What is to be learned.
    pub task: TaskSettings,
    /// How experience is gathered.
    pub collection: CollectionSettings,
    /// What the losses depend on.
    pub learning: LearningSettings,
    /// Transitions of a step.
    pub data: BatchSettings,
    /// Actor and encoders.
    pub model: MlpConfig,
    /// What is measured.
    pub evaluation: EvaluationSettings,
    /// The loop, the optimizer and the schedule.
    pub training: TrainSettings,
}

/// What is to be learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSettings {
    /// The task's name, such as `point_big_maze`.
    pub name: String,
    /// The task that evaluations are made on; unset takes the one that belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluate_on: Option<String>,
    /// Whose definition, where the two programs that the tasks come from differ.
    #[serde(default)]
    pub variant: Variant,
}

/// How batches are drawn from the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Independent transitions with a goal each: what a window gives, at the cost of one batch.
    Direct,
    /// As the authors' program: one window of an episode's length from every environment, all of it relabelled, shuffled
    /// and cut into the batches of a round. A round here makes its updates first and its steps of the environments after.
    Windows,
}

/// How experience is gathered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionSettings {
    /// Environments that are stepped together.
    pub environments: usize,
    /// Steps of every environment between updates.
    pub unroll: usize,
    /// Updates between these.
    pub updates: usize,
    /// Steps of each environment that are kept.
    pub replay: usize,
    /// Steps of each environment before the first update, with the initial policy.
    pub prefill: usize,
    /// How batches are drawn.
    pub sampling: Sampling,
}

/// What the losses depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningSettings {
    /// A goal lies `k` steps ahead with a probability that falls as the `k`-th power of this.
    pub discount: f64,
    /// The entropy that the policy is to have, in nats for each number of an action: the paper's is -.5; uniform actions
    /// have .69.
    pub entropy: f64,
}

/// Transitions of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSettings {
    /// Transitions of one optimizer step; each is contrasted with all goals of the others.
    pub batch: usize,
    /// The same number: a contrastive loss cannot be taken in parts.
    pub micro_batch: usize,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationSettings {
    /// Episodes of an evaluation, each in a fresh environment.
    pub episodes: usize,
}

/// Settings that make no sense.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A fault that any program may have.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Of the networks.
    #[error("model.{0}")]
    Model(#[from] MlpError),
    /// Of the task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Of the loop.
    #[error("training: {0}")]
    Training(#[from] TrainError),
    /// What is evaluated on has other states or actions.
    #[error("task.evaluate_on = {other} has other states, goals or actions than {task}")]
    OtherSizes {
        /// Trained on.
        task: String,
        /// To be evaluated on.
        other: String,
    },
    /// A number that has to be larger.
    #[error("{name} = {value} is too small: give at least {least}")]
    TooSmall {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The least that makes sense.
        least: usize,
    },
    /// A number out of its range.
    #[error("{name} = {value} makes no sense: give a number {range}")]
    Range {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// In words.
        range: &'static str,
    },
    /// A batch is larger than what a round of windows gives.
    #[error(
        "data.batch = {batch} is more than the {round} transitions that a round of windows gives: at most that many are possible"
    )]
    Round {
        /// As given.
        batch: usize,
        /// Transitions of a round.
        round: usize,
    },
    /// The batch was cut.
    #[error(
        "data.micro_batch = {micro_batch} is not data.batch = {batch}: a contrastive loss cannot be taken in parts, give both \
         the same value"
    )]
    Parts {
        /// As given.
        batch: usize,
        /// As given.
        micro_batch: usize,
    },
}

impl Settings {
    /// The task that is trained on.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn task(&self) -> Result<SharedTask, TaskError> {
        goal_tasks::task(&self.task.name, self.task.variant)
    }

    /// The task that evaluations are made on.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn evaluation_task(&self) -> Result<SharedTask, TaskError> {
        let name = match &self.task.evaluate_on {
            Some(name) => name.clone(),
            None => self.task()?.spec().evaluated_on.clone(),
        };
        goal_tasks::task(&name, self.task.variant)
    }

    /// The networks for a task.
    pub fn agent(&self, spec: &TaskSpec) -> AgentConfig {
        AgentConfig { network: self.model.clone(), state: spec.state_len, action: spec.action_len, goal: spec.goal_len }
    }

    /// Checks what can be checked without making an environment.
    ///
    /// # Errors
    /// The first fault found.
    pub fn validate(&self) -> Result<(), SettingsError> {
        checks::seed(self.seed)?;
        self.model.validate()?;
        let collection = &self.collection;
        let counts = [("environments", collection.environments), ("replay", collection.replay)];
        checks::at_most("collection.", &counts, MOST)?;
        let counts = [("unroll", collection.unroll), ("updates", collection.updates), ("prefill", collection.prefill)];
        checks::at_most("collection.", &counts, MOST)?;
        checks::at_most("data.", &[("batch", self.data.batch)], MOST)?;
        checks::at_most("evaluation.", &[("episodes", self.evaluation.episodes)], MOST)?;
        let (collection, data) = (&self.collection, &self.data);
        let (task, evaluation) = (self.task()?, self.evaluation_task()?);
        let (spec, other) = (task.spec(), evaluation.spec());
        if (spec.state_len, spec.goal_len, spec.action_len) != (other.state_len, other.goal_len, other.action_len) {
            return Err(SettingsError::OtherSizes { task: spec.name.clone(), other: other.name.clone() });
        }
        let episode = spec.episode_steps as usize;
        for (name, value, least) in [
            ("collection.environments", collection.environments, 1),
            ("collection.unroll", collection.unroll, 1),
            ("collection.updates", collection.updates, 1),
            // Batches come from whole windows of an episode's length.
            ("collection.prefill", collection.prefill, episode + 1),
            ("collection.replay", collection.replay, collection.prefill),
            ("data.batch", data.batch, 2),
            ("evaluation.episodes", self.evaluation.episodes, 1),
        ] {
            if value < least {
                return Err(SettingsError::TooSmall { name, value, least });
            }
        }
        // A window gives a transition for each of its steps but the last.
        let round = collection.environments.saturating_mul(episode.saturating_sub(1));
        if collection.sampling == Sampling::Windows && data.batch > round {
            return Err(SettingsError::Round { batch: data.batch, round });
        }
        if data.batch != data.micro_batch {
            return Err(SettingsError::Parts { batch: data.batch, micro_batch: data.micro_batch });
        }
        if !(self.learning.discount > 0.0 && self.learning.discount < 1.0) {
            let (name, value) = ("learning.discount", self.learning.discount);
            return Err(SettingsError::Range { name, value, range: "between 0 and 1" });
        }
        if !self.learning.entropy.is_finite() {
            let (name, value) = ("learning.entropy", self.learning.entropy);
            return Err(SettingsError::Range { name, value, range: "such as -0.5" });
        }
        Ok(self.training.validate()?)
    }
}

/// The largest number of anything that settings count: far more than any memory holds.
const MOST: usize = 1 << 24;

/// A step has two parts, the actor's and the critic's, which may be made at the same time.
pub const PARTS: usize = 2;

impl RunSettings for Settings {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn arm(&self) -> &Arm {
        &self.model.arm
    }

    fn tau(&self) -> f64 {
        self.model.tau
    }

    fn set_tau(&mut self, tau: f64) {
        self.model.tau = tau;
    }

    fn with_arm_and_seed(&self, arm: &Arm, seed: u64) -> Self {
        Self { seed, model: MlpConfig { arm: arm.clone(), ..self.model.clone() }, ..self.clone() }
    }

    fn depth(&self) -> usize {
        self.model.depth
    }

    fn with_depth(&self, depth: usize) -> Self {
        Self { model: MlpConfig { depth, ..self.model.clone() }, ..self.clone() }
    }

    fn training(&self) -> &TrainSettings {
        &self.training
    }

    fn accumulation(&self) -> usize {
        PARTS
    }

    fn init_from(&self) -> Option<&Path> {
        None
    }

    fn parameters(&self) -> u64 {
        self.task().map_or(0, |task| self.agent(task.spec()).parameters())
    }

    fn check(&self) -> anyhow::Result<()> {
        Ok(self.validate()?)
    }
}
