//! Futures against those of the authors' code.

use hindsight_replay::{Hindsight, Pair, Replay, ReplayShape, future_probabilities};
use reference_vectors::assert_close;

#[test]
fn reference_hindsight() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");
    let folder = reference_vectors::family(default, "rl");
    let hyper = &reference_vectors::manifest(&folder)["hyper"];
    let size = |name: &str| hyper[name].as_u64().unwrap_or_else(|| panic!("no `{name}`")) as usize;
    let discount = hyper["gamma"].as_f64().expect("a discount");
    let goal = size("goal_start_idx")..size("goal_end_idx");
    let file = reference_vectors::Tensors::read(&folder.join("hindsight.safetensors"));
    let trajectories: Vec<u32> = file.get("seed").values.iter().map(|id| *id as u32).collect();
    let steps = trajectories.len();

    let expected = file.get("probabilities");
    assert_eq!(expected.shape, [steps, steps]);
    for (step, row) in expected.values.chunks(steps).enumerate() {
        // The weights of the file are sums of f32.
        assert_close(
            &format!("futures of step {step}"),
            &future_probabilities(&trajectories, step, discount),
            row,
            1e-6,
            1.0,
            0.0,
        );
    }

    let (observations, actions) = (file.get("observation"), file.get("action"));
    let (observation_len, action_len, state_len) = (observations.shape[1], actions.shape[1], size("obs_dim"));
    let shape = ReplayShape { environments: 1, steps, state_len, goal_len: observation_len - state_len, action_len };
    let mut replay = Replay::new(shape).expect("a shape");
    let rows = observations.f32s();
    for ((row, action), trajectory) in
        rows.chunks(observation_len).zip(actions.f32s().chunks(action_len)).zip(&trajectories)
    {
        replay.push(row, action, &[*trajectory]).expect("a step");
    }
    // With the futures that their generator drew, the rows must be theirs.
    let futures = file.get("sampled_goal_index").i64s();
    let pairs: Vec<Pair> = (0..steps as u32 - 1)
        .zip(&futures)
        .map(|(step, future)| Pair { environment: 0, step, future: *future as u32 })
        .collect();
    let batch = replay.gather(&Hindsight { window: steps, discount, goal: goal.clone() }, &pairs);
    assert_eq!(batch.states, file.get("out/state").f32s());
    assert_eq!(batch.actions, file.get("out/action").f32s());
    let theirs = file.get("out/observation").f32s();
    let goals: Vec<f32> = theirs.chunks(observation_len).flat_map(|row| &row[state_len..]).copied().collect();
    assert_eq!(batch.goals, goals);
    let theirs = file.get("out/future_state").f32s();
    let goals: Vec<f32> = theirs.chunks(state_len).flat_map(|row| &row[goal.clone()]).copied().collect();
    assert_eq!(batch.goals, goals);
    println!("{steps} steps");
}
