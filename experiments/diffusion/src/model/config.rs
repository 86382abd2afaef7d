//! The sizes of a model, and what they cost.

use ancre::{Arm, Branches, ConnectionsConfig, ConnectionsError};
use experiment_kit::checks::{self, CheckError, listed, nearest_divisors};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Sizes and constants of a DiT with connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DitConfig {
    /// Height and width of the images (of latents for latent diffusion); 0 takes the data's.
    pub size: usize,
    /// Channels of the images; 0 takes the data's.
    pub channels: usize,
    /// Classes; 0 takes the data's.
    pub classes: usize,
    /// Height and width of a patch; divides `size`.
    pub patch: usize,
    /// Width of the stream; a multiple of 4.
    pub width: usize,
    /// Blocks, each followed by a connection.
    pub layers: usize,
    /// Attention heads of each block.
    pub heads: usize,
    /// Width inside the feed-forward networks over that of the stream.
    pub mlp_ratio: f64,
    /// Sines and cosines of the timestep.
    pub frequency_features: usize,
    /// Whether the model predicts the variance of its steps, too.
    pub learn_sigma: bool,
    /// Share of the training images whose label is withheld, which is what guidance needs.
    pub label_dropout: f64,
    /// The connections between blocks.
    pub arm: Arm,
    /// Temperature of the connections' softmax.
    pub tau: f64,
}

/// Sizes that no model can have.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// A size is zero or that of no machine, or the heads do not divide the width evenly.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The images cannot be cut into patches.
    #[error(
        "images of {size} x {size} cannot be cut into patches of {patch}: the nearest sizes that can are {}; or take a patch \
         of {}",
        nearest_sizes(*size, *patch),
        patches(*size)
    )]
    Patch {
        /// Height and width of the images.
        size: usize,
        /// Height and width of a patch.
        patch: usize,
    },
    /// The table of positions needs four parts.
    #[error("a width of {width} is no multiple of 4, which the table of positions needs: take {} or {}", width / 4 * 4, width / 4 * 4 + 4)]
    Width {
        /// Width of the stream.
        width: usize,
    },
    /// A constant that makes no sense.
    #[error("the model's {name} is {value}: give a number {range}")]
    Constant {
        /// Which constant.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// The connections cannot be made.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
}

fn nearest_sizes(size: usize, patch: usize) -> String {
    match size / patch.max(1) * patch {
        0 => patch.to_string(),
        below => format!("{below} and {}", below + patch),
    }
}

fn patches(size: usize) -> String {
    let sizes: Vec<usize> = (1..=size.min(16)).filter(|p| size.is_multiple_of(*p)).collect();
    listed(&sizes)
}

impl DitConfig {
    /// Checks that a model of these sizes can be made; all of them are set.
    ///
    /// # Errors
    /// The first [`ModelError`] found.
    pub fn validate(&self) -> Result<(), ModelError> {
        let sizes = [
            ("image size", self.size),
            ("number of channels", self.channels),
            ("number of classes", self.classes),
            ("patch", self.patch),
            ("width", self.width),
            ("number of layers", self.layers),
            ("number of heads", self.heads),
            ("number of frequency features", self.frequency_features),
        ];
        checks::positive("the model's ", &sizes)?;
        checks::at_most("the model's ", &sizes, 1 << 20)?;
        let (size, patch, width, heads) = (self.size, self.patch, self.width, self.heads);
        if !size.is_multiple_of(patch) {
            return Err(ModelError::Patch { size, patch });
        }
        if !width.is_multiple_of(4) {
            return Err(ModelError::Width { width });
        }
        checks::heads(width, heads, || listed(&nearest_divisors(width, heads, 3)))?;
        if !(self.mlp_ratio.is_finite() && self.mlp_ratio * width as f64 >= 1.0 && self.mlp_ratio <= 1024.0) {
            let range = "that gives the feed-forward networks a width of at least 1, and at most 1024";
            return Err(ModelError::Constant { name: "mlp_ratio", value: self.mlp_ratio, range });
        }
        if !(0.0..1.0).contains(&self.label_dropout) {
            let range = "from 0 to below 1";
            return Err(ModelError::Constant { name: "label_dropout", value: self.label_dropout, range });
        }
        Ok(self.connections().validate()?)
    }

    /// The configuration of the connections.
    pub fn connections(&self) -> ConnectionsConfig {
        // The attention and the feed-forward network of each block.
        let branches = Branches { per_block: 2, width: self.width };
        ConnectionsConfig::new(self.layers).with_arm(self.arm.clone()).with_tau(self.tau).with_branches(branches)
    }

