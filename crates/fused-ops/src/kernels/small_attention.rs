//! Bidirectional attention of one short sequence, for all its heads, without matrix products from a library: at 16 rows
//! of 16 elements a call of one costs more than its work.
//!
//! Scores are kept transposed, keys by queries. Then maxima, sums and exponentials of the softmax run over whole vectors
//! of queries, and no vector is ever summed across.

use super::{
    attention::Shape,
    simd::{exp, simd_kernel},
};

/// Columns of a tile: queries are padded to a multiple of them.
const TILE: usize = 16;

/// Rows of a tile: enough independent sums to fill the pipelines of the arithmetic.
const ROWS: usize = 4;

/// Scratch elements that [`forward`] needs.
pub(super) fn forward_scratch(shape: Shape) -> usize {
    let columns = shape.length.next_multiple_of(TILE);
    (shape.head_size + shape.length) * columns
}

/// Scratch elements that [`backward`] needs.
pub(super) fn backward_scratch(shape: Shape) -> usize {
    2 * forward_scratch(shape)
}

simd_kernel! {
    /// Output `[length, width]` and log-sum-exps `[heads, length]` of one sequence `packed`, `[length, 3 * width]`.
    pub(super) fn forward(packed: &[f32], shape: Shape, scratch: &mut [f32], output: &mut [f32], log_sums: &mut [f32]) {
        let Shape { length, heads, head_size, .. } = shape;
        let width = heads * head_size;
        let columns = length.next_multiple_of(TILE);
        let (queries, scores) = scratch.split_at_mut(head_size * columns);
        for head in 0..heads {
            let [q, k, v] = [0, width, 2 * width].map(|block| &packed[block + head * head_size..]);
            transpose(q, 3 * width, (length, head_size), columns, queries);
            product::<false>((length, columns, head_size), (k, 3 * width), (queries, columns), (scores, columns));
            softmax_columns(scores, columns, shape.scale(), &mut log_sums[head * length..(head + 1) * length]);
            let out = &mut output[head * head_size..];
            product::<true>((length, head_size, length), (scores, columns), (v, 3 * width), (out, width));
        }
    }
}

simd_kernel! {
    /// Gradient of [`forward`] with respect to `packed`.
    pub(super) fn backward(packed: &[f32], log_sums: &[f32], upstream: &[f32], shape: Shape, scratch: &mut [f32], gradient: &mut [f32]) {
        let Shape { length, heads, head_size, .. } = shape;
        let width = heads * head_size;
        let columns = length.next_multiple_of(TILE);
        let (transposed, squares) = scratch.split_at_mut(2 * head_size * columns);
        let (queries, outputs) = transposed.split_at_mut(head_size * columns);
        let (scores, ds) = squares.split_at_mut(length * columns);
        for head in 0..heads {
            let [q, k, v] = [0, width, 2 * width].map(|block| &packed[block + head * head_size..]);
            let g = &upstream[head * head_size..];
            transpose(q, 3 * width, (length, head_size), columns, queries);
            transpose(g, width, (length, head_size), columns, outputs);
            product::<false>((length, columns, head_size), (k, 3 * width), (queries, columns), (scores, columns));
            product::<false>((length, columns, head_size), (v, 3 * width), (outputs, columns), (ds, columns));
            let log_sums = &log_sums[head * length..(head + 1) * length];
            softmax_columns_backward(scores, ds, columns, shape.scale(), log_sums);
            let sizes = (length, head_size, length);
            let column = head * head_size;
            product::<true>(sizes, (ds, columns), (k, 3 * width), (&mut gradient[column..], 3 * width));
            product::<false>(sizes, (ds, columns), (q, 3 * width), (&mut gradient[width + column..], 3 * width));
            product::<false>(sizes, (scores, columns), (g, width), (&mut gradient[2 * width + column..], 3 * width));
        }
    }
}

/// Writes `rows x width` elements of a matrix as `width` rows of `columns`; those beyond `rows` stay as they are.
#[inline(always)]
fn transpose(matrix: &[f32], stride: usize, (rows, width): (usize, usize), columns: usize, output: &mut [f32]) {
    for r in 0..rows {
        let row = &matrix[r * stride..][..width];
        for (x, out) in row.iter().zip(output.chunks_exact_mut(columns)) {
            out[r] = *x;
        }
    }
}

