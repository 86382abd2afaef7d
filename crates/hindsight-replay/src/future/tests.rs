use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

/// The definition, term by term.
fn by_definition(trajectories: &[u32], step: usize, discount: f64) -> Vec<f64> {
    let weight = |(j, trajectory): (usize, &u32)| match j.cmp(&step) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1e-5,
        std::cmp::Ordering::Greater if *trajectory == trajectories[step] => discount.powi((j - step) as i32),
        std::cmp::Ordering::Greater => 0.0,
    };
    let weights: Vec<f64> = trajectories.iter().enumerate().map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

proptest! {
    #[test]
    fn probabilities_are_those_of_the_definition(
        trajectories in prop::collection::vec(0u32..3, 1..40), place in 0.0..1.0f64, discount in 0.05..1.0f64
    ) {
        let step = (place * trajectories.len() as f64) as usize;
        for discount in [discount, 1.0] {
            let actual = future_probabilities(&trajectories, step, discount);
            for (a, e) in actual.iter().zip(by_definition(&trajectories, step, discount)) {
                prop_assert!((a - e).abs() < 1e-12, "{a} {e}");
            }
        }
    }

    #[test]
    fn draws_never_leave_the_trajectory(
        trajectories in prop::collection::vec(0u32..3, 1..40), discount in 1e-6..=1.0f64, seed: u64
    ) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for step in 0..trajectories.len() {
            let mut future = Future::default();
            future.read(&runs(trajectories[step..].iter().copied()), 0);
            let offset = future.draw(discount, &mut random);
            prop_assert_eq!(trajectories[step + offset], trajectories[step]);
        }
    }
}

/// Draws against probabilities, by the statistic chi squared: with d degrees of freedom its mean is d and its variance
/// 2d.
#[test]
fn draws_follow_the_probabilities() {
    const DRAWS: usize = 200_000;
    let trajectories: Vec<u32> = [vec![4; 30], vec![5; 7], vec![4; 15], vec![6; 3]].concat();
    for discount in [0.5, 0.9, 0.99, 1.0] {
        let expected = future_probabilities(&trajectories, 12, discount);
        let mut future = Future::default();
        future.read(&runs(trajectories[12..].iter().copied()), 0);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut counts = vec![0.0; trajectories.len()];
        for _ in 0..DRAWS {
            counts[12 + future.draw(discount, &mut random)] += 1.0;
        }
        let (mut chi_squared, mut degrees, mut rare, mut rare_expected) = (0.0f64, -1.0f64, 0.0f64, 0.0f64);
        for (count, probability) in counts.iter().zip(expected) {
            let expected = probability * DRAWS as f64;
            if expected < 10.0 {
                rare += count;
                rare_expected += expected;
            } else {
                chi_squared += (count - expected).powi(2) / expected;
                degrees += 1.0;
            }
        }
        assert!(chi_squared < degrees + 4.0 * (2.0 * degrees).sqrt(), "{discount}: {chi_squared} of {degrees}");
        assert!((rare - rare_expected).abs() < 5.0 * (rare_expected + 1.0).sqrt(), "{rare} of {rare_expected}");
    }
}

#[test]
fn a_step_without_future_is_its_own() {
    assert_eq!(future_probabilities(&[1, 1, 2], 1, 0.99), [0.0, 1.0, 0.0]);
    let mut future = Future::default();
    future.read(&runs([1, 2, 3].into_iter()), 0);
    assert_eq!(future.draw(0.99, &mut ChaCha8Rng::seed_from_u64(0)), 0);
}
