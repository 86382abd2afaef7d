//! All scores of a set of samples, with the protocol that they depend on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FeatureSet, Manifold, MetricsError, Moments, frechet::same_dimension, frechet_distance, inception_score};

/// What a score depends on besides the images. Scores of different protocols cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// The network, its weights and the layer that the features come from.
    pub extractor: String,
    /// How images were brought to the extractor's size.
    pub resize: String,
    /// How many samples were scored.
    pub samples: usize,
    /// How many reference images they were compared with.
    pub references: usize,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { extractor, resize, samples, references } = self;
        write!(f, "{samples} samples against {references} references; features: {extractor}; resize: {resize}")
    }
}

/// The scores of a set of samples against a reference set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The Fréchet distance of the features; 0 is best.
    pub frechet_distance: f64,
    /// The Fréchet distance of the spatial features, where both sets have them.
    pub spatial_frechet_distance: Option<f64>,
    /// Mean and standard deviation of the inception-style score over its splits, where the samples have probabilities.
    pub inception_score: Option<(f64, f64)>,
    /// The share of samples within the reference set's balls.
    pub precision: f64,
    /// The share of references within the samples' balls.
    pub recall: f64,
    /// How densely samples lie within the reference set's balls.
    pub density: f64,
    /// The share of reference balls that hold a sample.
    pub coverage: f64,
    /// Where all this comes from.
    pub protocol: Protocol,
}

/// A reference set, measured once for any number of sets of samples.
#[derive(Clone, Debug)]
pub struct Reference {
    extractor: String,
    resize: String,
    moments: Moments,
    spatial: Option<Moments>,
    manifold: Manifold,
}

impl Reference {
    /// Measures moments and balls of a reference set. `neighbours` is k of the balls; Kynkäänniemi et al. use 3.
    /// `extractor` and `resize` go into the [`Protocol`] of every score, and must be those of the samples too.
    ///
    /// # Errors
    /// If a name is empty, the set's parts have different numbers of rows, or there are too few rows for k.
    pub fn measure(set: &FeatureSet, neighbours: usize, extractor: &str, resize: &str) -> Result<Self, MetricsError> {
        for (part, name) in [("extractor", extractor), ("resize", resize)] {
            if name.trim().is_empty() {
                return Err(MetricsError::Unnamed { part });
            }
        }
        set.check_rows()?;
        Ok(Self {
            extractor: extractor.to_owned(),
            resize: resize.to_owned(),
            manifold: Manifold::new(set.features.clone(), neighbours)?,
            moments: Moments::of(&set.features),
            spatial: set.spatial.as_ref().map(Moments::of),
        })
    }

    /// Mean and covariance of the features.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Mean and covariance of the spatial features, where the set has them.
    pub fn spatial(&self) -> Option<&Moments> {
        self.spatial.as_ref()
    }

    /// What the scores of so many samples against this set depend on.
    pub fn protocol(&self, samples: usize) -> Protocol {
        Protocol {
            extractor: self.extractor.clone(),
            resize: self.resize.clone(),
            samples,
            references: self.manifold.features().rows(),
        }
    }

    /// The balls.
    pub fn manifold(&self) -> &Manifold {
        &self.manifold
    }
}

/// Scores `samples` against a reference set; the inception-style score is taken over splits of `split_size` rows.
///
/// # Errors
/// If the samples' parts have different numbers of rows, the dimensions of the two sets differ, there are too few
/// samples for the reference set's k, or `split_size` is 0.
pub fn score(reference: &Reference, samples: &FeatureSet, split_size: usize) -> Result<Scores, MetricsError> {
    samples.check_rows()?;
    // Asked before anything that takes long.
    same_dimension("features", reference.moments.dimension(), samples.features.dimension())?;
    let spatial = reference.spatial.as_ref().zip(samples.spatial.as_ref());
    if let Some((reference, samples)) = spatial {
        same_dimension("spatial features", reference.dimension(), samples.dimension())?;
    }
    let split_scores = samples.probabilities.as_ref().map(|p| inception_score(p, split_size)).transpose()?;
    let manifold = Manifold::new(samples.features.clone(), reference.manifold.neighbours())?;
    let shared = reference.manifold.compare(&manifold)?;
    Ok(Scores {
        frechet_distance: frechet_distance(&reference.moments, &Moments::of(&samples.features))?,
        spatial_frechet_distance: spatial
            .map(|(reference, samples)| frechet_distance(reference, &Moments::of(samples)))
            .transpose()?,
        inception_score: split_scores.map(|score| (score.mean(), score.deviation())),
        precision: shared.precision,
        recall: shared.recall,
        density: shared.density,
        coverage: shared.coverage,
        protocol: reference.protocol(samples.features.rows()),
    })
}
