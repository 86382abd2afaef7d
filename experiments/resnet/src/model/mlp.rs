//! The residual MLP: a first layer, then blocks of four layers with a shortcut around each, each followed by its
//! connection.

use ancre::{Arm, Blocks, Branches, Connections, ConnectionsConfig, ConnectionsError, DEFAULT_TAU};
use burn::{
    module::Module,
    tensor::{Tensor, backend::Backend},
};
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};

use super::{Activation, Block, Layer};

/// The largest width of a network.
pub(super) const MOST: usize = 1 << 16;

/// The largest depth: connections are between at most 256 blocks.
const MOST_LAYERS: usize = 256 * LAYERS_A_BLOCK;

/// Layers of a block.
pub const LAYERS_A_BLOCK: usize = 4;

/// The sizes of a residual MLP and its connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// Layers in blocks, a multiple of four: 16 are 4 blocks. The first layer and the heads are not counted.
    pub depth: usize,
    /// Width of every layer.
    pub width: usize,
    /// What follows the layer normalisations.
    #[serde(default)]
    pub activation: Activation,
    /// Whether the last state is normalised (to zero mean and unit variance, without gain) before the heads. The paper's
    /// networks are not.
    #[serde(default)]
    pub norm_before_heads: bool,
    /// The connections.
    pub arm: Arm,
    /// Temperature of their softmax.
    pub tau: f64,
}

/// Why a residual MLP cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MlpError {
    /// The depth is no number of blocks.
    #[error("depth = {0} is not a number of blocks of {LAYERS_A_BLOCK} layers: try {below} or {above}",
        below = (.0 / LAYERS_A_BLOCK).max(1) * LAYERS_A_BLOCK, above = (.0 / LAYERS_A_BLOCK).max(1) * LAYERS_A_BLOCK + LAYERS_A_BLOCK)]
    Depth(usize),
    /// The width is too small to normalise over, or beyond all networks.
    #[error("width = {0} is no width of a network: give 2 to {MOST}")]
    Width(usize),
    /// The depth is beyond all networks.
    #[error("depth = {0} is too large: give at most {MOST_LAYERS}")]
    TooDeep(usize),
    /// The connections do not fit.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
}

impl MlpConfig {
    /// The paper's form with ANCRe.
    pub fn new(depth: usize, width: usize) -> Self {
        Self {
            depth,
            width,
            activation: Activation::Swish,
            norm_before_heads: false,
            arm: Arm::default(),
            tau: DEFAULT_TAU,
        }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.depth / LAYERS_A_BLOCK
    }

    /// The connections between the blocks.
    pub fn connections(&self) -> ConnectionsConfig {
        let branches = Branches { per_block: 1, width: self.width };
        ConnectionsConfig::new(self.blocks()).with_arm(self.arm.clone()).with_tau(self.tau).with_branches(branches)
    }

    /// Checks that a network can be made.
    ///
    /// # Errors
    /// The first fault found.
    pub fn validate(&self) -> Result<(), MlpError> {
        if self.depth == 0 || !self.depth.is_multiple_of(LAYERS_A_BLOCK) {
            return Err(MlpError::Depth(self.depth));
        }
        if self.depth > MOST_LAYERS {
            return Err(MlpError::TooDeep(self.depth));
        }
        if !(2..=MOST).contains(&self.width) {
            return Err(MlpError::Width(self.width));
        }
        Ok(self.connections().validate()?)
    }

    /// Parameters of a network with so many inputs, without connections and heads.
    pub fn parameters(&self, inputs: usize) -> u64 {
        let width = self.width as u64;
        let layer = |inputs: u64| inputs.saturating_add(3).saturating_mul(width);
        layer(inputs as u64).saturating_add(layer(width).saturating_mul(self.depth as u64))
    }

