//! From images to what a run is trained and measured on.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData, backend::Backend};
use datasets::images::{ImageData, ImageKind, ImageSet};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use thiserror::Error;

use crate::{
    model::DitConfig,
    settings::{EvaluationSettings, PROCESS_STEPS, Settings},
};

/// Images with their classes. Arms and seeds of a comparison share them.
#[derive(Clone, Debug)]
pub struct Images {
    /// What they are, in words.
    pub description: String,
    /// The images to train on.
    pub train: Arc<ImageSet>,
    /// The images to evaluate on.
    pub held_out: Arc<ImageSet>,
}

/// Why images cannot be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// The images cannot be read.
    #[error("{0}")]
    Images(#[from] datasets::images::ImageError),
    /// Nothing is held out.
    #[error("no image is held out to evaluate on: give a larger share with --set data.held_out=0.2")]
    NothingHeldOut,
    /// The model was set up for other images.
    #[error(
        "model.{name} = {model}, and the images have {data}: set model.{name} to {data}, or to 0 to take the data's"
    )]
    Mismatch {
        /// Which size.
        name: &'static str,
        /// The model's.
        model: usize,
        /// The data's.
        data: usize,
    },
}

impl Images {
    /// Reads the images that the settings ask for.
    ///
    /// # Errors
    /// See [`DataError`]; every message names the file.
    pub fn load(settings: &Settings) -> Result<Self, DataError> {
        let expected = (settings.model.classes > 0).then_some(settings.model.classes);
        let data = settings.data.images.load(&settings.data.options(expected))?;
        if data.held_out.is_empty() {
            return Err(DataError::NothingHeldOut);
        }
        let description = data.to_string();
        let ImageData { train, held_out, .. } = data;
        Ok(Self { description, train: Arc::new(train), held_out: Arc::new(held_out) })
    }

    /// The model's configuration with the sizes of these images where it leaves them open.
    ///
    /// # Errors
    /// If it has other sizes.
    pub fn settle(&self, model: &DitConfig) -> Result<DitConfig, DataError> {
        let [channels, size, _] = self.train.shape();
        let known = |name, model: usize, data: usize| match model {
            0 => Ok(data),
            model if model == data => Ok(data),
            model => Err(DataError::Mismatch { name, model, data }),
        };
        Ok(DitConfig {
            size: known("size", model.size, size)?,
            channels: known("channels", model.channels, channels)?,
            classes: known("classes", model.classes, self.train.classes())?,
            ..model.clone()
        })
    }

    /// Whether the images are pictures that can be shown as they are.
    pub fn are_pictures(&self) -> bool {
        self.train.kind() == ImageKind::Pictures
    }

    /// A text that changes with the images on either side, so that a run is not resumed on other data.
    pub fn fingerprint(&self) -> String {
        format!("{:08x}-{:08x}", self.train.fingerprint(), self.held_out.fingerprint())
    }
}

/// Normal numbers from a generator.
pub fn normal(rng: &mut impl Rng, count: usize) -> Vec<f32> {
    Distribution::<f32>::sample_iter(StandardNormal, rng).take(count).collect()
}

/// Images `[rows, channels, size, size]` as a tensor.
pub fn image_tensor<B: Backend>(
    values: Vec<f32>,
    [channels, height, width]: [usize; 3],
    device: &B::Device,
) -> Tensor<B, 4> {
    let rows = values.len() / (channels * height * width).max(1);
    Tensor::from_data(TensorData::new(values, [rows, channels, height, width]), device)
}

/// Images with the noise and the step at which a model is asked about them.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisedBatch {
    /// Clean images.
    pub images: Vec<f32>,
    /// The noise, of the same shape.
    pub noise: Vec<f32>,
    /// One step of the process an image.
    pub steps: Vec<usize>,
    /// One label an image; that of no label where it is withheld.
    pub labels: Vec<u32>,
    /// Channels, height, width.
    pub shape: [usize; 3],
}

impl NoisedBatch {
    /// A batch for training: steps uniform, labels withheld with the model's probability. `rng` is the stream of this
    /// batch.
    pub fn draw(batch: datasets::images::ImageBatch, model: &DitConfig, rng: &mut impl Rng) -> Self {
        let steps = (0..batch.rows).map(|_| rng.random_range(0..PROCESS_STEPS)).collect();
        let withheld: Vec<bool> = (0..batch.rows).map(|_| rng.random::<f64>() < model.label_dropout).collect();
        let labels = batch.labels.iter().zip(withheld).map(|(&label, withheld)| match model.null_label() {
            Some(null) if withheld => null,
            _ => label,
        });
        let labels = labels.collect();
        let noise = normal(rng, batch.images.len());
        Self { noise, steps, labels, images: batch.images, shape: batch.shape }
    }

    /// Number of images.
    pub fn rows(&self) -> usize {
        self.steps.len()
    }
}

/// The held-out images of an evaluation, each at every noise level: the same for every arm and seed. Their noise is drawn when
/// a batch is asked for, always the same, so that memory holds the images once.
#[derive(Clone, Debug)]
pub struct HeldOut {
    set: Arc<ImageSet>,
    /// The images that are taken.
    numbers: Vec<usize>,
    /// Images of a batch.
    batch: usize,
    /// Number of noise levels.
    pub levels: usize,
}

