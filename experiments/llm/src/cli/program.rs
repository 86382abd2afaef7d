//! What a comparison and a run of language models need besides their flags.

use std::path::{Path, PathBuf};

use anyhow::Result;
use burn::tensor::backend::AutodiffBackend;
use command_line::Failure;
use datasets::text::TokenizerSpec;
use experiment_cli::TrainingProgram;
use experiment_kit::{compare::Comparison, report::Written};
use fused_ops::FusedOps;
use training::{memory::MemoryEstimate, progress::Progress};

use super::args::RunArgs;
use crate::{
    data::TextData,
    report::Report,
    run::{self, LanguageModels},
    settings::Settings,
};

/// The program.
pub struct LlmProgram;

impl TrainingProgram for LlmProgram {
    type Settings = Settings;
    type Flags = RunArgs;
    type Data = TextData;
    type Experiment<B>
        = LanguageModels<B>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps;

    const TRAIN_REMEDY: &'static str = "a smaller --micro-batch, --context or --preset";
    const METRICS: &'static str = "held out";

    fn memory_estimate(settings: &Settings, at_once: usize) -> MemoryEstimate {
        let mut sized = settings.clone();
        // Before the text is read, the vocabulary is at least this.
        let least = match settings.data.tokenizer {
            TokenizerSpec::Bpe { entries } => entries,
            TokenizerSpec::Bytes | TokenizerSpec::File(_) => 257,
        };
        sized.model.vocabulary = sized.model.vocabulary.max(least);
        run::memory_estimate(&sized, at_once)
    }

    /// Reads the text and settles the vocabulary.
    fn load(settings: &mut Settings) -> Result<TextData, Failure> {
        let data = TextData::load(&settings.data, Some(&tokenizer_cache())).map_err(anyhow::Error::from)?;
        settings.model.vocabulary = data.vocabulary(settings.model.vocabulary).map_err(|e| Failure::Usage(e.into()))?;
        Ok(data)
    }

    fn describe(progress: &Progress, settings: &Settings, data: &TextData) {
        progress.message(&data.corpus.to_string());
        progress.message(&format!(
            "tokenizer: {}, vocabulary {}\ntraining rows: {} of {} tokens ({})",
            data.tokenizer.provenance(),
            settings.model.vocabulary,
            data.train.len(),
            settings.data.context,
            data.train.stats()
        ));
        let rows = settings.training.steps as f64 * settings.data.batch as f64;
        progress.message(&format!(
            "model: {} layers of width {}, {} parameters; {} steps of {} x {} tokens, {:.2} epochs",
            settings.model.layers,
            settings.model.width,
            plotting::si(settings.model.parameters() as f64),
            settings.training.steps,
            settings.data.batch,
            settings.data.context,
            rows / f64::from(data.train.len())
        ));
    }

    fn experiment<B>(
        data: TextData,
        _: &Settings,
        device: B::Device,
        _: &Progress,
    ) -> Result<LanguageModels<B>, Failure>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
    {
        Ok(LanguageModels { data, device })
    }

    fn report(path: &Path, comparison: &Comparison<Settings>) -> Result<Written> {
        Report::read(path, comparison)?.write(path)
    }
}

/// Where trained tokenizers are kept between runs.
fn tokenizer_cache() -> PathBuf {
    Path::new("runs").join("tokenizers")
}
