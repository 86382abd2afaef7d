//! The handwritten digits that the crate `smartcore` embeds.

use image::{ImageBuffer, Luma, imageops::FilterType};

use super::{Loaded, pictures::FILTER};
use crate::images::{ImageError, ImageKind, ImageOptions, ImageSet, set::numbered};

const SIDE: usize = 8;
/// The value of a point that is all ink: the points are counts over 4x4 finer ones.
const FULL: f32 = 16.0;

pub(crate) fn load(options: &ImageOptions) -> Result<Loaded, ImageError> {
    let digits = smartcore::dataset::digits::load_dataset();
    let broken = |reason: &str| ImageError::Embedded { what: "digits", reason: reason.to_owned() };
    if digits.num_features != SIDE * SIDE || digits.data.len() != digits.num_samples * SIDE * SIDE {
        return Err(broken("they are not 8x8 points"));
    }
    let mut labels = Vec::with_capacity(digits.num_samples);
    for label in &digits.target {
        match (0..10).find(|&digit| digit as f32 == *label) {
            Some(digit) => labels.push(digit),
            None => return Err(broken("a label is not a digit")),
        }
    }
    let side = options.size.unwrap_or(SIDE);
    let channels = options.channels.unwrap_or(1);
    let shape = [channels, side, side];
    let mut source = "1,797 handwritten digits of 8x8 points, embedded (crate smartcore; UCI Optical Recognition of \
                      Handwritten Digits)"
        .to_owned();
    let mut values = options.room("the digits", digits.num_samples as u64, shape)?;
    if side == SIDE {
        for digit in digits.data.chunks(SIDE * SIDE) {
            (0..channels).for_each(|_| values.extend(digit.iter().map(|v| v / (FULL / 2.0) - 1.0)));
        }
    } else {
        source += &format!(", resized to {side}x{side} with a {FILTER}");
        for digit in digits.data.chunks(SIDE * SIDE) {
            // The filter keeps floats between 0 and 1.
            let unit = digit.iter().map(|v| v / FULL).collect();
            let picture = ImageBuffer::<Luma<f32>, Vec<f32>>::from_raw(SIDE as u32, SIDE as u32, unit)
                .ok_or_else(|| broken("they are not 8x8 points"))?;
            let resized = image::imageops::resize(&picture, side as u32, side as u32, FilterType::Triangle);
            (0..channels).for_each(|_| values.extend(resized.as_raw().iter().map(|v| 2.0 * v - 1.0)));
        }
    }
    let train = ImageSet::new(ImageKind::Pictures, shape, values, labels, numbered(10), source)?;
    Ok(Loaded { train, test: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(options: &ImageOptions) -> ImageSet {
        load(options).unwrap().train
    }

    #[test]
    fn are_those_of_the_data_set() {
        let digits = digits(&ImageOptions::default());
        assert_eq!((digits.len(), digits.shape(), digits.classes()), (1797, [1, 8, 8], 10));
        assert_eq!(digits.class_counts(), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        assert!(digits.values().iter().all(|v| (v * 8.0).fract() == 0.0 && (-1.0..=1.0).contains(v)));
        assert!(!digits.flips_make_sense());
        // The first one is a zero: ink around an empty middle.
        assert_eq!(digits.labels()[..5], [0, 1, 2, 3, 4]);
        let row: Vec<f32> = digits.image(0)[16..24].iter().map(|v| (v + 1.0) * 8.0).collect();
        assert_eq!(row, [0.0, 3.0, 15.0, 2.0, 0.0, 11.0, 8.0, 0.0]);
    }

    #[test]
    fn can_be_resized_and_coloured() {
        let options = ImageOptions { size: Some(16), channels: Some(3), ..ImageOptions::default() };
        let large = digits(&options);
        assert_eq!(large.shape(), [3, 16, 16]);
        assert!(large.source().contains("resized to 16x16 with a triangle filter"), "{}", large.source());
        assert_eq!(large.image(7)[..256], large.image(7)[512..]);
        let mean = |set: &ImageSet| set.values().iter().map(|&v| f64::from(v)).sum::<f64>() / set.values().len() as f64;
        let small = digits(&ImageOptions::default());
        assert!((mean(&small) - mean(&large)).abs() < 0.01, "{} {}", mean(&small), mean(&large));
    }
}
