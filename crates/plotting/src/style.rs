//! The house style: colours, dashes, markers and text sizes. Sizes are logical pixels; the PNG has two of its own for each.

/// An opaque sRGB colour, `Color(red, green, blue)`.
pub use plotters::style::RGBColor as Color;

/// Colours of the arms of a comparison: the Okabe-Ito set, which stays distinct under the common colour
/// deficiencies, with black for arm 0 (the baseline) and its yellow darkened to be visible on white.
pub const ARM_COLORS: [Color; 8] = [
    Color(0x22, 0x22, 0x22),
    Color(0xd5, 0x5e, 0x00),
    Color(0x00, 0x72, 0xb2),
    Color(0x00, 0x9e, 0x73),
    Color(0xcc, 0x79, 0xa7),
    Color(0xe6, 0x9f, 0x00),
    Color(0x56, 0xb4, 0xe9),
    Color(0xa0, 0x8a, 0x00),
];

/// Colour of arm `index`; the same index has the same colour in every figure.
#[must_use]
pub fn arm_color(index: usize) -> Color {
    ARM_COLORS[index % ARM_COLORS.len()]
}

/// Dash of arm `index`: the first 64 arms differ in the pair of colour and dash, the first 8 in either alone.
#[must_use]
pub fn arm_dash(index: usize) -> Dash {
    let cycle = index / ARM_COLORS.len();
    Dash::ALL[(index + cycle) % Dash::ALL.len()]
}

/// Marker of arm `index`.
#[must_use]
pub fn arm_marker(index: usize) -> Marker {
    Marker::ALL[index % Marker::ALL.len()]
}

/// How a line is broken up, so that lines differ without colour too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// An unbroken line.
    Solid,
    /// Long dashes with short gaps.
    Long,
    /// Short dashes.
    Short,
    /// Round dots.
    Dots,
    /// A dash and a dot.
    DashDot,
    /// A long dash and a short one.
    LongShort,
    /// A dash and two dots.
    DashDotDot,
    /// Short dashes far apart.
    Sparse,
}

impl Dash {
    /// Every dash, in the order in which arms take them.
    pub const ALL: [Dash; 8] = [
        Dash::Solid,
        Dash::Long,
        Dash::Short,
        Dash::DashDot,
        Dash::Dots,
        Dash::LongShort,
        Dash::DashDotDot,
        Dash::Sparse,
    ];

    /// Lengths of strokes and gaps in turn, in logical pixels; empty for an unbroken line.
    pub(crate) fn pattern(self) -> &'static [f64] {
        match self {
            Dash::Solid => &[],
            Dash::Long => &[13.0, 3.5],
            Dash::Short => &[6.0, 3.0],
            Dash::Dots => &[1.8, 2.4],
            Dash::DashDot => &[9.0, 3.0, 1.8, 3.0],
            Dash::LongShort => &[14.0, 3.0, 5.0, 3.0],
            Dash::DashDotDot => &[9.0, 3.0, 1.8, 2.6, 1.8, 3.0],
            Dash::Sparse => &[5.0, 6.0],
        }
    }
}

/// The shape drawn at a data point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// An x.
    Cross,
}

impl Marker {
    /// Every marker, in the order in which arms take them.
    pub const ALL: [Marker; 5] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
}

/// How an axis maps numbers to lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    #[default]
    Linear,
    /// Equal ratios have equal lengths (base 10); points that are not positive are left out with a warning.
    Log,
}

/// Where the series of a line chart are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// At the ends of the lines when there are few and they end apart at the right, else to the right of the plot.
    #[default]
    Auto,
    /// In columns to the right of the plot.
    Right,
    /// At the right end of each line.
    LineEnds,
    /// Nowhere.
    Hidden,
}

pub(crate) const INK: Color = Color(0x22, 0x22, 0x22);
pub(crate) const GREY: Color = Color(0x66, 0x66, 0x66);
pub(crate) const REFERENCE: Color = Color(0x88, 0x88, 0x88);
pub(crate) const AXIS: Color = Color(0xb4, 0xb4, 0xb4);
pub(crate) const GRID: Color = Color(0xe4, 0xe4, 0xe4);
pub(crate) const GRID_MINOR: Color = Color(0xf2, 0xf2, 0xf2);

pub(crate) const TITLE_SIZE: f64 = 17.0;
pub(crate) const SUBTITLE_SIZE: f64 = 11.5;
pub(crate) const LABEL_SIZE: f64 = 12.5;
pub(crate) const TICK_SIZE: f64 = 12.0;
pub(crate) const SMALL_SIZE: f64 = 10.0;
/// Distance between the content and the edge of the picture.
pub(crate) const PAD: f64 = 18.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_64_arms_look_different_and_the_first_8_without_colour_too() {
        let looks: Vec<_> = (0..64).map(|i| (arm_color(i), arm_dash(i))).collect();
        for i in 0..64 {
            for j in 0..i {
                assert_ne!(looks[i], looks[j], "arms {i} and {j}");
                if i < 8 {
                    assert_ne!(looks[i].1, looks[j].1, "dashes of arms {i} and {j}");
                }
            }
        }
    }
}
