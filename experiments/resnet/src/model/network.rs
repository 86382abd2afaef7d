//! Classifiers: a residual MLP on the points of an image, or a convolutional ResNet.

use std::fmt;

use ancre::{Arm, Branches, Connections, ConnectionsConfig, ConnectionsError};
use burn::{
    module::Module,
    tensor::{Tensor, backend::Backend},
};
use experiment_kit::Connected;
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};

use super::{
    Activation, Linear, MlpConfig, MlpError, ResidualMlp,
    conv::{ConvNet, STAGES, blocks_a_stage},
    mlp::MOST,
};

/// The kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The residual MLP of the paper's reinforcement learning.
    Mlp,
    /// A convolutional ResNet whose blocks end with their activation (He et al. 2015).
    Conv,
    /// One whose blocks begin with it (He et al. 2016), with a clean path for the stream.
    PreConv,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mlp => "mlp",
            Self::Conv => "conv",
            Self::PreConv => "pre-conv",
        })
    }
}

/// The sizes of a classifier and its connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// The kind.
    pub network: Network,
    /// Layers: a multiple of four for an MLP, `6 n + 2` for a convolutional network (20, 32, 56, 110).
    pub depth: usize,
    /// Width of an MLP, or channels of the first stage.
    pub width: usize,
    /// Height and width of an image; 0 takes the data's.
    pub size: usize,
    /// Channels of an image; 0 takes the data's.
    pub channels: usize,
    /// Classes; 0 takes the data's.
    pub classes: usize,
    /// The connections.
    pub arm: Arm,
    /// Temperature of their softmax.
    pub tau: f64,
}

/// Why a classifier cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// Of the MLP.
    #[error(transparent)]
    Mlp(#[from] MlpError),
    /// The depth is none of a convolutional network.
    #[error("depth = {0} is not 6 n + 2 with n of at least 2: try {below} or {above}",
        below = 6 * (.0.saturating_sub(2) / 6).max(2) + 2, above = 6 * ((.0.saturating_sub(2) / 6).max(2) + 1) + 2)]
    ConvDepth(usize),
    /// No channels, or more than any network has.
    #[error("width = {0} is no number of channels: give 1 to {MOST}")]
    Width(usize),
    /// The depth is beyond all networks.
    #[error("depth = {0} is too large: give at most {MOST}")]
    TooDeep(usize),
    /// A rival around blocks of which no shortcut is clean.
    #[error(
        "the arm `{0}` adds to the stream inside blocks, and the blocks of a `conv` network end with their activation: \
         take the network `pre-conv`"
    )]
    EndsActivated(Arm),
    /// The connections do not fit.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
}

impl NetworkConfig {
    /// The residual MLP of these sizes.
    pub fn mlp(&self) -> MlpConfig {
        MlpConfig {
            depth: self.depth,
            width: self.width,
            activation: Activation::Swish,
            norm_before_heads: false,
            arm: self.arm.clone(),
            tau: self.tau,
        }
    }

    /// Features before the classes.
    fn features(&self) -> usize {
        if self.network == Network::Mlp { self.width } else { self.width << (STAGES - 1) }
    }

    /// The connections of each part of the network in which states have one shape: their numbers of blocks.
    pub(super) fn connected(&self) -> Result<Vec<ConnectionsConfig>, NetworkError> {
        let depths = match self.network {
            Network::Mlp => vec![self.mlp().blocks()],
            Network::Conv | Network::PreConv => {
                let n = blocks_a_stage(self.depth).ok_or(NetworkError::ConvDepth(self.depth))?;
                vec![n, n - 1, n - 1]
            }
        };
        let config = |(stage, depth)| {
            let connections = ConnectionsConfig::new(depth).with_arm(self.arm.clone()).with_tau(self.tau);
            connections.with_branches(Branches { per_block: 1, width: self.width << stage })
        };
        Ok(depths.into_iter().enumerate().map(config).collect())
    }

    /// Checks that a network can be made.
    ///
    /// # Errors
    /// The first fault found.
    pub fn validate(&self) -> Result<(), NetworkError> {
        if self.network == Network::Mlp {
            return Ok(self.mlp().validate()?);
        }
        if self.depth > MOST {
            return Err(NetworkError::TooDeep(self.depth));
        }
        if !(1..=MOST).contains(&self.width) {
            return Err(NetworkError::Width(self.width));
        }
        if self.network == Network::Conv && matches!(self.arm, Arm::Rival(_)) {
            return Err(NetworkError::EndsActivated(self.arm.clone()));
        }
        for connections in self.connected()? {
            connections.validate()?;
        }
        Ok(())
    }

