//! What the kit has to be told to make runs of a language model, and how such runs are read back.

use std::path::Path;

use anyhow::{Result, bail};
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use datasets::text::TokenizerSpec;
use experiment_kit::{
    Experiment, Program,
    run::{Newest, cores, newest, workers},
    state_dict,
};
use fused_ops::FusedOps;
use training::{memory::MemoryEstimate, parameters};

use crate::{
    data::{self, TextData},
    model::{Llama, state_dict::LlamaNaming},
    settings::Settings,
    task::LanguageModelling,
};

/// The tokenizer's file in a run directory; there is none for bytes.
pub const TOKENIZER: &str = "tokenizer.json";

/// This program.
pub const PROGRAM: Program = Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };

/// Language models on one text, on one device.
#[derive(Clone, Debug)]
pub struct LanguageModels<B: Backend> {
    /// The text.
    pub data: TextData,
    /// Where tensors live.
    pub device: B::Device,
}

impl<B> Experiment for LanguageModels<B>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    type Settings = Settings;
    type Backend = B;
    type Model = Llama<B>;
    type Task = LanguageModelling<B>;

    const PROGRAM: Program = PROGRAM;
    const OTHER_DATA: &'static str = "another text or tokenizer";

    fn device(&self) -> &<B as BackendTypes>::Device {
        &self.device
    }

    fn data_fingerprint(&self) -> String {
        self.data.fingerprint()
    }

    fn model(&self, settings: &Settings) -> Result<Llama<B>> {
        Ok(Llama::new(&settings.model, settings.seed, &self.device)?)
    }

    fn initial_weights(&self, model: Llama<B>, file: &Path, _: &Settings) -> Result<(Llama<B>, Vec<String>)> {
        state_dict::load(model, file, &LlamaNaming)
    }

    fn task(&self, settings: &Settings, _: &Llama<B>) -> Result<LanguageModelling<B>> {
        Ok(LanguageModelling::new(settings, &self.data, &self.device)?)
    }

    fn files(&self, _: &Settings) -> Result<Vec<(String, Vec<u8>)>> {
        let tokenizer = self.data.tokenizer.to_json()?;
        Ok(tokenizer.into_iter().map(|json| (TOKENIZER.to_owned(), json.into_bytes())).collect())
    }
}

/// The settings and the model of a run, from its newest checkpoint that is whole, and how many steps that has.
///
/// # Errors
/// As [`newest`], or if the checkpoint is of another model.
pub fn load<B: FusedOps>(path: &Path, device: &B::Device) -> Result<(Settings, Llama<B>, usize)> {
    let Newest { mut settings, checkpoint } = newest::<Settings>(path)?;
    // The vocabulary that was taken from the tokenizer is that of the stored embedding.
    if settings.model.vocabulary == 0
        && let Some(embedding) = checkpoint.model.iter().find(|t| t.name == "embed_tokens.weight")
    {
        settings.model.vocabulary = embedding.data.shape[0];
    }
    let model = Llama::<B>::new(&settings.model, settings.seed, device)?;
    Ok((settings, parameters::import(model, checkpoint.model)?, checkpoint.header.step))
}

/// The tokenizer that a run keeps, or the one of its settings where it needs no file.
///
/// # Errors
/// If its file is missing.
pub fn kept_tokenizer(run: &Path, settings: &Settings) -> Result<TokenizerSpec> {
    let kept = run.join(TOKENIZER);
    match &settings.data.tokenizer {
        TokenizerSpec::Bytes => Ok(TokenizerSpec::Bytes),
        _ if kept.is_file() => Ok(TokenizerSpec::File(kept)),
        other => bail!("{} is missing: the run was made with the tokenizer {other}", kept.display()),
    }
}

/// What a run will hold in main memory on the CPU, for `arms` runs at once: the larger of a training step and an
/// evaluation, with weights and moments.
pub fn memory_estimate(settings: &Settings, arms: usize) -> MemoryEstimate {
    let (model, data) = (&settings.model, &settings.data);
    let parameters = model.parameters().saturating_mul(4);
    let (arms, at_once, cores) = (arms as u64, workers(settings) as u64, cores() as u64);
    let evaluation_rows = data::evaluation_rows(data);
    let evaluation = model.inference_bytes(evaluation_rows, data.context).saturating_mul(cores);
    let gradients = parameters.saturating_mul(at_once + 1);
    let activations = model.activation_bytes(data.micro_batch, data.context).saturating_mul(at_once);
    let mut estimate = MemoryEstimate::new();
    estimate.add(format!("weights of {arms} run(s)"), parameters.saturating_mul(arms));
    let (name, state) = match settings.training.optimizer.galore {
        None => ("AdamW's two moments", parameters.saturating_mul(2)),
        Some(_) => ("moments and bases of GaLore", settings.state_bytes()),
    };
    estimate.add(name, state.saturating_mul(arms));
    if evaluation > gradients.saturating_add(activations) {
        estimate.add(format!("evaluating {cores} x {evaluation_rows} x {} tokens", data.context), evaluation);
    } else {
        estimate.add("gradients of one step", gradients);
        estimate.add(format!("activations of {at_once} x {} x {} tokens", data.micro_batch, data.context), activations);
    }
    estimate
}
