//! Rows for a training step.

use crate::{Hindsight, Pair, Replay};

/// Training rows: what was seen, what was done, and a goal that was reached later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of rows.
    pub rows: usize,
    /// `[rows, state_len]`.
    pub states: Vec<f32>,
    /// `[rows, action_len]`.
    pub actions: Vec<f32>,
    /// `[rows, goal_len]`: the goal's part of the later state.
    pub goals: Vec<f32>,
}

impl Replay {
    /// The rows of some pairs, in their order.
    ///
    /// # Panics
    /// Where a pair is not of this replay, or the goal is not a part of the state.
    pub fn gather(&self, hindsight: &Hindsight, pairs: &[Pair]) -> Batch {
        let mut batch = Batch::default();
        self.gather_into(hindsight, pairs, &mut batch);
        batch
    }

    /// As [`gather`](Self::gather), into the memory of another batch.
    ///
    /// # Panics
    /// Where a pair is not of this replay, or the goal is not a part of the state.
    pub fn gather_into(&self, hindsight: &Hindsight, pairs: &[Pair], batch: &mut Batch) {
        batch.rows = pairs.len();
        batch.states.clear();
        batch.actions.clear();
        batch.goals.clear();
        for &Pair { environment, step, future } in pairs {
            let (environment, step, future) = (environment as usize, step as usize, future as usize);
            batch.states.extend_from_slice(self.state(environment, step));
            batch.actions.extend_from_slice(self.action(environment, step));
            batch.goals.extend_from_slice(&self.state(environment, future)[hindsight.goal.clone()]);
        }
    }
}
