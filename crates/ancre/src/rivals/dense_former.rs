//! DenseFormer: a free weighted sum of what has left the blocks.

use burn::{
    module::{Module, Param},
    tensor::{DType, Tensor, TensorData, backend::Backend},
};
use fused_ops::{FusedOps, mix_at};

use super::{Rules, State, rows::parameter};

/// DenseFormer (arXiv 2402.02622): after block `l`, `sum_i alpha_{l,i} e_i` over the embeddings and the outputs `e_i` of the blocks
/// so far, which is what the next block reads. Outputs are remembered as they leave their block, before they are weighted.
///
/// With dilation `d` only every `d`-th of them takes part, counted back from the newest; with period `p` only every `p`-th block is
/// followed by a sum. The state holds what the next block reads, then those `e_i` that a sum still takes.
#[derive(Module, Debug)]
pub struct DenseFormer<B: Backend> {
    /// The weights of all sums one after another, oldest first in each: 1 for the newest and else 0 at the start.
    pub alpha: Param<Tensor<B, 1>>,
    /// What is added to them: -1 for the newest, whose output is there already. `[weights]`.
    offset: Tensor<B, 1>,
    blocks: usize,
    dilation: usize,
    period: usize,
    /// Branches in a block, whose shortcuts are the ordinary ones.
    per_block: usize,
}

/// Which of the outputs take part after block `l`, oldest first; none where no sum follows.
pub(super) fn sources(block: usize, dilation: usize, period: usize) -> impl Iterator<Item = usize> + Clone {
    let newest = block + 1;
    let follows = newest.is_multiple_of(period);
    (newest % dilation..=newest).step_by(dilation).filter(move |_| follows)
}

impl<B: Backend> DenseFormer<B> {
    pub(super) fn new(blocks: usize, per_block: usize, dilation: usize, period: usize, device: &B::Device) -> Self {
        let newest = (0..blocks).flat_map(|block| {
            sources(block, dilation, period).map(move |source| f32::from(u8::from(source == block + 1)))
        });
        let newest: Vec<f32> = newest.collect();
        let offset: Vec<f32> = newest.iter().map(|&one| -one).collect();
        let length = newest.len();
        let offset = Tensor::from_data(TensorData::new(offset, [length]), (device, DType::F32));
        Self { alpha: parameter(newest, [length], device), offset, blocks, dilation, period, per_block }
    }

    /// Which of the outputs before a block are taken after it or after a later one, oldest first.
    fn remembered(&self, block: usize) -> impl Iterator<Item = usize> {
        let taken = move |source: &usize| {
            (block..self.blocks).any(|sum| sources(sum, self.dilation, self.period).any(|taken| taken == *source))
        };
        (0..=block).filter(taken)
    }

    /// Index of the first weight after a block.
    fn first(&self, block: usize) -> usize {
        (0..block).map(|block| sources(block, self.dilation, self.period).count()).sum()
    }
}

impl<B: FusedOps> Rules<B> for DenseFormer<B> {
    fn start(&self, input: Tensor<B, 2>) -> Vec<Tensor<B, 2>> {
        // Of the embeddings, those that a sum takes.
        let remembered = self.remembered(0).map(|_| input.clone());
        std::iter::once(input.clone()).chain(remembered).collect()
    }

    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        state.rows[0].clone()
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        let output = state.rows[0].clone() + output;
        if !(state.branch + 1).is_multiple_of(self.per_block) {
            state.rows[0] = output;
            return;
        }
        let block = state.branch / self.per_block;
        let mut outputs: Vec<_> = self.remembered(block).zip(state.rows.drain(1..)).collect();
        outputs.push((block + 1, output.clone()));
        let of = |source: usize| outputs.iter().find(|(of, _)| *of == source).map(|(_, output)| output.clone());
        let taken: Vec<_> = sources(block, self.dilation, self.period).filter_map(of).collect();
        let alpha = self.alpha.val();
        let coefficients = alpha.clone() + self.offset.clone().cast(alpha.dtype());
        state.rows[0] = mix_at(coefficients, self.first(block), output, taken);
        state.rows.extend(self.remembered(block + 1).filter_map(of));
    }

    fn finish(&self, mut state: State<B>) -> Tensor<B, 2> {
        state.rows.swap_remove(0)
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::Flex;

    use super::*;

    #[test]
    fn outputs_that_no_sum_takes_are_dropped() {
        let device = Default::default();
        let kept = |dilation, period| {
            let rules = DenseFormer::<Flex>::new(4, 1, dilation, period, &device);
            let x = Tensor::ones([1, 2], &device);
            let mut state = State { branch: 0, entered: false, rows: rules.start(x.clone()), held: Vec::new() };
            let mut kept = vec![state.rows.len() - 1];
            for branch in 0..4 {
                state.branch = branch;
                rules.leave(&mut state, x.clone());
                kept.push(state.rows.len() - 1);
            }
            kept
        };
        assert_eq!(kept(1, 1), [1, 2, 3, 4, 0]);
        // After blocks 1 and 3: e_0, e_1, e_2 and e_0 to e_4.
        assert_eq!(kept(1, 2), [1, 2, 3, 4, 0]);
        // After the third block e_1 and e_3, after the last e_0, e_2 and e_4.
        assert_eq!(kept(2, 1), [1, 2, 3, 2, 0]);
        // Sums after e_2 and e_4 take even ones alone.
        assert_eq!(kept(2, 2), [1, 1, 2, 2, 0]);
        assert_eq!(kept(4, 1), [1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_sum_takes_every_dilated_output_counted_from_the_newest() {
        let of = |block, dilation, period| sources(block, dilation, period).collect::<Vec<_>>();
        assert_eq!(of(0, 1, 1), [0, 1]);
        assert_eq!(of(3, 2, 1), [0, 2, 4]);
        assert_eq!(of(2, 2, 1), [1, 3]);
        assert_eq!(of(2, 1, 2), [0; 0]);
        assert_eq!(of(3, 1, 2), [0, 1, 2, 3, 4]);
        assert_eq!(of(0, 4, 1), [1]);
    }
}
