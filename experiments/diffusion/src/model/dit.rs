//! The whole model.

use std::cell::RefCell;

use ancre::{Blocks, Connections};
use burn::{
    module::Module,
    tensor::{Tensor, TensorData, activation::silu, backend::Backend},
};
use experiment_kit::Connected;
use fused_ops::{AttentionShape, FusedOps};
use gaussian_diffusion::{Guidance, guided};

use super::{
    DitConfig, ModelError,
    block::{DitBlock, FinalLayer},
    embed::{LabelEmbedding, PatchEmbedding, TimestepEmbedding},
    positions,
};

/// DiT with connections between its blocks.
#[derive(Module, Debug)]
pub struct Dit<B: Backend> {
    x_embedder: PatchEmbedding<B>,
    t_embedder: TimestepEmbedding<B>,
    y_embedder: LabelEmbedding<B>,
    blocks: Vec<DitBlock<B>>,
    final_layer: FinalLayer<B>,
    connections: Connections<B>,
    /// The table of positions, `[tokens, width]`: no parameter, it never learns.
    positions: Tensor<B, 2>,
    #[module(skip)]
    config: DitConfig,
}

/// What a forward pass went through.
#[derive(Clone, Debug)]
pub struct Observation<B: Backend> {
    /// The embedded patches before the positions are added, `[batch * tokens, width]`.
    pub patches: Tensor<B, 2>,
    /// The embedded timesteps, `[batch, width]`.
    pub timesteps: Tensor<B, 2>,
    /// The embedded labels, `[batch, width]`.
    pub labels: Tensor<B, 2>,
    /// `h_0` to `h_K`: what the blocks take, and last what the final layer takes.
    pub states: Vec<Tensor<B, 2>>,
    /// The blocks' outputs before their connections; none with a rival, which makes a block's shortcuts itself.
    pub outputs: Vec<Tensor<B, 2>>,
    /// Root mean square of each state relative to `h_0`.
    pub growth: Vec<f64>,
}

