//! Language models on random words.

use ancre::Arm;
use anyhow::Result;
use burn::tensor::{Int, Tensor, TensorData};
use experiments_llm::{
    model::{Llama, LlamaConfig},
    presets::Preset,
    settings::Settings,
};
use rand::RngExt;

use super::{Plan, Size};
use crate::{B, ledger::Ledger, shape::Head, step::Lesson};

/// Bytes, and words where the head is to be small.
const FEW_WORDS: usize = 256;

/// A language model.
pub struct Language {
    pub plan: Plan,
    settings: Settings,
    rows: usize,
    micro_batches: usize,
}

impl Language {
    pub fn new(preset: Preset, head: Head, arm: &Arm, size: Size) -> Result<Self> {
        let mut settings = preset.settings();
        let small = matches!(preset, Preset::Smoke | Preset::Cpu);
        // Two micro-batches, as the presets that train on two cores have; those of the paper's shapes hold one sequence each.
        let rows = size.rows.unwrap_or(if small { settings.data.micro_batch } else { 1 });
        let micro_batches = 2;
        let vocabulary = match settings.model.vocabulary {
            0 => FEW_WORDS,
            _ if head == Head::Small => FEW_WORDS,
            words => words,
        };
        settings.data.batch = rows * micro_batches;
        settings.data.micro_batch = rows;
        settings.model = LlamaConfig { vocabulary, arm: arm.clone(), ..settings.model };
        settings.validate()?;
        let (model, length) = (&settings.model, settings.data.context);
        let tokens = (rows * micro_batches * length) as u64;
        let plan = Plan {
            parameters: model.parameters(),
            cost: model.connections().cost(model.width)?,
            forward_rows: tokens,
            backward_rows: tokens,
            rows_at_once: tokens / micro_batches as u64,
            model: Ledger::llama(model, rows * micro_batches, length),
            description: format!(
                "{} layers of width {}, {vocabulary} words, {micro_batches} micro-batches of {rows} x {length} tokens",
                model.layers, model.width
            ),
        };
        Ok(Self { plan, settings, rows, micro_batches })
    }

    pub fn lesson(self) -> Result<Lesson<Llama<B>>> {
        let Self { settings, rows, micro_batches, .. } = self;
        let device = Default::default();
        let length = settings.data.context;
        let words = |name: &str, index: usize| -> Vec<i32> {
            let mut rng = training::seed::stream(settings.seed, name, index as u64);
            (0..rows * length).map(|_| rng.random_range(0..settings.model.vocabulary as i32)).collect()
        };
        let batches: Vec<_> =
            (0..micro_batches).map(|index| [words("inputs", index), words("targets", index)]).collect();
        let loss = move |model: &Llama<B>, index: usize| {
            let tensor = |words: &Vec<i32>| {
                Tensor::<B, 2, Int>::from_data(TensorData::new(words.clone(), [rows, length]), &device)
            };
            let [inputs, targets] = &batches[index];
            model.loss(tensor(inputs), tensor(targets))
        };
        Ok(Lesson {
            model: Llama::new(&settings.model, settings.seed, &device)?,
            loss: Box::new(loss),
            micro_batches,
            optimizer: settings.training.optimizer.clone(),
            clip: settings.training.clip,
            after_update: None,
        })
    }
}
