//! Fréchet distance between two sets, taken as Gaussians (Heusel et al. 2017, arXiv 1706.08500).

use std::sync::OnceLock;

use nalgebra::DMatrix;

use crate::{
    Features, MetricsError,
    linear_algebra::{add_outer_products, product, symmetric_eigen},
};

/// Rows that are widened to `f64` at a time.
const ROWS: usize = 1024;

/// Mean and covariance of a set of features: all that the Fréchet distance knows of it.
#[derive(Clone, Debug)]
pub struct Moments {
    mean: Vec<f64>,
    covariance: DMatrix<f64>,
    count: usize,
    /// See [`Moments::factor`]; kept because it takes most of the time, and a reference set is used many times.
    factor: OnceLock<DMatrix<f64>>,
}

impl Moments {
    /// The moments of a set; the covariance divides by n - 1.
    pub fn of(features: &Features) -> Self {
        let dimension = features.dimension();
        let count = features.rows();
        let mut mean = vec![0.0; dimension];
        for row in features.values().chunks_exact(dimension) {
            mean.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        mean.iter_mut().for_each(|sum| *sum /= count as f64);

        let mut covariance = DMatrix::zeros(dimension, dimension);
        let mut centred = Vec::new();
        for rows in features.values().chunks(ROWS * dimension) {
            centred.clear();
            let row = |row: &[f32]| -> Vec<f64> { row.iter().zip(&mean).map(|(&x, m)| f64::from(x) - m).collect() };
            rows.chunks_exact(dimension).for_each(|values| centred.extend(row(values)));
            add_outer_products(&mut covariance, &centred, dimension);
        }
        covariance /= (count - 1) as f64;
        covariance.fill_lower_triangle_with_upper_triangle();
        Self { mean, covariance, count, factor: OnceLock::new() }
    }

    /// Moments from elsewhere: a mean `[d]`, a covariance `[d, d]` and the number of samples that they were taken of.
    ///
    /// # Errors
    /// If the sizes do not agree, a value is not finite, `count` is below 2, or the covariance is not symmetric (to
    /// 1e-6 of its largest entry) or has a negative variance.
    pub fn from_parts(mean: Vec<f64>, covariance: Vec<f64>, count: usize) -> Result<Self, MetricsError> {
        let refuse = |reason: String| Err(MetricsError::NotMoments { reason });
        let dimension = mean.len();
        if dimension == 0 {
            return Err(MetricsError::NoColumns);
        }
        if dimension.checked_mul(dimension) != Some(covariance.len()) {
            return refuse(format!(
                "a mean of {dimension} needs {dimension} x {dimension} covariances, not {}",
                covariance.len()
            ));
        }
        if count < 2 {
            return Err(MetricsError::TooFewRows { rows: count });
        }
        if let Some(at) = mean.iter().position(|value| !value.is_finite()) {
            return refuse(format!("entry {at} of the mean is {}", mean[at]));
        }
        if let Some(at) = covariance.iter().position(|value| !value.is_finite()) {
            return refuse(format!("covariance ({}, {}) is {}", at / dimension, at % dimension, covariance[at]));
        }
        let covariance = DMatrix::from_vec(dimension, dimension, covariance);
        let allowed = 1e-6 * covariance.amax();
        for i in 0..dimension {
            if covariance[(i, i)] < 0.0 {
                return refuse(format!("variance {i} is {}", covariance[(i, i)]));
            }
            if let Some(j) = (0..i).find(|&j| (covariance[(i, j)] - covariance[(j, i)]).abs() > allowed) {
                return refuse(format!("the covariance is not symmetric: see entries ({i}, {j}) and ({j}, {i})"));
            }
        }
        let covariance = (&covariance + covariance.transpose()) * 0.5;
        Ok(Self { mean, covariance, count, factor: OnceLock::new() })
    }

    /// The mean, `[d]`.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The covariance, `[d, d]`; symmetric, so that row-major and column-major are the same.
    pub fn covariance(&self) -> &[f64] {
        self.covariance.as_slice()
    }

    /// How many samples the moments were taken of.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The dimension of the feature space.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// The largest rank that the covariance of so many samples can have.
    fn rank(&self) -> usize {
        self.dimension().min(self.count - 1)
    }

    /// A matrix F, `[d, r]`, with `F F^T` the covariance: eigenvectors times roots of eigenvalues. Eigenvalues that the
    /// number of samples does not allow are rounding errors and are left out, as are negative ones.
    fn factor(&self) -> Result<&DMatrix<f64>, MetricsError> {
        if let Some(factor) = self.factor.get() {
            return Ok(factor);
        }
        let (values, vectors) = symmetric_eigen(self.covariance.clone())?;
        let mut order: Vec<usize> = (0..values.len()).filter(|&i| values[i] > 0.0).collect();
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
        order.truncate(self.rank());
        let mut factor = DMatrix::zeros(self.dimension(), order.len());
        for (to, &from) in order.iter().enumerate() {
            factor.set_column(to, &(vectors.column(from) * values[from].sqrt()));
        }
        Ok(self.factor.get_or_init(|| factor))
    }
}

/// The Fréchet distance `||m1 - m2||^2 + tr C1 + tr C2 - 2 tr sqrt(C1 C2)` of two Gaussians with the given moments.
///
/// It is the squared Wasserstein-2 distance of the Gaussians. The eigenvalues of `C1 C2` are those of the symmetric
/// `F^T C2 F` with `C1 = F F^T`, so that covariances without full rank need no special care. What falls below 0 by
/// rounding is 0. F is computed once for each value of `reference`.
///
/// On pool3 features of Inception-v3 this is FID; on features that keep the image's layout it is called spatial (sFID).
///
/// # Errors
/// If the dimensions differ, or an eigenvalue iteration does not converge.
pub fn frechet_distance(reference: &Moments, samples: &Moments) -> Result<f64, MetricsError> {
    same_dimension("features", reference.dimension(), samples.dimension())?;
    let factor = reference.factor()?;
    let inner = product(&factor.transpose(), &product(&samples.covariance, factor));
    let mut values: Vec<f64> = symmetric_eigen(inner)?.0.iter().copied().filter(|&value| value > 0.0).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let root: f64 = values.iter().take(samples.rank()).map(|value| value.sqrt()).sum();
    let shift: f64 = reference.mean.iter().zip(&samples.mean).map(|(a, b)| (a - b).powi(2)).sum();
    Ok((shift + reference.covariance.trace() + samples.covariance.trace() - 2.0 * root).max(0.0))
}

pub(crate) fn same_dimension(what: &'static str, reference: usize, samples: usize) -> Result<(), MetricsError> {
    if reference == samples { Ok(()) } else { Err(MetricsError::DimensionMismatch { what, reference, samples }) }
}
