//! Singular values by one-sided Jacobi rotations.
//!
//! nalgebra 0.34 has its own, which stops early on about one small matrix in a thousand and then is off by 1e-12 to
//! 4e-9. Identities are checked to 1e-12 here. Jacobi rotations are exact to a few roundings and fast enough for these
//! sizes.

use nalgebra::{DMatrix, DVector};

/// A matrix `A = U diag(sigma) Vᵀ`, m x n with m >= n: U is m x n and V n x n, both with orthonormal columns.
#[derive(Clone, Debug)]
pub(crate) struct Svd {
    /// Left singular vectors, in columns. Those of singular values that are zero to rounding complete the set.
    pub(crate) left: DMatrix<f64>,
    /// Singular values, descending.
    pub(crate) values: DVector<f64>,
    /// Right singular vectors, in columns.
    pub(crate) right: DMatrix<f64>,
}

/// Quadratic convergence takes fewer than ten in practice.
const MOST_SWEEPS: usize = 60;

impl Svd {
    /// Decomposes a matrix of finite numbers with at least as many rows as columns.
    pub(crate) fn new(matrix: &DMatrix<f64>) -> Self {
        debug_assert!(matrix.nrows() >= matrix.ncols());
        let n = matrix.ncols();
        let (mut turned, mut right) = (matrix.clone(), DMatrix::identity(n, n));
        for _ in 0..MOST_SWEEPS {
            let mut settled = true;
            for p in 0..n {
                for q in p + 1..n {
                    let (alpha, beta) = (turned.column(p).norm_squared(), turned.column(q).norm_squared());
                    let gamma = turned.column(p).dot(&turned.column(q));
                    if gamma.abs() <= 1e-15 * (alpha * beta).sqrt() {
                        continue;
                    }
                    settled = false;
                    let zeta = (beta - alpha) / (2.0 * gamma);
                    let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
                    let cosine = tangent.hypot(1.0).recip();
                    rotate(&mut turned, p, q, cosine, cosine * tangent);
                    rotate(&mut right, p, q, cosine, cosine * tangent);
                }
            }
            if settled {
                break;
            }
        }
        let norms: Vec<f64> = turned.column_iter().map(|column| column.norm()).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| norms[*b].total_cmp(&norms[*a]));
        let values = DVector::from_iterator(n, order.iter().map(|&i| norms[i]));
        let right = DMatrix::from_fn(n, n, |row, column| right[(row, order[column])]);
        let mut left = DMatrix::zeros(turned.nrows(), n);
        for column in 0..n {
            if values[column] > 1e-15 * values[0] {
                left.set_column(column, &(turned.column(order[column]) / values[column]));
            } else {
                let fresh = complement(&left, column);
                left.set_column(column, &fresh);
            }
        }
        Self { left, values, right }
    }

    /// `U diag(sigma) Vᵀ`
    pub(crate) fn recompose(&self) -> DMatrix<f64> {
        &self.left * DMatrix::from_diagonal(&self.values) * self.right.transpose()
    }
}

/// The pseudo-inverse of a matrix of finite numbers; singular values below `smallest` times the largest count as zero.
pub(super) fn pseudo_inverse(matrix: &DMatrix<f64>, smallest: f64) -> DMatrix<f64> {
    if matrix.nrows() < matrix.ncols() {
        return pseudo_inverse(&matrix.transpose(), smallest).transpose();
    }
    let svd = Svd::new(matrix);
    let cut = smallest * svd.values.amax();
    let inverse = svd.values.map(|value| if value > cut { value.recip() } else { 0.0 });
    svd.right * DMatrix::from_diagonal(&inverse) * svd.left.transpose()
}

fn rotate(matrix: &mut DMatrix<f64>, p: usize, q: usize, cosine: f64, sine: f64) {
    for row in 0..matrix.nrows() {
        let (x, y) = (matrix[(row, p)], matrix[(row, q)]);
        matrix[(row, p)] = cosine * x - sine * y;
        matrix[(row, q)] = sine * x + cosine * y;
    }
}

/// A unit vector orthogonal to the first `count` columns, which are orthonormal and fewer than the rows.
fn complement(columns: &DMatrix<f64>, count: usize) -> DVector<f64> {
    let known = columns.columns(0, count);
    // The unit vector that is furthest from their span, projected twice against rounding.
    let covered = |row: usize| known.row(row).norm_squared();
    let row = (0..columns.nrows()).min_by(|a, b| covered(*a).total_cmp(&covered(*b))).unwrap_or(0);
    let mut vector = DVector::zeros(columns.nrows());
    vector[row] = 1.0;
    for _ in 0..2 {
        let inside = known * (known.transpose() * &vector);
        vector -= inside;
    }
    vector.normalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;

    fn off_identity(matrix: &DMatrix<f64>) -> f64 {
        (matrix - DMatrix::identity(matrix.nrows(), matrix.ncols())).amax()
    }

    #[test]
    fn every_one_of_many_small_matrices_is_decomposed_to_rounding() {
        for instance in 0..6000 {
            let d = 1 + instance as usize % 6;
            let mut draw = Draw::new(3, instance);
            let matrix = draw.gaussian(d, 1.0);
            let svd = Svd::new(&matrix);
            assert!((svd.recompose() - &matrix).amax() < 1e-13, "d = {d}, instance {instance}");
            assert!(off_identity(&(svd.left.transpose() * &svd.left)) < 1e-13);
            assert!(off_identity(&(svd.right.transpose() * &svd.right)) < 1e-13);
            assert!(svd.values.as_slice().is_sorted_by(|a, b| a >= b) && svd.values.min() >= 0.0);
        }
    }

    #[test]
    fn missing_ranks_are_completed_and_not_inverted() {
        let mut draw = Draw::new(4, 0);
        for d in 2..7 {
            // Rank d - 2, and 0 for d = 2.
            let (a, b) = (draw.gaussian(d, 1.0), draw.gaussian(d, 1.0));
            let matrix = a.columns(0, d - 2) * b.rows(0, d - 2);
            let svd = Svd::new(&matrix);
            assert!(off_identity(&(svd.left.transpose() * &svd.left)) < 1e-13);
            assert!((svd.recompose() - &matrix).amax() < 1e-13 * matrix.amax().max(1.0));
            let inverse = pseudo_inverse(&matrix, 1e-12);
            assert!((&matrix * &inverse * &matrix - &matrix).amax() < 1e-10 * matrix.amax().max(1.0));
            assert!(inverse.amax() < 1e6);
        }
    }

    #[test]
    fn wide_and_tall_matrices_have_one_sided_inverses() {
        for instance in 0..2000 {
            let mut draw = Draw::new(5, instance);
            let d = 1 + draw.below(6);
            let tall = DMatrix::from_fn(2 * d, d, |_, _| draw.normal());
            assert!(off_identity(&(pseudo_inverse(&tall, 1e-12) * &tall)) < 1e-12);
            let wide = tall.transpose();
            assert!(off_identity(&(&wide * pseudo_inverse(&wide, 1e-12))) < 1e-12);
        }
    }
}
