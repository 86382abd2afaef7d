//! Squared distances between all rows of two sets, block by block.
//!
//! Differences are squared and summed in `f64`. The shorter `||a||^2 + ||b||^2 - 2ab` would be a matrix product,
//! but loses the digits that decide which of two neighbours is nearer.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::Features;

/// Rows of a block of queries and of the set that they are compared with: both blocks stay in a core's cache.
const QUERIES: usize = 32;
const OTHERS: usize = 32;

/// Partial sums of a distance. Their number is fixed, and so is the order in which they are added: a distance has the
/// same bits on every CPU, wherever the two rows stand and whichever comes first.
const LANES: usize = 8;

/// Part of a row as `f64`, aligned so that a vector never lies across two cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes([f64; LANES]);

/// Compares each row of `queries` with all rows of `others`, in parallel over blocks of queries.
///
/// For each block, `start` makes a value from the rows' range, and `visit` gets it with a row and the squared distances
/// of this row to a range of the others. Returns the values in order.
pub(crate) fn compare<T: Send>(
    queries: &Features,
    others: &Features,
    start: impl Fn(Range<usize>) -> T + Sync,
    visit: impl Fn(&mut T, usize, Range<usize>, &[f64]) + Sync,
) -> Vec<T> {
    let arch = Arch::new();
    let blocks: Vec<Range<usize>> = ranges(queries.rows(), QUERIES).collect();
    let compare_block = |block: Range<usize>| {
        let mut value = start(block.clone());
        let left = widened(queries, &block);
        let mut right = Vec::new();
        let mut squared = vec![0.0; QUERIES * OTHERS];
        for range in ranges(others.rows(), OTHERS) {
            widen(others, &range, &mut right);
            let (rows, columns) = (block.len(), range.len());
            arch.dispatch(SquaredDistances { left: &left, right: &right, rows, columns, out: &mut squared });
            for (i, row) in block.clone().enumerate() {
                visit(&mut value, row, range.clone(), &squared[i * range.len()..(i + 1) * range.len()]);
            }
        }
        value
    };
    blocks.into_par_iter().map(compare_block).collect()
}

fn ranges(rows: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(size).map(move |start| start..rows.min(start + size))
}

fn widened(features: &Features, rows: &Range<usize>) -> Vec<Lanes> {
    let mut values = Vec::new();
    widen(features, rows, &mut values);
    values
}

/// The rows as `f64`, each filled up with zeros to whole lanes.
fn widen(features: &Features, rows: &Range<usize>, values: &mut Vec<Lanes>) {
    values.clear();
    for row in rows.clone() {
        values.extend(features.row(row).chunks(LANES).map(|part| {
            let mut lanes = Lanes([0.0; LANES]);
            lanes.0.iter_mut().zip(part).for_each(|(lane, &value)| *lane = f64::from(value));
            lanes
        }));
    }
}

/// `out[i * columns + j]` becomes the squared distance of row i of `left` to row j of `right`.
struct SquaredDistances<'a> {
    left: &'a [Lanes],
    right: &'a [Lanes],
    rows: usize,
    columns: usize,
    out: &'a mut [f64],
}

impl WithSimd for SquaredDistances<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { left, right, rows, columns, out } = self;
        let width = left.len() / rows;
        for i in (0..rows).step_by(2) {
            // An odd last row is compared twice rather than by code of its own.
            let i2 = (i + 1).min(rows - 1);
            let (a, a2) = (&left[i * width..][..width], &left[i2 * width..][..width]);
            for j in (0..columns).step_by(2) {
                let j2 = (j + 1).min(columns - 1);
                let (b, b2) = (&right[j * width..][..width], &right[j2 * width..][..width]);
                let [ab, ab2, a2b, a2b2] = four(simd, [a, a2], [b, b2]);
                out[i * columns + j] = ab;
                out[i * columns + j2] = ab2;
                out[i2 * columns + j] = a2b;
                out[i2 * columns + j2] = a2b2;
            }
        }
    }
}

/// The squared distances of two rows to two others: each value is loaded once for two of them. Products are not fused
/// with sums, because not every CPU can.
#[inline(always)]
fn four<S: Simd>(simd: S, left: [&[Lanes]; 2], right: [&[Lanes]; 2]) -> [f64; 4] {
    // A vector has no more lanes than a part of a row, and whole vectors make it up.
    const { assert!(LANES.is_multiple_of(S::F64_LANES)) }
    let count = LANES / S::F64_LANES;
    let zero = simd.splat_f64s(0.0);
    let mut sums = [[zero; LANES]; 4];
    for ((a, a2), (b, b2)) in left[0].iter().zip(left[1]).zip(right[0].iter().zip(right[1])) {
        let [a, a2, b, b2] = [a, a2, b, b2].map(|part| S::as_simd_f64s(&part.0).0);
        for part in 0..count {
            let pairs = [(a[part], b[part]), (a[part], b2[part]), (a2[part], b[part]), (a2[part], b2[part])];
            for (sum, (x, y)) in sums.iter_mut().zip(pairs) {
                let difference = simd.sub_f64s(x, y);
                sum[part] = simd.add_f64s(sum[part], simd.mul_f64s(difference, difference));
            }
        }
    }
    sums.map(|sum| {
        let mut lanes = [0.0; LANES];
        S::as_mut_simd_f64s(&mut lanes).0.copy_from_slice(&sum[..count]);
        let [s0, s1, s2, s3, s4, s5, s6, s7] = lanes;
        ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_gets_the_same_bits() {
        for (dimension, rows, columns) in [(1, 1, 1), (7, 2, 5), (8, 3, 4), (29, 5, 3)] {
            let drawn = |rows: usize, seed: usize| -> Vec<Lanes> {
                let value = |i: usize| ((i * 7919 + seed) % 1009) as f64 / 3.0;
                let features = |row: usize| (0..dimension).map(move |i| value(row * dimension + i));
                let row =
                    |row| Features::new(dimension, features(row).chain(features(row)).map(|x| x as f32).collect());
                (0..rows).flat_map(|i| widened(&row(i).unwrap(), &(0..1))).collect()
            };
            let (left, right) = (drawn(rows, 1), drawn(columns, 500));
            let task = |out| SquaredDistances { left: &left, right: &right, rows, columns, out };
            let (mut best, mut plain) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
            Arch::new().dispatch(task(&mut best));
            task(&mut plain).with_simd(pulp::Scalar);
            assert_eq!(best, plain);
            for (i, a) in left.chunks(left.len() / rows).enumerate() {
                for (j, b) in right.chunks(right.len() / columns).enumerate() {
                    let pairs = a.iter().flat_map(|part| part.0).zip(b.iter().flat_map(|part| part.0));
                    let expected: f64 = pairs.map(|(a, b)| (a - b).powi(2)).sum();
                    let found = best[i * columns + j];
                    assert!((found - expected).abs() <= 1e-12 * expected, "{found}, expected {expected}");
                }
            }
        }
    }
}
