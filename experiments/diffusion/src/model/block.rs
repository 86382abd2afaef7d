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

    /// `activated` is the SiLU of the conditioning.
    pub fn forward(&self, x: Tensor<B, 2>, activated: Tensor<B, 2>, shape: AttentionShape) -> Tensor<B, 2> {
        let width = x.dims()[1];
        let modulation = self.modulation.forward(activated);
        let part = |i| part(&modulation, i, width);
        let normed = modulated_layer_norm(x.clone(), part(0), part(1), NORM_EPS);
        let attended = self.attn.proj.forward(self_attention(self.attn.qkv.forward(normed), shape));
        let x = gated_add(x, part(2), attended);
        let normed = modulated_layer_norm(x.clone(), part(3), part(4), NORM_EPS);
        gated_add(x, part(5), self.mlp.fc2.forward(self.mlp.fc1.forward_gelu(normed)))
    }
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
