//! Rows of features: one image, one point of the feature space.

use std::sync::Arc;

use crate::MetricsError;

/// The features of a set of images: a matrix `[rows, dimension]` of finite `f32`, row-major, of at least two rows.
///
/// The values are shared, so that a clone costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    dimension: usize,
    values: Arc<Vec<f32>>,
}

impl Features {
    /// Features from their values in row-major order.
    ///
    /// # Errors
    /// If `dimension` is 0, if the values make up no whole number of rows or fewer than two, or if one is not finite.
    pub fn new(dimension: usize, values: Vec<f32>) -> Result<Self, MetricsError> {
        let rows = whole_rows(values.len(), dimension)?;
        if rows < 2 {
            return Err(MetricsError::TooFewRows { rows });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(not_finite(at, dimension, f64::from(values[at])));
        }
        Ok(Self { dimension, values: Arc::new(values) })
    }

    /// How many images there are.
    pub fn rows(&self) -> usize {
        self.values.len() / self.dimension
    }

    /// How many features an image has.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// All values in row-major order.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The features of one image.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dimension..(row + 1) * self.dimension]
    }
}

/// How many rows `values` numbers make up.
pub(crate) fn whole_rows(values: usize, columns: usize) -> Result<usize, MetricsError> {
    match values.checked_rem(columns) {
        None => Err(MetricsError::NoColumns),
        Some(0) => Ok(values / columns),
        Some(_) => Err(MetricsError::Ragged { values, columns }),
    }
}

pub(crate) fn not_finite(at: usize, columns: usize, value: f64) -> MetricsError {
    MetricsError::NotFinite { row: at / columns, column: at % columns, value }
}
