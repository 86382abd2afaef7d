//! The parts of a decoder layer. Tensors are `[batch * length, width]`.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, TensorData, backend::Backend},
};
use fused_ops::{AttentionShape, FusedOps, RotaryTable};

use super::{LlamaConfig, Weights};

fn parameter<B: Backend>(values: Vec<f32>, dims: [usize; 2], device: &B::Device) -> Param<Tensor<B, 2>> {
    Param::from_tensor(Tensor::from_data(TensorData::new(values, dims), device))
}

/// A linear map without bias; the weight is `[input, output]`.
#[derive(Module, Debug)]
pub struct Projection<B: Backend> {
    weight: Param<Tensor<B, 2>>,
}

impl<B: Backend> Projection<B> {
    pub fn new<W: Weights>(
        name: &str,
        dims: [usize; 2],
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        Ok(Self { weight: parameter(weights.projection(name, dims)?, dims, device) })
    }

    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        x.matmul(self.weight.val())
    }
}

/// Root-mean-square normalisation with a gain.
#[derive(Module, Debug)]
pub struct Norm<B: Backend> {
    weight: Param<Tensor<B, 1>>,
    eps: f64,
}

impl<B: FusedOps> Norm<B> {
    pub fn new<W: Weights>(
        name: &str,
        config: &LlamaConfig,
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        let gain = TensorData::new(weights.gain(name, config.width)?, [config.width]);
        Ok(Self { weight: Param::from_tensor(Tensor::from_data(gain, device)), eps: config.norm_eps })
    }

    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        fused_ops::rms_norm(x, self.weight.val(), self.eps)
    }
}

/// The token embedding, `[vocabulary, width]`.
#[derive(Module, Debug)]
pub struct TokenEmbedding<B: Backend> {
    weight: Param<Tensor<B, 2>>,
    freeze_last: bool,
}

impl<B: Backend> TokenEmbedding<B> {
    pub fn new<W: Weights>(
        name: &str,
        config: &LlamaConfig,
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        let dims = [config.vocabulary, config.width];
        let mut values = weights.embedding(name, dims)?;
        if config.freeze_last_embedding {
            values[(config.vocabulary - 1) * config.width..].fill(0.0);
        }
        Ok(Self { weight: parameter(values, dims, device), freeze_last: config.freeze_last_embedding })
    }

    /// Logits of every token for normalised states `[tokens, width]`, where the head is this matrix: `[tokens, vocabulary]`.
    pub fn head(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        x.matmul(self.weight.val().transpose())
    }

    /// Embeddings of the tokens, `[tokens, width]`.
    pub fn forward(&self, tokens: Tensor<B, 1, burn::tensor::Int>) -> Tensor<B, 2> {
        let weight = self.weight.val();
        let [vocabulary, width] = weight.dims();
        let embedded = weight.select(0, tokens.clone());
        if !self.freeze_last {
            return embedded;
        }
        // The row's value is used, its gradient is not.
        let count = tokens.dims()[0];
        let last = tokens.equal_elem(vocabulary as i64 - 1).reshape([count, 1]).expand([count, width]);
        embedded.clone().mask_where(last, embedded.detach())
    }
}

/// Causal self-attention with rotary embedding.
#[derive(Module, Debug)]
pub struct SelfAttention<B: Backend> {
    q_proj: Projection<B>,
    k_proj: Projection<B>,
    v_proj: Projection<B>,
    o_proj: Projection<B>,
}

impl<B: FusedOps> SelfAttention<B> {
    fn new<W: Weights>(
        name: &str,
        config: &LlamaConfig,
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        let (width, size) = (config.width, config.head_size());
        let (queries, keys) = (config.heads * size, config.key_value_heads() * size);
        let mut project = |part: &str, dims| Projection::new(&format!("{name}.{part}"), dims, weights, device);
        Ok(Self {
            q_proj: project("q_proj", [width, queries])?,
            k_proj: project("k_proj", [width, keys])?,
            v_proj: project("v_proj", [width, keys])?,
            o_proj: project("o_proj", [queries, width])?,
        })
    }

