//! The networks of contrastive reinforcement learning on random transitions: an update, without the environments.

use ancre::Arm;
use anyhow::Result;
use burn::tensor::{Tensor, TensorData};
use experiments_resnet::{
    contrastive::{Agent, AgentConfig, Batch, actor_loss, critic_loss, settings::Settings},
    model::MlpConfig,
    presets::Preset,
};
use rand_distr::{Distribution, StandardNormal};

use super::{Plan, Size};
use crate::{
    B,
    ledger::{Ledger, MlpPasses},
    shape::ResnetSize,
    step::Lesson,
};

/// Actor and critic.
pub struct Resnet {
    pub plan: Plan,
    settings: Settings,
    agent: AgentConfig,
    rows: usize,
}

/// The actor's loss goes forward through all three networks and back through two, the critic's through its two.
const PASSES: MlpPasses = MlpPasses { forward: 5, backward: 4 };

impl Resnet {
    pub fn new(of: ResnetSize, arm: &Arm, size: Size) -> Result<Self> {
        let mut settings = match of {
            ResnetSize::Smoke => Preset::Smoke,
            ResnetSize::Cpu => Preset::Cpu,
            ResnetSize::Depth16 | ResnetSize::Depth64 => Preset::Paper,
        }
        .settings();
        if of == ResnetSize::Depth64 {
            settings.model.depth = 64;
        }
        let rows = size.rows.unwrap_or(settings.data.batch);
        settings.data.batch = rows;
        settings.data.micro_batch = rows;
        settings.model = MlpConfig { arm: arm.clone(), ..settings.model };
        settings.validate()?;
        let agent = settings.agent(settings.task()?.spec());
        let (model, count) = (&settings.model, rows as u64);
        let plan = Plan {
            parameters: agent.parameters(),
            cost: model.connections().cost(model.width)?,
            forward_rows: PASSES.forward * count,
            backward_rows: PASSES.backward * count,
            rows_at_once: PASSES.backward / 2 * count,
            model: Ledger::mlp(model.depth, model.blocks(), model.width, rows, PASSES),
            description: format!(
                "three networks of {} blocks of width {}, actor and critic side by side, {rows} transitions",
                model.blocks(),
                model.width
            ),
        };
        Ok(Self { plan, settings, agent, rows })
    }

    pub fn lesson(self) -> Result<Lesson<Agent<B>>> {
        let Self { settings, agent: config, rows, .. } = self;
        let device = Default::default();
        let numbers = |name: &str, width: usize| -> (Vec<f32>, usize) {
            let rng = training::seed::stream(settings.seed, name, 0);
            (Distribution::<f32>::sample_iter(StandardNormal, rng).take(rows * width).collect(), width)
        };
        let data = [
            numbers("states", config.state),
            numbers("actions", config.action),
            numbers("goals", config.goal),
            numbers("noise", config.action),
        ];
        let target = settings.learning.entropy * config.action as f64;
        let loss = move |agent: &Agent<B>, index: usize| {
            let [states, actions, goals, noise] = data.each_ref().map(|(values, width)| {
                Tensor::<B, 2>::from_data(TensorData::new(values.clone(), [rows, *width]), &device)
            });
            let batch = Batch { states, actions, goals };
            match index {
                0 => {
                    let losses = actor_loss(agent, batch, noise, target);
                    losses.actor + losses.alpha
                }
                _ => critic_loss(agent, batch).loss,
            }
        };
        Ok(Lesson {
            model: Agent::new(&config, settings.seed, &device)?,
            loss: Box::new(loss),
            micro_batches: 2,
            optimizer: settings.training.optimizer.clone(),
            clip: settings.training.clip,
            after_update: None,
        })
    }
}