impl HeldOut {
    /// The images that the settings ask for, spread over the set.
    pub fn new(set: &Arc<ImageSet>, settings: &EvaluationSettings) -> Self {
        let (count, all) = (settings.images, set.len() as usize);
        let count = if count == 0 { all } else { count.min(all) };
        let numbers: Vec<usize> = (0..count).map(|i| i * all / count.max(1)).collect();
        Self { set: Arc::clone(set), numbers, batch: settings.batch.max(1), levels: settings.noise_levels }
    }

    /// Number of batches at each level.
    fn batches_a_level(&self) -> usize {
        self.numbers.len().div_ceil(self.batch)
    }

    /// Number of batches over all levels.
    pub fn batches(&self) -> usize {
        self.levels * self.batches_a_level()
    }

    /// A batch, whose images are all at one noise level, with that level: every image once at each level, at a random step
    /// within the level's band.
    ///
    /// # Panics
    /// If there are not so many batches.
    pub fn draw(&self, index: usize) -> (usize, NoisedBatch) {
        assert!(index < self.batches(), "there are {} batches, and number {index} is asked for", self.batches());
        let (level, part) = (index / self.batches_a_level(), index % self.batches_a_level());
        let chunk = &self.numbers[part * self.batch..((part + 1) * self.batch).min(self.numbers.len())];
        let mut batch = NoisedBatch {
            images: Vec::new(),
            noise: Vec::new(),
            steps: Vec::new(),
            labels: Vec::new(),
            shape: self.set.shape(),
        };
        for &number in chunk {
            let image = self.set.image(number as u32);
            batch.images.extend_from_slice(image);
            let mut rng = training::seed::stream(0, "held-out noise", (number * self.levels + level) as u64);
            batch.noise.extend(normal(&mut rng, image.len()));
            let band = level * PROCESS_STEPS / self.levels..(level + 1) * PROCESS_STEPS / self.levels;
            batch.steps.push(rng.random_range(band));
            batch.labels.push(self.set.labels()[number]);
        }
        (level, batch)
    }
}

#[cfg(test)]
mod tests {
    use datasets::images::ImagePlan;

    use super::*;
    use crate::presets::Preset;

    fn digits() -> (Settings, Images) {
        let mut settings = Preset::Smoke.settings();
        let images = Images::load(&settings).unwrap();
        settings.model = images.settle(&settings.model).unwrap();
        (settings, images)
    }

    #[test]
    fn sizes_that_are_left_open_are_the_datas() {
        let (settings, images) = digits();
        assert_eq!((settings.model.size, settings.model.channels, settings.model.classes), (8, 1, 10));
        let other = DitConfig { size: 16, ..settings.model };
        assert!(images.settle(&other).unwrap_err().to_string().contains("model.size = 16"));
    }

    #[test]
    fn every_held_out_image_is_seen_once_at_each_noise_level() {
        let (settings, images) = digits();
        let evaluation = EvaluationSettings { images: 50, noise_levels: 9, batch: 16, ..settings.evaluation };
        let held_out = HeldOut::new(&images.held_out, &evaluation);
        for level in 0..9 {
            let all = (0..held_out.batches()).map(|index| held_out.draw(index));
            let batches: Vec<NoisedBatch> = all.filter(|(l, _)| *l == level).map(|(_, batch)| batch).collect();
            let batches = batches.iter();
            assert_eq!(batches.clone().map(NoisedBatch::rows).sum::<usize>(), 50);
            let band = level * PROCESS_STEPS / 9..(level + 1) * PROCESS_STEPS / 9;
            let steps: Vec<usize> = batches.flat_map(|batch| batch.steps.clone()).collect();
            assert!(steps.iter().all(|step| band.contains(step)), "level {level}: {steps:?}");
            let distinct: std::collections::BTreeSet<_> = steps.iter().collect();
            assert!(distinct.len() > 30, "level {level} hardly moves within its band: {steps:?}");
        }
        // The same for every run: nothing of it depends on the run's seed.
        let again = HeldOut::new(&images.held_out, &evaluation);
        assert_eq!(held_out.draw(7), again.draw(7));
    }

    #[test]
    fn labels_are_withheld_as_often_as_asked() {
        let (settings, images) = digits();
        let plan = ImagePlan::new(Arc::clone(&images.train), 1000, 0, false).unwrap();
        let mut rng = training::seed::stream(0, "test", 0);
        let batch = NoisedBatch::draw(plan.batch(0), &settings.model, &mut rng);
        let withheld = batch.labels.iter().filter(|&&label| label == 10).count();
        // 100 expected; five standard deviations are 47.
        assert!((53..147).contains(&withheld), "{withheld}");
        let kept = batch.labels.iter().zip(&plan.batch(0).labels).filter(|(a, b)| a == b).count();
        assert_eq!(kept + withheld, 1000, "the others are the images' own");
        let never = DitConfig { label_dropout: 0.0, ..settings.model };
        let mut rng = training::seed::stream(0, "test", 0);
        assert_eq!(NoisedBatch::draw(plan.batch(0), &never, &mut rng).labels, plan.batch(0).labels);
    }
}
