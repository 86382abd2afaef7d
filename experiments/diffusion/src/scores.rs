//! Samples scored against the training images, in the feature space of a classifier.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use burn::tensor::{DType, backend::AutodiffBackend};
use datasets::images::ImageSet;
use fused_ops::FusedOps;
use generative_metrics::{FeatureSet, Features, Probabilities, Protocol, Reference, Scores, score};
use rayon::prelude::*;
use training::progress::Progress;

use crate::{
    classifier::{self, Classifier, FEATURES},
    data::{Images, image_tensor},
    model::Dit,
    sampling::{Wanted, draw, labels_in_turn},
    settings::Settings,
    task::metric,
};

/// Neighbours of precision, recall, density and coverage (Kynkäänniemi et al. 2019).
const NEIGHBOURS: usize = 3;
/// Samples of one split of the inception-style score, as in ADM's evaluation.
const SPLIT: usize = 5000;
/// Images that go through the classifier at once.
const BATCH: usize = 128;

/// A classifier with the reference set that it has seen: what samples are judged by. Arms and seeds of a comparison share
/// it.
#[derive(Debug)]
pub struct Judge<I: FusedOps> {
    classifier: Classifier<I>,
    reference: Reference,
    shape: [usize; 3],
    classes: usize,
    accuracy: f64,
    progress: Progress,
}

/// The scores of samples, with the share that the classifier takes for their class.
#[derive(Clone, Debug)]
pub struct SampleScores {
    /// The scores, with their protocol.
    pub scores: Scores,
    /// The share.
    pub accuracy: f64,
}

impl SampleScores {
    /// The scores under the names that `metrics.jsonl` has them by.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let s = &self.scores;
        let known = [
            (metric::FRECHET, Some(s.frechet_distance)),
            (metric::SPATIAL_FRECHET, s.spatial_frechet_distance),
            (metric::INCEPTION, s.inception_score.map(|(mean, _)| mean)),
            (metric::PRECISION, Some(s.precision)),
            (metric::RECALL, Some(s.recall)),
            (metric::DENSITY, Some(s.density)),
            (metric::COVERAGE, Some(s.coverage)),
            (metric::ACCURACY, Some(self.accuracy)),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// What the classifier sees in images: features, spatial features and logits, row by row.
struct Rows {
    features: Vec<f32>,
    spatial: Vec<f32>,
    logits: Vec<f64>,
    count: usize,
}

impl Rows {
    fn classes(&self) -> usize {
        self.logits.len() / self.count.max(1)
    }

    /// The share of the images that the classifier takes for the class of their label.
    fn accuracy(&self, labels: &[u32]) -> f64 {
        let rows = self.logits.chunks(self.classes().max(1));
        rows.zip(labels).filter(|(row, label)| largest(row) == **label as usize).count() as f64
            / self.count.max(1) as f64
    }

    fn into_set(self) -> Result<FeatureSet> {
        let classes = self.classes();
        Ok(FeatureSet {
            spatial: Some(Features::new(self.spatial.len() / self.count.max(1), self.spatial)?),
            features: Features::new(FEATURES, self.features)?,
            probabilities: Some(Probabilities::from_logits(classes, &self.logits)?),
        })
    }
}

fn see<I: FusedOps>(classifier: &Classifier<I>, images: &[f32], shape: [usize; 3], device: &I::Device) -> Rows {
    let size: usize = shape.iter().product();
    let chunks: Vec<&[f32]> = images.chunks(size * BATCH).collect();
    let look = |classifier: &Classifier<I>, chunk: &&[f32]| {
        let seen = classifier.forward(image_tensor(chunk.to_vec(), shape, device));
        let [features, spatial, logits] =
            [seen.features, seen.spatial, seen.logits].map(|t| t.into_data().iter::<f32>().collect::<Vec<f32>>());
        (features, spatial, logits)
    };
    let seen: Vec<_> = if I::fused(DType::F32) {
        chunks.par_iter().map_with(classifier.clone(), |classifier, chunk| look(classifier, chunk)).collect()
    } else {
        chunks.iter().map(|chunk| look(classifier, chunk)).collect()
    };
    let mut rows = Rows { features: Vec::new(), spatial: Vec::new(), logits: Vec::new(), count: images.len() / size };
    for (f, s, l) in seen {
        rows.features.extend(f);
        rows.spatial.extend(s);
        rows.logits.extend(l.into_iter().map(f64::from));
    }
    rows
}

fn largest(row: &[f64]) -> usize {
    let mut best = 0;
    for (i, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = i;
        }
    }
    best
}

/// So many images of a set, spread evenly over all of it; 0 takes all.
fn spread(set: &ImageSet, wanted: usize) -> Vec<f32> {
    let all = set.len() as usize;
    let count = if wanted == 0 { all } else { wanted.min(all) };
    let numbers = (0..count).map(|i| (i * all / count.max(1)) as u32);
    numbers.flat_map(|n| set.image(n).iter().copied()).collect()
}

impl<I: FusedOps> Judge<I> {
    /// Trains the classifier on the training images and measures the references among them.
    ///
    /// # Errors
    /// If there are too few images to be measured.
    pub fn train<B>(images: &Images, references: usize, device: &B::Device, progress: &Progress) -> Result<Arc<Self>>
    where
        B: AutodiffBackend<InnerBackend = I, Device = I::Device> + FusedOps,
    {
        let started = std::time::Instant::now();
        if images.train.classes() < 2 {
            bail!(
                "images of one class train no classifier to score samples with: set evaluation.samples = 0 (--samples 0), \
                 and give features of your own to `score`"
            );
        }
        progress.message("scores: training a small classifier on the images, whose features they are taken in");
        let bar = progress.task("classifier", 100);
        let mut shown = 0;
        let classifier = classifier::train::<B>(&images.train, device, &mut |step, steps| {
            bar.advance(100 * step / steps - shown);
            shown = 100 * step / steps;
        })
        .context("cannot train the classifier that scores need")?;
        bar.finish();
        let shape = images.train.shape();
        let accuracy = see(&classifier, images.held_out.values(), shape, device).accuracy(images.held_out.labels());
        let pictures = spread(&images.train, references);
        let extractor = format!(
            "a small classifier ({FEATURES} features) trained on the same images, right on {:.1}% of the held-out ones",
            100.0 * accuracy
        );
        let resize = format!("none ({} x {})", shape[1], shape[2]);
        let reference = see(&classifier, &pictures, shape, device)
            .into_set()
            .and_then(|set| Ok(Reference::measure(&set, NEIGHBOURS, &extractor, &resize)?))
            .context("too few images to score against: set evaluation.samples = 0")?;
        progress.message(&format!("scores: features of {extractor} ({:.0} s)", started.elapsed().as_secs_f64()));
        let classes = images.train.classes();
        Ok(Arc::new(Self { classifier, reference, shape, classes, accuracy, progress: progress.clone() }))
    }

