use std::collections::{HashMap, HashSet};

use super::*;
use crate::ReplayShape;

/// `environments` whose trajectories have 5 + environment steps, `steps` of them; the state is the time.
fn filled(environments: usize, room: usize, steps: usize) -> Replay {
    let shape = ReplayShape { environments, steps: room, state_len: 1, goal_len: 1, action_len: 1 };
    let mut replay = Replay::new(shape).unwrap();
    for time in 0..steps {
        let observations: Vec<f32> = (0..environments).flat_map(|_| [time as f32, -1.0]).collect();
        let trajectories: Vec<u32> = (0..environments).map(|e| (time / (5 + e)) as u32).collect();
        replay.push(&observations, &vec![0.25; environments], &trajectories).unwrap();
    }
    replay
}

fn hindsight(window: usize) -> Hindsight {
    Hindsight { window, discount: 0.8, goal: 0..1 }
}

#[test]
fn a_window_gives_each_of_its_steps_but_the_last_once() {
    let replay = filled(6, 64, 100);
    let pairs = replay.windows(&hindsight(20), usize::MAX, 3, 0).unwrap();
    assert_eq!(pairs.len(), 6 * 19);
    for environment in 0..6 {
        let mut own: Vec<&Pair> = pairs.iter().filter(|pair| pair.environment == environment).collect();
        own.sort_by_key(|pair| pair.step);
        let start = own[0].step;
        assert!(start < 64 - 20);
        for (offset, pair) in (0..).zip(own) {
            assert_eq!(pair.step, start + offset);
            assert!(pair.future >= pair.step && pair.future < start + 20);
            let at = |step: u32| replay.trajectory(environment as usize, step as usize);
            assert_eq!(at(pair.step), at(pair.future));
            // Itself only where there is no other: 1e-5 is not met in so few draws.
            let has_future = pair.step + 1 < start + 20 && at(pair.step + 1) == at(pair.step);
            assert_eq!(pair.future == pair.step, !has_future);
        }
    }
    let starts = |environment| pairs.iter().filter(|pair| pair.environment == environment).map(|pair| pair.step).min();
    assert!((0..6).map(starts).collect::<HashSet<_>>().len() > 2, "each environment has a start of its own");
    // Shuffled, and the same again; other numbers and seeds give others.
    let environments: Vec<u32> = pairs.iter().take(19).map(|pair| pair.environment).collect();
    assert!(environments.iter().collect::<HashSet<_>>().len() > 2, "{environments:?}");
    assert_eq!(pairs, replay.windows(&hindsight(20), usize::MAX, 3, 0).unwrap());
    for (seed, number) in [(3, 1), (4, 0)] {
        assert_ne!(pairs, replay.windows(&hindsight(20), usize::MAX, seed, number).unwrap());
    }
    // A limit keeps some of the same pairs.
    let few = replay.windows(&hindsight(20), 50, 3, 0).unwrap();
    let all: HashSet<_> = pairs.into_iter().collect();
    assert_eq!((few.len(), few.iter().filter(|pair| all.contains(pair)).count()), (50, 50));
}

#[test]
fn threads_do_not_change_the_draws() {
    let replay = filled(50, 64, 100);
    let draw = || replay.windows(&hindsight(30), 700, 1, 2).unwrap();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(one.install(draw), three.install(draw));
}

/// How often each pair was drawn, of `total`.
fn frequencies(pairs: &[Pair]) -> HashMap<Pair, f64> {
    let mut counts = HashMap::new();
    for pair in pairs {
        *counts.entry(*pair).or_insert(0.0) += 1.0;
    }
    counts
}

/// Draws one by one have the distribution of the pairs of windows: the two-sample statistic chi squared, and both
/// against the probabilities written out.
#[test]
fn both_samplers_draw_from_the_same_distribution() {
    let (replay, hindsight) = (filled(2, 12, 20), hindsight(8));
    let rounds = 40_000;
    let windows: Vec<Pair> =
        (0..rounds).flat_map(|round| replay.windows(&hindsight, usize::MAX, 5, round).unwrap()).collect();
    let draws = replay.draws(&hindsight, windows.len(), 6, 0).unwrap();
    // Environment, start and step are uniform; the future within the window follows.
    let mut expected: HashMap<Pair, f64> = HashMap::new();
    let starts = 12 - 8;
    for (environment, start) in (0..2).flat_map(|environment| (0..starts).map(move |start| (environment, start))) {
        let trajectories: Vec<u32> = (start..start + 8).map(|step| replay.trajectory(environment, step)).collect();
        for step in 0..7 {
            let probabilities = crate::future_probabilities(&trajectories, step, 0.8);
            for (future, probability) in probabilities.into_iter().enumerate() {
                let ahead = future.saturating_sub(step);
                *expected.entry(pair(environment, start + step, ahead)).or_default() +=
                    probability / (2 * starts * 7) as f64;
            }
        }
    }
    let total = windows.len() as f64;
    for (name, drawn, spread) in [("draws", frequencies(&draws), 5.0), ("windows", frequencies(&windows), 5.0)] {
        for (pair, probability) in &expected {
            let (count, mean) = (drawn.get(pair).copied().unwrap_or(0.0), probability * total);
            // Within a window a pair occurs at most once, so its variance is at most that of independent draws.
            assert!((count - mean).abs() <= spread * (mean + 1.0).sqrt(), "{name}: {pair:?} {count} times, not {mean}");
        }
        assert!(drawn.keys().all(|pair| expected.contains_key(pair)), "{name}");
    }
}

#[test]
fn wrong_settings_are_refused() {
    let replay = filled(2, 12, 8);
    let good = hindsight(7);
    assert!(replay.draws(&good, 3, 0, 0).is_ok() && replay.windows(&good, 3, 0, 0).is_ok());
    for (wrong, words) in [
        (Hindsight { window: 8, ..good.clone() }, "8 steps of each environment"),
        (Hindsight { window: 1, ..good.clone() }, "window"),
        (Hindsight { discount: 0.0, ..good.clone() }, "discount"),
        (Hindsight { discount: f64::NAN, ..good.clone() }, "discount"),
        (Hindsight { discount: 1.5, ..good.clone() }, "discount"),
        (Hindsight { goal: 0..2, ..good.clone() }, "goal"),
        (Hindsight { goal: 1..1, ..good.clone() }, "goal"),
    ] {
        let messages = [
            replay.draws(&wrong, 3, 0, 0).unwrap_err().to_string(),
            replay.windows(&wrong, 3, 0, 0).unwrap_err().to_string(),
        ];
        assert!(messages.iter().all(|message| message.contains(words)), "{messages:?}");
    }
}

#[test]
fn rows_hold_what_the_pairs_say() {
    let replay = filled(3, 64, 100);
    let hindsight = hindsight(20);
    let pairs = replay.draws(&hindsight, 200, 0, 0).unwrap();
    let batch = replay.gather(&hindsight, &pairs);
    assert_eq!((batch.rows, batch.actions.len()), (200, 200));
    for (row, pair) in pairs.iter().enumerate() {
        // The oldest step held has the time 36.
        assert_eq!((batch.states[row], batch.goals[row]), (pair.step as f32 + 36.0, pair.future as f32 + 36.0));
    }
    let mut again = batch.clone();
    replay.gather_into(&hindsight, &pairs[..9], &mut again);
    assert_eq!((again.rows, again.states.as_slice()), (9, &batch.states[..9]));
}
