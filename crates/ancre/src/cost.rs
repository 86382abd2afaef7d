//! What connections cost beyond the cascade: parameters, arithmetic and memory traffic as functions of the sizes.
//!
//! Counts are for one token (one row of the stream) in `f32`, over all blocks, and beyond the ordinary network `h + f(h)`, whose
//! own additions are taken off. The model of a count:
//!
//! - An addition, multiplication, division, comparison, root or elementary function is one operation.
//! - Each step of a formula is one pass over memory: it reads every operand once and writes every result once. A backward step reads
//!   the gradient that arrives and what it needs of the forward pass, and writes gradients; a gradient that is handed on as it is
//!   costs nothing. Where a tensor has several readers, each after the first adds to its gradient: one addition, and one more
//!   number read.
//! - What does not grow with the tokens is left out: the softmax of `theta`, and reading and writing parameters.
//!
//! A program may do better (a cache keeps what was just read) or worse (operations of a tensor library that are not fused).

use std::ops::{Add, AddAssign, Sub};

use crate::{
    ConnectionsConfig, ConnectionsError,
    plan::{Plan, Row},
    rivals::{HyperNorm, ManifoldForm, RivalConfig, RivalKind, sinkhorn},
};

/// Bytes of a number.
const F32: u64 = 4;

/// Arithmetic and traffic of a pass over one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// What connections cost beyond the cascade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Parameters that training changes, over all tokens.
    pub parameters: u64,
    /// The forward pass of a token.
    pub forward: Work,
    /// The backward pass of a token.
    pub backward: Work,
    /// Bytes a token that the graph of a training step keeps for the backward pass. States that blocks keep anyway are not counted;
    /// for rivals this is [`RivalConfig::kept_per_token`], roughly.
    pub kept: u64,
    /// Bytes a token of gradients that wait for earlier states or are summed over several readers, at the largest: they stay open during the
    /// backward pass. For ANCRe there are most of them at its end, where the graph keeps least.
    pub open_gradients: u64,
}

