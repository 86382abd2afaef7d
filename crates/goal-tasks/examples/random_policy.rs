//! A policy that acts at random, on any task: what it reaches, and how many steps a second are simulated.
//!
//! `cargo run --release -p goal-tasks --example random_policy -- ant_big_maze 512`

use std::time::Instant;

use goal_tasks::{EnvironmentOptions, Environments, EvaluationOptions, Random, Variant, evaluate, task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "point_big_maze".to_owned());
    let count = arguments.next().map_or(Ok(512), |text| text.parse())?;
    let task = task(&name, Variant::ScalingCrl)?;
    let spec = task.spec().clone();
    let mut random = Random::new(0, u64::MAX);
    let mut act = |actions: &mut [f32]| actions.iter_mut().for_each(|to| *to = random.uniform(-1.0, 1.0) as f32);

    let mut environments = Environments::new(task.clone(), EnvironmentOptions::training(&spec, count, 0))?;
    let mut actions = vec![0.0; count * spec.action_len];
    let (start, mut steps, mut failures) = (Instant::now(), 0, 0);
    while start.elapsed().as_secs_f64() < 3.0 {
        act(&mut actions);
        failures += environments.step(&actions)?.terminated.iter().filter(|terminated| **terminated).count();
        steps += count;
    }
    let rate = steps as f64 / start.elapsed().as_secs_f64();
    println!("{name}: {rate:.0} steps a second in {count} environments, {failures} failures in {steps} steps");

    let scores = evaluate(&task, EvaluationOptions { episodes: 64, seed: 1, steps: None }, |_, actions| act(actions))?;
    println!(
        "time at goal {:.1} of {}, success at any time {:.2}, final distance {:.2} m, episodes of {:.0} steps",
        scores.time_at_goal(),
        spec.episode_steps,
        scores.success_any(),
        scores.final_distance(),
        scores.steps()
    );
    Ok(())
}
