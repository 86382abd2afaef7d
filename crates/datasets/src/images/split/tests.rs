use proptest::prelude::*;

use super::*;
use crate::images::{ImageKind, set::numbered};

/// Images of one value each: `pictures[i]` is the value, `labels[i]` the class.
fn set(pictures: &[f32], labels: &[u32], classes: usize) -> ImageSet {
    let values = pictures.to_vec();
    ImageSet::new(ImageKind::Pictures, [1, 1, 1], values, labels.to_vec(), numbered(classes), "test").unwrap()
}

/// `sizes[c]` different images of class c, all classes mixed.
fn different(sizes: &[usize]) -> ImageSet {
    let mut labels: Vec<u32> = (0..).zip(sizes).flat_map(|(class, &size)| vec![class; size]).collect();
    labels.sort_by_key(|&label| label.wrapping_mul(2_654_435_769) % 7);
    let pictures: Vec<f32> = (0..labels.len()).map(|i| i as f32).collect();
    set(&pictures, &labels, sizes.len())
}

#[test]
fn each_class_gives_its_share() {
    let parts = by_fraction(different(&[100, 50, 10, 1, 0]), 0.1, 3).unwrap();
    assert_eq!(parts.held_out.class_counts(), [10, 5, 1, 0, 0]);
    assert_eq!(parts.train.class_counts(), [90, 45, 9, 1, 0]);
    assert_eq!(parts.rule, "10.0% of each class, chosen by seed 3");
}

#[test]
fn the_seed_chooses() {
    let images = different(&[40, 40]);
    let chosen = |seed| by_fraction(images.clone(), 0.25, seed).unwrap().held_out;
    assert_eq!(chosen(1), chosen(1));
    assert_ne!(chosen(1), chosen(2));
    // Not one end of the class: 10 of 40 are all in one half once in 1,500.
    let values = chosen(1);
    assert!(values.values().iter().any(|&v| v < 20.0) && values.values().iter().any(|&v| v >= 60.0));
}

#[test]
fn a_share_of_nothing_keeps_everything_and_too_few_images_are_refused() {
    let parts = by_fraction(different(&[5, 5]), 0.0, 0).unwrap();
    assert_eq!((parts.train.len(), parts.held_out.len()), (10, 0));
    let error = by_fraction(different(&[4, 4]), 0.1, 0).unwrap_err();
    assert!(matches!(error, ImageError::TooFewImages { images: 8, .. }), "{error}");
    assert!(by_fraction(different(&[1, 1]), 0.9, 0).is_err());
}

/// A picture in two classes cannot be held out of one of them.
#[test]
fn equal_pictures_stay_on_one_side() {
    let mut pictures: Vec<f32> = (0..40).map(|i| (i / 2) as f32).collect();
    let labels: Vec<u32> = (0..40).map(|i| i / 20).collect();
    pictures[0] = pictures[39];
    for seed in 0..50 {
        let parts = by_fraction(set(&pictures, &labels, 2), 0.3, seed).unwrap();
        for value in parts.held_out.values() {
            assert!(!parts.train.values().contains(value), "seed {seed}: {value} is on both sides");
            assert_ne!(*value, pictures[39]);
        }
        // Of class 0 a single one may be among them, and pairs fill up the rest.
        let counts = parts.held_out.class_counts();
        assert!((5..=6).contains(&counts[0]) && counts[1] == 6, "seed {seed}: {counts:?}");
    }
}

proptest! {
    #[test]
    fn the_sides_are_disjoint_and_stratified(
        sizes in prop::collection::vec(0_usize..40, 1..6),
        fraction in 0.01_f64..0.99,
        seed: u64,
    ) {
        let images = different(&sizes);
        let budgets: Vec<u32> = sizes
            .iter()
            .map(|&size| ((size as f64 * fraction).round() as u32).min(size.saturating_sub(1) as u32))
            .collect();
        match by_fraction(images.clone(), fraction, seed) {
            Err(error) => {
                let too_few = matches!(error, ImageError::TooFewImages { .. });
                prop_assert!(too_few);
                prop_assert!(budgets.iter().all(|&budget| budget == 0));
            }
            Ok(parts) => {
                prop_assert_eq!(parts.held_out.class_counts(), budgets);
                // Each image is on exactly one side, with its label.
                let mut all: Vec<(u32, u32)> = [&parts.train, &parts.held_out]
                    .into_iter()
                    .flat_map(|set| set.values().iter().map(|&v| v as u32).zip(set.labels().iter().copied()))
                    .collect();
                all.sort_unstable();
                let expected: Vec<(u32, u32)> = (0..).zip(images.labels().iter().copied()).collect();
                prop_assert_eq!(all, expected);
            }
        }
    }
}
