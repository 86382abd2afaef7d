//! Sinkhorn's normalisation of many small matrices, `LANES` of them at a time.

use rayon::prelude::*;

use super::simd::{exp, simd_kernel};

/// Matrices that are worked on side by side: one register of the widest kind.
const LANES: usize = 16;

/// Groups of [`LANES`] matrices in one task.
const GROUPS: usize = 8;

/// Logarithms below it are those of zero, so that no product with such an entry ends as a subnormal number, which is slow to work with.
const LEAST: f32 = -60.0;

/// Entry by entry, the same entry of [`LANES`] matrices.
type Entries = Vec<[f32; LANES]>;

/// Which sums are divided by.
#[derive(Clone, Copy)]
enum Sums {
    Columns,
    Rows,
}

/// Every matrix of `logits`, `[matrices, n * n]`, made doubly stochastic by `rounds` rounds; see [`crate::sinkhorn()`].
pub fn forward(logits: &[f32], n: usize, rounds: usize, output: &mut [f32]) {
    same_length!("sinkhorn", logits, output);
    check(logits, n, rounds);
    let span = LANES * GROUPS * n * n;
    let run = |(logits, output): (&[f32], &mut [f32])| {
        let mut halves = vec![vec![[0.0; LANES]; n * n]; 1];
        for (logits, output) in logits.chunks(LANES * n * n).zip(output.chunks_mut(LANES * n * n)) {
            load(logits, n * n, &mut halves[0]);
            normalise_group(n, rounds, &mut halves);
            store(&halves[0], n * n, output);
        }
    };
    if logits.len() <= span {
        return run((logits, output));
    }
    logits.par_chunks(span).zip(output.par_chunks_mut(span)).for_each(run);
}

/// Backward of [`forward`]: the gradient of the logits. The rounds are made again.
pub fn backward(logits: &[f32], upstream: &[f32], n: usize, rounds: usize, gradient: &mut [f32]) {
    same_length!("sinkhorn", logits, upstream, gradient);
    check(logits, n, rounds);
    let span = LANES * GROUPS * n * n;
    let run = |((logits, upstream), gradient): ((&[f32], &[f32]), &mut [f32])| {
        let mut halves = vec![vec![[0.0; LANES]; n * n]; 2 * rounds];
        let mut g = vec![[0.0; LANES]; n * n];
        let group = LANES * n * n;
        for ((logits, upstream), gradient) in
            logits.chunks(group).zip(upstream.chunks(group)).zip(gradient.chunks_mut(group))
        {
            load(logits, n * n, &mut halves[0]);
            normalise_group(n, rounds, &mut halves);
            load(upstream, n * n, &mut g);
            backward_group(n, &halves, &mut g);
            store(&g, n * n, gradient);
        }
    };
    if logits.len() <= span {
        return run(((logits, upstream), gradient));
    }
    logits.par_chunks(span).zip(upstream.par_chunks(span)).zip(gradient.par_chunks_mut(span)).for_each(run);
}

fn check(logits: &[f32], n: usize, rounds: usize) {
    assert!(n > 0 && rounds > 0 && logits.len().is_multiple_of(n * n), "sinkhorn: whole matrices and a round");
}

/// Lanes beyond the last matrix hold zeros.
fn load(matrices: &[f32], entries: usize, lanes: &mut Entries) {
    lanes.fill([0.0; LANES]);
    for (lane, matrix) in matrices.chunks_exact(entries).enumerate() {
        for (entry, &value) in lanes.iter_mut().zip(matrix) {
            entry[lane] = value;
        }
    }
}

fn store(lanes: &Entries, entries: usize, matrices: &mut [f32]) {
    for (lane, matrix) in matrices.chunks_exact_mut(entries).enumerate() {
        for (entry, value) in lanes.iter().zip(matrix) {
            *value = entry[lane];
        }
    }
}

/// Positions of the entries of line `line` that are summed together.
#[inline(always)]
fn line(sums: Sums, line: usize, n: usize) -> impl Iterator<Item = usize> + Clone {
    (0..n).map(move |i| match sums {
        Sums::Columns => i * n + line,
        Sums::Rows => line * n + i,
    })
}

simd_kernel! {
    /// `halves[0]` holds the logits. With one buffer it is overwritten by the result; with one for every half of a round each of them
    /// holds what that half gave.
    fn normalise_group(n: usize, rounds: usize, halves: &mut [Entries]) {
        let keep = halves.len() > 1;
        let mut logs = halves[0].clone();
        for (half, sums) in [Sums::Columns, Sums::Rows].into_iter().enumerate() {
            for l in 0..n {
                let mut largest = [f32::NEG_INFINITY; LANES];
                for at in line(sums, l, n) {
                    for (largest, x) in largest.iter_mut().zip(&logs[at]) {
                        *largest = if *x > *largest { *x } else { *largest };
                    }
                }
                let mut sum = [0.0f32; LANES];
                for at in line(sums, l, n) {
                    for ((sum, x), largest) in sum.iter_mut().zip(&logs[at]).zip(&largest) {
                        *sum += exp(x - largest);
                    }
                }
                for (sum, largest) in sum.iter_mut().zip(&largest) {
                    *sum = largest + sum.ln();
                }
                for at in line(sums, l, n) {
                    for (x, sum) in logs[at].iter_mut().zip(&sum) {
                        *x -= sum;
                    }
                }
            }
            let to = &mut halves[if keep { half } else { 0 }];
            for (to, from) in to.iter_mut().zip(&logs) {
                for (to, x) in to.iter_mut().zip(from) {
                    *to = if *x < LEAST { 0.0 } else { exp(*x) };
                }
            }
        }
        let mut matrix = halves[if keep { 1 } else { 0 }].clone();
        for half in 2..2 * rounds {
            let sums = if half % 2 == 0 { Sums::Columns } else { Sums::Rows };
            for l in 0..n {
                let mut sum = [0.0f32; LANES];
                for at in line(sums, l, n) {
                    for (sum, x) in sum.iter_mut().zip(&matrix[at]) {
                        *sum += x;
                    }
                }
                for sum in &mut sum {
                    *sum = 1.0 / *sum;
                }
                for at in line(sums, l, n) {
                    for (x, sum) in matrix[at].iter_mut().zip(&sum) {
                        *x *= sum;
                    }
                }
            }
            if let Some(kept) = halves.get_mut(half).filter(|_| keep) {
                kept.copy_from_slice(&matrix);
            }
        }
        if !keep {
            halves[0].copy_from_slice(&matrix);
        }
    }
}

simd_kernel! {
    /// From the gradient of the result to that of the logits. In logarithms a half is `y = x - log sum exp x`, whatever the size of the
    /// numbers, and its gradient `dx = dy - exp(y) sum dy`.
    fn backward_group(n: usize, halves: &[Entries], g: &mut Entries) {
        if let Some(result) = halves.last() {
            for (g, y) in g.iter_mut().zip(result) {
                for (g, y) in g.iter_mut().zip(y) {
                    *g *= y;
                }
            }
        }
        for (half, y) in halves.iter().enumerate().rev() {
            let sums = if half % 2 == 0 { Sums::Columns } else { Sums::Rows };
            for l in 0..n {
                let mut sum = [0.0f32; LANES];
                for at in line(sums, l, n) {
                    for (sum, g) in sum.iter_mut().zip(&g[at]) {
                        *sum += g;
                    }
                }
                for at in line(sums, l, n) {
                    for ((g, y), sum) in g[at].iter_mut().zip(&y[at]).zip(&sum) {
                        *g -= y * sum;
                    }
                }
            }
        }
    }
}
