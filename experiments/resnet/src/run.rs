//! What the kit has to be told to make runs of agents.

use std::path::Path;

use anyhow::{Result, bail};
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use experiment_kit::{
    Ended, Experiment, Program, RunSettings,
    run::{Newest, cores, newest, workers},
};
use fused_ops::FusedOps;
use hindsight_replay::ReplayShape;
use plotting::Figure;
use training::{memory::MemoryEstimate, parameters, run_directory::RunPaths};

use crate::{
    contrastive::{Agent, ContrastiveRl, settings::Settings},
    rollouts,
};

/// The pictures in a run's figures.
pub const FROM_ABOVE: &str = "episodes";
/// Likewise, of agents that have bodies.
pub const SIDE: &str = "episode-side";
/// Episodes in a picture, and frames of one.
const EPISODES: u64 = 6;
const FRAMES: usize = 12;

/// Matrices over all pairs of a batch that the critic's loss and its gradient hold at once, counted generously.
const PAIR_TENSORS: u64 = 12;

/// This program.
pub const PROGRAM: Program = Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

/// Agents on one device; their tasks are made for each run.
#[derive(Debug)]
pub struct Agents<B: AutodiffBackend> {
    /// Where tensors live.
    pub device: B::Device,
}

impl<B> Experiment for Agents<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Settings = Settings;
    type Backend = B;
    type Model = Agent<B>;
    type Task = ContrastiveRl<B>;

    const PROGRAM: Program = PROGRAM;
    const OTHER_DATA: &'static str = "another task";

    fn device(&self) -> &<B as BackendTypes>::Device {
        &self.device
    }

    /// All experience follows from the settings.
    fn data_fingerprint(&self) -> String {
        "simulated".to_owned()
    }

    fn model(&self, settings: &Settings) -> Result<Agent<B>> {
        Ok(Agent::new(&settings.agent(settings.task()?.spec()), settings.seed, &self.device)?)
    }

    fn initial_weights(&self, _: Agent<B>, file: &Path, _: &Settings) -> Result<(Agent<B>, Vec<String>)> {
        bail!("{} cannot be begun from: agents start from their seed", file.display())
    }

    /// Tells what each block of the actor does, and leaves pictures of episodes.
    fn finished(&self, settings: &Settings, path: &Path, agent: &Agent<B>, task: &ContrastiveRl<B>) -> Result<Ended> {
        let records = task.episodes(agent, EPISODES)?;
        let titles: Vec<String> =
            records.iter().enumerate().map(|(i, record)| rollouts::outcome(i + 1, record)).collect();
        let subtitle = format!(
            "{}: {} of depth {}, seed {}, {} updates; the policy's mean action",
            task.evaluation_task_name(),
            settings.model.arm,
            settings.model.depth,
            settings.seed,
            settings.training.steps
        );
        let folder = RunPaths::new(path).figures();
        rollouts::maze_from_above(&records, &titles, "Episodes from above", &subtitle).save(&folder, FROM_ABOVE)?;
        if let Some(first) = records.first().filter(|record| !record.bodies.is_empty()) {
            rollouts::side_view(first, FRAMES, &format!("From the side: {}", titles[0]), &subtitle)
                .save(&folder, SIDE)?;
        }
        Ok(Ended::Done(serde_json::json!({ "block_drop": task.block_drop(agent) })))
    }

    fn task(&self, settings: &Settings, agent: &Agent<B>) -> Result<ContrastiveRl<B>> {
        Ok(ContrastiveRl::new(settings, agent, &self.device)?)
    }
}

/// What a run will hold in main memory on the CPU, for `arms` runs at once.
pub fn memory_estimate(settings: &Settings, arms: usize) -> MemoryEstimate {
    let mut estimate = MemoryEstimate::new();
    let Ok(task) = settings.task() else { return estimate };
    let (spec, arms) = (task.spec(), arms as u64);
    let parameters = settings.parameters().saturating_mul(4);
    let at_once = workers(settings) as u64;
    let shape = ReplayShape {
        environments: settings.collection.environments,
        steps: settings.collection.replay,
        state_len: spec.state_len,
        goal_len: spec.goal_len,
        action_len: spec.action_len,
    };
    // A checkpoint holds the replay once more while it is written.
    let replay = shape.bytes().unwrap_or(u64::MAX).saturating_mul(arms + 1);
    estimate.add(format!("experience of {arms} run(s), and of one checkpoint"), replay);
    estimate.add(format!("weights of {arms} run(s), and AdamW's two moments"), parameters.saturating_mul(3 * arms));
    estimate.add("gradients of one step", parameters.saturating_mul(at_once + 1));
    // The actor's part holds two networks' activations, the critic's as many.
    let rows = settings.data.batch.max(settings.evaluation.episodes);
    let activations = settings.model.activation_bytes(rows).saturating_mul(2 * at_once.max(cores() as u64));
    estimate.add(format!("activations of {rows} transitions"), activations);
    // Of every transition with every goal: distances, logits, two exponentials, and their gradients.
    let pairs = (settings.data.batch as u64).saturating_mul(settings.data.batch as u64);
    estimate.add("the critic's pairs of transitions and goals", pairs.saturating_mul(4 * PAIR_TENSORS));
    estimate
}

/// The settings and the agent of a run, from its newest checkpoint that is whole, and how many steps that has.
///
/// # Errors
/// As [`newest`], or if the checkpoint is of another model.
pub fn load<B: FusedOps>(path: &Path, device: &B::Device) -> Result<(Settings, Agent<B>, usize)> {
    let Newest { settings, checkpoint } = newest::<Settings>(path)?;
    let agent = Agent::<B>::new(&settings.agent(settings.task()?.spec()), settings.seed, device)?;
    Ok((settings, parameters::import(agent, checkpoint.model)?, checkpoint.header.step))
}
