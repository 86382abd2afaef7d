//! What goes into the blocks: patches of the noised image, the timestep and the label.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor, TensorData, activation::silu, backend::Backend},
};
use fused_ops::FusedOps;

use super::{
    DitConfig,
    linear::{Init, Linear},
};

/// A linear map of patches: a convolution whose stride is its size.
#[derive(Module, Debug)]
pub struct PatchEmbedding<B: Backend> {
    proj: Linear<B>,
    patch: usize,
}

impl<B: FusedOps> PatchEmbedding<B> {
    pub fn new(config: &DitConfig, seed: u64, device: &B::Device) -> Self {
        let sizes = [config.channels * config.patch * config.patch, config.width];
        Self { proj: Linear::new("x_embedder.proj", sizes, Init::Xavier, seed, device), patch: config.patch }
    }

    /// `[batch * tokens, width]` of images `[batch, channels, height, width]`; tokens row by row.
    pub fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let ([batch, channels, height, width], p) = (images.dims(), self.patch);
        let (rows, columns) = (height / p, width / p);
        let patches = images
            .reshape([batch, channels, rows, p, columns, p])
            .permute([0, 2, 4, 1, 3, 5])
            .reshape([batch * rows * columns, channels * p * p]);
        self.proj.forward(patches)
    }
}

/// Sines and cosines of the timestep, then two linear maps with a SiLU between.
#[derive(Module, Debug)]
pub struct TimestepEmbedding<B: Backend> {
    fc1: Linear<B>,
    fc2: Linear<B>,
    frequency_features: usize,
}

/// The standard deviation of the first weights of the embeddings.
const EMBEDDING_STD: f64 = 0.02;

impl<B: FusedOps> TimestepEmbedding<B> {
    pub fn new(config: &DitConfig, seed: u64, device: &B::Device) -> Self {
        let (features, width) = (config.frequency_features, config.width);
        let linear = |name: &str, inputs| Linear::new(name, [inputs, width], Init::Normal(EMBEDDING_STD), seed, device);
        Self {
            fc1: linear("t_embedder.mlp.0", features),
            fc2: linear("t_embedder.mlp.2", width),
            frequency_features: features,
        }
    }

    /// `[batch, width]` of one timestep an image.
    pub fn forward(&self, timesteps: &[usize], device: &B::Device) -> Tensor<B, 2> {
        let table = frequencies(timesteps, self.frequency_features);
        let table = Tensor::from_data(TensorData::new(table, [timesteps.len(), self.frequency_features]), device);
        self.fc2.forward(silu(self.fc1.forward(table)))
    }
}

/// Cosines, then sines, of the timestep times `10000^(-2 i / features)`, `[timesteps, features]`. In `f32` throughout, as the
/// authors' code has it: at step 999 that is 3e-5 away from exact angles.
pub fn frequencies(timesteps: &[usize], features: usize) -> Vec<f32> {
    let half = features / 2;
    let step = -(10_000f64.ln() as f32);
    let frequency = |i: usize| (step * i as f32 / half as f32).exp();
    let mut table = Vec::with_capacity(timesteps.len() * features);
    for &t in timesteps {
        let angle = |i: usize| t as f32 * frequency(i);
        table.extend((0..half).map(|i| angle(i).cos()));
        table.extend((0..half).map(|i| angle(i).sin()));
        // A last feature without a partner is 0.
        table.resize(table.len() + features % 2, 0.0);
    }
    table
}

/// One row a class, and one more for "no label".
#[derive(Module, Debug)]
pub struct LabelEmbedding<B: Backend> {
    table: Param<Tensor<B, 2>>,
}

impl<B: FusedOps> LabelEmbedding<B> {
    pub fn new(config: &DitConfig, seed: u64, device: &B::Device) -> Self {
        let sizes = [config.label_rows(), config.width];
        let table = Init::Normal(EMBEDDING_STD).matrix(seed, "y_embedder.embedding_table", sizes, device);
        Self { table }
    }

    /// `[batch, width]` of one label an image.
    pub fn forward(&self, labels: &[u32], device: &B::Device) -> Tensor<B, 2> {
        let labels: Vec<i32> = labels.iter().map(|&label| label as i32).collect();
        let count = labels.len();
        let labels = Tensor::<B, 1, Int>::from_data(TensorData::new(labels, [count]), device);
        self.table.val().select(0, labels)
    }
}
