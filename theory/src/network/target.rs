//! What a network is trained towards.

use nalgebra::{DMatrix, DVector};
use thiserror::Error;

use super::svd::pseudo_inverse;

/// Why data cannot be a training target.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TargetError {
    /// The matrix is empty or not square.
    #[error("the target is {rows} x {columns}: a linear network of width d needs a square d x d map, d >= 1")]
    NotSquare {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// Inputs and outputs do not fit together.
    #[error(
        "the inputs are {} x {} and the outputs {} x {}: both need d rows and one column a sample",
        .inputs.0, .inputs.1, .outputs.0, .outputs.1
    )]
    Shapes {
        /// Rows and columns of X.
        inputs: (usize, usize),
        /// Rows and columns of Y.
        outputs: (usize, usize),
    },
    /// An entry is infinite or not a number.
    #[error("entry ({row}, {column}) of the {matrix} is {value}: entries must be finite")]
    NotFinite {
        /// Which matrix.
        matrix: &'static str,
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The value.
        value: f64,
    },
}

/// The loss `1/2 ||A X - Y||²` as a function of the end-to-end map A (d x d), less its smallest value.
///
/// With `S = X Xᵀ` and `A*` the least-squares solution, `1/2 ||A X - Y||² = 1/2 tr((A - A*) S (A - A*)ᵀ) + floor`. The
/// first term is the *excess loss*, and all that training can change. It is computed as it stands here: nothing
/// cancels when it is small. For whitened inputs (`S = I`) it is `1/2 ||A - A*||²` with `A* = Y Xᵀ`.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    map: DMatrix<f64>,
    /// `X Xᵀ`; `None` for whitened inputs.
    gram: Option<DMatrix<f64>>,
    floor: f64,
}

impl Target {
    /// Whitened inputs, taken to be `X = I`, and outputs `Y`, d x d.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for a matrix that is empty, not square or not finite.
    pub fn whitened(map: DMatrix<f64>) -> Result<Self, TargetError> {
        if map.nrows() != map.ncols() || map.is_empty() {
            return Err(TargetError::NotSquare { rows: map.nrows(), columns: map.ncols() });
        }
        finite("target", &map)?;
        Ok(Self { map, gram: None, floor: 0.0 })
    }

    /// General inputs `X` and outputs `Y`, both d x n.
    ///
    /// Where `X` does not have full row rank, `A*` is the solution of least norm (singular values of `X` below 1e-12 of
    /// the largest count as zero).
    ///
    /// # Errors
    ///
    /// [`TargetError`] for shapes that do not fit and entries that are not finite.
    pub fn from_data(inputs: &DMatrix<f64>, outputs: &DMatrix<f64>) -> Result<Self, TargetError> {
        if inputs.shape() != outputs.shape() || inputs.is_empty() {
            return Err(TargetError::Shapes { inputs: inputs.shape(), outputs: outputs.shape() });
        }
        finite("inputs", inputs)?;
        finite("outputs", outputs)?;
        let map = outputs * pseudo_inverse(inputs, 1e-12);
        let floor = 0.5 * (&map * inputs - outputs).norm_squared();
        Ok(Self { map, gram: Some(inputs * inputs.transpose()), floor })
    }

    /// The width d.
    pub fn width(&self) -> usize {
        self.map.nrows()
    }

    /// The best end-to-end map `A*`, d x d.
    pub fn map(&self) -> &DMatrix<f64> {
        &self.map
    }

    /// `S = X Xᵀ`, d x d; `None` where the inputs are whitened.
    pub fn gram(&self) -> Option<&DMatrix<f64>> {
        self.gram.as_ref()
    }

    /// The smallest value of `1/2 ||A X - Y||²` over all A: what no linear network can learn.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// The excess loss of an end-to-end map.
    pub fn excess_loss(&self, map: &DMatrix<f64>) -> f64 {
        let error = map - &self.map;
        0.5 * self.weighted(&error).dot(&error)
    }

    /// The excess loss of the zero map, `1/2 ||A* X||²`: the scale that thresholds are relative to.
    pub fn scale(&self) -> f64 {
        0.5 * self.weighted(&self.map).dot(&self.map)
    }

    /// The derivative `(A - A*) S` of the loss with respect to the end-to-end map.
    pub fn error(&self, map: &DMatrix<f64>) -> DMatrix<f64> {
        self.weighted(&(map - &self.map))
    }

    /// Singular values of `A*`, descending.
    pub fn singular_values(&self) -> DVector<f64> {
        let mut values = self.map.singular_values();
        values.as_mut_slice().sort_by(|a, b| b.total_cmp(a));
        values
    }

    fn weighted(&self, error: &DMatrix<f64>) -> DMatrix<f64> {
        self.gram.as_ref().map_or_else(|| error.clone(), |gram| error * gram)
    }
}

fn finite(matrix: &'static str, entries: &DMatrix<f64>) -> Result<(), TargetError> {
    match entries.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => {
            let (row, column) = (index % entries.nrows() + 1, index / entries.nrows() + 1);
            Err(TargetError::NotFinite { matrix, row, column, value: entries[index] })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_and_floor_add_up_to_the_loss() {
        // Rank 2 inputs of width 3, so that part of Y is out of reach.
        let inputs = DMatrix::from_row_slice(3, 4, &[1.0, 2.0, 0.0, 1.0, 0.0, 1.0, 1.0, -1.0, 1.0, 3.0, 1.0, 0.0]);
        let outputs = DMatrix::from_fn(3, 4, |i, j| (1 + i * 4 + j) as f64 * 0.3);
        let target = Target::from_data(&inputs, &outputs).unwrap();
        assert!(target.floor() > 0.1);
        let map = DMatrix::from_fn(3, 3, |i, j| i as f64 - 0.5 * j as f64);
        let loss = 0.5 * (&map * &inputs - &outputs).norm_squared();
        assert!((target.excess_loss(&map) + target.floor() - loss).abs() < 1e-12 * loss);
        let derivative = (&map * &inputs - &outputs) * inputs.transpose();
        assert!((target.error(&map) - derivative).amax() < 1e-12 * loss);
    }

    #[test]
    fn whitened_data_needs_no_gram_matrix() {
        let inputs = DMatrix::identity(3, 3);
        let outputs = DMatrix::from_fn(3, 3, |i, j| (i + 2 * j) as f64);
        let (general, whitened) =
            (Target::from_data(&inputs, &outputs).unwrap(), Target::whitened(outputs.clone()).unwrap());
        assert!((general.scale() - whitened.scale()).abs() < 1e-12);
        assert!(general.floor() < 1e-24 && whitened.floor() == 0.0);
        assert_eq!(whitened.scale(), 0.5 * outputs.norm_squared());
    }

    #[test]
    fn impossible_targets_are_refused() {
        let message = |result: Result<Target, TargetError>| result.unwrap_err().to_string();
        assert!(message(Target::whitened(DMatrix::zeros(2, 3))).contains("2 x 3"));
        assert!(message(Target::whitened(DMatrix::zeros(0, 0))).contains("d >= 1"));
        let mut nan = DMatrix::zeros(2, 2);
        nan[(1, 0)] = f64::NAN;
        assert!(message(Target::whitened(nan)).contains("entry (2, 1) of the target is NaN"));
        assert!(message(Target::from_data(&DMatrix::zeros(2, 3), &DMatrix::zeros(2, 2))).contains("2 x 3"));
    }
}
