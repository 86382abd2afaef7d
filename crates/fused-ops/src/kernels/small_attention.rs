//! Bidirectional attention of one short sequence, for all its heads, without matrix products from a library: at 16 rows
//! of 16 elements a call of one costs more than its work.
//!
//! Scores are kept transposed, keys by queries. Then maxima, sums and exponentials of the softmax run over whole
//! vectors of queries, and no vector is ever summed across.

use super::{
    attention::Shape,
    simd::{SimdLevel, exp, simd_kernel, simd_level},
};

/// Columns of a tile: queries are padded to a multiple of them.
const TILE: usize = 16;

/// Rows of a tile: enough independent sums to fill the pipelines of the arithmetic, and few enough to stay in the 16
/// registers of AVX2.
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
    pub(super) fn backward(
        packed: &[f32],
        log_sums: &[f32],
        upstream: &[f32],
        shape: Shape,
        scratch: &mut [f32],
        gradient: &mut [f32],
    ) {
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
    // Four rows at a time, so that a row of the output is visited less often.
    for r in (0..rows / 4 * 4).step_by(4) {
        let [a, b, c, d] = std::array::from_fn(|i| &matrix[(r + i) * stride..][..width]);
        let columns = output.chunks_exact_mut(columns).zip(a.iter().zip(b)).zip(c.iter().zip(d));
        for ((out, (a, b)), (c, d)) in columns {
            out[r..r + 4].copy_from_slice(&[*a, *b, *c, *d]);
        }
    }
    for r in rows / 4 * 4..rows {
        for (out, x) in output.chunks_exact_mut(columns).zip(&matrix[r * stride..][..width]) {
            out[r] = *x;
        }
    }
}

/// `output[r, c] = sum_i left(r, i) right[i, c]`, where `left(r, i)` is `left[r, i]`, or `left[i, r]` if `TRANSPOSED`.
/// Matrices are slices with the distance of their rows.
#[inline(always)]
fn product<const TRANSPOSED: bool>(
    (rows, columns, depth): (usize, usize, usize),
    (left, left_stride): (&[f32], usize),
    (right, right_stride): (&[f32], usize),
    (output, output_stride): (&mut [f32], usize),
) {
    let (left_rows, left_columns) = if TRANSPOSED { (depth, rows) } else { (rows, depth) };
    let fits = |length: usize, stride: usize, rows: usize, columns: usize| length >= (rows - 1) * stride + columns;
    assert!(
        rows > 0
            && columns > 0
            && depth > 0
            && fits(left.len(), left_stride, left_rows, left_columns)
            && fits(right.len(), right_stride, depth, columns)
            && fits(output.len(), output_stride, rows, columns),
        "self_attention: matrices of a product fit their sizes"
    );
    // Where the CPU lacks the fused instruction, a library would be called for every product.
    let fused = simd_level() > SimdLevel::Baseline;
    let (left, right, output) = (left.as_ptr(), right.as_ptr(), output.as_mut_ptr());
    for column in (0..columns).step_by(TILE) {
        let width = TILE.min(columns - column);
        let mut row = 0;
        while row < rows {
            let first = if TRANSPOSED { row } else { row * left_stride };
            // SAFETY: rows and columns of a tile lie inside the matrices, which the slices were checked to hold.
            unsafe {
                let left = (left.add(first), left_stride);
                let right = (right.add(column), right_stride);
                let output = (output.add(row * output_stride + column), output_stride);
                match (rows - row >= ROWS, width == TILE, fused) {
                    (true, true, true) => tile::<TRANSPOSED, true, true, ROWS>(depth, TILE, left, right, output),
                    (true, true, false) => tile::<TRANSPOSED, true, false, ROWS>(depth, TILE, left, right, output),
                    (true, false, _) => tile::<TRANSPOSED, false, false, ROWS>(depth, width, left, right, output),
                    (false, true, _) => tile::<TRANSPOSED, true, false, 1>(depth, TILE, left, right, output),
                    (false, false, _) => tile::<TRANSPOSED, false, false, 1>(depth, width, left, right, output),
                }
            }
            row += if rows - row >= ROWS { ROWS } else { 1 };
        }
    }
}

/// `N` rows and `width <= TILE` columns of a product; `WHOLE` where there are `TILE` columns.
///
/// # Safety
/// The pointers must be valid for the rows and columns of the tile, those of the left matrix for `depth` elements.
#[inline(always)]
unsafe fn tile<const TRANSPOSED: bool, const WHOLE: bool, const FUSED: bool, const N: usize>(
    depth: usize,
    width: usize,
    (left, left_stride): (*const f32, usize),
    (right, right_stride): (*const f32, usize),
    (output, output_stride): (*mut f32, usize),
) {
    let mut sums = [[0.0f32; TILE]; N];
    // Addresses of their own: with them the compiler broadcasts every factor from memory.
    // SAFETY: the tile has `N` rows.
    let left_rows: [*const f32; N] =
        std::array::from_fn(|r| unsafe { left.add(if TRANSPOSED { r } else { r * left_stride }) });
    let step = if TRANSPOSED { left_stride } else { 1 };
    for i in 0..depth {
        // SAFETY: row `i < depth` of the right matrix has `width` elements here.
        let values: [f32; TILE] = unsafe {
            let row = right.add(i * right_stride);
            if WHOLE {
                row.cast::<[f32; TILE]>().read_unaligned()
            } else {
                let mut values = [0.0; TILE];
                for (c, value) in values.iter_mut().enumerate().take(width) {
                    *value = *row.add(c);
                }
                values
            }
        };
        // SAFETY: row `r < N` and column `i < depth` of the left matrix.
        let factors = left_rows.map(|row| unsafe { *row.add(i * step) });
        for (sums, factor) in sums.iter_mut().zip(factors) {
            for (s, x) in sums.iter_mut().zip(&values) {
                *s = if FUSED { factor.mul_add(*x, *s) } else { *s + factor * x };
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: row `r < N` of the output has `width` elements here.
        unsafe {
            let row = output.add(r * output_stride);
            if WHOLE {
                row.cast::<[f32; TILE]>().write_unaligned(*sums);
            } else {
                for (c, s) in sums.iter().enumerate().take(width) {
                    *row.add(c) = *s;
                }
            }
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
            let (p, d) = (&row[column..column + TILE], &mut ds[column..column + TILE]);
            // Through an array, so that the compiler need not fear that one row overlaps the other.
            let mut slopes = [0.0; TILE];
            for c in 0..TILE {
                slopes[c] = p[c] * (d[c] - means[c]) * scale;
            }
            d.copy_from_slice(&slopes);
        }
    }
}
