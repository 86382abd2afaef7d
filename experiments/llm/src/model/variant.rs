//! What LLaMA models that came after the first do otherwise.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What later LLaMA models have and the paper's do not; the default is the paper's model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlamaVariant {
    /// Heads of keys and values, each of which serves as many query heads in a row (grouped-query attention); as many as
    /// there are query heads where not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_value_heads: Option<usize>,
    /// Width of a head; the width of the stream over the heads where not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_size: Option<usize>,
    /// Whether the matrix of the embeddings is that of the head, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tied_head: bool,
    /// How the frequencies of the rotary embedding are changed for longer sequences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotary_scaling: Option<RotaryScaling>,
    /// Standard deviation of the initial embeddings; that of the matrices where not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_std: Option<f64>,
}

impl LlamaVariant {
    /// Whether this is the paper's model.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// How the frequencies of the rotary embedding are changed, so that a model takes longer sequences than it was trained on
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum RotaryScaling {
    /// Every frequency over `factor`: positions are interpolated (Chen et al. 2023).
    Linear {
        /// How much longer sequences become.
        factor: f64,
    },
    /// The rule of Llama 3.1: long wavelengths are interpolated, short ones stay, and between them the share changes
    /// linearly with `original_positions / wavelength`.
    Llama3 {
        /// How much longer sequences become.
        factor: f64,
        /// Wavelengths above `original_positions` over this are interpolated.
        low_frequency_factor: f64,
        /// Wavelengths below `original_positions` over this stay.
        high_frequency_factor: f64,
        /// Longest sequence before.
        original_positions: f64,
    },
}

/// A scaling that makes no sense.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RotaryScalingError {
    /// A number is not positive and finite.
    #[error("the {name} of the rotary scaling is {value}: give a positive, finite number")]
    Number {
        /// Which one.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// No wavelength is between the two factors.
    #[error("the low frequency factor {low} of the rotary scaling is not below the high one, {high}")]
    Order {
        /// Low frequency factor.
        low: f64,
        /// High frequency factor.
        high: f64,
    },
}

impl RotaryScaling {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn validate(&self) -> Result<(), RotaryScalingError> {
        let positive = |name, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(RotaryScalingError::Number { name, value }),
        };
        match *self {
            Self::Linear { factor } => positive("factor", factor),
            Self::Llama3 { factor, low_frequency_factor: low, high_frequency_factor: high, original_positions } => {
                positive("factor", factor)?;
                positive("low frequency factor", low)?;
                positive("high frequency factor", high)?;
                positive("number of original positions", original_positions)?;
                if low < high { Ok(()) } else { Err(RotaryScalingError::Order { low, high }) }
            }
        }
    }

    /// A frequency, in radians a position, as it is used.
    fn scaled(&self, frequency: f64) -> f64 {
        match *self {
            Self::Linear { factor } => frequency / factor,
            Self::Llama3 { factor, low_frequency_factor: low, high_frequency_factor: high, original_positions } => {
                let wavelength = std::f64::consts::TAU / frequency;
                let kept = ((original_positions / wavelength - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 - kept) * frequency / factor + kept * frequency
            }
        }
    }
}

/// The frequencies of the pairs of features of a head, in radians a position: `base^(-2j / head_size)`, scaled.
pub fn rotary_frequencies(head_size: usize, base: f64, scaling: Option<RotaryScaling>) -> Vec<f32> {
    let frequency = |j: usize| 1.0 / base.powf(2.0 * j as f64 / head_size as f64);
    (0..head_size / 2)
        .map(|j| scaling.map_or_else(|| frequency(j), |scaling| scaling.scaled(frequency(j))) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LLAMA3: RotaryScaling = RotaryScaling::Llama3 {
        factor: 8.0,
        low_frequency_factor: 1.0,
        high_frequency_factor: 4.0,
        original_positions: 8192.0,
    };

    #[test]
    fn short_wavelengths_stay_and_long_ones_are_interpolated() {
        let (plain, scaled) = (rotary_frequencies(128, 5e5, None), rotary_frequencies(128, 5e5, Some(LLAMA3)));
        assert_eq!(scaled[0], plain[0]);
        assert_eq!(scaled[63], plain[63] / 8.0);
        for (p, s) in plain.iter().zip(&scaled) {
            assert!((p / 8.0..=*p).contains(s), "{s} for {p}");
        }
        assert!(scaled.windows(2).all(|pair| pair[0] > pair[1]), "no two pairs change places");
        let linear = rotary_frequencies(8, 1e4, Some(RotaryScaling::Linear { factor: 4.0 }));
        assert_eq!(linear, rotary_frequencies(8, 1e4, None).iter().map(|f| f / 4.0).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_that_make_no_sense_are_named() {
        assert_eq!(LLAMA3.validate(), Ok(()));
        let message = RotaryScaling::Linear { factor: 0.0 }.validate().unwrap_err().to_string();
        assert!(message.contains("factor") && message.contains('0'), "{message}");
        let RotaryScaling::Llama3 { factor, original_positions, .. } = LLAMA3 else { unreachable!() };
        let crossed =
            RotaryScaling::Llama3 { factor, low_frequency_factor: 4.0, high_frequency_factor: 4.0, original_positions };
        assert_eq!(crossed.validate(), Err(RotaryScalingError::Order { low: 4.0, high: 4.0 }));
    }
}
