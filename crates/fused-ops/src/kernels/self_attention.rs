//! Bidirectional softmax attention without positions, from queries, keys and values that lie packed in one matrix.
//!
//! Long sequences go through matrix products on the packed matrix itself, in blocks of 128 queries; the backward pass
//! recomputes the probabilities from one log-sum-exp a row (Dao et al. 2022). Short ones have loops of their own.

use rayon::prelude::*;

use super::{
    CHUNK,
    attention::{Shape, softmax_rows, softmax_rows_backward},
    products::{Strided, multiply},
    small_attention as small,
};

/// Query rows handled at a time: of 1024 positions their scores and the gradients of these fill 1 MiB.
const BLOCK: usize = 128;

/// Sequences up to this length do not call the matrix products. At 64 positions of 64 elements both ways take the same
/// time; with shorter sequences or narrower heads the loops are faster, at 16 positions of 16 elements three times.
const SMALL: usize = 64;

fn check(shape: Shape, packed: &[usize], single: &[usize], log_sums: usize) {
    let matrix = shape.batch * shape.length * shape.width();
    let fits = |sizes: &[usize], expected: usize| sizes.iter().all(|&size| size == expected);
    assert!(shape.head_size > 0, "self_attention: heads are not empty");
    assert!(fits(packed, 3 * matrix) && fits(single, matrix), "self_attention: matrices fit {shape:?}");
    assert!(
        log_sums == shape.batch * shape.heads * shape.length,
        "self_attention: one log-sum-exp a row and head of {shape:?}"
    );
}

/// Short sequences that one task handles.
fn sequences_per_task(shape: Shape) -> usize {
    (CHUNK / (3 * shape.length * shape.width())).max(1)
}

/// Attention output, `[batch * length, heads * head_size]`, and the log-sum-exp of each row, `[batch, heads, length]`.
///
/// `packed` is `[batch * length, 3 * heads * head_size]`: queries, keys, values, in each of which head follows head.
pub fn forward(packed: &[f32], shape: Shape, output: &mut [f32], log_sums: &mut [f32]) {
    check(shape, &[packed.len()], &[output.len()], log_sums.len());
    if log_sums.is_empty() {
        return;
    }
    if shape.length <= SMALL {
        forward_small(packed, shape, output, log_sums);
    } else {
        forward_large(packed, shape, output, log_sums);
    }
}

/// Gradient of [`forward`] with respect to `packed`, whose shape it has.
pub fn backward(packed: &[f32], log_sums: &[f32], upstream: &[f32], shape: Shape, gradient: &mut [f32]) {
    check(shape, &[packed.len(), gradient.len()], &[upstream.len()], log_sums.len());
    if log_sums.is_empty() {
        return;
    }
    if shape.length <= SMALL {
        backward_small(packed, log_sums, upstream, shape, gradient);
    } else {
        backward_large(packed, log_sums, upstream, shape, gradient);
    }
}

fn forward_small(packed: &[f32], shape: Shape, output: &mut [f32], log_sums: &mut [f32]) {
    let matrix = shape.length * shape.width();
    let (rows, sequences) = (shape.heads * shape.length, sequences_per_task(shape));
    output
        .par_chunks_mut(sequences * matrix)
        .zip(log_sums.par_chunks_mut(sequences * rows))
        .zip(packed.par_chunks(sequences * 3 * matrix))
        .for_each_init(
            || vec![0.0; small::forward_scratch(shape)],
            |scratch, ((output, log_sums), packed)| {
                let sequences = output.chunks_exact_mut(matrix).zip(log_sums.chunks_exact_mut(rows));
                for ((output, log_sums), packed) in sequences.zip(packed.chunks_exact(3 * matrix)) {
                    small::forward(packed, shape, scratch, output, log_sums);
                }
            },
        );
}

fn backward_small(packed: &[f32], log_sums: &[f32], upstream: &[f32], shape: Shape, gradient: &mut [f32]) {
    let matrix = shape.length * shape.width();
    let (rows, sequences) = (shape.heads * shape.length, sequences_per_task(shape));
    gradient
        .par_chunks_mut(sequences * 3 * matrix)
        .zip(packed.par_chunks(sequences * 3 * matrix))
        .zip(upstream.par_chunks(sequences * matrix))
        .zip(log_sums.par_chunks(sequences * rows))
        .for_each_init(
            || vec![0.0; small::backward_scratch(shape)],
            |scratch, (((gradient, packed), upstream), log_sums)| {
                let sequences = gradient.chunks_exact_mut(3 * matrix).zip(packed.chunks_exact(3 * matrix));
                let sequences = sequences.zip(upstream.chunks_exact(matrix)).zip(log_sums.chunks_exact(rows));
                for (((gradient, packed), upstream), log_sums) in sequences {
                    small::backward(packed, log_sums, upstream, shape, scratch, gradient);
                }
            },
        );
}

