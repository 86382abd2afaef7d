//! The schedule of the paper's runs against stored multipliers of the authors' scheduler.

use reference_vectors::{Tensors, assert_close};
use training::schedule::{Schedule, Warmup};

/// `w3_N12_r0.1`: warm-up, steps in all, ratio at the end.
fn parse(key: &str) -> Option<(usize, usize, f64)> {
    let mut parts = key.split('_');
    let mut part = |prefix| parts.next()?.strip_prefix(prefix);
    Some((part("w")?.parse().ok()?, part("N")?.parse().ok()?, part("r")?.parse().ok()?))
}

#[test]
fn reference_schedule_multipliers() {
    let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "schedule");
    let tensors = Tensors::read(&folder.join("multipliers.safetensors"));
    assert!(tensors.iter().len() > 0);
    for (key, expected) in tensors.iter() {
        let (warmup, total, min_ratio) = parse(key).unwrap_or_else(|| panic!("unknown case {key}"));
        let schedule = Schedule::Cosine { min_ratio };
        for (step, &expected) in expected.values.iter().enumerate() {
            let found = schedule.multiplier(step, Warmup::from_zero(warmup), total);
            assert_close(&format!("{key}, step {step}"), &[found], &[expected], 0.0, 0.0, 1e-12);
        }
    }
    println!("{} cases of schedule", tensors.iter().len());
}
