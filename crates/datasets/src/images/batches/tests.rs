use proptest::prelude::*;

use super::*;
use crate::images::{ImageKind, set::numbered};

/// `images` images of 1 x 2 x 2 points: image i is 4i, 4i + 1 above 4i + 2, 4i + 3; its class is i mod 3.
fn set(images: u32) -> ImageSet {
    let values = (0..4 * images).map(|v| v as f32).collect();
    let labels = (0..images).map(|i| i % 3).collect();
    ImageSet::new(ImageKind::Pictures, [1, 2, 2], values, labels, numbered(3), "test").unwrap()
}

#[test]
fn a_batch_holds_its_images_and_labels() {
    let plan = ImagePlan::new(set(10), 4, 1, false).unwrap();
    let batch = plan.batch(2);
    assert_eq!((batch.rows, batch.shape, batch.images.len()), (4, [1, 2, 2], 16));
    for (place, &number) in batch.numbers.iter().enumerate() {
        assert_eq!(batch.labels[place], number % 3);
        assert_eq!(batch.images[4 * place..][..4], *plan.set().image(number));
    }
    assert_eq!(plan.epochs(5), 2.0);
}

#[test]
fn a_mirrored_image_has_its_rows_reversed() {
    let plan = ImagePlan::new(set(10), 5, 1, true).unwrap();
    let (mut plain, mut mirrored) = (0, 0);
    for index in 0..40 {
        let batch = plan.batch(index);
        for (place, &number) in batch.numbers.iter().enumerate() {
            let first = 4.0 * number as f32;
            let image = &batch.images[4 * place..][..4];
            if image == [first, first + 1.0, first + 2.0, first + 3.0] {
                plain += 1;
            } else {
                assert_eq!(image, [first + 1.0, first, first + 3.0, first + 2.0]);
                mirrored += 1;
            }
        }
    }
    // 200 draws of probability 1/2: expectation 100, standard deviation 7.
    assert_eq!(plain + mirrored, 200);
    assert!((65..=135).contains(&mirrored), "{mirrored}");
}

/// A run that is resumed with a later build must meet the same batches.
#[test]
fn the_flips_of_a_seed_never_change() {
    assert_eq!([flip_bits(7, 0), flip_bits(7, 1)], [10_824_774_025_032_749_549, 5_385_844_941_073_748_214]);
}

/// The draws of a run do not depend on how it is cut into batches.
#[test]
fn flips_belong_to_positions() {
    let flips = |batch_size, batches: u64| -> Vec<bool> {
        let plan = ImagePlan::new(set(10), batch_size, 5, true).unwrap();
        (0..batches).flat_map(|index| plan.flips(index)).collect()
    };
    assert_eq!(flips(7, 30), flips(70, 3));
    assert_eq!(flips(7, 30), flips(1, 210));
    assert_ne!(flips(70, 3)[..64], flips(70, 3)[64..128]);
}

#[test]
fn impossible_batches_are_refused() {
    assert!(matches!(ImagePlan::new(set(3), 0, 0, false), Err(ImageError::EmptyBatch)));
    assert!(matches!(ImagePlan::new(set(3), 1 << 27, 0, false), Err(ImageError::BatchTooLarge { .. })));
    assert!(matches!(ImagePlan::new(set(3), usize::MAX, 0, false), Err(ImageError::BatchTooLarge { .. })));
    assert!(matches!(ImagePlan::new(set(0), 1, 0, false), Err(ImageError::Empty { .. })));
    assert!(set(3).in_order(0).is_err());
    assert!(set(0).in_order(4).is_err());
}

#[test]
fn an_evaluation_takes_all_images_in_their_order() {
    let images = set(10);
    let batches: Vec<ImageBatch> = images.in_order(4).unwrap().collect();
    assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(batches.iter().flat_map(|batch| batch.numbers.clone()).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(batches.concat_images(), images.values());
    assert_eq!(images.in_order(1 << 40).unwrap().len(), 1);
}

trait ConcatImages {
    fn concat_images(&self) -> Vec<f32>;
}

impl ConcatImages for Vec<ImageBatch> {
    fn concat_images(&self) -> Vec<f32> {
        self.iter().flat_map(|batch| batch.images.clone()).collect()
    }
}

proptest! {
    #[test]
    fn every_epoch_uses_each_image_once(images in 1_u32..60, batch_size in 1_usize..80, seed: u64, start in 0_u64..5) {
        let plan = ImagePlan::new(set(images), batch_size, seed, false).unwrap();
        let epochs = 3 + start as usize;
        let batches = (epochs * images as usize).div_ceil(batch_size) as u64;
        let drawn: Vec<u32> = (0..batches).flat_map(|index| plan.batch(index).numbers).collect();
        for epoch in drawn.chunks_exact(images as usize) {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..images).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_batches_in_any_order(images in 1_u32..60, batch_size in 1_usize..80, seed: u64) {
        let one = ImagePlan::new(set(images), batch_size, seed, true).unwrap();
        let other = ImagePlan::new(set(images), batch_size, seed, true).unwrap();
        let mut backwards: Vec<ImageBatch> = (0..6).rev().map(|index| one.batch(index)).collect();
        backwards.reverse();
        for (index, batch) in (0..).zip(&backwards) {
            prop_assert_eq!(batch, &other.batch(index));
            prop_assert_eq!(batch.rows, batch_size);
        }
        prop_assert_eq!(one.batch(u64::MAX).rows, batch_size);
    }
}
