//! Contrastive reinforcement learning (Eysenbach et al. 2022) with deep residual networks, as in the paper: an actor, and
//! a critic whose two encoders are to be close for a state, an action and a goal that is reached.

mod agent;
mod losses;
pub mod settings;
mod task;

pub use agent::{Agent, AgentConfig, Critic, Policy, REPRESENTATION};
pub use losses::{ActorLoss, Batch, CriticLoss, LOGSUMEXP_PENALTY, actor_loss, critic_loss, squashed_log_prob};
pub use task::{ContrastiveRl, metric};