    /// Share of the held-out images that the classifier takes for their class.
    pub fn accuracy(&self) -> f64 {
        self.accuracy
    }

    /// What the scores of so many samples depend on.
    pub fn protocol(&self, samples: usize) -> Protocol {
        self.reference.protocol(samples)
    }

    /// Draws samples as the settings say, going through the classes in turn, and scores them; samples that are not finite have
    /// no scores.
    ///
    /// # Errors
    /// If the sampler's steps cannot be chosen.
    pub fn judge(
        &self,
        model: &Dit<I>,
        settings: &Settings,
        device: &I::Device,
    ) -> Result<(Vec<f32>, Option<SampleScores>)> {
        let labels = labels_in_turn(settings.evaluation.samples, self.classes);
        let wanted = Wanted { seed: settings.seed, first: 0, labels: &labels, batch: settings.evaluation.batch };
        let bar = self.progress.task(&format!("{}: samples", settings.model.arm), labels.len());
        let samples = draw(model, &settings.sampling, wanted, device, &|done| bar.advance(done))?;
        bar.finish();
        if samples.iter().any(|value| !value.is_finite()) {
            self.progress.message(&format!("{}: samples are not finite, and have no scores", settings.model.arm));
            return Ok((samples, None));
        }
        let scores = self.score(&samples, &labels, device)?;
        Ok((samples, Some(scores)))
    }

    /// Scores samples.
    ///
    /// # Errors
    /// If a sample is not finite.
    pub fn score(&self, samples: &[f32], labels: &[u32], device: &I::Device) -> Result<SampleScores> {
        let seen = see(&self.classifier, samples, self.shape, device);
        let accuracy = seen.accuracy(labels);
        Ok(SampleScores { scores: score(&self.reference, &seen.into_set()?, SPLIT)?, accuracy })
    }
}
