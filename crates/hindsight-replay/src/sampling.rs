//! Drawing steps and their futures.

use std::ops::Range;

use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::{
    Replay, ReplayError,
    future::{Future, runs},
};

/// Separates these random streams from every other use of the same seed.
const DOMAIN: [u8; 16] = *b"hindsight v1    ";

/// Numbers of streams beyond those of the environments.
const SHUFFLE: u64 = u64::MAX;
const DRAWS: u64 = u64::MAX - 1;

/// How goals are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindsight {
    /// Consecutive steps within which a future is looked for.
    pub window: usize,
    /// The step k ahead has the weight `discount^k`.
    pub discount: f64,
    /// Which entries of a state are the achieved goal.
    pub goal: Range<usize>,
}

/// A step of an environment and the later one (or the same) whose state gives the goal. Steps count from the oldest
/// that the replay holds, so a pair is meant for the replay as it was when the pair was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The environment.
    pub environment: u32,
    /// The step.
    pub step: u32,
    /// The step of the goal.
    pub future: u32,
}

impl Replay {
    /// One window of every environment: its start is uniform, and each of its steps but the last has a future drawn
    /// within the window and its trajectory. All pairs are shuffled, and the first `limit` kept (`usize::MAX` for all).
    /// A function of the replay, `seed` and `number`; give each training step another number.
    ///
    /// The program scaling-crl draws a training step's data so: 512 windows of 1000 steps, cut into batches of 256, of
    /// which 800 are used.
    ///
    /// # Errors
    /// [`ReplayError::Setting`] where `hindsight` does not fit the replay, [`ReplayError::TooFew`] where no more steps
    /// are held than the window is long.
    pub fn windows(
        &self,
        hindsight: &Hindsight,
        limit: usize,
        seed: u64,
        number: u64,
    ) -> Result<Vec<Pair>, ReplayError> {
        self.check(hindsight)?;
        let starts = self.filled() - hindsight.window;
        let environments = self.shape().environments;
        let mut pairs: Vec<Pair> = (0..environments)
            .into_par_iter()
            .flat_map_iter(|environment| {
                let mut random = stream(seed, number, environment as u64);
                let start = random.random_range(0..starts);
                let runs = runs(self.trajectories_of(environment, start..start + hindsight.window));
                let (mut future, mut run) = (Future::default(), 0);
                (0..hindsight.window - 1).map(move |step| {
                    run += usize::from(step == runs[run].steps.end);
                    future.read(&runs[run..], step);
                    let ahead = future.draw(hindsight.discount, &mut random);
                    pair(environment, start + step, ahead)
                })
            })
            .collect();
        let kept = limit.min(pairs.len());
        let mut random = stream(seed, number, SHUFFLE);
        // The shuffled part stands at the end of the whole.
        let (shuffled, _) = pairs.partial_shuffle(&mut random, kept);
        Ok(shuffled.to_vec())
    }

    /// `count` pairs drawn one by one, independently: each has the distribution of a pair of
    /// [`windows`](Self::windows). A function of the replay, `seed` and `number`; give each batch another number.
    ///
    /// # Errors
    /// As [`windows`](Self::windows).
    pub fn draws(&self, hindsight: &Hindsight, count: usize, seed: u64, number: u64) -> Result<Vec<Pair>, ReplayError> {
        self.check(hindsight)?;
        let (starts, environments) = (self.filled() - hindsight.window, self.shape().environments);
        let mut random = stream(seed, number, DRAWS);
        let mut future = Future::default();
        let draw = |_| {
            let environment = random.random_range(0..environments);
            let start = random.random_range(0..starts);
            let step = start + random.random_range(0..hindsight.window - 1);
            future.read(&runs(self.trajectories_of(environment, step..start + hindsight.window)), 0);
            pair(environment, step, future.draw(hindsight.discount, &mut random))
        };
        Ok((0..count).map(draw).collect())
    }

    fn check(&self, hindsight: &Hindsight) -> Result<(), ReplayError> {
        let wrong = |what, value, advice| Err(ReplayError::Setting { what, value, advice });
        let Hindsight { window, discount, goal } = hindsight;
        // Written so that a NaN is refused.
        if !(*discount > 0.0 && *discount <= 1.0) {
            return wrong("the discount", discount.to_string(), "give one above 0 and at most 1");
        }
        if *window < 2 {
            return wrong("the window", window.to_string(), "give two steps at least");
        }
        let state_len = self.shape().state_len;
        if goal.start >= goal.end || goal.end > state_len {
            return wrong("the goal's part of a state", format!("{goal:?}"), "give a range within the state");
        }
        if self.filled() <= *window {
            return Err(ReplayError::TooFew { filled: self.filled(), window: *window });
        }
        Ok(())
    }
}

fn pair(environment: usize, step: usize, ahead: usize) -> Pair {
    // A replay has fewer than 2^32 of both.
    Pair { environment: environment as u32, step: step as u32, future: (step + ahead) as u32 }
}

/// ChaCha8 with the key seed (8 bytes, little endian), number (8 bytes, little endian), domain (16 bytes).
fn stream(seed: u64, number: u64, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    key[16..].copy_from_slice(&DOMAIN);
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(index);
    random
}

#[cfg(test)]
mod tests;
