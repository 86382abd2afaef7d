//! Products of small square matrices on slices, column by column.
//!
//! Columns are padded to a multiple of [`ROWS`] rows, so that all arithmetic is on whole vectors: left to itself, the
//! compiler shuffles columns of 5 numbers about for longer than it computes. Padding rows are zero and stay zero.
//!
//! Every entry is summed in the order k = 0, 1, ... whatever the instruction set, and never with fused
//! multiply-add, so that a result has the same bits on every CPU.

use nalgebra::{Const, Dyn};
use pulp::Simd;

/// Rows of a tile: the widest vector of the CPUs in use.
pub(super) const ROWS: usize = 8;

/// The width d of a network: known to the compiler ([`Const`]) or not ([`Dyn`]).
pub(super) trait Width: Copy {
    /// The number d.
    fn get(self) -> usize;

    /// The distance between columns.
    #[inline(always)]
    fn stride(self) -> usize {
        stride(self.get())
    }

    /// The length of a padded matrix.
    #[inline(always)]
    fn size(self) -> usize {
        self.get() * self.stride()
    }

    /// `c = a b`, or `c = a bᵀ` where `TRANSPOSED`, added to `c` where `ADDED`; all of them padded.
    #[inline(always)]
    fn multiply<S: Simd, const TRANSPOSED: bool, const ADDED: bool>(
        self,
        simd: S,
        a: &[f64],
        b: &[f64],
        c: &mut [f64],
    ) {
        let (a, b, c) = (&a[..self.size()], &b[..self.size()], &mut c[..self.size()]);
        let mut column = 0;
        loop {
            // As many columns as registers hold; known at compile time where the width is.
            match self.get() - column {
                0 => break,
                1 => stripe::<S, TRANSPOSED, ADDED, 1>(simd, self, column, a, b, c),
                2 => stripe::<S, TRANSPOSED, ADDED, 2>(simd, self, column, a, b, c),
                3 => stripe::<S, TRANSPOSED, ADDED, 3>(simd, self, column, a, b, c),
                5 => stripe::<S, TRANSPOSED, ADDED, 5>(simd, self, column, a, b, c),
                _ => {
                    stripe::<S, TRANSPOSED, ADDED, 4>(simd, self, column, a, b, c);
                    column += 4;
                    continue;
                }
            }
            break;
        }
    }

    /// The padded `b` of compact matrices `a`, one after another.
    #[inline(always)]
    fn pad<S: Simd>(self, simd: S, a: &[f64], b: &mut [f64]) {
        let (d, stride) = (self.get(), self.stride());
        if d == stride {
            b[..a.len()].copy_from_slice(a);
            return;
        }
        for (a, b) in a.chunks_exact(d).zip(b.chunks_exact_mut(stride)) {
            for (a, b) in a.chunks(ROWS).zip(b.chunks_exact_mut(ROWS)) {
                Tile::load_part(simd, a).store(b);
            }
        }
    }

    /// The padded transpose `b` of a compact matrix `a`; padding is left as it is.
    #[inline(always)]
    fn pad_transposed(self, a: &[f64], b: &mut [f64]) {
        let (d, stride) = (self.get(), self.stride());
        let (a, b) = (&a[..d * d], &mut b[..d * stride]);
        // Bands of rows, so that what is written stays in few cache lines.
        for first in (0..d).step_by(ROWS) {
            for j in 0..d {
                for i in first..d.min(first + ROWS) {
                    b[i * stride + j] = a[j * d + i];
                }
            }
        }
    }

    /// The compact `b` of padded matrices `a`, one after another.
    #[inline(always)]
    fn compact<S: Simd>(self, simd: S, a: &[f64], b: &mut [f64]) {
        let (d, stride) = (self.get(), self.stride());
        if d == stride {
            b.copy_from_slice(&a[..b.len()]);
            return;
        }
        for (a, b) in a.chunks_exact(stride).zip(b.chunks_exact_mut(d)) {
            for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_mut(ROWS)) {
                Tile::load(simd, a).store_part(simd, b);
            }
        }
    }
}

/// The distance between the columns of padded matrices of a width.
#[inline(always)]
pub(super) fn stride(width: usize) -> usize {
    width.next_multiple_of(ROWS)
}

