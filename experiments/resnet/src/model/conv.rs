//! Convolutional ResNets in the form for small images (He et al. 2015, section 4.2): a first convolution, three stages of
//! blocks of two convolutions whose width doubles where the image halves, and an average over what is left of the image.
//!
//! A layout acts within a stage, since states of another shape cannot be added: the first stage is connected from the
//! first convolution's output on, the later ones from the output of their first block, which changes the shape.
//!
//! Group normalisation (Wu and He 2018) stands in the place of batch normalisation: an image's result then does not depend
//! on which others are in its batch, or on how a batch is split among cores.

use ancre::{Blocks, Connections};
use burn::{
    module::{Module, Param},
    tensor::{Tensor, TensorData, activation::relu, backend::Backend, module::conv2d, ops::ConvOptions},
};
use fused_ops::{FusedOps, concatenate};
use rand_distr::{Distribution, StandardNormal};

use super::{NetworkConfig, NetworkError};

/// Stages of a network.
pub const STAGES: usize = 3;
/// Channels of a group that is normalised together; fewer channels are one group.
const GROUP: usize = 8;
const EPSILON: f64 = 1e-5;

/// Blocks of each stage at a depth of `6 n + 2`; none at other depths.
pub fn blocks_a_stage(depth: usize) -> Option<usize> {
    let n = depth.checked_sub(2)? / 6;
    (n >= 2 && depth == 6 * n + 2).then_some(n)
}

/// A convolution of 3 x 3 with padding 1, without bias, whose weights are normal with variance `2 / inputs`
/// (He et al. 2015).
#[derive(Module, Debug)]
struct Convolution<B: Backend> {
    weight: Param<Tensor<B, 4>>,
    stride: usize,
}

impl<B: Backend> Convolution<B> {
    fn new(seed: u64, name: &str, [inputs, outputs]: [usize; 2], stride: usize, device: &B::Device) -> Self {
        let std = (2.0 / (9 * inputs) as f64).sqrt();
        let rng = training::seed::stream(seed, name, 0);
        let count = outputs * inputs * 9;
        let values: Vec<f32> =
            Distribution::<f64>::sample_iter(StandardNormal, rng).take(count).map(|z| (z * std) as f32).collect();
        let data = TensorData::new(values, [outputs, inputs, 3, 3]);
        Self { weight: Param::from_tensor(Tensor::from_data(data, device)), stride }
    }

    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        conv2d(x, self.weight.val(), None, ConvOptions::new([self.stride; 2], [1; 2], [1; 2], 1))
    }
}

/// Group normalisation with a gain and an offset a channel.
#[derive(Module, Debug)]
struct Norm<B: Backend> {
    gain: Param<Tensor<B, 1>>,
    offset: Param<Tensor<B, 1>>,
}

impl<B: Backend> Norm<B> {
    fn new(channels: usize, device: &B::Device) -> Self {
        Self {
            gain: Param::from_tensor(Tensor::ones([channels], device)),
            offset: Param::from_tensor(Tensor::zeros([channels], device)),
        }
    }

    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let [batch, channels, height, width] = x.dims();
        let group = if channels.is_multiple_of(GROUP) { GROUP } else { channels };
        let rows = x.reshape([batch * channels / group, group * height * width]);
        let centred = rows.clone() - rows.mean_dim(1);
        let deviation = centred.clone().square().mean_dim(1).add_scalar(EPSILON).sqrt();
        let row = |p: &Param<Tensor<B, 1>>| p.val().reshape([1, channels, 1, 1]);
        (centred / deviation).reshape([batch, channels, height, width]) * row(&self.gain) + row(&self.offset)
    }
}

/// Two convolutions with a shortcut around them.
#[derive(Module, Debug)]
struct Block<B: Backend> {
    first: Convolution<B>,
    first_norm: Norm<B>,
    second: Convolution<B>,
    second_norm: Norm<B>,
    outputs: usize,
    pre_activation: bool,
}

