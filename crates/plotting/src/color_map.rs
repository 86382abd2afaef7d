//! Colour scales: numbers from 0 to 1 as colours.

use crate::Color;

/// A colour scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorMap {
    /// Viridis, from dark violet to yellow: evenly growing lightness, readable with every common colour deficiency and
    /// in grey. For quantities that start somewhere.
    #[default]
    Viridis,
    /// Blue over near-white to red (ColorBrewer's RdBu, reversed), for quantities with a sign; keep the range symmetric.
    BlueRed,
}

/// Viridis at eighths.
const VIRIDIS: [u32; 9] = [0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21908c, 0x27ad81, 0x5dc863, 0xaadc32, 0xfde725];
/// RdBu with eleven classes, reversed.
const BLUE_RED: [u32; 11] =
    [0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7, 0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b, 0x67001f];

impl ColorMap {
    /// The colour at `share`, which is cut to 0..=1; `NaN` counts as 0.
    #[must_use]
    pub fn color(self, share: f64) -> Color {
        let points: &[u32] = match self {
            ColorMap::Viridis => &VIRIDIS,
            ColorMap::BlueRed => &BLUE_RED,
        };
        let last = points.len() - 1;
        let place = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) * last as f64 };
        let index = (place as usize).min(last - 1);
        let t = place - index as f64;
        let channel = |shift: u32| {
            let of = |i: usize| f64::from(points[i] >> shift & 0xff);
            (of(index) + (of(index + 1) - of(index)) * t).round() as u8
        };
        Color(channel(16), channel(8), channel(0))
    }
}

/// Perceived lightness of a colour, CIE L* from 0 (black) to 100 (white).
pub(crate) fn lightness(color: Color) -> f64 {
    let linear = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2);
    if luminance <= 216.0 / 24389.0 { luminance * 24389.0 / 27.0 } else { 116.0 * luminance.cbrt() - 16.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viridis_grows_lighter_evenly() {
        let lightnesses: Vec<f64> = (0..=32).map(|i| lightness(ColorMap::Viridis.color(f64::from(i) / 32.0))).collect();
        let steps: Vec<f64> = lightnesses.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| (1.0..4.0).contains(step)), "{steps:?}");
        assert_eq!(ColorMap::Viridis.color(0.0), Color(0x44, 0x01, 0x54));
        assert_eq!(ColorMap::Viridis.color(1.0), Color(0xfd, 0xe7, 0x25));
    }

    #[test]
    fn the_signed_scale_is_lightest_at_its_middle_and_bad_shares_are_cut() {
        assert_eq!(ColorMap::BlueRed.color(0.5), Color(0xf7, 0xf7, 0xf7));
        assert_eq!(ColorMap::BlueRed.color(f64::NAN), ColorMap::BlueRed.color(0.0));
        assert_eq!(ColorMap::BlueRed.color(f64::INFINITY), ColorMap::BlueRed.color(1.0));
    }
}
