//! Euclidean distances between all rows of two matrices.

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{dot, simd_kernel},
};

fn check(left: &[f32], right: &[f32], width: usize, distances: usize) -> [usize; 2] {
    assert!(
        width > 0 && left.len().is_multiple_of(width) && right.len().is_multiple_of(width),
        "pairwise_distances: rows are of one width"
    );
    let rows = [left.len() / width, right.len() / width];
    assert!(distances == rows[0] * rows[1], "pairwise_distances: one distance a pair");
    rows
}

/// Rows of the first matrix that one task handles.
fn rows_per_task(width: usize, others: usize) -> usize {
    (CHUNK / (width * others).max(1)).max(1)
}

/// `output[i, j] = |left[i] - right[j]|` for rows of `width` elements.
///
/// Differences are squared and summed, not products taken apart, so that close rows have exact distances.
pub fn forward(left: &[f32], right: &[f32], width: usize, output: &mut [f32]) {
    let [_, others] = check(left, right, width, output.len());
    if output.is_empty() {
        return;
    }
    let rows = rows_per_task(width, others);
    output.par_chunks_mut(rows * others).zip(left.par_chunks(rows * width)).for_each(|(output, left)| {
        let mut scratch = vec![0.0; width];
        forward_rows(left, right, &mut scratch, output);
    });
}

simd_kernel! {
    fn forward_rows(left: &[f32], right: &[f32], scratch: &mut [f32], output: &mut [f32]) {
        let width = scratch.len();
        for (a, o) in left.chunks_exact(width).zip(output.chunks_exact_mut(right.len() / width)) {
            for (b, o) in right.chunks_exact(width).zip(o.iter_mut()) {
                for ((s, a), b) in scratch.iter_mut().zip(a).zip(b) {
                    *s = a - b;
                }
                *o = dot(scratch, scratch).sqrt();
            }
        }
    }
}

/// Backward of [`forward`] with respect to its first matrix, given the distances: overwrites
/// `gradient[i] = sum_j upstream[i, j] (left[i] - right[j]) / distances[i, j]`. A pair of equal rows has no direction and
/// adds nothing.
///
/// With `transposed`, distances and upstream are those of the swapped matrices, `[right, left]`.
pub fn backward(
    left: &[f32],
    right: &[f32],
    width: usize,
    (distances, upstream, transposed): (&[f32], &[f32], bool),
    gradient: &mut [f32],
) {
    same_length!("pairwise_distances", left, gradient);
    same_length!("pairwise_distances", distances, upstream);
    let [rows, others] = check(left, right, width, distances.len());
    let strides = if transposed { [1, rows] } else { [others, 1] };
    gradient.fill(0.0);
    if distances.is_empty() {
        return;
    }
    let task = rows_per_task(width, others);
    gradient.par_chunks_mut(task * width).zip(left.par_chunks(task * width)).enumerate().for_each(
        |(number, (gradient, left))| {
            backward_rows(left, right, width, number * task, strides, distances, upstream, gradient);
        },
    );
}

simd_kernel! {
    fn backward_rows(
        left: &[f32],
        right: &[f32],
        width: usize,
        first: usize,
        strides: [usize; 2],
        distances: &[f32],
        upstream: &[f32],
        gradient: &mut [f32],
    ) {
        for (i, (a, da)) in left.chunks_exact(width).zip(gradient.chunks_exact_mut(width)).enumerate() {
            for (j, b) in right.chunks_exact(width).enumerate() {
                let pair = (first + i) * strides[0] + j * strides[1];
                let weight = if distances[pair] > 0.0 { upstream[pair] / distances[pair] } else { 0.0 };
                for ((da, a), b) in da.iter_mut().zip(a).zip(b) {
                    *da += weight * (a - b);
                }
            }
        }
    }
}