impl<B: Backend> Block<B> {
    fn new(seed: u64, name: &str, [inputs, outputs]: [usize; 2], pre_activation: bool, device: &B::Device) -> Self {
        let stride = if inputs == outputs { 1 } else { 2 };
        Self {
            first: Convolution::new(seed, &format!("{name}.first"), [inputs, outputs], stride, device),
            first_norm: Norm::new(if pre_activation { inputs } else { outputs }, device),
            second: Convolution::new(seed, &format!("{name}.second"), [outputs; 2], 1, device),
            second_norm: Norm::new(outputs, device),
            outputs,
            pre_activation,
        }
    }

    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let sum = self.shortcut(x.clone()) + self.branch(x, 1.0);
        if self.pre_activation { sum } else { relu(sum) }
    }

    /// The convolutions without the shortcut; what leaves their norms is multiplied by `norm_scale`.
    fn branch(&self, x: Tensor<B, 4>, norm_scale: f64) -> Tensor<B, 4> {
        let scaled = |x: Tensor<B, 4>| if norm_scale == 1.0 { x } else { x.mul_scalar(norm_scale) };
        if self.pre_activation {
            let x = self.first.forward(relu(scaled(self.first_norm.forward(x))));
            self.second.forward(relu(scaled(self.second_norm.forward(x))))
        } else {
            let x = relu(scaled(self.first_norm.forward(self.first.forward(x))));
            scaled(self.second_norm.forward(self.second.forward(x)))
        }
    }

    /// The input; where the shape changes, every other point of it with zeros for the new channels.
    fn shortcut(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let [_, channels, height, width] = x.dims();
        if channels == self.outputs {
            return x;
        }
        let every_other = |count: usize| Tensor::arange_step(0..count as i64, 2, &x.device());
        let (rows, columns) = (every_other(height), every_other(width));
        let smaller = x.select(2, rows).select(3, columns);
        let [batch, _, height, width] = smaller.dims();
        let zeros = Tensor::zeros([batch, self.outputs - channels, height, width], &smaller.device());
        concatenate(vec![smaller, zeros], 1)
    }
}

/// A convolutional ResNet without its classes.
#[derive(Module, Debug)]
pub struct ConvNet<B: Backend> {
    stem: Convolution<B>,
    stem_norm: Norm<B>,
    blocks: Vec<Block<B>>,
    last_norm: Norm<B>,
    /// Of the first stage.
    pub(super) connections: Connections<B>,
    /// Of the other stages.
    pub(super) later: Vec<Connections<B>>,
    a_stage: usize,
    pre_activation: bool,
}

impl<B: FusedOps> ConvNet<B> {
    /// A network with the weights of a seed.
    ///
    /// # Errors
    /// If the depth is none of such a network.
    pub fn new(
        config: &NetworkConfig,
        pre_activation: bool,
        seed: u64,
        device: &B::Device,
    ) -> Result<Self, NetworkError> {
        let a_stage = blocks_a_stage(config.depth).ok_or(NetworkError::ConvDepth(config.depth))?;
        let mut blocks = Vec::new();
        let mut inputs = config.width;
        for stage in 0..STAGES {
            for block in 0..a_stage {
                let outputs = config.width << stage;
                blocks.push(Block::new(
                    seed,
                    &format!("stage.{stage}.{block}"),
                    [inputs, outputs],
                    pre_activation,
                    device,
                ));
                inputs = outputs;
            }
        }
        let mut connections = config.connected()?.into_iter().map(|connections| connections.init(device));
        Ok(Self {
            connections: connections.next().ok_or(NetworkError::ConvDepth(config.depth))??,
            later: connections.collect::<Result<_, _>>()?,
            stem: Convolution::new(seed, "stem", [config.channels, config.width], 1, device),
            stem_norm: Norm::new(config.width, device),
            blocks,
            last_norm: Norm::new(inputs, device),
            a_stage,
            pre_activation,
        })
    }

    /// `[batch, channels, size, size]` to `[batch, 4 width]`.
    pub fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let mut x = self.stem.forward(images);
        if !self.pre_activation {
            x = relu(self.stem_norm.forward(x));
        }
        for (stage, mut blocks) in self.blocks.chunks(self.a_stage).enumerate() {
            if let [first, rest @ ..] = blocks
                && x.dims()[1] != first.outputs
            {
                x = first.forward(x);
                blocks = rest;
            }
            x = connected(if stage == 0 { &self.connections } else { &self.later[stage - 1] }, blocks, x);
        }
        if self.pre_activation {
            x = relu(self.last_norm.forward(x));
        }
        let [batch, channels, height, width] = x.dims();
        x.reshape([batch, channels, height * width]).mean_dim(2).reshape([batch, channels])
    }
}

/// Blocks of one shape with their connections.
fn connected<B: FusedOps>(connections: &Connections<B>, blocks: &[Block<B>], x: Tensor<B, 4>) -> Tensor<B, 4> {
    let stage = Stage { blocks, channels_last: connections.arm().acts_on_features() };
    if stage.channels_last {
        return channels_first(connections.pass(channels_last(x), &stage));
    }
    connections.pass(x, &stage)
}

/// What connections see of blocks of one shape.
struct Stage<'a, B: Backend> {
    blocks: &'a [Block<B>],
    /// For those that act on channels the states are `[batch, height, width, channels]`.
    channels_last: bool,
}

impl<B: FusedOps> Blocks<B, 4> for Stage<'_, B> {
    fn block(&self, block: usize, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let block = &self.blocks[block];
        if self.channels_last { channels_last(block.forward(channels_first(x))) } else { block.forward(x) }
    }

    fn branch(&self, block: usize, _: usize, x: Tensor<B, 4>, norm_scale: f64) -> Tensor<B, 4> {
        channels_last(self.blocks[block].branch(channels_first(x), norm_scale))
    }
}

fn channels_last<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 4> {
    x.permute([0, 2, 3, 1])
}

fn channels_first<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 4> {
    x.permute([0, 3, 1, 2])
}
