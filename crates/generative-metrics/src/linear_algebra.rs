//! Products and eigenvalues of matrices of the size of a covariance.

use nalgebra::{DMatrix, DMatrixView, DMatrixViewMut, DVector, SymmetricEigen};
use rayon::prelude::*;

use crate::MetricsError;

/// Columns that one task computes. The split must not depend on the number of threads, so that the bits do not either.
const COLUMNS: usize = 64;

/// `left * right`, in parallel over columns.
pub(crate) fn product(left: &DMatrix<f64>, right: &DMatrix<f64>) -> DMatrix<f64> {
    let rows = left.nrows();
    let mut result = DMatrix::zeros(rows, right.ncols());
    if result.is_empty() {
        return result;
    }
    let parts = result.as_mut_slice().par_chunks_mut(rows * COLUMNS).enumerate();
    parts.for_each(|(part, chunk)| {
        let columns = chunk.len() / rows;
        let mut out = DMatrixViewMut::from_slice(chunk, rows, columns);
        out.gemm(1.0, left, &right.columns(part * COLUMNS, columns), 0.0);
    });
    result
}

/// Adds `points * points^T` to the upper triangle of `sum`; a column of `points` is one point, of `dimension` entries.
pub(crate) fn add_outer_products(sum: &mut DMatrix<f64>, points: &[f64], dimension: usize) {
    let points = DMatrixView::from_slice(points, dimension, points.len() / dimension);
    let transposed = points.transpose();
    let parts = sum.as_mut_slice().par_chunks_mut(dimension * COLUMNS).enumerate();
    parts.for_each(|(part, chunk)| {
        let columns = chunk.len() / dimension;
        let first = part * COLUMNS;
        let height = first + columns;
        let mut out = DMatrixViewMut::from_slice(chunk, dimension, columns);
        out.rows_mut(0, height).gemm(1.0, &points.rows(0, height), &transposed.columns(first, columns), 1.0);
    });
}

/// Eigenvalues and eigenvectors (as columns) of a symmetric matrix of finite entries; its lower triangle is read.
pub(crate) fn symmetric_eigen(mut matrix: DMatrix<f64>) -> Result<(DVector<f64>, DMatrix<f64>), MetricsError> {
    let dimension = matrix.nrows();
    if dimension == 0 {
        return Ok((DVector::zeros(0), matrix));
    }
    // Entries so far below the rounding error of the largest one change nothing, but their squares would underflow and
    // stop the iteration.
    let negligible = matrix.amax() * 1e-60;
    matrix.apply(|entry| {
        if entry.abs() <= negligible {
            *entry = 0.0;
        }
    });
    // About two steps an eigenvalue are usual.
    let iterations = 100 * dimension + 1000;
    let eigen = SymmetricEigen::try_new(matrix, f64::EPSILON, iterations)
        .ok_or(MetricsError::NotConverged { dimension, iterations })?;
    Ok((eigen.eigenvalues, eigen.eigenvectors))
}
