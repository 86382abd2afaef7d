//! Attention Residuals: every branch reads a softmax over what has left the branches before it.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, activation::softmax, backend::Backend},
};
use fused_ops::{FusedOps, concatenate};

use super::{
    Rules, State,
    rows::{columns, parameter, root_mean_square, row, sum, weighted, widened},
};

/// Added to mean squares, as the package `attn-res` 0.1.0 has it.
const EPS: f64 = 1e-6;

/// Attention Residuals (arXiv 2603.15031): branch `l` reads `sum_i softmax_i(q_l . rms(v_i)) v_i` over the embeddings `v_0` and the
/// outputs of the branches before it, each its own source, or, in the block form, summed over blocks of branches. From `q = 0`,
/// which is a mean of the sources and no residual sum.
///
/// What the network goes on with is the attention of one more query to all sources: "the final output layer aggregates all N block
/// representations" in the paper, whose model has a query there. The package `attn-res` 0.1.0 takes their plain sum. The state holds
/// the sources; the last may be a sum that grows.
#[derive(Module, Debug)]
pub struct AttentionResiduals<B: Backend> {
    /// `[branches, width]`, with one more row for a final query.
    pub query: Param<Tensor<B, 2>>,
    /// Branches whose outputs are summed into one source.
    size: usize,
    branches: usize,
}

/// `query . rms(source)` of every row, `[rows, 1]`, in the type of sums. The graph keeps a handle to the source and columns, no
/// normalised copy.
pub(super) fn score<B: Backend>(source: Tensor<B, 2>, query: Tensor<B, 2>) -> Tensor<B, 2> {
    let source = widened(source);
    source.clone().matmul(query.transpose()) / root_mean_square(source, EPS)
}

impl<B: Backend> AttentionResiduals<B> {
    pub(super) fn new(
        branches: usize,
        width: usize,
        blocks: Option<usize>,
        final_query: bool,
        device: &B::Device,
    ) -> Self {
        let size = blocks.map_or(1, |blocks| branches / blocks);
        let rows = branches + usize::from(final_query);
        let query = parameter(vec![0.0; rows * width], [rows, width], device);
        Self { query, size, branches }
    }

    fn attend(&self, query: usize, sources: &[Tensor<B, 2>]) -> Tensor<B, 2> {
        let query = row(&self.query, query, sources[0].dtype());
        let scores = sources.iter().map(|source| score(source.clone(), query.clone())).collect();
        weighted(columns(softmax(concatenate(scores, 1), 1)), sources)
    }
}

impl<B: FusedOps> Rules<B> for AttentionResiduals<B> {
    fn enter(&self, state: &mut State<B>) -> Tensor<B, 2> {
        self.attend(state.branch, &state.rows)
    }

    fn leave(&self, state: &mut State<B>, output: Tensor<B, 2>) {
        if state.branch.is_multiple_of(self.size) {
            state.rows.push(output);
        } else if let Some(last) = state.rows.last_mut() {
            *last = last.clone() + output;
        }
    }

    fn finish(&self, state: State<B>) -> Tensor<B, 2> {
        if self.query.dims()[0] > self.branches {
            return self.attend(self.branches, &state.rows);
        }
        sum(state.rows)
    }
}
