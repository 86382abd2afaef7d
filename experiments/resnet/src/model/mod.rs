//! Deep residual networks whose blocks are followed by connections: the residual MLP of the paper's reinforcement
//! learning, and convolutional ResNets.

mod conv;
mod layer;
mod mlp;
mod network;

pub use conv::{ConvNet, STAGES, blocks_a_stage};
pub use layer::{Activation, Block, Layer, Linear};
pub use mlp::{LAYERS_A_BLOCK, MlpConfig, MlpError, ResidualMlp};
pub use network::{Classifier, Network, NetworkConfig, NetworkError};
