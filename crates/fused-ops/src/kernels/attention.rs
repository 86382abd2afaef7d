//! Rotary embedding (rotate-half, Su et al. 2021) and causal softmax attention, without a `T x T` matrix.
//!
//! Queries are handled in blocks of 64 rows against the keys up to the block's end, so that about half of the
//! work above the diagonal is never done; the backward pass recomputes the probabilities from one log-sum-exp a row
//! (Dao et al. 2022).

use rayon::prelude::*;

use super::{
    products::{Strided, multiply},
    simd::{dot, exp, maximum, simd_kernel, sum},
};

/// Query rows handled at a time.
const BLOCK: usize = 64;

/// Sizes of an attention problem: queries, keys and values have `batch * length` rows of `heads * head_size`,
/// row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sequences in the batch.
    pub batch: usize,
    /// Positions of each sequence.
    pub length: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of one head; even where a rotary embedding turns pairs.
    pub head_size: usize,
}

impl Shape {
    /// Features of a row: those of all heads.
    pub(super) fn width(&self) -> usize {
        self.heads * self.head_size
    }

    /// Checks every slice of a call, so that the pointers below stay inside them.
    fn check(&self, matrices: &[usize], tables: &[usize], log_sums: usize) {
        let Self { batch, length, heads, head_size } = *self;
        assert!(head_size > 0 && head_size.is_multiple_of(2), "attention: heads have an even width");
        let fits = |sizes: &[usize], expected: usize| sizes.iter().all(|&size| size == expected);
        assert!(fits(matrices, batch * length * heads * head_size), "attention: matrices fit {self:?}");
        assert!(fits(tables, length * head_size / 2), "attention: rotary tables fit {self:?}");
        assert!(log_sums == batch * heads * length, "attention: one log-sum-exp a row and head of {self:?}");
    }

    /// The factor of scores before the softmax.
    pub(super) fn scale(&self) -> f32 {
        1.0 / (self.head_size as f32).sqrt()
    }
}

simd_kernel! {
    /// Turns the pairs `(x_j, x_{j + half})` of each row by the row's angles; `direction` -1 turns back.
    fn rotate(rows: &[f32], row_stride: usize, cos: &[f32], sin: &[f32], half: usize, direction: f32, output: &mut [f32], output_stride: usize) {
        let positions = cos.len() / half;
        for t in 0..positions {
            let row = &rows[t * row_stride..t * row_stride + 2 * half];
            let out = &mut output[t * output_stride..t * output_stride + 2 * half];
            let (low, high) = row.split_at(half);
            let (out_low, out_high) = out.split_at_mut(half);
            let (cos, sin) = (&cos[t * half..(t + 1) * half], &sin[t * half..(t + 1) * half]);
            for ((((o, p), (a, b)), c), s) in out_low.iter_mut().zip(out_high).zip(low.iter().zip(high)).zip(cos).zip(sin) {
                let s = s * direction;
                *o = a * c - b * s;
                *p = b * c + a * s;
            }
        }
    }
}

simd_kernel! {
    /// Softmax of scaled scores in place; writes each row's log-sum-exp of the scaled scores. Where `first` is given,
    /// the softmax is causal: row `r` keeps its first `first + r + 1` columns, the rest becomes 0.
    pub(super) fn softmax_rows(
        scores: &mut [f32],
        columns: usize,
        first: Option<usize>,
        scale: f32,
        log_sums: &mut [f32],
    ) {
        for (r, (row, log_sum)) in scores.chunks_exact_mut(columns).zip(log_sums).enumerate() {
            let (seen, unseen) = row.split_at_mut(first.map_or(columns, |first| first + r + 1));
            let largest = maximum(seen) * scale;
            for s in seen.iter_mut() {
                *s = exp(*s * scale - largest);
            }
            let total = sum(seen);
            *log_sum = largest + total.ln();
            let inverse = 1.0 / total;
            for s in seen.iter_mut() {
                *s *= inverse;
            }
            unseen.fill(0.0);
        }
    }
}

