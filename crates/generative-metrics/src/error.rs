//! What can be wrong with features, and with files of them.

use std::{io, path::PathBuf};

use safetensors::Dtype;

/// Why a score cannot be given. Every message says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file that is cut short, damaged or of another format.
    #[error("{path} ({bytes} bytes) is not a whole safetensors file ({reason}): write or fetch it again")]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// What the format's library says.
        reason: String,
    },
    /// A tensor that must be in a file and is not.
    #[error("{path} has no tensor `{name}`: it holds {}", listed(.found))]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor that is missing.
        name: &'static str,
        /// The tensors that are there.
        found: Vec<String>,
    },
    /// Two tensors of which only one can be meant.
    #[error("{path} holds both `probabilities` and `logits`: keep the one that the inception-style score is to use")]
    BothProbabilitiesAndLogits {
        /// The file.
        path: PathBuf,
    },
    /// Elements that are not floating-point numbers.
    #[error("{path}: tensor `{name}` has elements {dtype:?}: store F16, BF16, F32 or F64")]
    ElementType {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// The type of its elements.
        dtype: Dtype,
    },
    /// A tensor that is not a matrix.
    #[error("{path}: tensor `{name}` has shape {shape:?}: store a matrix with one row for each image")]
    NotAMatrix {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A tensor with wrong content.
    #[error("{path}, tensor `{name}`: {source}")]
    InTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// What is wrong with it.
        source: Box<MetricsError>,
    },
    /// Tensors of a file that do not fit together.
    #[error("{path}: {source}")]
    InFile {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        source: Box<MetricsError>,
    },
    /// Tensors of one set that speak of different numbers of images.
    #[error("`{name}` has {found} rows and `features` has {expected}: each image needs one row in both")]
    RowCounts {
        /// The tensor beside the features.
        name: &'static str,
        /// How many rows it has.
        found: usize,
        /// How many rows the features have.
        expected: usize,
    },
    /// A number of values that is no whole number of rows.
    #[error("{values} values are no whole number of rows of {columns}: check the number of columns")]
    Ragged {
        /// How many values were given.
        values: usize,
        /// How many make up a row.
        columns: usize,
    },
    /// Rows without columns.
    #[error("rows of 0 columns say nothing about an image: check the shape")]
    NoColumns,
    /// Too few rows for a covariance.
    #[error("{rows} rows are too few: a covariance needs at least 2")]
    TooFewRows {
        /// How many rows there are.
        rows: usize,
    },
    /// Too few rows for a neighbour.
    #[error(
        "{rows} rows are too few for k = {neighbours}: a k-th neighbour needs at least k + 1 rows; measure more \
         images or lower k"
    )]
    TooFewForNeighbours {
        /// How many rows there are.
        rows: usize,
        /// k.
        neighbours: usize,
    },
    /// k = 0.
    #[error("k is 0: a ball needs at least one neighbour (the papers use 3 and 5)")]
    NoNeighbours,
    /// Two sets measured with different k.
    #[error("one set was measured with k = {reference} and the other with k = {samples}: measure both with the same k")]
    NeighboursDiffer {
        /// k of the reference set.
        reference: usize,
        /// k of the samples.
        samples: usize,
    },
    /// A value that is infinite or not a number.
    #[error("row {row}, column {column} is {value}: every value must be finite (as f32 where it is a feature)")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The value.
        value: f64,
    },
    /// Two sets in different feature spaces.
    #[error(
        "the reference set has {what} of dimension {reference} and the samples of {samples}: use one extractor for both"
    )]
    DimensionMismatch {
        /// What was compared.
        what: &'static str,
        /// The dimension of the reference set.
        reference: usize,
        /// The dimension of the samples.
        samples: usize,
    },
    /// A row that is no distribution over classes.
    #[error(
        "row {row} is no row of probabilities: {reason}; if these are scores before the softmax, give them as logits"
    )]
    NotProbabilities {
        /// The row, from 0.
        row: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Splits of no rows.
    #[error("the split size is 0: it must be at least 1 (ADM uses 5000)")]
    EmptySplit,
    /// A matrix that is no covariance.
    #[error("these are no moments of a set: {reason}")]
    NotMoments {
        /// What is wrong.
        reason: String,
    },
    /// The eigenvalue iteration did not end.
    #[error(
        "the eigenvalues of a {dimension} x {dimension} matrix did not converge in {iterations} steps: check the \
         features for extreme scales"
    )]
    NotConverged {
        /// The size of the matrix.
        dimension: usize,
        /// The limit on the steps.
        iterations: usize,
    },
    /// A protocol that does not say where features come from.
    #[error("the {part} is not named: a score means nothing without it, so give it a name")]
    Unnamed {
        /// Which part of the protocol.
        part: &'static str,
    },
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    match names.len() {
        0 => "no tensors".to_owned(),
        n if n > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
        _ => names.join(", "),
    }
}
