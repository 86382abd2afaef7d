//! The newest steps of many environments.

use std::{io, ops::Range};

use thiserror::Error;

/// Most environments of a replay.
const MOST_ENVIRONMENTS: usize = 1 << 20;

/// How much a replay holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayShape {
    /// Number of environments.
    pub environments: usize,
    /// Steps kept of each; older ones are dropped.
    pub steps: usize,
    /// Entries of a state, with which an observation begins.
    pub state_len: usize,
    /// Entries of the goal that follows the state in an observation. It is not kept: relabelling gives another.
    pub goal_len: usize,
    /// Entries of an action.
    pub action_len: usize,
}

impl ReplayShape {
    /// Bytes that a full replay takes; `None` beyond the range of the number.
    pub fn bytes(&self) -> Option<u64> {
        let numbers = (self.state_len as u64).checked_add(self.action_len as u64)?.checked_add(1)?;
        (self.environments as u64).checked_mul(self.steps as u64)?.checked_mul(numbers)?.checked_mul(4)
    }
}

/// How often all environments must be unrolled for `unroll` steps before each has `steps` steps or more.
///
/// # Panics
/// Where `unroll` is 0.
pub fn prefill_unrolls(steps: usize, unroll: usize) -> usize {
    steps.div_ceil(unroll)
}

/// What can go wrong with a replay.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A replay of this shape cannot be.
    #[error("{what} of the replay is {value}: {advice}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        advice: &'static str,
    },
    /// Not as many numbers as a step has.
    #[error("{found} numbers were given as {what} of a step, which has {expected}")]
    Length {
        /// What was given.
        what: &'static str,
        /// Numbers given.
        found: usize,
        /// Numbers needed.
        expected: usize,
    },
    /// Too few steps to draw from.
    #[error("the replay holds {filled} steps of each environment, and a window of {window} needs more: collect first")]
    TooFew {
        /// Steps held.
        filled: usize,
        /// Length of the window.
        window: usize,
    },
    /// The memory does not suffice.
    #[error("no memory for {bytes} bytes of the replay: keep fewer steps or take fewer environments")]
    Memory {
        /// Bytes of the whole replay.
        bytes: u64,
    },
    /// A snapshot cannot be restored.
    #[error("the snapshot of the replay cannot be restored: {message}")]
    Snapshot {
        /// What is wrong, and where.
        message: String,
    },
    /// A snapshot cannot be written or read.
    #[error("the snapshot of the replay cannot be {action}: {source}")]
    Io {
        /// `written` or `read`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// The newest steps of many environments: states, actions and the number of the trajectory that each belongs to.
///
/// Memory grows with what is pushed, up to [`ReplayShape::bytes`].
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub(crate) shape: ReplayShape,
    /// `[slots, environments, state_len]`; slots are taken in turn, so a step of all environments is one piece.
    pub(crate) states: Vec<f32>,
    /// `[slots, environments, action_len]`.
    pub(crate) actions: Vec<f32>,
    /// The slots of each environment, which are read in a row when a future is drawn.
    pub(crate) trajectories: Vec<Vec<u32>>,
    /// Steps pushed since the start.
    pub(crate) pushed: u64,
}

impl Replay {
    /// An empty replay.
    ///
    /// # Errors
    /// [`ReplayError::Setting`] where a size is 0, there are more than 2^20 environments, or all together are beyond
    /// what can be addressed.
    pub fn new(shape: ReplayShape) -> Result<Self, ReplayError> {
        for (what, value) in [
            ("the number of environments", shape.environments),
            ("the number of steps", shape.steps),
            ("the length of a state", shape.state_len),
            ("the length of an action", shape.action_len),
        ] {
            if value == 0 {
                return Err(ReplayError::Setting { what, value: "0".to_owned(), advice: "give one at least" });
            }
        }
        // A pair has 32 bits for a step.
        let fits = shape.environments <= MOST_ENVIRONMENTS && shape.steps <= u32::MAX as usize;
        if !fits || shape.bytes().is_none_or(|bytes| bytes > isize::MAX as u64) {
            let value = format!("{} steps of {} environments", shape.steps, shape.environments);
            let advice = "that is more than can be addressed; keep fewer";
            return Err(ReplayError::Setting { what: "the size", value, advice });
        }
        let trajectories = vec![Vec::new(); shape.environments];
        Ok(Self { shape, states: Vec::new(), actions: Vec::new(), trajectories, pushed: 0 })
    }

    /// How much it holds.
    pub fn shape(&self) -> &ReplayShape {
        &self.shape
    }