    fn forward(&self, x: Tensor<B, 2>, rotary: &RotaryTable<B>, shape: AttentionShape) -> Tensor<B, 2> {
        let (q, k, v) = (self.q_proj.forward(x.clone()), self.k_proj.forward(x.clone()), self.v_proj.forward(x));
        let (k, v) = (for_every_head(k, shape), for_every_head(v, shape));
        self.o_proj.forward(fused_ops::causal_attention(q, k, v, rotary, shape))
    }
}

/// Keys or values for every query head, `[tokens, heads * head_size]`: of fewer heads, each is repeated for as many query heads
/// in a row.
fn for_every_head<B: Backend>(x: Tensor<B, 2>, shape: AttentionShape) -> Tensor<B, 2> {
    let [tokens, width] = x.dims();
    let AttentionShape { heads, head_size, .. } = shape;
    if width == heads * head_size {
        return x;
    }
    let groups = width / head_size;
    x.reshape([tokens, groups, 1, head_size])
        .expand([tokens, groups, heads / groups, head_size])
        .reshape([tokens, heads * head_size])
}

/// The gated feed-forward network.
#[derive(Module, Debug)]
pub struct FeedForward<B: Backend> {
    gate_proj: Projection<B>,
    up_proj: Projection<B>,
    down_proj: Projection<B>,
}

impl<B: FusedOps> FeedForward<B> {
    fn new<W: Weights>(
        name: &str,
        config: &LlamaConfig,
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        let (outer, inner) = (config.width, config.feed_forward);
        let mut project = |part: &str, dims| Projection::new(&format!("{name}.{part}"), dims, weights, device);
        Ok(Self {
            gate_proj: project("gate_proj", [outer, inner])?,
            up_proj: project("up_proj", [outer, inner])?,
            down_proj: project("down_proj", [inner, outer])?,
        })
    }

    fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let (gate, up) = (self.gate_proj.forward(x.clone()), self.up_proj.forward(x));
        self.down_proj.forward(fused_ops::swiglu(gate, up))
    }
}

/// One decoder layer with its two inner residuals: the block `B_l` that a connection follows.
#[derive(Module, Debug)]
pub struct DecoderLayer<B: Backend> {
    input_layernorm: Norm<B>,
    self_attn: SelfAttention<B>,
    post_attention_layernorm: Norm<B>,
    mlp: FeedForward<B>,
}

impl<B: FusedOps> DecoderLayer<B> {
    pub fn new<W: Weights>(
        name: &str,
        config: &LlamaConfig,
        weights: &mut W,
        device: &B::Device,
    ) -> Result<Self, W::Error> {
        let part = |part: &str| format!("{name}.{part}");
        Ok(Self {
            input_layernorm: Norm::new(&part("input_layernorm"), config, weights, device)?,
            self_attn: SelfAttention::new(&part("self_attn"), config, weights, device)?,
            post_attention_layernorm: Norm::new(&part("post_attention_layernorm"), config, weights, device)?,
            mlp: FeedForward::new(&part("mlp"), config, weights, device)?,
        })
    }

    pub fn forward(&self, x: Tensor<B, 2>, rotary: &RotaryTable<B>, shape: AttentionShape) -> Tensor<B, 2> {
        let x = x.clone() + self.attention(x, rotary, shape, 1.0);
        x.clone() + self.feed_forward(x, 1.0)
    }

    /// The first residual branch; the output of its norm is multiplied by `scale`.
    pub fn attention(
        &self,
        x: Tensor<B, 2>,
        rotary: &RotaryTable<B>,
        shape: AttentionShape,
        scale: f64,
    ) -> Tensor<B, 2> {
        self.self_attn.forward(scaled(self.input_layernorm.forward(x), scale), rotary, shape)
    }

    /// The second.
    pub fn feed_forward(&self, x: Tensor<B, 2>, scale: f64) -> Tensor<B, 2> {
        self.mlp.forward(scaled(self.post_attention_layernorm.forward(x), scale))
    }
}

fn scaled<B: Backend>(x: Tensor<B, 2>, scale: f64) -> Tensor<B, 2> {
    if scale == 1.0 { x } else { x.mul_scalar(scale) }
}
