//! Precision and recall (Kynkäänniemi et al. 2019, arXiv 1904.06991), density and coverage (Naeem et al. 2020, arXiv
//! 2002.09797): does one set lie where the other does?

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{Features, MetricsError, distances::compare, frechet::same_dimension};

/// A set of features with a ball around each: an estimate of where images of this kind lie.
///
/// The radius of a ball is the distance to the k-th nearest other row. Equal rows are neighbours at distance 0.
#[derive(Clone, Debug)]
pub struct Manifold {
    features: Features,
    neighbours: usize,
    squared_radii: Vec<f64>,
}

impl Manifold {
    /// Measures the balls: n^2 distances, in parallel. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// If `neighbours` (k) is 0, or there are fewer than k + 1 rows.
    pub fn new(features: Features, neighbours: usize) -> Result<Self, MetricsError> {
        let rows = features.rows();
        if neighbours == 0 {
            return Err(MetricsError::NoNeighbours);
        }
        if rows <= neighbours {
            return Err(MetricsError::TooFewForNeighbours { rows, neighbours });
        }
        let start = |block: Range<usize>| (block.start, vec![f64::INFINITY; block.len() * neighbours]);
        let nearest = compare(&features, &features, start, |(first, nearest), row, others, squared| {
            let nearest = &mut nearest[(row - *first) * neighbours..][..neighbours];
            for (other, &distance) in others.zip(squared) {
                if other != row && distance < nearest[neighbours - 1] {
                    let at = nearest.partition_point(|&known| known <= distance);
                    nearest[at..].rotate_right(1);
                    nearest[at] = distance;
                }
            }
        });
        let last = |block: &(usize, Vec<f64>)| -> Vec<f64> {
            block.1.chunks_exact(neighbours).map(|nearest| nearest[neighbours - 1]).collect()
        };
        let squared_radii = nearest.iter().flat_map(last).collect();
        Ok(Self { features, neighbours, squared_radii })
    }

    /// The features in the balls' centres.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// k.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }

    /// The squared radius of each row's ball.
    pub fn squared_radii(&self) -> &[f64] {
        &self.squared_radii
    }

    /// Compares samples with this reference set.
    ///
    /// # Errors
    /// If the dimensions or the numbers of neighbours differ.
    pub fn compare(&self, samples: &Self) -> Result<ManifoldScores, MetricsError> {
        same_dimension("features", self.features.dimension(), samples.features.dimension())?;
        if self.neighbours != samples.neighbours {
            let (reference, samples) = (self.neighbours, samples.neighbours);
            return Err(MetricsError::NeighboursDiffer { reference, samples });
        }
        let flags = || -> Vec<AtomicBool> { self.squared_radii.iter().map(|_| AtomicBool::new(false)).collect() };
        // Set to true from any thread and read at the end: the order does not matter.
        let (recalled, covered) = (flags(), flags());
        let start = |block: Range<usize>| (block.start, vec![0_usize; block.len()]);
        let blocks = compare(&samples.features, &self.features, start, |(first, balls), row, others, squared| {
            let own = samples.squared_radii[row];
            for (other, &distance) in others.zip(squared) {
                if distance <= self.squared_radii[other] {
                    balls[row - *first] += 1;
                    covered[other].store(true, Ordering::Relaxed);
                }
                if distance <= own {
                    recalled[other].store(true, Ordering::Relaxed);
                }
            }
        });
        let balls: Vec<usize> = blocks.into_iter().flat_map(|(_, balls)| balls).collect();
        let count =
            |flags: Vec<AtomicBool>| flags.into_iter().filter_map(|flag| flag.into_inner().then_some(())).count();
        let (references, sampled) = (self.squared_radii.len() as f64, balls.len() as f64);
        Ok(ManifoldScores {
            precision: balls.iter().filter(|&&balls| balls > 0).count() as f64 / sampled,
            recall: count(recalled) as f64 / references,
            density: balls.iter().sum::<usize>() as f64 / (self.neighbours as f64 * sampled),
            coverage: count(covered) as f64 / references,
        })
    }
}

/// How two sets cover each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManifoldScores {
    /// The share of samples that lie in a ball of the reference set: how many look real.
    pub precision: f64,
    /// The share of reference rows that lie in a ball of the samples: how much of the variety is there.
    pub recall: f64,
    /// The mean number of reference balls that a sample lies in, over k: like precision, but not led astray by the
    /// large ball of an outlier. It can exceed 1.
    pub density: f64,
    /// The share of reference balls that hold a sample.
    pub coverage: f64,
}