simd_kernel! {
    /// From scores and `dP` to probabilities (in `scores`) and score gradients (in `gradients`), row by row.
    pub(super) fn softmax_rows_backward(
        scores: &mut [f32],
        gradients: &mut [f32],
        columns: usize,
        first: Option<usize>,
        scale: f32,
        log_sums: &[f32],
    ) {
        for (r, ((row, ds), log_sum)) in
            scores.chunks_exact_mut(columns).zip(gradients.chunks_exact_mut(columns)).zip(log_sums).enumerate()
        {
            let visible = first.map_or(columns, |first| first + r + 1);
            let (seen, unseen) = row.split_at_mut(visible);
            let (ds_seen, ds_unseen) = ds.split_at_mut(visible);
            for s in seen.iter_mut() {
                *s = exp(*s * scale - log_sum);
            }
            let mean = dot(seen, ds_seen);
            for (d, p) in ds_seen.iter_mut().zip(seen.iter()) {
                *d = p * (*d - mean) * scale;
            }
            unseen.fill(0.0);
            ds_unseen.fill(0.0);
        }
    }
}

/// Rotates one head of `matrix` into a contiguous `[length, head_size]` buffer.
fn gather_rotated(matrix: &[f32], shape: Shape, offset: usize, cos: &[f32], sin: &[f32], output: &mut [f32]) {
    let span = (shape.length - 1) * shape.width() + shape.head_size;
    rotate(&matrix[offset..offset + span], shape.width(), cos, sin, shape.head_size / 2, 1.0, output, shape.head_size);
}

/// Attention output, `[batch * length, heads * head_size]`, and the log-sum-exp of each row, `[batch, heads, length]`.
///
/// `cos` and `sin` are `[length, head_size / 2]`.
#[allow(clippy::too_many_arguments)]
pub fn forward(
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    cos: &[f32],
    sin: &[f32],
    shape: Shape,
    output: &mut [f32],
    log_sums: &mut [f32],
) {
    let matrices = [queries.len(), keys.len(), values.len(), output.len()];
    shape.check(&matrices, &[cos.len(), sin.len()], log_sums.len());
    let Shape { length, heads, head_size, .. } = shape;
    if log_sums.is_empty() {
        return;
    }
    let width = shape.width();
    let out = Strided::new(output, width);
    let block = BLOCK.min(length);
    let scratch = || (vec![0.0; length * head_size], vec![0.0; length * head_size], vec![0.0; block * length]);
    log_sums.par_chunks_mut(length).enumerate().for_each_init(scratch, |(q, k, scores), (task, log_sums)| {
        let (first_row, column) = (task / heads * length, task % heads * head_size);
        let offset = first_row * width + column;
        gather_rotated(queries, shape, offset, cos, sin, q);
        gather_rotated(keys, shape, offset, cos, sin, k);
        for start in (0..length).step_by(block) {
            let end = (start + block).min(length);
            let rows = end - start;
            let scores = &mut scores[..rows * end];
            // SAFETY: the sizes were checked on entry: `q` and `k` hold `length` rows of `head_size`, `scores` holds `rows * end` elements, and
            // `values` and `output` hold the rows and columns of this task, which no other task writes.
            unsafe {
                multiply(
                    (rows, end, head_size),
                    (scores.as_mut_ptr(), end),
                    false,
                    (q.as_ptr().add(start * head_size), head_size, 1),
                    (k.as_ptr(), 1, head_size),
                );
                softmax_rows(scores, end, Some(start), shape.scale(), &mut log_sums[start..end]);
                multiply(
                    (rows, head_size, end),
                    (out.at(first_row + start, column), width),
                    false,
                    (scores.as_ptr(), end, 1),
                    (values.as_ptr().add(offset), width, 1),
                );
            }
        }
    });
}

