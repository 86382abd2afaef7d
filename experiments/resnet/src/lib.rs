//! Deep residual networks with and without ANCRe: goal-conditioned contrastive reinforcement learning, where the paper
//! trains networks of 16 and 64 layers, and image classification.
//!
//! [`model`] has the networks, [`contrastive`] the agent, its losses and the task that the training loop is given,
//! [`presets`] the settings that runs begin from, [`report`] the tables and figures of a comparison, [`rollouts`]
//! pictures of episodes, and [`cli`] the
//! program. [`classify`] is the same for image classification. Physics, tasks and replay are crates of their own (`spring-physics`, `goal-tasks`, `hindsight-replay`).

pub mod classify;
pub mod cli;
pub mod contrastive;
pub mod model;
pub mod presets;
pub mod report;
pub mod rollouts;
pub mod run;