impl<B: FusedOps> Dit<B> {
    /// A model with initial weights that depend on the seed and the sizes, and not on the arm.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(config: &DitConfig, seed: u64, device: &B::Device) -> Result<Self, ModelError> {
        config.validate()?;
        let side = config.size / config.patch;
        let table = positions::sine_cosine(side, side, config.width);
        Ok(Self {
            x_embedder: PatchEmbedding::new(config, seed, device),
            t_embedder: TimestepEmbedding::new(config, seed, device),
            y_embedder: LabelEmbedding::new(config, seed, device),
            blocks: (0..config.layers).map(|l| DitBlock::new(&format!("blocks.{l}"), config, seed, device)).collect(),
            final_layer: FinalLayer::new(config, seed, device),
            connections: config.connections().init(device)?,
            positions: Tensor::from_data(TensorData::new(table, [side * side, config.width]), device),
            config: config.clone(),
        })
    }

    /// The model's prediction at noised images `[batch, channels, size, size]`: the noise and, with learned variance, as many
    /// channels again. `timesteps` are those of the training process, `labels` are classes or [`DitConfig::null_label`].
    ///
    /// # Panics
    /// Where shapes do not fit the configuration; callers check sizes when they read images.
    pub fn forward(&self, images: Tensor<B, 4>, timesteps: &[usize], labels: &[u32]) -> Tensor<B, 4> {
        let device = images.device();
        let batch = images.dims()[0];
        let shape = self.attention_shape(batch);
        let activated = silu(self.t_embedder.forward(timesteps, &device) + self.y_embedder.forward(labels, &device));
        let input = self.placed(self.x_embedder.forward(images), batch);
        let state = self.connections.pass(input, &self.conditioned(&activated, shape, None));
        self.unpatchify(self.final_layer.forward(state, activated), batch)
    }

    /// The prediction with classifier-free guidance: both with the labels and without, in one batch. A scale of 1 needs no
    /// second half and takes none.
    ///
    /// # Panics
    /// As [`forward`](Self::forward), and where the model has no row for "no label".
    pub fn forward_guided(
        &self,
        images: Tensor<B, 4>,
        timesteps: &[usize],
        labels: &[u32],
        scale: f64,
        guidance: Guidance,
    ) -> Tensor<B, 4> {
        if scale == 1.0 {
            return self.forward(images, timesteps, labels);
        }
        let null = self.config.null_label().expect("guidance needs a model that was trained without labels, too");
        let both = |values: &[usize]| [values, values].concat();
        let all_labels = [labels, &vec![null; labels.len()]].concat();
        let output = self.forward(Tensor::cat(vec![images.clone(), images], 0), &both(timesteps), &all_labels);
        let batch = labels.len();
        let (with, without) = (output.clone().narrow(0, 0, batch), output.narrow(0, batch, batch));
        guided(with, without, scale, guidance, self.config.channels)
    }

    /// The states of a forward pass.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn observe(&self, images: Tensor<B, 4>, timesteps: &[usize], labels: &[u32]) -> Observation<B> {
        let device = images.device();
        let batch = images.dims()[0];
        let (times, classes) = (self.t_embedder.forward(timesteps, &device), self.y_embedder.forward(labels, &device));
        let activated = silu(times.clone() + classes.clone());
        let patches = self.x_embedder.forward(images);
        let input = self.placed(patches.clone(), batch);
        let outputs = RefCell::new(Vec::new());
        let blocks = self.conditioned(&activated, self.attention_shape(batch), Some(&outputs));
        let (states, growth) = self.connections.observe(input, &blocks);
        Observation { patches, timesteps: times, labels: classes, states, outputs: outputs.into_inner(), growth }
    }

    fn conditioned<'a>(
        &'a self,
        activated: &'a Tensor<B, 2>,
        shape: AttentionShape,
        outputs: Option<&'a RefCell<Vec<Tensor<B, 2>>>>,
    ) -> Conditioned<'a, B> {
        Conditioned { blocks: &self.blocks, activated, shape, modulation: RefCell::default(), outputs }
    }

    fn attention_shape(&self, batch: usize) -> AttentionShape {
        AttentionShape {
            batch,
            length: self.config.tokens(),
            heads: self.config.heads,
            head_size: self.config.head_size(),
        }
    }

    /// Tokens with their positions.
    fn placed(&self, tokens: Tensor<B, 2>, batch: usize) -> Tensor<B, 2> {
        let [length, width] = self.positions.dims();
        let table = self.positions.clone().reshape([1, length, width]);
        (tokens.reshape([batch, length, width]) + table).reshape([batch * length, width])
    }

    /// Images of patches whose features are row, column, channel.
    fn unpatchify(&self, patches: Tensor<B, 2>, batch: usize) -> Tensor<B, 4> {
        let (p, channels, size) = (self.config.patch, self.config.output_channels(), self.config.size);
        let side = size / p;
        patches
            .reshape([batch, side, side, p, p, channels])
            .permute([0, 5, 1, 3, 2, 4])
            .reshape([batch, channels, size, size])
    }
}

/// The blocks under a conditioning.
struct Conditioned<'a, B: Backend> {
    blocks: &'a [DitBlock<B>],
    activated: &'a Tensor<B, 2>,
    shape: AttentionShape,
    /// That of the block whose first branch was taken last.
    modulation: RefCell<Option<Tensor<B, 2>>>,
    /// Where the outputs of whole blocks are noted.
    outputs: Option<&'a RefCell<Vec<Tensor<B, 2>>>>,
}

impl<B: FusedOps> Blocks<B, 2> for Conditioned<'_, B> {
    fn block(&self, block: usize, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let of = &self.blocks[block];
        let output = of.forward(x, &of.modulation(self.activated.clone()), self.shape);
        if let Some(outputs) = self.outputs {
            outputs.borrow_mut().push(output.clone());
        }
        output
    }

    fn branch(&self, block: usize, branch: usize, x: Tensor<B, 2>, norm_scale: f64) -> Tensor<B, 2> {
        let of = &self.blocks[block];
        let mut kept = self.modulation.borrow_mut();
        if branch == 0 {
            let modulation = kept.insert(of.modulation(self.activated.clone()));
            return of.attention(x, modulation, self.shape, norm_scale);
        }
        let modulation = kept.take().unwrap_or_else(|| of.modulation(self.activated.clone()));
        of.feed_forward(x, &modulation, norm_scale)
    }
}

impl<B: Backend> Dit<B> {
    /// The configuration.
    pub fn config(&self) -> &DitConfig {
        &self.config
    }

    /// The table of positions, `[tokens, width]`.
    pub fn positions(&self) -> Tensor<B, 2> {
        self.positions.clone()
    }
}

impl<B: Backend> Connected<B> for Dit<B> {
    fn connections(&self) -> &Connections<B> {
        &self.connections
    }

    fn with_connections(mut self, connections: Connections<B>) -> Self {
        self.connections = connections;
        self
    }
}
