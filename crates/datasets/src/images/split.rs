//! Holding out a share of each class.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hasher},
};

use super::{ImageError, ImageSet};
use crate::EpochOrder;

/// Separates the choice of held-out images from the order of batches with the same seed.
const DOMAIN: u64 = u64::from_le_bytes(*b"held out");

/// Images to train on, images held out, and the rule in words.
#[derive(Debug)]
pub(super) struct Parts {
    pub train: ImageSet,
    pub held_out: ImageSet,
    pub rule: String,
}

/// Holds out `fraction` of each class, rounded to whole images: a class's images in an order that depends on the seed,
/// as long as they stay within that number. Equal images go together, so that no held-out one is also trained on; those
/// that stand in two classes are trained on. No class loses all of its images.
pub(super) fn by_fraction(images: ImageSet, fraction: f64, seed: u64) -> Result<Parts, ImageError> {
    if fraction == 0.0 {
        let held_out = images.subset(&[]);
        return Ok(Parts { train: images, held_out, rule: "nothing is held out".to_owned() });
    }
    let mut leaves = vec![false; images.len() as usize];
    for (class, groups) in groups(&images).into_iter().enumerate() {
        let size: usize = groups.iter().map(|group| group.numbers.len()).sum();
        let budget = ((size as f64 * fraction).round() as usize).min(size.saturating_sub(1));
        let mut held = 0;
        // At most as many groups as images, whose number is a u32.
        for place in EpochOrder::new(groups.len() as u32, seed ^ DOMAIN).permutation(class as u64) {
            let group = &groups[place as usize];
            if !group.in_two_classes && held + group.numbers.len() <= budget {
                held += group.numbers.len();
                group.numbers.iter().for_each(|&number| leaves[number as usize] = true);
            }
        }
    }
    let numbers: Vec<u32> = (0..images.len()).filter(|&number| leaves[number as usize]).collect();
    if numbers.is_empty() {
        return Err(ImageError::TooFewImages { images: leaves.len(), fraction });
    }
    let held_out = images.subset(&numbers);
    let rule = format!("{:.1}% of each class, chosen by seed {seed}", 100.0 * fraction);
    Ok(Parts { train: images.without(&leaves), held_out, rule })
}

/// Images of a class that are equal.
struct Group {
    numbers: Vec<u32>,
    in_two_classes: bool,
}

/// For each class its groups, in the order of their first images.
fn groups(images: &ImageSet) -> Vec<Vec<Group>> {
    /// Where a picture was met first.
    struct Met {
        class: usize,
        group: usize,
    }
    let mut of_class: Vec<Vec<Group>> = (0..images.classes()).map(|_| Vec::new()).collect();
    // Two different images with the same hash would merely stay on one side.
    let mut met: HashMap<u64, Vec<Met>> = HashMap::new();
    for (number, &label) in (0..).zip(images.labels()) {
        let class = label as usize;
        let places = met.entry(hash(images.image(number))).or_default();
        if let Some(place) = places.iter().find(|place| place.class == class) {
            of_class[class][place.group].numbers.push(number);
            continue;
        }
        for place in places.iter() {
            of_class[place.class][place.group].in_two_classes = true;
        }
        of_class[class].push(Group { numbers: vec![number], in_two_classes: !places.is_empty() });
        places.push(Met { class, group: of_class[class].len() - 1 });
    }
    of_class
}

fn hash(image: &[f32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in image {
        hasher.write_u32(value.to_bits());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
