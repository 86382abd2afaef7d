//! Features of a set of images as one safetensors file.

use std::{fs, path::Path};

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use crate::{Features, MetricsError, Probabilities};

/// What an extractor says about a set of images.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureSet {
    /// The features, `[n, d]`.
    pub features: Features,
    /// The class probabilities, `[n, classes]`, for the inception-style score.
    pub probabilities: Option<Probabilities>,
    /// Features that keep some of the image's layout, `[n, d2]`, for the spatial Fréchet distance.
    pub spatial: Option<Features>,
}

impl FeatureSet {
    /// A set of features alone.
    pub fn new(features: Features) -> Self {
        Self { features, probabilities: None, spatial: None }
    }

    /// Reads a safetensors file: `features` `[n, d]`; where there, `probabilities` or `logits` `[n, classes]`, and
    /// `spatial` `[n, d2]`. Elements are F16, BF16, F32 or F64; features are kept as `f32`. Other tensors are ignored.
    ///
    /// # Errors
    /// If the file cannot be read or is cut, lacks `features`, holds both probabilities and logits, or if a tensor has
    /// another type or shape, another number of rows, or values that are not finite or no probabilities.
    pub fn read(path: &Path) -> Result<Self, MetricsError> {
        let bytes = fs::read(path).map_err(|source| MetricsError::Io { path: path.to_owned(), source })?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| MetricsError::NotSafetensors {
            path: path.to_owned(),
            bytes: bytes.len(),
            reason: error.to_string(),
        })?;
        let file = File { path, tensors };
        let features = file.parsed("features", narrowed)?.ok_or_else(|| file.missing("features"))?;
        let given = file.parsed("probabilities", Probabilities::new)?;
        let computed = file.parsed("logits", |classes, logits| Probabilities::from_logits(classes, &logits))?;
        if given.is_some() && computed.is_some() {
            return Err(MetricsError::BothProbabilitiesAndLogits { path: path.to_owned() });
        }
        let spatial = file.parsed("spatial", narrowed)?;
        let set = Self { features, probabilities: given.or(computed), spatial };
        set.check_rows().map_err(|source| MetricsError::InFile { path: path.to_owned(), source: Box::new(source) })?;
        Ok(set)
    }

    /// Each part must have one row for each image.
    pub(crate) fn check_rows(&self) -> Result<(), MetricsError> {
        let expected = self.features.rows();
        let parts = [
            ("probabilities", self.probabilities.as_ref().map(Probabilities::rows)),
            ("spatial", self.spatial.as_ref().map(Features::rows)),
        ];
        for (name, rows) in parts {
            if let Some(found) = rows.filter(|&rows| rows != expected) {
                return Err(MetricsError::RowCounts { name, found, expected });
            }
        }
        Ok(())
    }
}

struct File<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl File<'_> {
    /// The tensor `name` turned into what it stands for; `None` where the file has no such tensor.
    fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(usize, Vec<f64>) -> Result<T, MetricsError>,
    ) -> Result<Option<T>, MetricsError> {
        let Ok(view) = self.tensors.tensor(name) else { return Ok(None) };
        let path = || self.path.to_owned();
        let &[_, columns] = view.shape() else {
            return Err(MetricsError::NotAMatrix { path: path(), name, shape: view.shape().to_vec() });
        };
        let values = widened(view.dtype(), view.data()).ok_or_else(|| MetricsError::ElementType {
            path: path(),
            name,
            dtype: view.dtype(),
        })?;
        parse(columns, values).map(Some).map_err(|source| self.within(name, source))
    }

    fn within(&self, name: &'static str, source: MetricsError) -> MetricsError {
        MetricsError::InTensor { path: self.path.to_owned(), name, source: Box::new(source) }
    }

    fn missing(&self, name: &'static str) -> MetricsError {
        let mut found: Vec<String> = self.tensors.names().into_iter().map(str::to_owned).collect();
        found.sort_unstable();
        MetricsError::MissingTensor { path: self.path.to_owned(), name, found }
    }
}

fn narrowed(columns: usize, values: Vec<f64>) -> Result<Features, MetricsError> {
    // What overflows becomes infinite here, and is refused as such.
    Features::new(columns, values.into_iter().map(|value| value as f32).collect())
}

/// The elements as `f64`; `None` for types that are no floating-point numbers.
fn widened(dtype: Dtype, data: &[u8]) -> Option<Vec<f64>> {
    fn each<const N: usize>(data: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        data.as_chunks::<N>().0.iter().map(|&bytes| read(bytes)).collect()
    }
    Some(match dtype {
        Dtype::F64 => each(data, f64::from_le_bytes),
        Dtype::F32 => each(data, |bytes| f64::from(f32::from_le_bytes(bytes))),
        Dtype::F16 => each(data, |bytes| f16::from_le_bytes(bytes).to_f64()),
        Dtype::BF16 => each(data, |bytes| bf16::from_le_bytes(bytes).to_f64()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
