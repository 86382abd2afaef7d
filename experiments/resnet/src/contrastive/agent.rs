//! The networks of an agent.

use ancre::Connections;
use burn::{
    module::{Module, Param},
    tensor::{Tensor, backend::Backend},
};
use experiment_kit::Connected;
use fused_ops::FusedOps;

use crate::model::{Linear, MlpConfig, MlpError, ResidualMlp};

/// Features of an encoder, between which distances are taken.
pub const REPRESENTATION: usize = 64;

/// The range of the logarithm of the policy's standard deviation.
const LOG_STD: [f64; 2] = [-5.0, 2.0];

/// The sizes of an agent's networks.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// The actor and both encoders.
    pub network: MlpConfig,
    /// Numbers of a state.
    pub state: usize,
    /// Numbers of an action.
    pub action: usize,
    /// Numbers of a goal.
    pub goal: usize,
}

impl AgentConfig {
    /// Parameters without connections.
    pub fn parameters(&self) -> u64 {
        let Self { network, state, action, goal } = self;
        let head = |outputs: usize| (network.width as u64).saturating_add(1).saturating_mul(outputs as u64);
        let bodies = [state + goal, state + action, *goal].map(|inputs| network.parameters(inputs));
        let heads = [head(2 * action), head(REPRESENTATION), head(REPRESENTATION), 1];
        bodies.into_iter().chain(heads).fold(0, u64::saturating_add)
    }
}

/// A Gaussian over actions before their tanh: state and goal give a mean and a standard deviation.
#[derive(Module, Debug)]
pub struct Policy<B: Backend> {
    body: ResidualMlp<B>,
    mean: Linear<B>,
    log_std: Linear<B>,
}

impl<B: FusedOps> Policy<B> {
    /// Mean and logarithm of the standard deviation, each `[rows, action]`, for observations `[rows, state + goal]`.
    pub fn forward(&self, observations: Tensor<B, 2>) -> [Tensor<B, 2>; 2] {
        self.heads(self.body.forward(observations))
    }

    /// The same, and how the stream has grown over the blocks.
    pub fn observe(&self, observations: Tensor<B, 2>) -> ([Tensor<B, 2>; 2], Vec<f64>) {
        let (state, growth) = self.body.observe(observations);
        (self.heads(state), growth)
    }

    /// The mean with one block left out.
    pub fn mean_without(&self, observations: Tensor<B, 2>, block: usize) -> Tensor<B, 2> {
        self.mean.forward(self.body.forward_without(observations, block))
    }

    fn heads(&self, state: Tensor<B, 2>) -> [Tensor<B, 2>; 2] {
        let [low, high] = LOG_STD;
        let raw = self.log_std.forward(state.clone()).tanh();
        [self.mean.forward(state), raw.add_scalar(1.0).mul_scalar(0.5 * (high - low)).add_scalar(low)]
    }

    /// The connections.
    pub fn connections(&self) -> &Connections<B> {
        self.body.connections()
    }
}

/// An encoder: a residual MLP and a linear head.
#[derive(Module, Debug)]
pub struct Encoder<B: Backend> {
    body: ResidualMlp<B>,
    head: Linear<B>,
}

impl<B: FusedOps> Encoder<B> {
    fn new(config: &MlpConfig, inputs: usize, seed: u64, name: &str, device: &B::Device) -> Result<Self, MlpError> {
        Ok(Self {
            body: ResidualMlp::new(config, inputs, seed, name, device)?,
            head: Linear::new(seed, &format!("{name}.head"), [config.width, REPRESENTATION], device),
        })
    }

    /// `[rows, inputs]` to `[rows, 64]`.
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        self.head.forward(self.body.forward(x))
    }

    /// The connections.
    pub fn connections(&self) -> &Connections<B> {
        self.body.connections()
    }
}

/// The critic: minus the distance of what the two encoders make of a state with an action, and of a goal, is how likely
/// the goal will be reached.
#[derive(Module, Debug)]
pub struct Critic<B: Backend> {
    /// State and action.
    pub state_action: Encoder<B>,
    /// Goal.
    pub goal: Encoder<B>,
}

/// All that is learned.
#[derive(Module, Debug)]
pub struct Agent<B: Backend> {
    /// Chooses actions.
    pub actor: Policy<B>,
    /// Judges them.
    pub critic: Critic<B>,
    /// Logarithm of the weight of the entropy, `[1]`, from 0.
    pub log_alpha: Param<Tensor<B, 1>>,
}

impl<B: FusedOps> Agent<B> {
    /// An agent with the weights of a seed, which do not depend on the connections.
    ///
    /// # Errors
    /// As [`MlpConfig::validate`].
    pub fn new(config: &AgentConfig, seed: u64, device: &B::Device) -> Result<Self, MlpError> {
        let AgentConfig { network, state, action, goal } = config;
        let head = |name: &str| Linear::new(seed, name, [network.width, *action], device);
        Ok(Self {
            actor: Policy {
                body: ResidualMlp::new(network, state + goal, seed, "actor", device)?,
                mean: head("actor.mean"),
                log_std: head("actor.log_std"),
            },
            critic: Critic {
                state_action: Encoder::new(network, state + action, seed, "state_action", device)?,
                goal: Encoder::new(network, *goal, seed, "goal", device)?,
            },
            log_alpha: Param::from_tensor(Tensor::zeros([1], device)),
        })
    }
}

/// Reports show the actor's connections; each network has its own.
impl<B: Backend> Connected<B> for Agent<B> {
    fn connections(&self) -> &Connections<B> {
        &self.actor.body.connections
    }

    fn all_connections(&self) -> Vec<&Connections<B>> {
        let Critic { state_action, goal } = &self.critic;
        [&self.actor.body, &state_action.body, &goal.body].map(|body| &body.connections).into()
    }

    fn with_connections(mut self, connections: Connections<B>) -> Self {
        self.actor.body.connections = connections;
        self
    }
}
