//! Replay of trajectories for goal-conditioned learning: what an agent reached later is taken as the goal it had.
//!
//! A [`Replay`] keeps the newest steps of many environments. [`Hindsight`] says how goals are drawn: from the future of
//! the same trajectory, a step k ahead with weight `discount^k` (Andrychowicz et al. 2017; contrastive reinforcement
//! learning, Eysenbach et al. 2022). There are two ways to draw training pairs of the same distribution:
//! [`Replay::windows`] takes one long window of every environment and uses all its steps, as the program scaling-crl
//! does; [`Replay::draws`] takes single steps at random, which is cheaper where few are needed.
//! [`Replay::gather`] makes a [`Batch`] of pairs. All draws are functions of a seed and a number, so a run that goes on
//! from a [snapshot](Replay::snapshot) meets the same batches.
//!
//! ```
//! use hindsight_replay::{Hindsight, Replay, ReplayShape};
//! let shape = ReplayShape { environments: 2, steps: 100, state_len: 1, goal_len: 1, action_len: 1 };
//! let mut replay = Replay::new(shape)?;
//! for time in 0..50 {
//!     // Two observations, each a state and a goal; two actions; the trajectory of each environment.
//!     replay.push(&[time as f32, 0.0, -time as f32, 0.0], &[0.5, 0.5], &[0, 0])?;
//! }
//! let hindsight = Hindsight { window: 20, discount: 0.9, goal: 0..1 };
//! let pairs = replay.draws(&hindsight, 32, 7, 0)?;
//! let batch = replay.gather(&hindsight, &pairs);
//! assert!(batch.states.iter().zip(&batch.goals).all(|(state, goal)| goal.abs() >= state.abs()));
//! # Ok::<(), hindsight_replay::ReplayError>(())
//! ```

mod batch;
mod future;
mod replay;
mod sampling;
mod snapshot;

pub use batch::Batch;
pub use future::future_probabilities;
pub use replay::{Replay, ReplayError, ReplayShape, prefill_unrolls};
pub use sampling::{Hindsight, Pair};