/// `output[r, c] = sum_i left(r, i) right[i, c]`, where `left(r, i)` is `left[r, i]`, or `left[i, r]` if `TRANSPOSED`.
/// Matrices are slices with the distance of their rows.
#[inline(always)]
fn product<const TRANSPOSED: bool>(
    (rows, columns, depth): (usize, usize, usize),
    left: (&[f32], usize),
    right: (&[f32], usize),
    output: (&mut [f32], usize),
) {
    let (output, output_stride) = output;
    for column in (0..columns).step_by(TILE) {
        let width = TILE.min(columns - column);
        let right = (&right.0[column..], right.1);
        let mut row = 0;
        while row + ROWS <= rows {
            let sums = tile::<TRANSPOSED, ROWS>(depth, width, left, row, right);
            for (r, sums) in sums.iter().enumerate() {
                store(sums, &mut output[(row + r) * output_stride + column..], width);
            }
            row += ROWS;
        }
        while row < rows {
            let [sums] = tile::<TRANSPOSED, 1>(depth, width, left, row, right);
            store(&sums, &mut output[row * output_stride + column..], width);
            row += 1;
        }
    }
}

/// `N` rows and `width <= TILE` columns of a product.
#[inline(always)]
fn tile<const TRANSPOSED: bool, const N: usize>(
    depth: usize,
    width: usize,
    (left, left_stride): (&[f32], usize),
    row: usize,
    (right, right_stride): (&[f32], usize),
) -> [[f32; TILE]; N] {
    let mut sums = [[0.0f32; TILE]; N];
    let left_rows: [&[f32]; N] =
        if TRANSPOSED { [&[]; N] } else { std::array::from_fn(|r| &left[(row + r) * left_stride..][..depth]) };
    for i in 0..depth {
        let from = &right[i * right_stride..];
        let mut values = [0.0f32; TILE];
        if width == TILE {
            values.copy_from_slice(&from[..TILE]);
        } else {
            for (value, x) in values.iter_mut().zip(&from[..width]) {
                *value = *x;
            }
        }
        let factors: [f32; N] = if TRANSPOSED {
            let column = &left[i * left_stride + row..][..N];
            std::array::from_fn(|r| column[r])
        } else {
            std::array::from_fn(|r| left_rows[r][i])
        };
        for (sums, factor) in sums.iter_mut().zip(factors) {
            for (s, x) in sums.iter_mut().zip(&values) {
                *s += factor * x;
            }
        }
    }
    sums
}

#[inline(always)]
fn store(sums: &[f32; TILE], output: &mut [f32], width: usize) {
    if width == TILE {
        output[..TILE].copy_from_slice(sums);
    } else {
        for (o, s) in output[..width].iter_mut().zip(sums) {
            *o = *s;
        }
    }
}

/// Softmax of every column of scaled scores, in place, and the log-sum-exp of every column that is a query.
#[inline(always)]
fn softmax_columns(scores: &mut [f32], columns: usize, scale: f32, log_sums: &mut [f32]) {
    for column in (0..columns).step_by(TILE) {
        let mut largest = [f32::NEG_INFINITY; TILE];
        for row in scores.chunks_exact(columns) {
            for (m, s) in largest.iter_mut().zip(&row[column..column + TILE]) {
                *m = if *s > *m { *s } else { *m };
            }
        }
        let mut totals = [0.0f32; TILE];
        for row in scores.chunks_exact_mut(columns) {
            for ((s, m), t) in row[column..column + TILE].iter_mut().zip(&largest).zip(&mut totals) {
                *s = exp(*s * scale - *m * scale);
                *t += *s;
            }
        }
        let inverse = totals.map(|t| 1.0 / t);
        for row in scores.chunks_exact_mut(columns) {
            for (s, inverse) in row[column..column + TILE].iter_mut().zip(&inverse) {
                *s *= inverse;
            }
        }
        for ((log_sum, m), t) in log_sums[column..].iter_mut().zip(&largest).zip(&totals) {
            *log_sum = m * scale + t.ln();
        }
    }
}

/// From scores and the gradients of the probabilities to probabilities (in `scores`) and the gradients of the scores.
#[inline(always)]
fn softmax_columns_backward(scores: &mut [f32], gradients: &mut [f32], columns: usize, scale: f32, log_sums: &[f32]) {
    for column in (0..columns).step_by(TILE) {
        let mut offsets = [0.0f32; TILE];
        for (offset, log_sum) in offsets.iter_mut().zip(&log_sums[column..]) {
            *offset = *log_sum;
        }
        let mut means = [0.0f32; TILE];
        for (row, ds) in scores.chunks_exact_mut(columns).zip(gradients.chunks_exact(columns)) {
            let row = row[column..column + TILE].iter_mut().zip(&ds[column..column + TILE]);
            for ((s, d), (offset, mean)) in row.zip(offsets.iter().zip(&mut means)) {
                *s = exp(*s * scale - offset);
                *mean += *s * d;
            }
        }
        for (row, ds) in scores.chunks_exact(columns).zip(gradients.chunks_exact_mut(columns)) {
            for ((p, d), mean) in row[column..column + TILE].iter().zip(&mut ds[column..column + TILE]).zip(&means) {
                *d = p * (*d - mean) * scale;
            }
        }
    }
}
