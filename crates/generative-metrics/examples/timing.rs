//! How long the scores of large sets take: `cargo run --release -p generative-metrics --example timing -- 2048 10000`
//! (dimension, rows of each set; `RAYON_NUM_THREADS=1` for one core).

use std::{env, time::Instant};

use generative_metrics::{Features, Manifold, Moments, frechet_distance};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1).map(|text| text.parse::<usize>());
    let dimension = arguments.next().transpose()?.unwrap_or(512);
    let rows = arguments.next().transpose()?.unwrap_or(2000);
    let (reference, samples) = (drawn(dimension, rows, 1)?, drawn(dimension, rows, 2)?);

    let [first, second] = timed("moments of both sets", || [&reference, &samples].map(Moments::of));
    println!("  distance {}", timed("Fréchet distance", || frechet_distance(&first, &second))?);
    println!(
        "  distance {}",
        timed("Fréchet distance to the same reference again", || frechet_distance(&first, &second))?
    );
    let first = timed("balls of the reference set", || Manifold::new(reference, 3))?;
    let second = timed("balls of the samples", || Manifold::new(samples, 3))?;
    println!("  {:?}", timed("comparison of balls", || first.compare(&second))?);
    Ok(())
}

fn timed<T>(what: &str, task: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = task();
    println!("{:8.2} s  {what}", start.elapsed().as_secs_f64());
    result
}

/// Values of a linear congruential generator, with scales that fall over the columns as those of real features do.
fn drawn(dimension: usize, rows: usize, seed: u64) -> Result<Features, Box<dyn std::error::Error>> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    let values = (0..rows * dimension).map(|i| uniform() / (1.0 + (i % dimension) as f32 * 0.01)).collect();
    Ok(Features::new(dimension, values)?)
}