    /// Steps of each environment that it holds now.
    pub fn filled(&self) -> usize {
        self.trajectories[0].len()
    }

    /// Steps of each environment that were pushed since the start.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Adds one step of all environments, and drops the oldest where there is no more room: the observations
    /// `[environments, state_len + goal_len]` that the agents acted upon, their actions `[environments, action_len]`,
    /// and to which trajectory of its environment each observation belongs. Equal numbers mean the same trajectory.
    ///
    /// # Errors
    /// [`ReplayError::Length`] for other lengths, [`ReplayError::Memory`]; nothing has changed then.
    pub fn push(&mut self, observations: &[f32], actions: &[f32], trajectories: &[u32]) -> Result<(), ReplayError> {
        let ReplayShape { environments, steps, state_len, goal_len, action_len } = self.shape;
        let observation_len = state_len + goal_len;
        for (what, found, expected) in [
            ("observations", observations.len(), environments * observation_len),
            ("actions", actions.len(), environments * action_len),
            ("trajectories", trajectories.len(), environments),
        ] {
            if found != expected {
                return Err(ReplayError::Length { what, found, expected });
            }
        }
        let states = observations.chunks_exact(observation_len).flat_map(|observation| &observation[..state_len]);
        if self.filled() < steps {
            let room = self
                .states
                .try_reserve(environments * state_len)
                .and_then(|()| self.actions.try_reserve(environments * action_len))
                .and_then(|()| self.trajectories.iter_mut().try_for_each(|slots| slots.try_reserve(1)));
            room.map_err(|_| ReplayError::Memory { bytes: self.shape.bytes().unwrap_or(u64::MAX) })?;
            self.states.extend(states);
            self.actions.extend_from_slice(actions);
            self.trajectories.iter_mut().zip(trajectories).for_each(|(slots, trajectory)| slots.push(*trajectory));
        } else {
            let slot = (self.pushed % steps as u64) as usize;
            let row = &mut self.states[slot * environments * state_len..][..environments * state_len];
            row.iter_mut().zip(states).for_each(|(to, from)| *to = *from);
            self.actions[slot * environments * action_len..][..actions.len()].copy_from_slice(actions);
            self.trajectories.iter_mut().zip(trajectories).for_each(|(slots, trajectory)| slots[slot] = *trajectory);
        }
        self.pushed += 1;
        Ok(())
    }

    /// The slot of step `step`, 0 being the oldest.
    fn slot(&self, environment: usize, step: usize) -> usize {
        let filled = self.filled();
        assert!(environment < self.shape.environments && step < filled, "no step {step} of environment {environment}");
        let slot = self.oldest() + step;
        if slot < filled { slot } else { slot - filled }
    }

    /// The slot of the oldest step; one after the other is overwritten when all are taken.
    fn oldest(&self) -> usize {
        if self.filled() < self.shape.steps { 0 } else { (self.pushed % self.shape.steps as u64) as usize }
    }

    /// The row of the tables in which a step stands.
    fn row(&self, environment: usize, step: usize) -> usize {
        self.slot(environment, step) * self.shape.environments + environment
    }

    /// To which trajectory each of some steps belongs.
    pub(crate) fn trajectories_of(&self, environment: usize, steps: Range<usize>) -> impl Iterator<Item = u32> {
        let (newer, older) = self.trajectories[environment].split_at(self.oldest());
        let of_older = &older[steps.start.min(older.len())..steps.end.min(older.len())];
        let of_newer = &newer[steps.start.saturating_sub(older.len())..steps.end.saturating_sub(older.len())];
        of_older.iter().chain(of_newer).copied()
    }

    /// The state of an environment at a step, 0 being the oldest that is held.
    ///
    /// # Panics
    /// Where there is no such environment or step.
    pub fn state(&self, environment: usize, step: usize) -> &[f32] {
        let length = self.shape.state_len;
        &self.states[self.row(environment, step) * length..][..length]
    }

    /// The action of an environment at a step.
    ///
    /// # Panics
    /// Where there is no such environment or step.
    pub fn action(&self, environment: usize, step: usize) -> &[f32] {
        let length = self.shape.action_len;
        &self.actions[self.row(environment, step) * length..][..length]
    }

    /// The number of the trajectory to which a step belongs.
    ///
    /// # Panics
    /// Where there is no such environment or step.
    pub fn trajectory(&self, environment: usize, step: usize) -> u32 {
        self.trajectories[environment][self.slot(environment, step)]
    }
}

#[cfg(test)]
mod tests;
