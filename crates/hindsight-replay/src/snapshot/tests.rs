use proptest::prelude::*;

use super::*;
use crate::Hindsight;

fn shape(steps: usize) -> ReplayShape {
    ReplayShape { environments: 3, steps, state_len: 2, goal_len: 1, action_len: 2 }
}

fn filled(steps: usize, times: u32) -> Replay {
    let mut replay = Replay::new(shape(steps)).unwrap();
    (0..times).for_each(|time| push(&mut replay, time));
    replay
}

fn push(replay: &mut Replay, time: u32) {
    let values: Vec<f32> = (0..9).map(|i| (time * 9 + i) as f32 * 0.1).collect();
    replay.push(&values, &values[..6], &[time / 4, time / 5, time / 6]).unwrap();
}

proptest! {
    #[test]
    fn a_restored_replay_goes_on_the_same(steps in 3usize..20, before in 0u32..40, after in 5u32..20) {
        let mut replay = filled(steps, before);
        let mut bytes = Vec::new();
        replay.snapshot(&mut bytes).unwrap();
        bytes.extend(b"beyond");
        let mut restored = filled(steps, 3);
        let mut left = bytes.as_slice();
        restored.restore(&mut left).unwrap();
        prop_assert_eq!(left, b"beyond");
        prop_assert_eq!(&restored, &replay);
        for time in before..before + after {
            push(&mut replay, time);
            push(&mut restored, time);
        }
        prop_assert_eq!(&restored, &replay);
        let hindsight = Hindsight { window: 2, discount: 0.9, goal: 1..2 };
        prop_assert_eq!(
            restored.windows(&hindsight, 9, 1, 1).unwrap(),
            replay.windows(&hindsight, 9, 1, 1).unwrap()
        );
    }

    #[test]
    fn any_damage_is_found(place in 0.0..1.0f64, bit in 0u8..8, cut: bool) {
        let replay = filled(6, 9);
        let mut bytes = Vec::new();
        replay.snapshot(&mut bytes).unwrap();
        let place = (place * bytes.len() as f64) as usize;
        if cut { bytes.truncate(place) } else { bytes[place] ^= 1 << bit }
        let mut restored = filled(6, 2);
        let found = matches!(restored.restore(&mut bytes.as_slice()), Err(ReplayError::Snapshot { .. }));
        prop_assert!(found);
        prop_assert!(restored == filled(6, 2) || restored == filled(6, 0));
    }
}

#[test]
fn another_shape_is_named_and_nothing_changes() {
    let mut bytes = Vec::new();
    filled(6, 9).snapshot(&mut bytes).unwrap();
    let mut other = filled(7, 5);
    let message = other.restore(&mut bytes.as_slice()).unwrap_err().to_string();
    assert!(message.contains("[3, 6, 2, 1, 2]") && message.contains("[3, 7, 2, 1, 2]"), "{message}");
    assert_eq!(other, filled(7, 5));
}
