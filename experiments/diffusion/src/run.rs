//! What the kit has to be told to make runs of a diffusion model, and how such runs are read back.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use experiment_kit::{
    Ended, Experiment, Program, RunSettings,
    run::{Newest, cores, newest, workers},
    state_dict::{self, StateDict},
};
use fused_ops::FusedOps;
use serde::Serialize;
use serde_json::Value;
use training::{memory::MemoryEstimate, parameters, run_directory::atomic_write};

use crate::{
    data::Images,
    model::{
        Dit,
        state_dict::{DitNaming, with_positions},
    },
    pictures,
    sampling::{Wanted, draw, labels_in_turn},
    scores::Judge,
    settings::Settings,
    task::Denoising,
};

/// The picture of samples in a run directory.
pub const SAMPLES: &str = "samples.png";
/// Samples in that picture: so many of each class, and no more in all.
const ROWS: usize = 8;
const MOST_SHOWN: usize = 256;

/// This program.
pub const PROGRAM: Program = Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

/// Diffusion models on one set of images, on one device.
#[derive(Debug)]
pub struct DiffusionModels<B: AutodiffBackend<InnerBackend: FusedOps>> {
    /// The images.
    pub images: Images,
    /// What samples are scored by; none for runs that score nothing.
    pub judge: Option<Arc<Judge<B::InnerBackend>>>,
    /// Where tensors live.
    pub device: B::Device,
}

impl<B> Experiment for DiffusionModels<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Settings = Settings;
    type Backend = B;
    type Model = Dit<B>;
    type Task = Denoising<B>;

    const PROGRAM: Program = PROGRAM;
    const OTHER_DATA: &'static str = "other images";

    fn device(&self) -> &<B as BackendTypes>::Device {
        &self.device
    }

    fn data_fingerprint(&self) -> String {
        self.images.fingerprint()
    }

    fn model(&self, settings: &Settings) -> Result<Dit<B>> {
        Ok(Dit::new(&settings.model, settings.seed, &self.device)?)
    }

    fn initial_weights(&self, model: Dit<B>, file: &Path, settings: &Settings) -> Result<(Dit<B>, Vec<String>)> {
        state_dict::load(model, file, &DitNaming::new(&settings.model))
    }

    fn task(&self, settings: &Settings, model: &Dit<B>) -> Result<Denoising<B>> {
        Ok(Denoising::new(settings, &self.images, self.judge.clone(), model, &self.device)?)
    }

    /// Leaves a picture of samples.
    fn finished(&self, settings: &Settings, path: &Path, _: &Dit<B>, task: &Denoising<B>) -> Result<Ended> {
        let Some(judge) = &self.judge else { return Ok(Ended::Done(Value::Null)) };
        let (shape, classes) = (self.images.train.shape(), self.images.train.classes());
        if self.images.are_pictures() {
            let shown = (ROWS * classes).min(MOST_SHOWN).min(settings.evaluation.samples);
            let values: usize = shape.iter().product();
            let drawn;
            // Samples go through the classes in turn, so the first ones are all that is shown. A run that was stopped after
            // its last evaluation draws them anew: each has its own random stream.
            let samples = match task.samples(settings.training.steps) {
                Some(samples) => samples,
                None => {
                    let labels = labels_in_turn(shown, classes);
                    let wanted =
                        Wanted { seed: settings.seed, first: 0, labels: &labels, batch: settings.evaluation.batch };
                    drawn = draw(task.average(), &settings.sampling, wanted, &self.device, &|_| {})?;
                    &drawn
                }
            };
            // Pictures that are too large for a grid leave none; the run is whole without it.
            if let Ok(grid) = pictures::grid(&samples[..(shown * values).min(samples.len())], shape, classes.min(16)) {
                let path = path.join(SAMPLES);
                atomic_write(&path, |file| std::io::Write::write_all(file, &grid))
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(Ended::Done(serde_json::json!({ "protocol": judge.protocol(settings.evaluation.samples) })))
    }
}

/// Which weights of a run are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// The moving average, which samples are drawn with.
    #[default]
    Ema,
    /// Those of the last step.
    Raw,
}

/// The settings and the model of a run, from its newest checkpoint that is whole, and how many steps that has.
///
/// # Errors
/// As [`newest`], or if the checkpoint is of another model.
pub fn load<B: FusedOps>(path: &Path, weights: Weights, device: &B::Device) -> Result<(Settings, Dit<B>, usize)> {
    let Newest { settings, checkpoint } = newest::<Settings>(path)?;
    let model = Dit::<B>::new(&settings.model, settings.seed, device)
        .with_context(|| format!("{} has settings that its images have not been read for", path.display()))?;
    let tensors = match weights {
        Weights::Ema => checkpoint.task,
        Weights::Raw => checkpoint.model,
    };
    Ok((settings, parameters::import(model, tensors)?, checkpoint.header.step))
}

/// The model's weights under the authors' names, with their table of positions.
pub fn to_state_dict<B: FusedOps>(model: &Dit<B>) -> StateDict {
    let table = model.positions().into_data().iter::<f32>().collect();
    with_positions(state_dict::from_model(model, &DitNaming::new(model.config())), table, model.config().tokens())
}

/// What a run will hold in main memory on the CPU, for `arms` runs at once: the larger of a training step and an
/// evaluation, with weights, moments and averages.
pub fn memory_estimate(settings: &Settings, arms: usize) -> MemoryEstimate {
    let (model, data) = (&settings.model, &settings.data);
    let parameters = settings.parameters().saturating_mul(4);
    let (arms, at_once, cores) = (arms as u64, workers(settings) as u64, cores() as u64);
    let guided = if settings.sampling.guidance == 1.0 { 1 } else { 2 };
    let rows = guided * settings.evaluation.batch;
    let evaluation = model.inference_bytes(rows).saturating_mul(cores);
    let gradients = parameters.saturating_mul(at_once + 1);
    let activations = model.activation_bytes(data.micro_batch).saturating_mul(at_once);
    let image = 4 * [model.channels, model.size, model.size].map(|size| size as u64).iter().product::<u64>();
    let scored = settings.evaluation.samples.saturating_add(settings.evaluation.references) as u64;
    let mut estimate = MemoryEstimate::new();
    estimate.add("samples, and what they are compared with", image.saturating_mul(scored));
    estimate.add(format!("weights of {arms} run(s)"), parameters.saturating_mul(arms));
    estimate.add("AdamW's two moments and the average", parameters.saturating_mul(3 * arms));
    if evaluation > gradients.saturating_add(activations) {
        estimate.add(format!("sampling {cores} x {rows} images"), evaluation);
    } else {
        estimate.add("gradients of one step", gradients);
        estimate.add(format!("activations of {at_once} x {} images", data.micro_batch), activations);
    }
    estimate
}