impl<const D: usize> Width for Const<D> {
    #[inline(always)]
    fn get(self) -> usize {
        D
    }
}

impl Width for Dyn {
    #[inline(always)]
    fn get(self) -> usize {
        self.0
    }
}

/// `y = sum of c_n x_n` over the terms, given as pairs of the place of c in `factors` and that of x in `from`.
#[inline(always)]
pub(super) fn combine<S: Simd>(simd: S, terms: &[(usize, usize)], factors: &[f64], from: &[f64], y: &mut [f64]) {
    for (tile, y) in y.chunks_exact_mut(ROWS).enumerate() {
        let mut sum = Tile::zero(simd);
        for &(factor, start) in terms {
            sum = sum.add_scaled(simd, Tile::load(simd, &from[start + tile * ROWS..]), factors[factor]);
        }
        sum.store(y);
    }
}

/// `z = x - y` on padded matrices.
#[inline(always)]
pub(super) fn subtract<S: Simd>(simd: S, x: &[f64], y: &[f64], z: &mut [f64]) {
    for ((x, y), z) in x.chunks_exact(ROWS).zip(y.chunks_exact(ROWS)).zip(z.chunks_exact_mut(ROWS)) {
        Tile::load(simd, x).add_scaled(simd, Tile::load(simd, y), -1.0).store(z);
    }
}

/// The sum of the products of the entries of padded matrices, in [`ROWS`] interleaved sums.
#[inline(always)]
pub(super) fn dot<S: Simd>(simd: S, x: &[f64], y: &[f64]) -> f64 {
    let mut sums = Tile::zero(simd);
    for (x, y) in x.chunks_exact(ROWS).zip(y.chunks_exact(ROWS)) {
        sums = sums.add_product(simd, Tile::load(simd, x), Tile::load(simd, y));
    }
    let mut lanes = [0.0; ROWS];
    sums.store(&mut lanes);
    lanes.iter().sum()
}

/// [`ROWS`] numbers in as many vectors of the CPU as they take; the vectors beyond are not used, and cost nothing.
#[derive(Clone, Copy)]
struct Tile<S: Simd>([S::f64s; ROWS]);

impl<S: Simd> Tile<S> {
    const VECTORS: usize = ROWS.div_ceil(S::F64_LANES);

    #[inline(always)]
    fn zero(simd: S) -> Self {
        const { assert!(ROWS.is_multiple_of(S::F64_LANES)) };
        Self([simd.splat_f64s(0.0); ROWS])
    }

    #[inline(always)]
    fn load(simd: S, from: &[f64]) -> Self {
        let mut tile = Self::zero(simd);
        let (vectors, _) = S::as_simd_f64s(&from[..ROWS]);
        tile.0[..Self::VECTORS].copy_from_slice(&vectors[..Self::VECTORS]);
        tile
    }

    /// Fills up with zeros.
    #[inline(always)]
    fn load_part(simd: S, from: &[f64]) -> Self {
        let mut tile = Self::zero(simd);
        for (i, part) in from.chunks(S::F64_LANES).enumerate().take(Self::VECTORS) {
            tile.0[i] = simd.partial_load_f64s(part);
        }
        tile
    }

    #[inline(always)]
    fn store(self, to: &mut [f64]) {
        let (vectors, _) = S::as_mut_simd_f64s(&mut to[..ROWS]);
        vectors[..Self::VECTORS].copy_from_slice(&self.0[..Self::VECTORS]);
    }

    #[inline(always)]
    fn store_part(self, simd: S, to: &mut [f64]) {
        for (i, part) in to.chunks_mut(S::F64_LANES).enumerate().take(Self::VECTORS) {
            simd.partial_store_f64s(part, self.0[i]);
        }
    }

    #[inline(always)]
    fn add_product(mut self, simd: S, x: Self, y: Self) -> Self {
        for i in 0..Self::VECTORS {
            self.0[i] = simd.add_f64s(self.0[i], simd.mul_f64s(x.0[i], y.0[i]));
        }
        self
    }

    #[inline(always)]
    fn add_scaled(self, simd: S, x: Self, factor: f64) -> Self {
        self.add_product(simd, x, Self([simd.splat_f64s(factor); ROWS]))
    }
}

