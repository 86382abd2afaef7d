//! Scores of generated images in a feature space: Fréchet distance, inception-style score, precision and recall,
//! density and coverage.
//!
//! A generated image has no right answer that it could be compared with. Scores therefore compare *sets*: an extractor
//! turns each image into a point of a feature space, and what counts is whether the samples lie where the reference
//! images lie. A [`FeatureSet`] holds the points of one set, as some extractor wrote them into a safetensors file.
//! [`Reference::measure`] does once what depends on the reference set alone, and [`score`] compares samples with it:
//!
//! * [`frechet_distance`] takes both sets as Gaussians ([`Moments`]). One number for quality and variety together; it
//!   is biased upwards for few samples.
//! * [`Manifold`] puts a ball around each point. [`ManifoldScores`] tell apart what the Fréchet distance mixes:
//!   precision and density fall when samples look wrong, recall and coverage when kinds of images are missing.
//! * [`inception_score()`] looks at class probabilities of the samples only. It does not see missing variety within a
//!   class.
//!
//! ```
//! use generative_metrics::{FeatureSet, Features, Reference, score};
//!
//! // Points of a plane instead of images: a grid, and the same grid moved to the right by 0.5.
//! let grid = |shift: f32| (0..64).flat_map(|i| [(i % 8) as f32 + shift, (i / 8) as f32]).collect::<Vec<f32>>();
//! let references = FeatureSet::new(Features::new(2, grid(0.0))?);
//! let samples = FeatureSet::new(Features::new(2, grid(0.5))?);
//!
//! let reference = Reference::measure(&references, 3, "points of the plane", "none")?;
//! let scores = score(&reference, &samples, 5000)?;
//! assert!((scores.frechet_distance - 0.25).abs() < 1e-9); // the shift, squared: the covariances agree
//! assert_eq!((scores.precision, scores.recall), (1.0, 1.0));
//! assert_eq!(scores.inception_score, None); // no class probabilities were given
//! assert!(scores.protocol.to_string().starts_with("64 samples against 64 references"));
//! # Ok::<(), generative_metrics::MetricsError>(())
//! ```
//!
//! # What the numbers mean, and what not
//!
//! Nothing here is "FID-50K" by itself. That name stands for one extractor (pool3 of an Inception-v3 with certain
//! weights), one way of resizing, and 50000 samples; with another extractor, resize or number of samples the same
//! formula gives other numbers, and they can rank models in another order. This crate knows none of the three: callers
//! name them, and every [`Scores`] carries its [`Protocol`]. Compare only scores of equal protocols.
//!
//! The reference evaluator of many diffusion papers is ADM's (Dhariwal and Nichol 2021, arXiv 2105.05233).
//! Facts about it:
//!
//! * FID: pool3 features (2048), covariance with n - 1. sFID: the same formula on the first 7 channels of the layer
//!   `mixed_6/conv`, flattened with their positions; give these as [`FeatureSet::spatial`].
//! * Inception score: the mean over splits of 5000 consecutive samples, from logits without their bias.
//! * Precision and recall: k = 3, with squared distances in half precision where these are finite. Distances are exact
//!   here, so that shares can differ in the last digits.
//! * Density and coverage are not part of it; they follow Naeem et al.
//!
//! # Cost
//!
//! The Fréchet distance is dominated by two eigenvalue problems of size d (the one of the reference set is solved
//! once), balls by n^2 d operations for each set and as many for comparing two. `examples/timing.rs` measures both.
//!
//! # Conventions
//!
//! All arithmetic is in `f64`. The same input gives the same bits for any number of threads. The order of rows changes
//! Fréchet distances by rounding only, shares not at all, and inception scores through their splits. Bad input is an
//! error with a message for people ([`MetricsError`]), never a panic.

mod distances;
mod error;
mod features;
mod file;
mod frechet;
mod inception_score;
mod linear_algebra;
mod manifold;
mod score;

pub use error::MetricsError;
pub use features::Features;
pub use file::FeatureSet;
pub use frechet::{Moments, frechet_distance};
pub use inception_score::{InceptionScore, Probabilities, inception_score};
pub use manifold::{Manifold, ManifoldScores};
pub use score::{Protocol, Reference, Scores, score};