fn forward_large(packed: &[f32], shape: Shape, output: &mut [f32], log_sums: &mut [f32]) {
    let Shape { length, heads, head_size, .. } = shape;
    let (width, stride) = (shape.width(), 3 * shape.width());
    let out = Strided::new(output, width);
    let block = BLOCK.min(length);
    let scratch = || vec![0.0; block * length];
    log_sums.par_chunks_mut(length).enumerate().for_each_init(scratch, |scores, (task, log_sums)| {
        let (first_row, column) = (task / heads * length, task % heads * head_size);
        for (start, log_sums) in (0..length).step_by(block).zip(log_sums.chunks_mut(block)) {
            let rows = log_sums.len();
            let scores = &mut scores[..rows * length];
            // SAFETY: the sizes were checked on entry: `scores` holds `rows * length` elements, and `packed` and
            // `output` hold the rows and columns of this task, the latter of which no other task writes.
            unsafe {
                let head = packed.as_ptr().add(first_row * stride + column);
                multiply(
                    (rows, length, head_size),
                    (scores.as_mut_ptr(), length),
                    false,
                    (head.add(start * stride), stride, 1),
                    (head.add(width), 1, stride),
                );
                softmax_rows(scores, length, None, shape.scale(), log_sums);
                multiply(
                    (rows, head_size, length),
                    (out.at(first_row + start, column), width),
                    false,
                    (scores.as_ptr(), length, 1),
                    (head.add(2 * width), stride, 1),
                );
            }
        }
    });
}

fn backward_large(packed: &[f32], log_sums: &[f32], upstream: &[f32], shape: Shape, gradient: &mut [f32]) {
    let Shape { length, heads, head_size, .. } = shape;
    let (width, stride) = (shape.width(), 3 * shape.width());
    let out = Strided::new(gradient, stride);
    let block = BLOCK.min(length);
    let scratch = || vec![0.0; 2 * block * length];
    log_sums.par_chunks(length).enumerate().for_each_init(scratch, |squares, (task, log_sums)| {
        let (first_row, column) = (task / heads * length, task % heads * head_size);
        for (start, log_sums) in (0..length).step_by(block).zip(log_sums.chunks(block)) {
            let rows = log_sums.len();
            let add = start > 0;
            let (scores, ds) = squares.split_at_mut(block * length);
            let (scores, ds) = (&mut scores[..rows * length], &mut ds[..rows * length]);
            // SAFETY: as in `forward_large`; of `gradient`, a task writes the three column blocks of its own head.
            unsafe {
                let head = packed.as_ptr().add(first_row * stride + column);
                let queries = head.add(start * stride);
                let g = (upstream.as_ptr().add((first_row + start) * width + column), width, 1);
                multiply(
                    (rows, length, head_size),
                    (scores.as_mut_ptr(), length),
                    false,
                    (queries, stride, 1),
                    (head.add(width), 1, stride),
                );
                multiply(
                    (rows, length, head_size),
                    (ds.as_mut_ptr(), length),
                    false,
                    g,
                    (head.add(2 * width), 1, stride),
                );
                softmax_rows_backward(scores, ds, length, None, shape.scale(), log_sums);
                multiply(
                    (rows, head_size, length),
                    (out.at(first_row + start, column), stride),
                    false,
                    (ds.as_ptr(), length, 1),
                    (head.add(width), stride, 1),
                );
                // The first block sees every key, so it initialises all of the gradients of keys and values.
                multiply(
                    (length, head_size, rows),
                    (out.at(first_row, width + column), stride),
                    add,
                    (ds.as_ptr(), 1, length),
                    (queries, stride, 1),
                );
                multiply(
                    (length, head_size, rows),
                    (out.at(first_row, 2 * width + column), stride),
                    add,
                    (scores.as_ptr(), 1, length),
                    g,
                );
            }
        }
    });
}
