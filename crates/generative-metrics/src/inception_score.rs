//! Inception-style score: are images of clear classes, and of many (Salimans et al. 2016, arXiv 1606.03498)?

use crate::{
    MetricsError,
    features::{not_finite, whole_rows},
};

/// By how much the probabilities of a row may miss a sum of 1: what rounding them to half precision explains.
const SUM_TOLERANCE: f64 = 1e-2;

/// Class probabilities of a set of images: a matrix `[rows, classes]`, row-major, of rows that sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Probabilities {
    classes: usize,
    values: Vec<f64>,
}

impl Probabilities {
    /// Probabilities from their values in row-major order. They are taken as they are: a row whose sum is off by
    /// rounding is not scaled.
    ///
    /// # Errors
    /// If `classes` is 0, if the values make up no whole number of rows or none, or if a row holds a value that is not
    /// finite or negative, or misses a sum of 1 by more than 0.01.
    pub fn new(classes: usize, values: Vec<f64>) -> Result<Self, MetricsError> {
        check_finite(classes, &values)?;
        for (row, p) in values.chunks_exact(classes).enumerate() {
            let refuse = |reason| Err(MetricsError::NotProbabilities { row, reason });
            if let Some(class) = p.iter().position(|&p| p < 0.0) {
                return refuse(format!("class {class} has {}", p[class]));
            }
            let sum: f64 = p.iter().sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                return refuse(format!("it sums to {sum}"));
            }
        }
        Ok(Self { classes, values })
    }

    /// The softmax of each row of logits, `[rows, classes]`.
    ///
    /// # Errors
    /// If `classes` is 0, if the values make up no whole number of rows or none, or if one is not finite.
    pub fn from_logits(classes: usize, logits: &[f64]) -> Result<Self, MetricsError> {
        check_finite(classes, logits)?;
        let mut values = Vec::with_capacity(logits.len());
        for row in logits.chunks_exact(classes) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
            values.extend(row.iter().map(|x| (x - largest).exp() / sum));
        }
        Ok(Self { classes, values })
    }

    /// How many images there are.
    pub fn rows(&self) -> usize {
        self.values.len() / self.classes
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All values in row-major order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

fn check_finite(classes: usize, values: &[f64]) -> Result<(), MetricsError> {
    if whole_rows(values.len(), classes)? == 0 {
        return Err(MetricsError::Ragged { values: 0, columns: classes });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(not_finite(at, classes, values[at])),
        None => Ok(()),
    }
}

/// The inception-style score of a set, and of each of its splits.
#[derive(Clone, Debug, PartialEq)]
pub struct InceptionScore {
    /// The scores of the splits, in order of the rows.
    pub splits: Vec<f64>,
}

impl InceptionScore {
    /// The mean over the splits.
    pub fn mean(&self) -> f64 {
        self.splits.iter().sum::<f64>() / self.splits.len() as f64
    }

    /// The standard deviation over the splits, dividing by their number; 0 for one split.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.splits.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / self.splits.len() as f64).sqrt()
    }
}

/// `exp(mean_i KL(p_i || mean p))` of each run of `split_size` consecutive rows; the last run takes what is left and
/// counts like the others. A probability of 0 contributes 0.
///
/// The value lies between 1 and the number of classes. Rows must be in the order of sampling or shuffled: a set that is
/// sorted by class has splits of few classes each. ADM's evaluator uses splits of 5000.
///
/// # Errors
/// If `split_size` is 0.
pub fn inception_score(probabilities: &Probabilities, split_size: usize) -> Result<InceptionScore, MetricsError> {
    if split_size == 0 {
        return Err(MetricsError::EmptySplit);
    }
    let classes = probabilities.classes;
    let size = split_size.min(probabilities.rows()) * classes;
    Ok(InceptionScore { splits: probabilities.values.chunks(size).map(|split| split_score(split, classes)).collect() })
}

fn split_score(split: &[f64], classes: usize) -> f64 {
    let rows = (split.len() / classes) as f64;
    let mut mean = vec![0.0; classes];
    for row in split.chunks_exact(classes) {
        mean.iter_mut().zip(row).for_each(|(sum, p)| *sum += p);
    }
    mean.iter_mut().for_each(|sum| *sum /= rows);
    let divergence = |row: &[f64]| -> f64 {
        // A class that no row has never gets here, so that the logarithm of its mean is not taken.
        row.iter().zip(&mean).filter(|&(&p, _)| p > 0.0).map(|(p, m)| p * (p.ln() - m.ln())).sum()
    };
    (split.chunks_exact(classes).map(divergence).sum::<f64>() / rows).exp()
}
