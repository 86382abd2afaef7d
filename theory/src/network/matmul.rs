//! Products of small square matrices on slices, column by column.
//!
//! Every entry is summed in the order k = 0, 1, ... whatever the instruction set, and never with fused
//! multiply-add, so that a result has the same bits on every CPU.

use nalgebra::{Const, Dyn};

/// The width d of a network: known to the compiler ([`Const`]) or not ([`Dyn`]).
pub(super) trait Width: Copy {
    /// The number d.
    fn get(self) -> usize;

    /// `c = a b`, or `c = a bᵀ` where `TRANSPOSED`, added to `c` where `ADDED`; all of them d x d.
    fn multiply<const TRANSPOSED: bool, const ADDED: bool>(self, a: &[f64], b: &[f64], c: &mut [f64]);

    /// `c = aᵀ`.
    #[inline(always)]
    fn transpose(self, a: &[f64], c: &mut [f64]) {
        let d = self.get();
        let (a, c) = (&a[..d * d], &mut c[..d * d]);
        for j in 0..d {
            for i in 0..d {
                c[j * d + i] = a[i * d + j];
            }
        }
    }
}

impl<const D: usize> Width for Const<D> {
    #[inline(always)]
    fn get(self) -> usize {
        D
    }

    #[inline(always)]
    fn multiply<const TRANSPOSED: bool, const ADDED: bool>(self, a: &[f64], b: &[f64], c: &mut [f64]) {
        let (a, b, c) = (&a[..D * D], &b[..D * D], &mut c[..D * D]);
        for j in 0..D {
            let mut column = [0.0; D];
            for k in 0..D {
                let factor = if TRANSPOSED { b[k * D + j] } else { b[j * D + k] };
                for i in 0..D {
                    column[i] += a[k * D + i] * factor;
                }
            }
            let c = &mut c[j * D..][..D];
            for i in 0..D {
                c[i] = if ADDED { c[i] + column[i] } else { column[i] };
            }
        }
    }
}

/// Rows and columns of the tile of `c` that is kept in registers.
const ROWS: usize = 8;
const COLUMNS: usize = 4;

impl Width for Dyn {
    #[inline(always)]
    fn get(self) -> usize {
        self.0
    }

    #[inline(always)]
    fn multiply<const TRANSPOSED: bool, const ADDED: bool>(self, a: &[f64], b: &[f64], c: &mut [f64]) {
        let d = self.0;
        let mut column = 0;
        while column + COLUMNS <= d {
            stripe::<TRANSPOSED, ADDED, COLUMNS>(d, column, a, b, c);
            column += COLUMNS;
        }
        while column < d {
            stripe::<TRANSPOSED, ADDED, 1>(d, column, a, b, c);
            column += 1;
        }
    }
}

/// The columns `column..column + N` of the product.
#[inline(always)]
fn stripe<const TRANSPOSED: bool, const ADDED: bool, const N: usize>(
    d: usize,
    column: usize,
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
) {
    let mut row = 0;
    while row + ROWS <= d {
        tile::<TRANSPOSED, ADDED, ROWS, N>(d, row, column, a, b, c);
        row += ROWS;
    }
    while row < d {
        tile::<TRANSPOSED, ADDED, 1, N>(d, row, column, a, b, c);
        row += 1;
    }
}

#[inline(always)]
fn tile<const TRANSPOSED: bool, const ADDED: bool, const M: usize, const N: usize>(
    d: usize,
    row: usize,
    column: usize,
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
) {
    let mut sums = [[0.0; M]; N];
    for k in 0..d {
        let a = &a[k * d + row..][..M];
        for (j, sums) in sums.iter_mut().enumerate() {
            let factor = if TRANSPOSED { b[k * d + column + j] } else { b[(column + j) * d + k] };
            for i in 0..M {
                sums[i] += a[i] * factor;
            }
        }
    }
    for (j, sums) in sums.iter().enumerate() {
        let c = &mut c[(column + j) * d + row..][..M];
        for i in 0..M {
            c[i] = if ADDED { c[i] + sums[i] } else { sums[i] };
        }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;

    fn check<W: Width>(width: W, numbers: &[f64]) {
        let d = width.get();
        let (a, b) = (&numbers[..d * d], &numbers[d * d..2 * d * d]);
        let (a_matrix, b_matrix) = (DMatrix::from_column_slice(d, d, a), DMatrix::from_column_slice(d, d, b));
        let mut c = vec![f64::NAN; d * d];
        width.multiply::<false, false>(a, b, &mut c);
        assert!((DMatrix::from_column_slice(d, d, &c) - &a_matrix * &b_matrix).amax() < 1e-12);
        width.multiply::<true, false>(a, b, &mut c);
        assert!((DMatrix::from_column_slice(d, d, &c) - &a_matrix * b_matrix.transpose()).amax() < 1e-12);
        let mut dynamic = vec![f64::NAN; d * d];
        Dyn(d).multiply::<true, false>(a, b, &mut dynamic);
        assert_eq!(c, dynamic, "both kernels sum in the same order");
        width.multiply::<true, true>(a, b, &mut c);
        assert_eq!(DMatrix::from_column_slice(d, d, &c), 2.0 * DMatrix::from_column_slice(d, d, &dynamic));
        width.transpose(a, &mut c);
        assert_eq!(DMatrix::from_column_slice(d, d, &c), a_matrix.transpose());
    }

    proptest! {
        #[test]
        fn products_are_those_of_nalgebra(d in 1usize..=21, numbers in prop::collection::vec(-1.0..1.0, 2 * 21 * 21)) {
            check(Dyn(d), &numbers);
            check(Const::<1>, &numbers);
            check(Const::<5>, &numbers);
            check(Const::<8>, &numbers);
        }
    }
}
