use super::*;

fn shape() -> ReplayShape {
    ReplayShape { environments: 2, steps: 3, state_len: 2, goal_len: 1, action_len: 1 }
}

/// Pushes step number `time`: numbers that name environment and time.
fn push(replay: &mut Replay, time: u32) {
    let t = time as f32;
    replay.push(&[t, 0.5, -1.0, t, 1.5, -1.0], &[t + 10.0, t + 20.0], &[time, time + 100]).unwrap();
}

#[test]
fn the_oldest_steps_are_dropped() {
    let mut replay = Replay::new(shape()).unwrap();
    for time in 0..10 {
        push(&mut replay, time);
        let filled = 3.min(time + 1);
        assert_eq!((replay.filled(), replay.pushed()), (filled as usize, u64::from(time) + 1));
        for age in 0..filled {
            let expected = time + 1 - filled + age;
            for environment in [0, 1] {
                let step = age as usize;
                assert_eq!(replay.state(environment, step), [expected as f32, 0.5 + environment as f32]);
                assert_eq!(replay.action(environment, step), [expected as f32 + 10.0 * (1 + environment) as f32]);
                assert_eq!(replay.trajectory(environment, step), expected + 100 * environment as u32);
            }
        }
        for (start, end) in (0..=filled as usize).flat_map(|end| (0..=end).map(move |start| (start, end))) {
            let one_by_one = (start..end).map(|step| replay.trajectory(1, step));
            assert!(replay.trajectories_of(1, start..end).eq(one_by_one), "{start}..{end}");
        }
    }
}

#[test]
fn wrong_shapes_and_lengths_are_refused() {
    for (shape, words) in [
        (ReplayShape { environments: 0, ..shape() }, "number of environments"),
        (ReplayShape { steps: 0, ..shape() }, "number of steps"),
        (ReplayShape { state_len: usize::MAX, ..shape() }, "addressed"),
        (ReplayShape { environments: 1 << 31, steps: 1 << 31, ..shape() }, "addressed"),
        (ReplayShape { steps: 1 << 33, ..shape() }, "addressed"),
    ] {
        let message = Replay::new(shape).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    let mut replay = Replay::new(shape()).unwrap();
    let empty = replay.clone();
    assert!(replay.push(&[0.0; 5], &[0.0; 2], &[0; 2]).unwrap_err().to_string().contains("observations"));
    assert!(replay.push(&[0.0; 6], &[0.0; 3], &[0; 2]).unwrap_err().to_string().contains("actions"));
    assert!(replay.push(&[0.0; 6], &[0.0; 2], &[0; 1]).unwrap_err().to_string().contains("trajectories"));
    assert_eq!(replay, empty);
}

#[test]
fn sizes_are_those_of_the_paper() {
    // 512 environments of the humanoid, 10,000 steps each: states, actions and a trajectory number.
    let humanoid = ReplayShape { environments: 512, steps: 10_000, state_len: 268, goal_len: 3, action_len: 17 };
    assert_eq!(humanoid.bytes(), Some(512 * 10_000 * (268 + 17 + 1) * 4));
    assert_eq!(ReplayShape { steps: usize::MAX, ..humanoid }.bytes(), None);
    assert_eq!(prefill_unrolls(1000, 62), 17);
}
