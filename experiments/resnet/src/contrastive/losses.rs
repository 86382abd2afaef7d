//! The losses of contrastive reinforcement learning, as the authors' program has them.

use burn::{
    module::{AutodiffModule, Module},
    tensor::{Tensor, backend::AutodiffBackend},
};
use fused_ops::{FusedOps, concatenate};

use super::Agent;

/// Weight of the squared log-sum-exp in the critic's loss.
pub const LOGSUMEXP_PENALTY: f64 = 0.1;

/// Added to `1 - a^2` before its logarithm.
const SQUASH_EPSILON: f64 = 1e-6;

/// What the losses are taken over; all have the same number of rows.
#[derive(Clone, Debug)]
pub struct Batch<B: FusedOps> {
    /// `[rows, state]`.
    pub states: Tensor<B, 2>,
    /// What was done there, `[rows, action]`.
    pub actions: Tensor<B, 2>,
    /// What was reached later in the same episode, `[rows, goal]`.
    pub goals: Tensor<B, 2>,
}

/// The critic's loss with what a log shows of it.
#[derive(Clone, Debug)]
pub struct CriticLoss<B: FusedOps> {
    /// `[1]`.
    pub loss: Tensor<B, 1>,
    /// Minus the distances of each state with its action (rows) to each goal (columns), `[rows, rows]`.
    pub logits: Tensor<B, 2>,
    /// Log-sum-exp of each row, `[rows]`.
    pub logsumexp: Tensor<B, 1>,
}

/// Log-sum-exp of each row, `[rows, 1]`.
fn logsumexp<B: FusedOps>(logits: Tensor<B, 2>) -> Tensor<B, 2> {
    let largest = logits.clone().detach().max_dim(1);
    (logits - largest.clone()).exp().sum_dim(1).log() + largest
}

/// InfoNCE over rows (each state with its action against all goals of the batch), with `0.1 mean(logsumexp^2)`.
pub fn critic_loss<B: FusedOps>(agent: &Agent<B>, batch: Batch<B>) -> CriticLoss<B> {
    let Batch { states, actions, goals } = batch;
    let left = agent.critic.state_action.forward(concatenate(vec![states, actions], 1));
    let right = agent.critic.goal.forward(goals);
    let rows = left.dims()[0];
    let logits = fused_ops::pairwise_distances(left, right).neg();
    let matching = (logits.clone() * Tensor::eye(rows, &logits.device())).sum_dim(1);
    let sums = logsumexp(logits.clone());
    let penalised = logsumexp(logits.clone().add_scalar(1e-6));
    let loss = (sums.clone() - matching).mean() + penalised.square().mean().mul_scalar(LOGSUMEXP_PENALTY);
    CriticLoss { loss, logits, logsumexp: sums.reshape([rows]) }
}

/// The actor's loss and that of the entropy's weight, with what a log shows of them.
#[derive(Clone, Debug)]
pub struct ActorLoss<B: FusedOps> {
    /// `mean(alpha log_prob - q)`, `[1]`; neither `alpha` nor the critic's parameters get a gradient of it.
    pub actor: Tensor<B, 1>,
    /// `alpha mean(-log_prob - target)`, `[1]`; only `alpha` gets a gradient of it.
    pub alpha: Tensor<B, 1>,
    /// Log-probability of the actions, `[rows]`.
    pub log_prob: Tensor<B, 1>,
    /// Minus the critic's distance, `[rows]`.
    pub q: Tensor<B, 1>,
    /// Before their tanh, `[rows, action]`.
    pub unsquashed: Tensor<B, 2>,
}

/// Log-probability of each entry of `tanh(x)` with `x = mean + exp(log_std) noise`.
pub fn squashed_log_prob<B: FusedOps>(
    unsquashed: Tensor<B, 2>,
    log_std: Tensor<B, 2>,
    noise: Tensor<B, 2>,
) -> Tensor<B, 2> {
    let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
    let gaussian = noise.square().mul_scalar(-0.5) - log_std.add_scalar(half_log_tau);
    let squash = unsquashed.tanh().square().neg().add_scalar(1.0).add_scalar(SQUASH_EPSILON).log();
    gaussian - squash
}

/// The losses of the actor and of `alpha` for the goals of a batch; `noise` is `[rows, action]`, and `target_entropy` is
/// what the entropy is to be, in nats.
pub fn actor_loss<B>(agent: &Agent<B>, batch: Batch<B>, noise: Tensor<B, 2>, target_entropy: f64) -> ActorLoss<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let Batch { states, goals, .. } = batch;
    let [mean, log_std] = agent.actor.forward(concatenate(vec![states.clone(), goals.clone()], 1));
    let unsquashed = mean + log_std.clone().exp() * noise.clone();
    let action = unsquashed.clone().tanh();
    let log_prob = squashed_log_prob(unsquashed.clone(), log_std, noise).sum_dim(1);
    // The gradient goes through the action into the encoder, and not to the encoder's parameters.
    let frozen = agent.critic.state_action.clone().no_grad();
    let left = frozen.forward(concatenate(vec![states, action], 1));
    let right = Tensor::from_inner(agent.critic.goal.valid().forward(goals.inner()));
    let rows = left.dims()[0];
    let q = (left - right).square().sum_dim(1).sqrt().neg();
    let alpha = agent.log_alpha.val().exp();
    let actor = (log_prob.clone() * alpha.clone().detach().unsqueeze() - q.clone()).mean();
    let shortfall = log_prob.clone().detach().neg().sub_scalar(target_entropy).mean();
    ActorLoss { actor, alpha: alpha * shortfall, log_prob: log_prob.reshape([rows]), q: q.reshape([rows]), unsquashed }
}
