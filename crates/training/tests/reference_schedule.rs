//! The schedule of the paper's runs against stored multipliers of the authors' scheduler.

mod reference;

use reference::{Family, assert_close};
use training::schedule::{Schedule, Warmup};

/// `w3_N12_r0.1`: warm-up, steps in all, ratio at the end.
fn parse(key: &str) -> Option<(usize, usize, f64)> {
    let mut parts = key.split('_');
    let mut part = |prefix| parts.next()?.strip_prefix(prefix);
    Some((part("w")?.parse().ok()?, part("N")?.parse().ok()?, part("r")?.parse().ok()?))
}

#[test]
fn reference_schedule_multipliers() {
    let family = Family::open("schedule");
    let tensors = family.tensors("multipliers.safetensors");
    assert!(!tensors.is_empty());
    for (key, expected) in &tensors {
        let (warmup, total, min_ratio) = parse(key).unwrap_or_else(|| panic!("unknown case {key}"));
        let schedule = Schedule::Cosine { min_ratio };
        for (step, &expected) in expected.values.iter().enumerate() {
            let found = schedule.multiplier(step, Warmup::from_zero(warmup), total);
            assert_close(found, expected, 1e-12, &format!("{key}, step {step}"));
        }
    }
    println!("{} cases of schedule", tensors.len());
}
