//! Diffusion models on random images.

use ancre::Arm;
use anyhow::Result;
use experiments_diffusion::{
    data::{Images, NoisedBatch, normal},
    model::{Dit, DitConfig},
    presets::Preset,
    settings::{PROCESS_STEPS, Settings},
    task::{batch_losses, training_process},
};
use rand::RngExt;
use training::average::WeightAverage;

use super::{Plan, Size};
use crate::{B, ledger::Ledger, step::Lesson};

/// A diffusion model.
pub struct Diffusion {
    pub plan: Plan,
    settings: Settings,
    rows: usize,
    micro_batches: usize,
}

impl Diffusion {
    pub fn new(preset: Preset, arm: &Arm, size: Size) -> Result<Self> {
        let mut settings = preset.settings();
        let small = matches!(preset, Preset::Smoke | Preset::Cpu);
        let rows = size.rows.unwrap_or(if small { settings.data.micro_batch } else { 1 });
        let micro_batches = 2;
        settings.data.batch = rows * micro_batches;
        settings.data.micro_batch = rows;
        settings.model.arm = arm.clone();
        if small {
            // The digits are built in; the others name their sizes.
            settings.model = Images::load(&settings)?.settle(&settings.model)?;
        }
        settings.validate()?;
        let model = &settings.model;
        model.validate()?;
        let images = rows * micro_batches;
        let tokens = (images * model.tokens()) as u64;
        let plan = Plan {
            parameters: model.parameters(),
            cost: model.connections().cost(model.width)?,
            forward_rows: tokens,
            backward_rows: tokens,
            rows_at_once: tokens / micro_batches as u64,
            model: Ledger::dit(model, images),
            description: format!(
                "{} blocks of width {}, {micro_batches} micro-batches of {rows} images of {} patches",
                model.layers,
                model.width,
                model.tokens()
            ),
        };
        Ok(Self { plan, settings, rows, micro_batches })
    }

    pub fn lesson(self) -> Result<Lesson<Dit<B>>> {
        let Self { settings, rows, micro_batches, .. } = self;
        let device = Default::default();
        let DitConfig { size, channels, classes, .. } = settings.model;
        let batches: Vec<NoisedBatch> = (0..micro_batches)
            .map(|index| {
                let mut rng = training::seed::stream(settings.seed, "images", index as u64);
                let numbers = rows * channels * size * size;
                NoisedBatch {
                    images: normal(&mut rng, numbers),
                    noise: normal(&mut rng, numbers),
                    steps: (0..rows).map(|_| rng.random_range(0..PROCESS_STEPS)).collect(),
                    labels: (0..rows).map(|_| rng.random_range(0..classes as u32)).collect(),
                    shape: [channels, size, size],
                }
            })
            .collect();
        let process = training_process(&settings.model);
        let model = Dit::new(&settings.model, settings.seed, &device)?;
        let mut average = WeightAverage::<B, _>::new(&model, settings.ema_decay);
        Ok(Lesson {
            model,
            loss: Box::new(move |model, index| {
                batch_losses(model, &process, batches[index].clone(), &device).total().mean()
            }),
            micro_batches,
            optimizer: settings.training.optimizer.clone(),
            clip: settings.training.clip,
            after_update: Some(Box::new(move |model| average.update(model))),
        })
    }
}