    /// Parameters without connections, for images whose sizes are known.
    pub fn parameters(&self) -> u64 {
        let head = ((self.features() + 1) * self.classes) as u64;
        let body = match self.network {
            Network::Mlp => self.mlp().parameters(self.channels * self.size * self.size),
            Network::Conv | Network::PreConv => {
                let convolution = |inputs: usize, outputs: usize| (9 * inputs * outputs) as u64;
                let norm = |channels: usize| 2 * channels as u64;
                let n = blocks_a_stage(self.depth).unwrap_or(0);
                let mut total = convolution(self.channels, self.width) + norm(self.width) + norm(self.features());
                let mut inputs = self.width;
                for stage in 0..STAGES {
                    for _ in 0..n {
                        let outputs = self.width << stage;
                        let first_norm = if self.network == Network::PreConv { inputs } else { outputs };
                        total += convolution(inputs, outputs) + convolution(outputs, outputs);
                        total += norm(first_norm) + norm(outputs);
                        inputs = outputs;
                    }
                }
                total
            }
        };
        body + head
    }

    /// Bytes that the forward pass of `rows` images keeps for the backward pass.
    pub fn activation_bytes(&self, rows: usize) -> u64 {
        match self.network {
            Network::Mlp => self.mlp().activation_bytes(rows),
            // Each stage has a quarter of the points of the one before and twice the channels, so all take less than two of
            // the first; a block keeps about ten maps.
            Network::Conv | Network::PreConv => {
                let sizes = [rows, self.width, self.size, self.size].map(|size| size as u64);
                let map = sizes.into_iter().fold(1, u64::saturating_mul);
                let n = blocks_a_stage(self.depth).unwrap_or(0) as u64;
                let points =
                    [rows, self.size, self.size].map(|size| size as u64).into_iter().fold(4, u64::saturating_mul);
                let rival =
                    |connections: ConnectionsConfig| connections.rival().ok().flatten().map(|r| r.kept_per_token());
                let of_stage = |(stage, kept): (u32, u64)| (points >> (2 * stage)).saturating_mul(kept);
                let kept = self.connected().into_iter().flatten().map(|stage| rival(stage).unwrap_or(0));
                let rivals = (0..).zip(kept).map(of_stage).fold(0, u64::saturating_add);
                map.saturating_mul(2).saturating_mul(40 * n).saturating_add(rivals)
            }
        }
    }
}

/// What comes before the classes.
#[derive(Module, Debug)]
enum Body<B: Backend> {
    Mlp(ResidualMlp<B>),
    Conv(ConvNet<B>),
}

/// A classifier.
#[derive(Module, Debug)]
pub struct Classifier<B: Backend> {
    body: Body<B>,
    head: Linear<B>,
}

impl<B: FusedOps> Classifier<B> {
    /// A classifier with the weights of a seed, which do not depend on the connections.
    ///
    /// # Errors
    /// As [`NetworkConfig::validate`].
    pub fn new(config: &NetworkConfig, seed: u64, device: &B::Device) -> Result<Self, NetworkError> {
        config.validate()?;
        let body = match config.network {
            Network::Mlp => {
                let inputs = config.channels * config.size * config.size;
                Body::Mlp(ResidualMlp::new(&config.mlp(), inputs, seed, "classifier", device)?)
            }
            Network::Conv => Body::Conv(ConvNet::new(config, false, seed, device)?),
            Network::PreConv => Body::Conv(ConvNet::new(config, true, seed, device)?),
        };
        let head = Linear::new(seed, "classifier.head", [config.features(), config.classes], device);
        Ok(Self { body, head })
    }

    /// Scores of the classes before their softmax, `[batch, classes]`, for images `[batch, channels, size, size]`.
    pub fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let [batch, channels, height, width] = images.dims();
        let features = match &self.body {
            Body::Mlp(mlp) => mlp.forward(images.reshape([batch, channels * height * width])),
            Body::Conv(network) => network.forward(images),
        };
        self.head.forward(features)
    }
}

/// Reports show the connections of an MLP, or of a convolutional network's first stage.
impl<B: Backend> Connected<B> for Classifier<B> {
    fn connections(&self) -> &Connections<B> {
        match &self.body {
            Body::Mlp(mlp) => &mlp.connections,
            Body::Conv(network) => &network.connections,
        }
    }

    fn all_connections(&self) -> Vec<&Connections<B>> {
        match &self.body {
            Body::Mlp(mlp) => vec![&mlp.connections],
            Body::Conv(network) => std::iter::once(&network.connections).chain(&network.later).collect(),
        }
    }

    fn with_connections(mut self, connections: Connections<B>) -> Self {
        match &mut self.body {
            Body::Mlp(mlp) => mlp.connections = connections,
            Body::Conv(network) => network.connections = connections,
        }
        self
    }
}
