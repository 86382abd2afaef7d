//! A whole pass through the blocks of a network, for any arm.

use burn::tensor::{Tensor, backend::Backend};
use fused_ops::FusedOps;

use crate::{Connections, History};

/// The blocks of a network, closed and open: what [`Connections::pass`] takes.
///
/// ANCRe and the layouts follow whole blocks; [rivals](crate::rivals) stand around the residual branches inside, and leave
/// the blocks' own shortcuts to be made by them.
pub trait Blocks<B: Backend, const D: usize> {
    /// `B_l(x)`: the output of block `block` (from 0) with the shortcuts inside it.
    fn block(&self, block: usize, x: Tensor<B, D>) -> Tensor<B, D>;

    /// `f(x)`: branch `branch` (from 0) of the block without the shortcut around it. What leaves the norms of the branch is
    /// multiplied by `norm_scale`, which is 1 but for [layer-norm scaling](crate::rivals::RivalKind::LayerNormScaling).
    fn branch(&self, block: usize, branch: usize, x: Tensor<B, D>, norm_scale: f64) -> Tensor<B, D>;
}

impl<B: FusedOps> Connections<B> {
    /// What the network goes on with after all blocks, each followed by its connection.
    ///
    /// # Panics
    /// Where the shape of an output is not that of the input.
    pub fn pass<const D: usize>(&self, input: Tensor<B, D>, blocks: &impl Blocks<B, D>) -> Tensor<B, D> {
        let mut history = self.start(input.clone());
        self.through(input, blocks, &mut history, |_| {})
    }

    /// The same, with all states `h_0 ... h_K` and the root mean square of each relative to `h_0`. With a rival, these are what the
    /// first branch of each block reads, and last what the network goes on with.
    ///
    /// # Panics
    /// As [`pass`](Self::pass).
    pub fn observe<const D: usize>(
        &self,
        input: Tensor<B, D>,
        blocks: &impl Blocks<B, D>,
    ) -> (Vec<Tensor<B, D>>, Vec<f64>) {
        let mut history = self.start(input.clone());
        history.observe_growth();
        let mut states = vec![input.clone()];
        self.through(input, blocks, &mut history, |state| states.push(state.clone()));
        (states, history.growth())
    }

    fn through<const D: usize>(
        &self,
        input: Tensor<B, D>,
        blocks: &impl Blocks<B, D>,
        history: &mut History<B, D>,
        mut each: impl FnMut(&Tensor<B, D>),
    ) -> Tensor<B, D> {
        let mut state = input;
        let Some(rival) = self.rival() else {
            for block in 0..self.depth() {
                state = self.connect(history, blocks.block(block, state));
                each(&state);
            }
            return state;
        };
        let per_block = rival.per_block();
        let mut stream = rival.start(state);
        for block in 0..self.depth() {
            for branch in 0..per_block {
                let scale = rival.norm_scale(block * per_block + branch);
                let input = rival.enter(&mut stream);
                if block > 0 && branch == 0 {
                    each(&self.record(history, input.clone()));
                }
                rival.leave(&mut stream, blocks.branch(block, branch, input, scale));
            }
        }
        let state = self.record(history, rival.finish(stream));
        each(&state);
        state
    }
}
