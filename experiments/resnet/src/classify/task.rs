//! What a classification run supplies to the training loop, and to the kit.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result, bail};
use burn::{
    optim::GradientsParams,
    tensor::{
        DType, Int, Tensor, TensorData,
        backend::{AutodiffBackend, Backend, BackendTypes},
    },
};
use datasets::images::{ImageBatch, ImageData, ImagePlan, ImageSet};
use experiment_kit::{Connected, Experiment, Program, RunSettings};
use fused_ops::FusedOps;
use rayon::prelude::*;
use training::trainer::{Task, TrainError};

use super::Settings;
use crate::{
    model::{Classifier, NetworkConfig},
    run::PROGRAM,
};

/// Names of the numbers in `metrics.jsonl`.
pub mod metric {
    /// Mean cross-entropy over held-out images, in nats.
    pub const LOSS: &str = "held_out_loss";
    /// Share of held-out images that are taken for their class.
    pub const ACCURACY: &str = "held_out_accuracy";
    /// Mean cross-entropy over training images, in nats.
    pub const TRAINING_LOSS: &str = "training_loss";
    /// Mean entropy of the connections' softmaxes that have a choice, in nats.
    pub const CONNECTION_ENTROPY: &str = "connection_entropy";
    /// Euclidean norm of the gradient of the connections' parameters.
    pub const THETA_GRADIENT: &str = "theta_gradient_norm";
}

/// Images that go through the network at once in an evaluation.
const BATCH: usize = 128;

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

impl Images {
    /// Reads the images that the settings ask for, and settles the sizes that the network leaves open.
    ///
    /// # Errors
    /// If they cannot be read, none is held out, or the network was set up for others.
    pub fn load(settings: &mut Settings) -> Result<Self> {
        let data = (settings.data.images.load(&settings.image_options()))
            .context("the size that images are brought to is model.size, such as --set model.size=32")?;
        let description = data.to_string();
        let ImageData { train, held_out, .. } = data;
        if held_out.is_empty() {
            bail!("no image is held out to evaluate on: give a larger share with --set data.held_out=0.2");
        }
        if train.classes() < 2 {
            bail!("all images are of one class: there is nothing to tell apart");
        }
        let [channels, size, _] = train.shape();
        let model = &mut settings.model;
        for (name, wanted, found) in [
            ("size", &mut model.size, size),
            ("channels", &mut model.channels, channels),
            ("classes", &mut model.classes, train.classes()),
        ] {
            if *wanted != 0 && *wanted != found {
                bail!(
                    "model.{name} = {wanted}, and the images have {found}: set it to {found}, or to 0 to take the data's"
                );
            }
            *wanted = found;
        }
        Ok(Self { description, train: Arc::new(train), held_out: Arc::new(held_out) })
    }
}

/// So many images of a set, spread evenly over all of it.
fn spread(set: &ImageSet, wanted: usize) -> Vec<u32> {
    let all = set.len() as usize;
    let count = if wanted == 0 { all } else { wanted.min(all) };
    (0..count).map(|i| (i * all / count.max(1)) as u32).collect()
}

/// Naming the class of images.
#[derive(Debug)]
pub struct Classification<B: Backend> {
    settings: Settings,
    images: Images,
    plan: ImagePlan,
    device: B::Device,
}

/// Sums over images: cross-entropy, images taken for their class, images.
type Sums = [f64; 3];

impl<B: Backend> Classification<B> {
    fn measure<I: FusedOps<Device = B::Device>>(&self, model: &Classifier<I>, set: &ImageSet) -> Sums {
        let numbers = spread(set, self.settings.evaluation.images);
        let sums_of = |model: &Classifier<I>, chunk: &[u32]| -> Sums {
            let values = chunk.iter().flat_map(|&n| set.image(n).iter().copied()).collect();
            let labels: Vec<u32> = chunk.iter().map(|&n| set.labels()[n as usize]).collect();
            let logits = model.forward(image_tensor::<I>(values, set.shape(), &self.device));
            let classes = logits.dims()[1];
            let scores: Vec<f32> = logits.clone().into_data().iter::<f32>().collect();
            let right = scores.chunks(classes).zip(&labels).filter(|(row, label)| largest(row) == **label as usize);
            let right = right.count() as f64;
            let rows = chunk.len() as f64;
            let loss = fused_ops::cross_entropy(logits, target_tensor::<I>(&labels, &self.device));
            [rows * loss.into_data().iter::<f64>().sum::<f64>(), right, rows]
        };
        let chunks: Vec<&[u32]> = numbers.chunks(BATCH).collect();
        // Where kernels run on the cores, batches share them; a GPU takes one after another.
        let sums: Vec<Sums> = if I::fused(DType::F32) {
            chunks.par_iter().map_with(model.clone(), |model, chunk| sums_of(model, chunk)).collect()
        } else {
            chunks.iter().map(|chunk| sums_of(model, chunk)).collect()
        };
        sums.iter().fold([0.0; 3], |total, part| [total[0] + part[0], total[1] + part[1], total[2] + part[2]])
    }
}

