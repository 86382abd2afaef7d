//! From a decoded picture to values.

use image::{DynamicImage, GrayImage, RgbImage, imageops::FilterType};

/// The filter that pictures are resized with, as it is named in a set's source.
pub(super) const FILTER: &str = "triangle filter";

/// Brings pictures to one size and number of channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    pub size: Option<u32>,
    pub channels: usize,
}

impl Shaper {
    /// The side that a square picture of this side gets.
    pub fn side(&self, side: u32) -> usize {
        self.size.unwrap_or(side) as usize
    }

    /// Appends the values of an opaque picture, channel by channel and row by row; a byte b gives b / 127.5 - 1. With a
    /// size, the square in the middle is cut out first: a very long picture must not grow before it is cut.
    pub fn append(&self, mut picture: DynamicImage, values: &mut Vec<f32>) {
        if let Some(size) = self.size {
            let (width, height) = (picture.width(), picture.height());
            let side = width.min(height);
            if width != height {
                picture = picture.crop_imm((width - side) / 2, (height - side) / 2, side, side);
            }
            if side != size {
                picture = picture.resize_exact(size, size, FilterType::Triangle);
            }
        }
        let bytes = match self.channels {
            1 => picture.into_luma8().into_raw(),
            _ => picture.into_rgb8().into_raw(),
        };
        for channel in 0..self.channels {
            values.extend(bytes.iter().skip(channel).step_by(self.channels).map(|&byte| value(byte)));
        }
    }
}

/// A byte on the scale from -1 to 1.
pub(super) fn value(byte: u8) -> f32 {
    f32::from(byte) / 127.5 - 1.0
}

/// The picture in 8 bits a channel, grey or colour, laid over white where it is transparent.
pub(super) fn opaque(picture: DynamicImage) -> DynamicImage {
    if picture.color().has_alpha() {
        let picture = picture.into_rgba8();
        let mut opaque = RgbImage::new(picture.width(), picture.height());
        for (to, from) in opaque.pixels_mut().zip(picture.pixels()) {
            let [.., alpha] = from.0.map(u32::from);
            for (to, from) in to.0.iter_mut().zip(from.0) {
                // Rounded to the nearest; a mean of two bytes is a byte.
                *to = ((u32::from(from) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
            }
        }
        return opaque.into();
    }
    if picture.color().has_color() { picture.into_rgb8().into() } else { picture.into_luma8().into() }
}

/// A grey picture of its bytes, or `None` if their number does not fit.
pub(super) fn grey(width: u32, height: u32, bytes: Vec<u8>) -> Option<DynamicImage> {
    GrayImage::from_raw(width, height, bytes).map(Into::into)
}

/// A colour picture of three planes of bytes, or `None` if their number does not fit.
pub(super) fn planes(width: u32, height: u32, planes: &[u8]) -> Option<DynamicImage> {
    let plane = planes.len() / 3;
    let bytes =
        (0..plane).flat_map(|point| [planes[point], planes[plane + point], planes[2 * plane + point]]).collect();
    RgbImage::from_raw(width, height, bytes).map(Into::into)
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbaImage};

    use super::*;

    #[test]
    fn bytes_become_values_from_minus_one_to_one() {
        assert_eq!((value(0), value(255)), (-1.0, 1.0));
        assert!((value(127) + 1.0 / 255.0).abs() < 1e-6 && (value(128) - 1.0 / 255.0).abs() < 1e-6);
    }

    #[test]
    fn transparent_points_are_laid_over_white() {
        let pixels = vec![10, 20, 30, 255, 10, 20, 30, 0, 0, 100, 200, 51];
        let picture = opaque(RgbaImage::from_raw(3, 1, pixels).unwrap().into()).into_rgb8();
        // 51 / 255 is a fifth: 0.2 * (0, 100, 200) + 0.8 * 255.
        assert_eq!(picture.into_raw(), [10, 20, 30, 255, 255, 255, 204, 224, 244]);
    }

    #[test]
    fn planes_come_one_after_the_other() {
        let picture = RgbImage::from_fn(2, 2, |x, y| Rgb([(10 * (2 * y + x)) as u8, 100, 200]));
        let mut values = Vec::new();
        Shaper { size: None, channels: 3 }.append(picture.into(), &mut values);
        let expected = [0, 10, 20, 30, 100, 100, 100, 100, 200, 200, 200, 200].map(value);
        assert_eq!(values, expected);
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let mut values = Vec::new();
        Shaper { size: None, channels: 3 }.append(planes(2, 2, &bytes).unwrap(), &mut values);
        assert_eq!(values, bytes.map(value));
    }

    #[test]
    fn the_middle_is_cut_out_and_resized() {
        // Columns 0 1 | 2 3 4 5 | 6 7 of a picture of 8x4: the middle 4x4, then halved.
        let picture = GrayImage::from_fn(8, 4, |x, _| image::Luma([20 * x as u8]));
        let mut values = Vec::new();
        Shaper { size: Some(4), channels: 1 }.append(picture.clone().into(), &mut values);
        assert_eq!(values[..4], [40, 60, 80, 100].map(value));
        let tall = image::imageops::rotate90(&picture);
        values.clear();
        Shaper { size: Some(4), channels: 1 }.append(tall.into(), &mut values);
        assert_eq!([values[0], values[4], values[8], values[12]], [40, 60, 80, 100].map(value));
        // A constant picture stays constant at any size.
        for size in [1, 3, 9] {
            values.clear();
            let constant = GrayImage::from_pixel(8, 4, image::Luma([77]));
            Shaper { size: Some(size), channels: 1 }.append(constant.into(), &mut values);
            assert_eq!(values, vec![value(77); (size * size) as usize]);
        }
    }

    #[test]
    fn grey_and_colour_turn_into_each_other() {
        let mut values = Vec::new();
        Shaper { size: None, channels: 3 }.append(grey(1, 1, vec![9]).unwrap(), &mut values);
        assert_eq!(values, [value(9); 3]);
        values.clear();
        let white = RgbImage::from_pixel(1, 1, Rgb([255, 255, 255]));
        Shaper { size: None, channels: 1 }.append(white.into(), &mut values);
        assert_eq!(values, [1.0]);
    }
}