/// Gradients of [`forward`] with respect to queries, keys and values, all of their shape.
#[allow(clippy::too_many_arguments)]
pub fn backward(
    (queries, keys, values): (&[f32], &[f32], &[f32]),
    (cos, sin): (&[f32], &[f32]),
    log_sums: &[f32],
    upstream: &[f32],
    shape: Shape,
    query_gradient: &mut [f32],
    key_gradient: &mut [f32],
    value_gradient: &mut [f32],
) {
    let gradients = [query_gradient.len(), key_gradient.len(), value_gradient.len()];
    let matrices = [queries.len(), keys.len(), values.len(), upstream.len()];
    shape.check(&[&matrices[..], &gradients].concat(), &[cos.len(), sin.len()], log_sums.len());
    let Shape { length, heads, head_size, .. } = shape;
    if log_sums.is_empty() {
        return;
    }
    let width = shape.width();
    let (dq_out, dk_out, dv_out) =
        (Strided::new(query_gradient, width), Strided::new(key_gradient, width), Strided::new(value_gradient, width));
    let block = BLOCK.min(length);
    let head = length * head_size;
    let scratch = || (vec![0.0; 4 * head], vec![0.0; 2 * block * length]);
    log_sums.par_chunks(length).enumerate().for_each_init(scratch, |(rows_of_head, squares), (task, log_sums)| {
        let (first_row, column) = (task / heads * length, task % heads * head_size);
        let offset = first_row * width + column;
        let (q, rest) = rows_of_head.split_at_mut(head);
        let (k, rest) = rest.split_at_mut(head);
        let (dq, dk) = rest.split_at_mut(head);
        gather_rotated(queries, shape, offset, cos, sin, q);
        gather_rotated(keys, shape, offset, cos, sin, k);
        // The last block sees every key, so going backwards the first product covers, and so initialises, all of dk, dv.
        for start in (0..length).step_by(block).rev() {
            let end = (start + block).min(length);
            let rows = end - start;
            let add = end < length;
            let (scores, ds) = squares.split_at_mut(block * length);
            let (scores, ds) = (&mut scores[..rows * end], &mut ds[..rows * end]);
            // SAFETY: as in `forward`; the strided outputs are those of this task alone.
            unsafe {
                let g = (upstream.as_ptr().add(offset + start * width), width, 1);
                let q_block = q.as_ptr().add(start * head_size);
                multiply(
                    (rows, end, head_size),
                    (scores.as_mut_ptr(), end),
                    false,
                    (q_block, head_size, 1),
                    (k.as_ptr(), 1, head_size),
                );
                multiply(
                    (rows, end, head_size),
                    (ds.as_mut_ptr(), end),
                    false,
                    g,
                    (values.as_ptr().add(offset), 1, width),
                );
                softmax_rows_backward(scores, ds, end, Some(start), shape.scale(), &log_sums[start..end]);
                multiply(
                    (end, head_size, rows),
                    (dv_out.at(first_row, column), width),
                    add,
                    (scores.as_ptr(), 1, end),
                    g,
                );
                multiply(
                    (rows, head_size, end),
                    (dq.as_mut_ptr().add(start * head_size), head_size),
                    false,
                    (ds.as_ptr(), end, 1),
                    (k.as_ptr(), head_size, 1),
                );
                multiply(
                    (end, head_size, rows),
                    (dk.as_mut_ptr(), head_size),
                    add,
                    (ds.as_ptr(), 1, end),
                    (q_block, head_size, 1),
                );
            }
        }
        // The rotated queries are no longer needed: their buffer takes what is turned back.
        scatter_back(dq, shape, (cos, sin), q, dq_out, (first_row, column));
        scatter_back(dk, shape, (cos, sin), q, dk_out, (first_row, column));
    });
}

/// Turns a head's gradient back (into `turned`, of the same size) and copies it to the head's columns of the output.
fn scatter_back(
    gradient: &[f32],
    shape: Shape,
    (cos, sin): (&[f32], &[f32]),
    turned: &mut [f32],
    output: Strided,
    (first_row, column): (usize, usize),
) {
    let size = shape.head_size;
    rotate(gradient, size, cos, sin, size / 2, -1.0, turned, size);
    for (t, row) in turned.chunks_exact(size).enumerate() {
        // SAFETY: the row and columns belong to the calling task.
        unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), output.at(first_row + t, column), size) };
    }
}
