//! What a model itself does in a training step, counted as [`ancre::Cost`] counts connections: every operand of a step of the
//! formulas read once, every result written once, in `f32`. Losses, embeddings, conditioning and the optimizer are left out: they are the same in
//! every arm, and leaving them out makes the share of connections larger, not smaller.

use ancre::Work;
use experiments_diffusion::model::DitConfig;
use experiments_llm::model::LlamaConfig;

/// Bytes of a number.
const F32: u64 = 4;

/// A sum of steps, forward and backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Forward pass.
    pub forward: Work,
    /// Backward pass.
    pub backward: Work,
}

/// Operations, numbers read and numbers written, each for one element of the output.
type PerElement = [u64; 3];

impl Ledger {
    /// Both passes.
    pub fn training(&self) -> Work {
        self.forward + self.backward
    }

    /// `[rows, inputs]` times a weight; backward the gradients of both.
    fn product(&mut self, rows: u64, inputs: u64, outputs: u64) {
        let (x, w, y) = (rows * inputs, inputs * outputs, rows * outputs);
        let once = Work { flops: 2 * rows * inputs * outputs, bytes: F32 * (x + w + y) };
        self.forward += once;
        self.backward += once + once;
    }

    /// Element by element.
    fn elements(&mut self, count: u64, forward: PerElement, backward: PerElement) {
        let work =
            |[flops, reads, writes]: PerElement| Work { flops: count * flops, bytes: F32 * count * (reads + writes) };
        self.forward += work(forward);
        self.backward += work(backward);
    }

    /// An activation that has so many readers more than one: their gradients are added up.
    fn readers(&mut self, count: u64, more: u64) {
        self.elements(count, [0; 3], [more, 2 * more, more]);
    }

    /// The inner part of attention: each token sees `seen` others on average.
    fn attention(&mut self, rows: u64, width: u64, seen: u64) {
        // Scores and their sum; backward twice as much and the scores once more.
        self.elements(rows * width, [4 * seen, 3, 1], [10 * seen, 5, 3]);
    }

    /// A LLaMA on `rows` sequences of `length` tokens.
    pub fn llama(config: &LlamaConfig, rows: usize, length: usize) -> Self {
        let [width, inner, layers, vocabulary, rows, length] =
            [config.width, config.feed_forward, config.layers, config.vocabulary, rows, length].map(|n| n as u64);
        let tokens = rows * length;
        let mut ledger = Self::default();
        for _ in 0..layers {
            ledger.elements(tokens * width, [4, 1, 1], [8, 2, 1]); // norm
            ledger.readers(tokens * width, 3); // shortcut; queries, keys and values
            for _ in 0..4 {
                ledger.product(tokens, width, width);
            }
            ledger.attention(tokens, width, length.div_ceil(2));
            ledger.elements(tokens * width, [1, 2, 1], [0; 3]); // shortcut
            ledger.elements(tokens * width, [4, 1, 1], [8, 2, 1]); // norm
            ledger.readers(tokens * width, 2); // shortcut; gate and up
            ledger.product(tokens, width, inner);
            ledger.product(tokens, width, inner);
            ledger.elements(tokens * inner, [5, 2, 1], [10, 3, 2]); // SwiGLU
            ledger.product(tokens, inner, width);
            ledger.elements(tokens * width, [1, 2, 1], [0; 3]); // shortcut
        }
        ledger.elements(tokens * width, [4, 1, 1], [8, 2, 1]);
        ledger.product(tokens, width, vocabulary);
        ledger
    }

    /// The blocks of a DiT on so many images.
    pub fn dit(config: &DitConfig, images: usize) -> Self {
        let [width, inner, layers, length, images] =
            [config.width, config.feed_forward(), config.layers, config.tokens(), images].map(|n| n as u64);
        let tokens = images * length;
        let mut ledger = Self::default();
        for _ in 0..layers {
            ledger.product(images, width, 6 * width); // modulation
            for _ in 0..2 {
                ledger.elements(tokens * width, [8, 1, 1], [14, 2, 1]); // modulated norm
                ledger.readers(tokens * width, 1);
                ledger.elements(tokens * width, [2, 2, 1], [3, 2, 1]); // gate and shortcut
            }
            ledger.product(tokens, width, 3 * width);
            ledger.attention(tokens, width, length);
            ledger.product(tokens, width, width);
            ledger.product(tokens, width, inner);
            ledger.elements(tokens * inner, [10, 1, 1], [16, 2, 1]); // GELU
            ledger.product(tokens, inner, width);
        }
        ledger
    }

    /// A residual MLP of so many layers and blocks, without its first layer and its heads. `frozen` weights get no gradient.
    pub fn mlp(layers: usize, blocks: usize, width: usize, rows: usize, passes: MlpPasses) -> Self {
        let [layers, blocks, width, rows] = [layers, blocks, width, rows].map(|n| n as u64);
        let mut ledger = Self::default();
        for _ in 0..layers {
            ledger.product(rows, width, width);
            ledger.elements(rows * width, [12, 1, 1], [20, 2, 1]); // bias, norm and swish
        }
        for _ in 0..blocks {
            ledger.elements(rows * width, [1, 2, 1], [0; 3]);
            ledger.readers(rows * width, 1);
        }
        Self { forward: times(passes.forward, ledger.forward), backward: times(passes.backward, ledger.backward) }
    }
}

/// How often a network is gone through in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MlpPasses {
    /// Forward.
    pub forward: u64,
    /// Backward.
    pub backward: u64,
}

fn times(count: u64, work: Work) -> Work {
    Work { flops: count * work.flops, bytes: count * work.bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One layer of width 2 with 3 inside, one head, 5 words, on one sequence of 2 tokens.
    #[test]
    fn a_small_llama_counted_by_hand() {
        let config = LlamaConfig {
            vocabulary: 5,
            width: 2,
            feed_forward: 3,
            layers: 1,
            ..experiments_llm::presets::Preset::Smoke.settings().model
        };
        let ledger = Ledger::llama(&config, 1, 2);
        // Products: four of 2 x 2 x 2, three of 2 x 2 x 3, one of 2 x 2 x 5.
        let products = 2 * (4 * 8 + 3 * 12 + 20);
        // Three norms, two shortcuts on 4 numbers, SwiGLU on 6, attention to 1 token on average.
        assert_eq!(ledger.forward.flops, products + 3 * 4 * 4 + 2 * 4 + 6 * 5 + 4 * 4);
        assert_eq!(ledger.backward.flops, 2 * products + 3 * 4 * 8 + 5 * 4 + 6 * 10 + 4 * 10);
        // Operands and results of products: 4 + 4 + 4, 4 + 6 + 6 (twice), 6 + 6 + 4, 4 + 10 + 10.
        let moved = 4 * 12 + 3 * 16 + 24;
        assert_eq!(ledger.forward.bytes, 4 * (moved + 3 * 8 + 2 * 12 + 6 * 3 + 4 * 4));
        assert_eq!(ledger.backward.bytes, 4 * (2 * moved + 3 * 12 + 5 * 12 + 6 * 5 + 4 * 8));
    }

    #[test]
    fn most_of_a_model_is_six_operations_a_parameter() {
        let config = experiments_llm::presets::Preset::Llama60M.settings().model;
        let ledger = Ledger::llama(&config, 1, 256);
        let layers = config.parameters() - 32_000 * 512;
        let ratio = ledger.training().flops as f64 / (6 * 256 * layers) as f64;
        assert!((1.0..1.1).contains(&ratio), "{ratio}");
    }
}