    /// Patches of an image.
    pub fn tokens(&self) -> usize {
        let side = self.size / self.patch;
        side * side
    }

    /// Width of one attention head.
    pub fn head_size(&self) -> usize {
        self.width / self.heads
    }

    /// Width inside the feed-forward networks.
    pub fn feed_forward(&self) -> usize {
        (self.width as f64 * self.mlp_ratio) as usize
    }

    /// Channels of the model's output.
    pub fn output_channels(&self) -> usize {
        if self.learn_sigma { 2 * self.channels } else { self.channels }
    }

    /// The label that means "none"; a model that never went without labels has no such row.
    pub fn null_label(&self) -> Option<u32> {
        (self.label_dropout > 0.0).then_some(self.classes as u32)
    }

    /// Rows of the table of labels.
    pub fn label_rows(&self) -> usize {
        self.classes + usize::from(self.label_dropout > 0.0)
    }

    /// Parameters that training changes, without the connections' own scalars.
    pub fn parameters(&self) -> u64 {
        let [width, inner, patch, channels, outputs, features, rows, layers] = [
            self.width,
            self.feed_forward(),
            self.patch,
            self.channels,
            self.output_channels(),
            self.frequency_features,
            self.label_rows(),
            self.layers,
        ]
        .map(|size| size as u128);
        let linear = |inputs: u128, outputs: u128| inputs * outputs + outputs;
        let block = linear(width, 3 * width)
            + linear(width, width)
            + linear(width, inner)
            + linear(inner, width)
            + linear(width, 6 * width);
        let embeddings =
            linear(channels * patch * patch, width) + linear(features, width) + linear(width, width) + rows * width;
        let last = linear(width, 2 * width) + linear(width, patch * patch * outputs);
        saturate(layers * block + embeddings + last)
    }

    /// Bytes of activations that a training step of so many images keeps, in `f32`: what each block saves for its backward
    /// pass and the states, which the connections share with the blocks.
    pub fn activation_bytes(&self, images: usize) -> u64 {
        let [images, tokens, width, inner, layers, heads] =
            [images, self.tokens(), self.width, self.feed_forward(), self.layers, self.heads].map(|n| n as u128);
        // Two normed inputs, q, k, v, what attention gives, two branches, the middle state, the output; both sides of GELU.
        let block = 11 * width + 2 * inner + heads;
        let states = layers * 2 * width;
        let rival = self.connections().rival().ok().flatten().map_or(0, |rival| u128::from(rival.kept_per_token()));
        let gradients = 8 * width + 2 * inner;
        saturate(4 * images * (tokens * (layers * block + states + rival + gradients) + layers * 8 * width))
    }

    /// Bytes that a forward pass without a graph holds at once.
    pub fn inference_bytes(&self, images: usize) -> u64 {
        let [images, tokens, width, inner, layers] =
            [images, self.tokens(), self.width, self.feed_forward(), self.layers].map(|n| n as u128);
        saturate(4 * images * tokens * ((layers + 10) * width + 2 * inner))
    }
}

fn saturate(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small_2() -> DitConfig {
        DitConfig {
            size: 32,
            channels: 4,
            classes: 1000,
            patch: 2,
            width: 384,
            layers: 12,
            heads: 6,
            mlp_ratio: 4.0,
            frequency_features: 256,
            learn_sigma: true,
            label_dropout: 0.1,
            arm: Arm::default(),
            tau: 0.01,
        }
    }

    #[test]
    fn dit_s_2_has_33_million_parameters() {
        // Peebles and Xie 2023, table 1: 33M.
        assert_eq!((small_2().parameters() as f64 / 1e6).round(), 33.0);
        assert_eq!(small_2().validate(), Ok(()));
    }

    #[test]
    fn impossible_sizes_are_answered_with_possible_ones() {
        let message = |config: DitConfig| config.validate().unwrap_err().to_string();
        let patch = message(DitConfig { size: 28, patch: 8, ..small_2() });
        assert!(patch.contains("24 and 32") && patch.contains("1, 2, 4, 7 or 14"), "{patch}");
        assert!(message(DitConfig { size: 3, patch: 8, ..small_2() }).contains("can are 8;"));
        let heads = message(DitConfig { heads: 7, ..small_2() });
        assert_eq!(heads, "7 heads do not divide a width of 384: take 4, 6 or 8");
        assert!(message(DitConfig { width: 390, ..small_2() }).contains("388 or 392"));
        assert!(message(DitConfig { label_dropout: 1.0, ..small_2() }).contains("label_dropout"));
        assert!(message(DitConfig { mlp_ratio: f64::NAN, ..small_2() }).contains("mlp_ratio"));
    }
}