fn largest(row: &[f32]) -> usize {
    let mut best = 0;
    for (i, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = i;
        }
    }
    best
}

fn image_tensor<B: Backend>(
    values: Vec<f32>,
    [channels, height, width]: [usize; 3],
    device: &B::Device,
) -> Tensor<B, 4> {
    let rows = values.len() / (channels * height * width).max(1);
    Tensor::from_data(TensorData::new(values, [rows, channels, height, width]), device)
}

fn target_tensor<B: Backend>(labels: &[u32], device: &B::Device) -> Tensor<B, 1, Int> {
    let targets: Vec<i32> = labels.iter().map(|&label| label as i32).collect();
    let rows = targets.len();
    Tensor::from_data(TensorData::new(targets, [rows]), device)
}

impl<B> Task<B, Classifier<B>> for Classification<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Batch = ImageBatch;

    fn batches(&mut self, step: usize) -> Result<Vec<ImageBatch>, TrainError> {
        let accumulation = self.settings.accumulation();
        let first = step * accumulation;
        Ok((first..first + accumulation).map(|index| self.plan.batch(index as u64)).collect())
    }

    fn weight(&self, batch: &ImageBatch) -> f64 {
        batch.rows as f64
    }

    fn loss(&self, model: &Classifier<B>, batch: ImageBatch) -> Result<Tensor<B, 1>, TrainError> {
        let targets = target_tensor::<B>(&batch.labels, &self.device);
        let logits = model.forward(image_tensor(batch.images, batch.shape, &self.device));
        Ok(fused_ops::cross_entropy(logits, targets))
    }

    fn evaluate(&mut self, model: &Classifier<B::InnerBackend>, _: usize) -> Result<Vec<(String, f64)>, TrainError> {
        let [loss, right, count] = self.measure(model, &self.images.held_out);
        let [training, _, seen] = self.measure(model, &self.images.train);
        let values =
            [(metric::LOSS, loss / count), (metric::ACCURACY, right / count), (metric::TRAINING_LOSS, training / seen)];
        Ok(values.map(|(name, value)| (name.to_owned(), value)).into())
    }

    fn observe(&mut self, model: &Classifier<B>, gradients: &GradientsParams, _: usize) -> Vec<(String, f64)> {
        let connections = model.all_connections();
        let mut values = Vec::new();
        let entropies: Vec<f64> = connections.iter().filter_map(|set| set.entropies()).flatten().collect();
        if !entropies.is_empty() {
            values.push((metric::CONNECTION_ENTROPY.to_owned(), plotting::mean(&entropies)));
        }
        let norms: Vec<f64> = connections.iter().filter_map(|set| set.theta_gradient_norm(gradients)).collect();
        if !norms.is_empty() {
            let norm = norms.iter().map(|norm| norm * norm).sum::<f64>().sqrt();
            values.push((metric::THETA_GRADIENT.to_owned(), norm));
        }
        values
    }
}

/// Classifiers of one set of images, on one device.
#[derive(Debug)]
pub struct Classifiers<B: AutodiffBackend> {
    /// The images.
    pub images: Images,
    /// Where tensors live.
    pub device: B::Device,
}

impl<B> Experiment for Classifiers<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Settings = Settings;
    type Backend = B;
    type Model = Classifier<B>;
    type Task = Classification<B>;

    const PROGRAM: Program = PROGRAM;
    const OTHER_DATA: &'static str = "other images";

    fn device(&self) -> &<B as BackendTypes>::Device {
        &self.device
    }

    fn data_fingerprint(&self) -> String {
        format!("{:08x}-{:08x}", self.images.train.fingerprint(), self.images.held_out.fingerprint())
    }

    fn model(&self, settings: &Settings) -> Result<Classifier<B>> {
        Ok(Classifier::new(&settings.model, settings.seed, &self.device)?)
    }

    fn initial_weights(&self, _: Classifier<B>, file: &Path, _: &Settings) -> Result<(Classifier<B>, Vec<String>)> {
        bail!("{} cannot be begun from: classifiers start from their seed", file.display())
    }

    fn task(&self, settings: &Settings, _: &Classifier<B>) -> Result<Classification<B>> {
        let flip = settings.data.flip.unwrap_or_else(|| self.images.train.flips_make_sense());
        let plan = ImagePlan::new(Arc::clone(&self.images.train), settings.data.micro_batch, settings.seed, flip)?;
        Ok(Classification {
            settings: settings.clone(),
            images: self.images.clone(),
            plan,
            device: self.device.clone(),
        })
    }
}

/// The configuration of a network for images of the size of the embedded digits, where it leaves sizes open.
pub fn sized(model: &NetworkConfig) -> NetworkConfig {
    let mut model = model.clone();
    for (size, least) in [(&mut model.size, 8), (&mut model.channels, 1), (&mut model.classes, 10)] {
        *size = if *size == 0 { least } else { *size };
    }
    model
}