    /// Bytes that the forward pass of `rows` rows keeps for the backward pass: of each layer its normalised rows and what leaves
    /// it, of each block a state.
    pub fn activation_bytes(&self, rows: usize) -> u64 {
        let kept = 2 * (self.depth as u64).saturating_add(1).min(1 << 60) + self.blocks() as u64;
        let rival = self.connections().rival().ok().flatten().map_or(0, |rival| rival.kept_per_token());
        let row = kept.saturating_mul(self.width as u64).saturating_add(rival);
        row.saturating_mul(rows as u64).saturating_mul(4)
    }
}

/// A residual MLP without its heads.
#[derive(Module, Debug)]
pub struct ResidualMlp<B: Backend> {
    first: Layer<B>,
    blocks: Vec<Block<B>>,
    pub(crate) connections: Connections<B>,
    #[module(skip)]
    activation: Activation,
    norm_before_heads: bool,
}

impl<B: FusedOps> ResidualMlp<B> {
    /// A network of so many inputs with the weights of a seed; `name` tells it from others of the same seed.
    ///
    /// # Errors
    /// As [`MlpConfig::validate`].
    pub fn new(config: &MlpConfig, inputs: usize, seed: u64, name: &str, device: &B::Device) -> Result<Self, MlpError> {
        config.validate()?;
        // Layers are numbered from 0, which is the first.
        let names: Vec<String> = (0..=config.depth).map(|i| format!("{name}.layer.{i}")).collect();
        let block = |names: &[String]| Block::new(seed, names, config.width, device);
        Ok(Self {
            first: Layer::new(seed, &names[0], [inputs, config.width], device),
            blocks: names[1..].chunks(LAYERS_A_BLOCK).map(block).collect(),
            connections: config.connections().init(device)?,
            activation: config.activation,
            norm_before_heads: config.norm_before_heads,
        })
    }

    /// The connections.
    pub fn connections(&self) -> &Connections<B> {
        &self.connections
    }

    /// `[rows, inputs]` to the last state `[rows, width]`.
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        self.pass(x, None)
    }

    /// The same with the layers of one block left out, so that its output is its input; its connection stays.
    pub fn forward_without(&self, x: Tensor<B, 2>, block: usize) -> Tensor<B, 2> {
        self.pass(x, Some(block))
    }

    /// The last state and how the stream has grown over the blocks: root mean square of each state relative to the first.
    pub fn observe(&self, x: Tensor<B, 2>) -> (Tensor<B, 2>, Vec<f64>) {
        let start = self.first.forward(x, self.activation);
        let (mut states, growth) = self.connections.observe(start, &self.blocks_without(None));
        let last = states.pop().expect("there is at least the first state");
        (self.finish(last), growth)
    }

    fn pass(&self, x: Tensor<B, 2>, without: Option<usize>) -> Tensor<B, 2> {
        let start = self.first.forward(x, self.activation);
        self.finish(self.connections.pass(start, &self.blocks_without(without)))
    }

    fn blocks_without(&self, without: Option<usize>) -> Without<'_, B> {
        Without { blocks: &self.blocks, activation: self.activation, without }
    }

    fn finish(&self, state: Tensor<B, 2>) -> Tensor<B, 2> {
        if !self.norm_before_heads {
            return state;
        }
        let centred = state.clone() - state.mean_dim(1);
        let deviation = centred.clone().square().mean_dim(1).add_scalar(1e-6).sqrt();
        centred / deviation
    }
}

/// The blocks, but for the layers of one of them.
struct Without<'a, B: Backend> {
    blocks: &'a [Block<B>],
    activation: Activation,
    without: Option<usize>,
}

impl<B: FusedOps> Blocks<B, 2> for Without<'_, B> {
    fn block(&self, block: usize, x: Tensor<B, 2>) -> Tensor<B, 2> {
        if self.without == Some(block) { x } else { self.blocks[block].forward(x, self.activation) }
    }

    fn branch(&self, block: usize, _: usize, x: Tensor<B, 2>, norm_scale: f64) -> Tensor<B, 2> {
        if self.without == Some(block) {
            return x.zeros_like();
        }
        self.blocks[block].branch(x, self.activation, norm_scale)
    }
}