/// The columns `column..column + N` of the product.
#[inline(always)]
fn stripe<S: Simd, const TRANSPOSED: bool, const ADDED: bool, const N: usize>(
    simd: S,
    width: impl Width,
    column: usize,
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
) {
    let (d, stride) = (width.get(), width.stride());
    // Factor k for column j of the stripe stands in column j of b, or in its column k.
    let mut columns = [b; N];
    if !TRANSPOSED {
        for (j, b) in columns.iter_mut().enumerate() {
            *b = &b[(column + j) * stride..][..d];
        }
    }
    for row in (0..stride).step_by(ROWS) {
        let mut sums = [Tile::zero(simd); N];
        for (k, (a, b)) in a.chunks_exact(stride).zip(b.chunks_exact(stride)).enumerate().take(d) {
            let a = Tile::load(simd, &a[row..]);
            let b = &b[column..][..N];
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add_scaled(simd, a, if TRANSPOSED { b[j] } else { columns[j][k] });
            }
        }
        for (j, sum) in sums.into_iter().enumerate() {
            let c = &mut c[(column + j) * stride + row..][..ROWS];
            let sum = if ADDED {
                let one = Tile([simd.splat_f64s(1.0); ROWS]);
                Tile::load(simd, c).add_product(simd, sum, one)
            } else {
                sum
            };
            sum.store(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;
    use pulp::{Arch, WithSimd};

    use super::*;

    #[derive(Clone, Copy)]
    enum Product {
        Plain,
        Transposed,
        Added,
    }

    struct Check<'a, W>(W, Product, &'a [f64], &'a [f64]);

    impl<W: Width> WithSimd for Check<'_, W> {
        type Output = DMatrix<f64>;

        fn with_simd<S: Simd>(self, simd: S) -> DMatrix<f64> {
            let Self(width, product, a, b) = self;
            let [mut pa, mut pb, mut pc] = [(); 3].map(|()| vec![0.0; width.size()]);
            width.pad(simd, a, &mut pa);
            width.pad(simd, b, &mut pb);
            pc.copy_from_slice(&pa);
            match product {
                Product::Plain => width.multiply::<S, false, false>(simd, &pa, &pb, &mut pc),
                Product::Transposed => width.multiply::<S, true, false>(simd, &pa, &pb, &mut pc),
                Product::Added => width.multiply::<S, true, true>(simd, &pa, &pb, &mut pc),
            }
            let padding = pc.chunks(width.stride()).flat_map(|column| &column[width.get()..]);
            assert!(padding.into_iter().all(|x| *x == 0.0), "padding stays zero");
            let mut c = DMatrix::zeros(width.get(), width.get());
            width.compact(simd, &pc, c.as_mut_slice());
            c
        }
    }

    fn check<W: Width>(width: W, numbers: &[f64]) {
        let d = width.get();
        let (a, b) = (&numbers[..d * d], &numbers[d * d..2 * d * d]);
        let (a_matrix, b_matrix) = (DMatrix::from_column_slice(d, d, a), DMatrix::from_column_slice(d, d, b));
        for (product, expected) in [
            (Product::Plain, &a_matrix * &b_matrix),
            (Product::Transposed, &a_matrix * b_matrix.transpose()),
            (Product::Added, &a_matrix + &a_matrix * b_matrix.transpose()),
        ] {
            let c = Arch::new().dispatch(Check(width, product, a, b));
            assert!((&c - expected).amax() < 1e-12);
            assert_eq!(c, Check(Dyn(d), product, a, b).with_simd(pulp::Scalar), "the same bits on every CPU");
        }
        let mut transposed = vec![0.0; width.size()];
        width.pad_transposed(a, &mut transposed);
        let columns = transposed.chunks(width.stride()).flat_map(|column| &column[..d]);
        assert!(a_matrix.transpose().iter().eq(columns));
    }

    proptest! {
        #[test]
        fn products_are_those_of_nalgebra(d in 1usize..=21, numbers in prop::collection::vec(-1.0..1.0, 2 * 21 * 21)) {
            check(Dyn(d), &numbers);
            check(Const::<1>, &numbers);
            check(Const::<5>, &numbers);
            check(Const::<7>, &numbers);
            check(Const::<8>, &numbers);
        }
    }
}