impl Cost {
    /// Forward and backward pass.
    pub fn training(&self) -> Work {
        self.forward + self.backward
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { flops: self.flops + other.flops, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Less what the ordinary network does, down to nothing.
impl Sub for Work {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { flops: self.flops.saturating_sub(other.flops), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// So many operations, and numbers moved.
fn work(flops: u64, numbers: u64) -> Work {
    Work { flops, bytes: F32 * numbers }
}

/// So many times.
fn times(count: u64, work: Work) -> Work {
    Work { flops: count * work.flops, bytes: count * work.bytes }
}

impl ConnectionsConfig {
    /// What these connections cost on a stream of a width, for rivals and a gated first state the width of their branches.
    ///
    /// The mix of `n` states of width `d` takes `2nd` operations and moves `(n + 2)d` numbers: the block's output and the states in,
    /// the new state out. Backward, a state that `m` mixes took adds `m` products of their gradients to its own, and forms the `m`
    /// products with itself that are the gradients of the coefficients, where these learn: `2md` operations each, and `(m + 3)d` numbers
    /// moved together.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn cost(&self, width: usize) -> Result<Cost, ConnectionsError> {
        let plan = Plan::new(&self.arm, self.depth, self.tau)?;
        if let Some(rival) = self.rival()? {
            rival.validate()?;
            return Ok(rival.cost());
        }
        let parameters = self.trained_parameters()? as u64;
        if let Some((width, _)) = self.gated()? {
            return Ok(gated_first_state(self.depth as u64, width as u64, parameters));
        }
        Ok(mixes(&plan, width as u64, self.arm.is_learned(), parameters))
    }
}

/// The mixes of all blocks.
fn mixes(plan: &Plan, d: u64, learned: bool, parameters: u64) -> Cost {
    let taken: u64 = plan.rows.iter().map(|row| row.sources.len() as u64).sum();
    let mixed = plan.rows.iter().filter(|row| !row.sources.is_empty()).count() as u64;
    let forward = work(2 * taken * d, (taken + 2 * mixed) * d);
    // Each state that is taken adds its products with the later gradients to its own.
    let states = plan.last_use.iter().filter(|&&last| last > 0).count() as u64;
    let mut backward = work(2 * taken * d, (taken + 2 * states) * d);
    if learned {
        backward += work(2 * taken * d, states * d);
    }
    // While block `l` has its turn: later mixes whose gradient a state before it will take.
    let waits = |row: &&Row, l: usize| row.sources.first().is_some_and(|&lowest| lowest < l);
    let open = |l: usize| plan.rows[l..].iter().filter(|row| waits(row, l)).count() as u64;
    let open = (1..=plan.depth()).map(open).max().unwrap_or(0);
    Cost { parameters, forward, backward, kept: 0, open_gradients: F32 * open * d }
}

/// The first state through a gate after each of so many blocks: the gate, then the sum.
fn gated_first_state(blocks: u64, d: u64, parameters: u64) -> Cost {
    // A mean square, a product with the query, six operations on what they give; `b + open * (w * s)`.
    let forward = [work(4 * d + 6, d + 1), work(3 * d, 3 * d + 1)];
    // Of the sum: `g w`, its products with state and gate, and `w`'s part. Of the gate: eight operations on numbers, the query's part, and
    // what the output gets. The state has one more reader.
    let backward = [work(7 * d, 3 * d + 2), work(6 * d + 8, 3 * d + 2), READER.on(d)];
    let sum = |works: &[Work]| works.iter().fold(Work::default(), |sum, &work| sum + times(blocks, work));
    let kept = F32 * blocks * d; // the outputs, which an ordinary network has no need of
    Cost { parameters, forward: sum(&forward), backward: sum(&backward), kept, open_gradients: F32 * d }
}

/// Work on each number of a row.
#[derive(Clone, Copy)]
struct PerNumber(u64, u64);

impl PerNumber {
    fn on(self, d: u64) -> Work {
        work(self.0 * d, self.1 * d)
    }
}

/// One more reader of a tensor: its part of the gradient is added to the others.
const READER: PerNumber = PerNumber(1, 1);

/// A shortcut `h + f(h)`, which rivals replace, and its stream's second reader.
const SHORTCUT: [PerNumber; 2] = [PerNumber(1, 3), READER];

/// A weighted sum of `n` rows of width `d`: the sum itself, and the gradients of rows and weights. Weights that depend on the token are
/// numbers that are moved, too.
fn weighted_sum(n: u64, d: u64, of_token: bool) -> [Work; 2] {
    let weights = if of_token { n } else { 0 };
    [work((2 * n).saturating_sub(1) * d, (n + 1) * d + weights), work(n * d + 2 * n * d, (2 * n + 1) * d + 2 * weights)]
}

impl RivalConfig {
    /// What this rival costs beyond the ordinary stream, for a valid configuration; see [`Cost`].
    pub fn cost(&self) -> Cost {
        let [branches, d, per_block] = [self.branches, self.width, self.per_block].map(|n| n as u64);
        let blocks = branches / per_block.max(1);
        let mut tally = Tally::default();
        let mut open = 0;
        match self.kind {
            RivalKind::Residual => {}
            RivalKind::LayerNormScaling => {
                // The first block's scale is 1.
                let scaled = branches.saturating_sub(per_block);
                tally.add(scaled, [work(d, 2 * d), work(d, 2 * d)]);
            }
            RivalKind::ReZero | RivalKind::LayerScale { .. } => {
                // `h + a f`: one operation more forward; `a g`, `g f` and its sum backward.
                tally.add(branches, [work(d, 0), work(3 * d, 3 * d)]);
            }
            RivalKind::FirstStateScalars => {
                tally.add(blocks, weighted_sum(2, d, false));
                // The first state is read by every block.
                tally.add(blocks, [Work::default(), READER.on(d)]);
                open = 1;
            }
            RivalKind::DenseFormer { dilation, period } => {
                let mut last_use = vec![0; blocks as usize + 1];
                for newest in 1..=blocks as usize {
                    let sources: Vec<usize> = (newest % dilation..=newest).step_by(dilation).collect();
                    if !newest.is_multiple_of(period) {
                        continue;
                    }
                    tally.add(1, weighted_sum(sources.len() as u64, d, false));
                    for &source in &sources {
                        // Of several readers, all but one add. The first state has the first branch as a reader, too, and an output
                        // that no sum follows the next block.
                        let first = last_use[source] == 0 && source > 0 && source.is_multiple_of(period);
                        tally.add(u64::from(!first), [Work::default(), READER.on(d)]);
                        last_use[source] = newest;
                    }
                }
                let begun = |l: usize| (0..l).filter(|&i| last_use[i] >= l).count() as u64;
                open = (1..=blocks as usize).map(begun).max().unwrap_or(0);
            }
            RivalKind::HyperConnections { streams, dynamic, norm } => {
                let n = streams as u64;
                tally.streams(branches, n, d, dynamic);
                if dynamic {
                    let [forward, backward] = match norm {
                        HyperNorm::Layer => [6, 12],
                        HyperNorm::Rms => [4, 10],
                    };
                    tally.token_functions(branches * n, n, d, [forward, backward]);
                    // A tanh, its scale and the static weight.
                    tally.add(branches * n * (n + 2), [work(3, 0), work(6, 0)]);
                }
                open = n - 1;
            }
            RivalKind::ManifoldHyperConnections { streams, form } => {
                let n = streams as u64;
                tally.streams(branches, n, d, true);
                match form {
                    ManifoldForm::Package => tally.token_functions(branches * n, n, d, [4, 10]),
                    // One product of all streams together with `n (n + 2)` vectors.
                    ManifoldForm::Paper => tally.products(branches, n * (n + 2), n * d, [4, 10]),
                }
                // Gate and static weight; a sigmoid (four operations) for what is read and written, and a factor.
                tally.add(branches * n * (n + 2), [work(2, 0), work(4, 0)]);
                tally.add(branches * n, [work(9, 0), work(7, 0)]);
                // Exponentials, then divisions by sums: each half of a round.
                let halves = 2 * sinkhorn::ROUNDS as u64;
                tally.add(branches * n * n, [work(3 + 2 * halves, 2), work(1 + 4 * halves, 3)]);
                open = n - 1;
            }
            RivalKind::AttentionResiduals { blocks, final_query } => {
                let size = blocks.map_or(1, |blocks| branches / blocks as u64);
                let sources = |branch: u64| 1 + branch.div_ceil(size);
                for branch in 0..branches {
                    tally.attention(sources(branch), d);
                    // What leaves a branch begins a source, or is added to the last.
                    tally.add(u64::from(!branch.is_multiple_of(size)), [SHORTCUT[0].on(d), Work::default()]);
                    tally.less_shortcut(d);
                }
                let all = sources(branches);
                match final_query {
                    true => tally.attention(all, d),
                    false => tally.add(1, [work((all - 1) * d, (all + 1) * d), READER.on(all * d)]),
                }
                // Each source is read once without an addition.
                tally.first_readers(all, d);
                open = all - 1;
            }
            RivalKind::AncreBranches => {
                for mixed in 1..=branches {
                    // One source is passed on as it is.
                    tally.add(u64::from(mixed > 1), weighted_sum(mixed, d, false));
                    tally.less_shortcut(d);
                }
                let all = branches + 1;
                tally.add(1, weighted_sum(all, d, false));
                // What branch `b` makes is read by all later mixes; its first reader adds nothing.
                let readers = (1..=branches).sum::<u64>() + all;
                tally.add(readers, [Work::default(), READER.on(d)]);
                tally.first_readers(all, d);
                open = all - 1;
            }
            RivalKind::OpenAttentionResiduals { blocks } => {
                let every = blocks.map_or(1, |blocks| 2 * (branches / 2).div_ceil(blocks as u64));
                for branch in 0..branches {
                    tally.attention(2 + branch / every, d);
                    tally.add(1, [work(1, 0), work(1, 0)]); // the bias of the newest
                }
                // All states are read by shortcuts, but none directly by a branch.
                tally.first_readers(branches, d);
                open = 1 + branches / every;
            }
        }
        let Tally { forward, backward, less } = tally;
        Cost {
            parameters: self.parameters() as u64,
            forward: forward - less[0],
            backward: backward - less[1],
            kept: F32 * self.kept_per_token(),
            open_gradients: F32 * open * d,
        }
    }
}

/// A sum of work, and of what the ordinary network would have done in its place.
#[derive(Default)]
struct Tally {
    forward: Work,
    backward: Work,
    less: [Work; 2],
}

impl Tally {
    fn add(&mut self, count: u64, [forward, backward]: [Work; 2]) {
        self.forward += times(count, forward);
        self.backward += times(count, backward);
    }

    fn less_shortcut(&mut self, d: u64) {
        for (less, shortcut) in self.less.iter_mut().zip(SHORTCUT) {
            *less += shortcut.on(d);
        }
    }

    /// Gradients that are written, where they were counted as added.
    fn first_readers(&mut self, count: u64, d: u64) {
        self.less[1] += times(count, READER.on(d));
    }

    /// Branches on `n` streams: what they read, and how the streams go on, in one step after the branch.
    fn streams(&mut self, branches: u64, n: u64, d: u64, of_token: bool) {
        self.add(branches, weighted_sum(n, d, of_token));
        // Stream `t` of `n` streams and the branch's output, with `n(n + 1)` weights.
        let weights = if of_token { n * (n + 1) } else { 0 };
        let products = n * (n + 1) * d;
        let forward = work(2 * products - n * d, (2 * n + 1) * d + weights);
        let backward = work(2 * products - (n + 1) * d + 2 * products, (3 * n + 2) * d + 2 * weights);
        self.add(branches, [forward, backward]);
        // Each stream has a second reader: what the branch reads.
        self.add(branches * n, [Work::default(), READER.on(d)]);
        for _ in 0..branches {
            self.less_shortcut(d);
        }
        // The streams begin as one state, and end as their sum.
        self.add(1, [work((n - 1) * d, (n + 1) * d), work((n - 1) * d, (n + 1) * d)]);
    }

    /// `n + 2` products of a normalised stream with learned vectors, for each of `count` streams.
    fn token_functions(&mut self, count: u64, n: u64, d: u64, norm: [u64; 2]) {
        self.products(count, n + 2, d, norm);
    }

    /// So many products of a normalised row of width `d` with learned vectors, for each of `count` rows.
    fn products(&mut self, count: u64, vectors: u64, d: u64, [norm, norm_backward]: [u64; 2]) {
        let products = 2 * vectors * d;
        let forward = work(norm * d + products, d + vectors);
        let backward = work(norm_backward * d + 2 * products, 2 * d + vectors) + READER.on(d);
        self.add(count, [forward, backward]);
    }

    /// A softmax over `m` sources: their scores, and the sum with these weights.
    fn attention(&mut self, m: u64, d: u64) {
        // A mean square, a product with the query, and three operations on what they give.
        let score = [work(4 * d + 3, d + 1), work(4 * d + 6, 2 * d + 2) + READER.on(d)];
        self.add(m, score);
        self.add(1, [work(5 * m, 2 * m), work(4 * m, 3 * m)]); // softmax
        self.add(1, weighted_sum(m, d, true));
        self.add(m, [Work::default(), READER.on(d)]);
    }
}
