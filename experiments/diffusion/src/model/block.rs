//! The adaLN-Zero block and the final layer. Tokens are `[batch * tokens, width]`, conditioning `[batch, width]`.

use burn::{
    module::Module,
    tensor::{Tensor, backend::Backend},
};
use fused_ops::{AttentionShape, FusedOps, gated_add, modulated_layer_norm, self_attention};

use super::{
    DitConfig,
    linear::{Init, Linear},
};

/// Added to the variance in each normalisation.
const NORM_EPS: f64 = 1e-6;

/// Part `i` of the modulation, `[batch, width]`.
fn part<B: Backend>(modulation: &Tensor<B, 2>, i: usize, width: usize) -> Tensor<B, 2> {
    modulation.clone().narrow(1, i * width, width)
}

#[derive(Module, Debug)]
struct Attention<B: Backend> {
    qkv: Linear<B>,
    proj: Linear<B>,
}

#[derive(Module, Debug)]
struct FeedForward<B: Backend> {
    fc1: Linear<B>,
    fc2: Linear<B>,
}

/// Attention and a feed-forward network, each with its shift, scale and gate from the conditioning. The gates begin at zero,
/// so the block begins as the identity.
#[derive(Module, Debug)]
pub struct DitBlock<B: Backend> {
    attn: Attention<B>,
    mlp: FeedForward<B>,
    modulation: Linear<B>,
}

impl<B: FusedOps> DitBlock<B> {
    pub fn new(name: &str, config: &DitConfig, seed: u64, device: &B::Device) -> Self {
        let (width, inner) = (config.width, config.feed_forward());
        let linear = |part: &str, sizes, init| Linear::new(&format!("{name}.{part}"), sizes, init, seed, device);
        Self {
            attn: Attention {
                qkv: linear("attn.qkv", [width, 3 * width], Init::Xavier),
                proj: linear("attn.proj", [width, width], Init::Xavier),
            },
            mlp: FeedForward {
                fc1: linear("mlp.fc1", [width, inner], Init::Xavier),
                fc2: linear("mlp.fc2", [inner, width], Init::Xavier),
            },
            modulation: linear("adaLN_modulation.1", [width, 6 * width], Init::Zero),
        }
    }

    /// The shifts, scales and gates of both branches, `[batch, 6 width]`; `activated` is the SiLU of the conditioning.
    pub fn modulation(&self, activated: Tensor<B, 2>) -> Tensor<B, 2> {
        self.modulation.forward(activated)
    }

    /// The whole block.
    pub fn forward(&self, x: Tensor<B, 2>, modulation: &Tensor<B, 2>, shape: AttentionShape) -> Tensor<B, 2> {
        let width = x.dims()[1];
        let x = gated_add(x.clone(), part(modulation, 2, width), self.attended(x, modulation, shape, 1.0));
        gated_add(x.clone(), part(modulation, 5, width), self.fed_forward(x, modulation, 1.0))
    }

    /// The first residual branch, the attention under its gate; what leaves its norm is multiplied by `norm_scale`.
    pub fn attention(
        &self,
        x: Tensor<B, 2>,
        modulation: &Tensor<B, 2>,
        shape: AttentionShape,
        norm_scale: f64,
    ) -> Tensor<B, 2> {
        gated(part(modulation, 2, x.dims()[1]), self.attended(x, modulation, shape, norm_scale))
    }

    /// The second, the feed-forward network under its gate.
    pub fn feed_forward(&self, x: Tensor<B, 2>, modulation: &Tensor<B, 2>, norm_scale: f64) -> Tensor<B, 2> {
        gated(part(modulation, 5, x.dims()[1]), self.fed_forward(x, modulation, norm_scale))
    }

    fn attended(&self, x: Tensor<B, 2>, modulation: &Tensor<B, 2>, shape: AttentionShape, scale: f64) -> Tensor<B, 2> {
        self.attn.proj.forward(self_attention(self.attn.qkv.forward(normed(x, modulation, 0, scale)), shape))
    }

    fn fed_forward(&self, x: Tensor<B, 2>, modulation: &Tensor<B, 2>, scale: f64) -> Tensor<B, 2> {
        self.mlp.fc2.forward(self.mlp.fc1.forward_gelu(normed(x, modulation, 3, scale)))
    }
}

/// The modulated norm whose shift is part `first` of the modulation, times `scale`.
fn normed<B: FusedOps>(x: Tensor<B, 2>, modulation: &Tensor<B, 2>, first: usize, scale: f64) -> Tensor<B, 2> {
    let width = x.dims()[1];
    let normed = modulated_layer_norm(x, part(modulation, first, width), part(modulation, first + 1, width), NORM_EPS);
    if scale == 1.0 { normed } else { normed.mul_scalar(scale) }
}

/// `gate * branch`, the gate `[batch, width]`.
fn gated<B: FusedOps>(gate: Tensor<B, 2>, branch: Tensor<B, 2>) -> Tensor<B, 2> {
    gated_add(Tensor::zeros_like(&branch), gate, branch)
}

/// Normalisation with shift and scale from the conditioning, then a linear map to patches that begins at zero.
#[derive(Module, Debug)]
pub struct FinalLayer<B: Backend> {
    linear: Linear<B>,
    modulation: Linear<B>,
}

impl<B: FusedOps> FinalLayer<B> {
    pub fn new(config: &DitConfig, seed: u64, device: &B::Device) -> Self {
        let (width, outputs) = (config.width, config.patch * config.patch * config.output_channels());
        let linear = |name: &str, sizes| Linear::new(name, sizes, Init::Zero, seed, device);
        Self {
            linear: linear("final_layer.linear", [width, outputs]),
            modulation: linear("final_layer.adaLN_modulation.1", [width, 2 * width]),
        }
    }

    pub fn forward(&self, x: Tensor<B, 2>, activated: Tensor<B, 2>) -> Tensor<B, 2> {
        let width = x.dims()[1];
        let modulation = self.modulation.forward(activated);
        self.linear.forward(modulated_layer_norm(x, part(&modulation, 0, width), part(&modulation, 1, width), NORM_EPS))
    }
}
