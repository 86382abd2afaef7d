//! One run of one arm: made, continued, and read back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ancre::Connections;
use anyhow::{Context, Result, bail};
use burn::{
    module::Module,
    tensor::{DType, backend::AutodiffBackend},
};
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};
use training::{
    checkpoint::CheckpointStore,
    memory::{self, MemoryEstimate},
    parameters,
    run_directory::{Environment, NewRun, RunDirectory, RunPaths, atomic_write},
    trainer::{StepReport, Trainer},
};

use crate::{
    data::{self, TextData},
    model::{
        Llama,
        state_dict::{self, LoadReport},
    },
    settings::Settings,
    task::LanguageModelling,
};

/// The trainer of a language model.
pub type LlmTrainer<B> = Trainer<B, Llama<B>, LanguageModelling<B>>;

/// What a run's values depend on.
#[derive(Clone, Debug, Serialize)]
struct Identity<'a> {
    settings: &'a Settings,
    /// See [`TextData::fingerprint`].
    data: String,
}

/// Whether a run is to be new or to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// In a directory that must not exist.
    New,
    /// From the newest checkpoint in the directory; with `allow_changes`, also one of other settings.
    Resume {
        /// Whether settings may differ from those of the checkpoint.
        allow_changes: bool,
    },
}

/// Starts or continues the run in a directory; `notes` takes what the user should know.
///
/// # Errors
/// If the directory cannot be made or held, weights do not fit, or no checkpoint is usable.
pub fn begin<B>(
    path: &Path,
    start: Start,
    settings: &Settings,
    data: &TextData,
    device: &B::Device,
    notes: &mut Vec<String>,
) -> Result<LlmTrainer<B>>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let task = LanguageModelling::new(settings, data, device)?;
    let mut settings = settings.clone();
    let mut model = Llama::<B>::new(&settings.model, settings.seed, device)?;
    let paths = RunPaths::new(path);
    // What a killed writer left half-written is no checkpoint: the run then begins again, from the same weights.
    let has_checkpoint = || CheckpointStore::view(&paths.checkpoints()).newest().is_some();
    if let Some(file) = &settings.init_from
        && (start == Start::New || !has_checkpoint())
    {
        let stored = state_dict::read(file)?;
        let (loaded, report) =
            state_dict::into_model(model, &stored).with_context(|| format!("{} does not fit", file.display()))?;
        notes.push(format!("initial weights: {} ({} tensors)", file.display(), stored.len()));
        notes.extend(describe(&report, file));
        model = loaded;
        // Part of the run from now on: a resume, an evaluation and an export find it in config.toml.
        settings.model.tau = model.connections().tau();
    }
    let settings = &settings;
    let identity = Identity { settings, data: data.fingerprint() };
    let training = &settings.training;
    let mut trainer = match start {
        Start::New => {
            let mut contents = new_run(settings, &B::name(device))?;
            if let Some(json) = data.tokenizer.to_json()? {
                contents = contents.with_file(TOKENIZER, json.into_bytes())?;
            }
            Trainer::start(RunDirectory::create(path, &contents)?, &identity, training, model, task)?
        }
        Start::Resume { allow_changes } => {
            let stored: Settings = paths.read_config()?;
            if !allow_changes && stored != *settings && !has_checkpoint() {
                bail!("{} was started with other settings: give the same ones, or --allow-changes", path.display());
            }
            let directory = RunDirectory::open(path)?;
            let trainer = Trainer::resume(directory, &identity, training, model, task, allow_changes)?;
            trainer.directory().add_environment(&environment(&B::name(device)))?;
            if stored != *settings {
                let text = toml::to_string_pretty(settings)?;
                atomic_write(&paths.config(), |file| std::io::Write::write_all(file, text.as_bytes()))
                    .with_context(|| format!("cannot write {}", paths.config().display()))?;
            }
            trainer
        }
    };
    if on_cpu::<B>() {
        trainer.set_workers(workers(settings))?;
    }
    // Every arm has the same optimizer settings, and not every arm has connections with parameters.
    let frozen = !settings.model.arm.is_learned();
    let expected = |note: &&String| !(frozen && note.contains("`connections.*`"));
    notes.extend(trainer.warnings().iter().filter(expected).cloned());
    Ok(trainer)
}

/// Starts a run of a comparison, or continues it where it has begun.
///
/// # Errors
/// As [`begin`].
pub fn begin_or_continue<B>(
    path: &Path,
    settings: &Settings,
    data: &TextData,
    device: &B::Device,
    notes: &mut Vec<String>,
) -> Result<LlmTrainer<B>>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    if !path.is_dir() {
        return begin(path, Start::New, settings, data, device, notes);
    }
    let settings = with_stored_tau(path, settings)?;
    begin(path, Start::Resume { allow_changes: false }, &settings, data, device, notes)
}

/// The settings of a run of a comparison as its directory has them: weights to begin from may bring a temperature.
///
/// # Errors
/// If the directory has no settings.
pub fn with_stored_tau(path: &Path, settings: &Settings) -> Result<Settings> {
    let mut settings = settings.clone();
    if settings.init_from.is_some() {
        let stored: Settings = RunPaths::new(path).read_config()?;
        settings.model.tau = stored.model.tau;
    }
    Ok(settings)
}

fn environment(device: &str) -> Environment {
    Environment::collect(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), device)
}

/// What a new directory begins with: settings and the facts about this process.
///
/// # Errors
/// If the settings cannot be written as TOML.
pub fn new_run(settings: &impl Serialize, device: &str) -> Result<NewRun> {
    Ok(NewRun::new(settings, &environment(device))?)
}

/// What loading weights found, as sentences.
fn describe(report: &LoadReport, file: &Path) -> Vec<String> {
    let file = file.display();
    let mut notes = Vec::new();
    if let Some((configured, stored)) = report.tau {
        notes.push(format!("{file} stores tau = {stored}, which replaces the configured {configured}"));
    }
    if report.fresh_connections {
        notes.push(format!("{file} has no connections: those of this run start afresh"));
    }
    if !report.unused_connections.is_empty() {
        notes.push(format!(
            "{file} has connections that this arm does not use: {}",
            report.unused_connections.join(", ")
        ));
    }
    if !report.recomputed.is_empty() {
        notes.push(format!("{file}: {} rotary buffers are computed anew", report.recomputed.len()));
    }
    notes
}

/// The tokenizer's file in a run directory; there is none for bytes.
pub const TOKENIZER: &str = "tokenizer.json";

/// What an arm's run leaves besides its logs: `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The arm, in the notation of the command line.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// The fingerprint of the text and the tokenizer.
    pub data: String,
    /// Parameters of the model without its connections.
    pub parameters: u64,
    /// Parameters of the connections that are trained.
    pub connection_parameters: usize,
    /// Final coefficients, one row a layer.
    pub coefficients: Vec<Vec<f64>>,
    /// Entropy in nats of each softmax that has a choice; none for arms without a softmax.
    pub entropies: Option<Vec<f64>>,
    /// Largest number of bytes that a training step held at once: parameters, moments, gradients and activations.
    /// Unknown on a GPU, and where a run was resumed just before its end.
    pub peak_memory_bytes: Option<u64>,
    /// Why the run ended early, if it diverged; its last numbers are those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diverged: Option<String>,
}

impl ArmSummary {
    /// The file in a run directory.
    pub fn path(run: &Path) -> PathBuf {
        run.join("summary.json")
    }

    /// The summary of a finished run.
    ///
    /// # Errors
    /// If the connections cannot be counted, which a model in hand rules out.
    pub fn new<B: FusedOps>(
        settings: &Settings,
        data: &str,
        connections: &Connections<B>,
        peak_memory_bytes: Option<u64>,
        diverged: Option<String>,
    ) -> Result<Self> {
        // They are finite but for a run that diverged, of which there is nothing to show.
        let rows = connections.coefficients().map(|c| c.rows().map(<[f64]>::to_vec).collect());
        Ok(Self {
            arm: settings.model.arm.to_string(),
            seed: settings.seed,
            data: data.to_owned(),
            parameters: settings.model.parameters(),
            connection_parameters: settings.model.connections().trained_parameters()?,
            entropies: connections.entropies(),
            coefficients: rows.unwrap_or_default(),
            peak_memory_bytes,
            diverged,
        })
    }

    /// Writes the summary into a run directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, run: &Path) -> Result<()> {
        let path = Self::path(run);
        let text = serde_json::to_string_pretty(self)?;
        atomic_write(&path, |file| std::io::Write::write_all(file, text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads the summary of a run directory.
    ///
    /// # Errors
    /// If it is missing or does not parse.
    pub fn read(run: &Path) -> Result<Self> {
        let path = Self::path(run);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }
}

/// The settings and the model of a run, from its newest checkpoint that is whole.
///
/// # Errors
/// If the directory is no run, has no usable checkpoint, or is a comparison (whose arms are named).
pub fn load<B: FusedOps>(path: &Path, device: &B::Device) -> Result<(Settings, Llama<B>, usize)> {
    let arms = path.join("arms");
    if arms.is_dir() {
        let mut names: Vec<String> = fs::read_dir(&arms)
            .map(|entries| entries.flatten().map(|e| e.path().display().to_string()).collect())
            .unwrap_or_default();
        names.sort();
        bail!("{} is a comparison: name one of its arms\n  {}", path.display(), names.join("\n  "));
    }
    let paths = RunPaths::new(path);
    if !paths.config().is_file() {
        bail!("{} is not the directory of a run: it has no config.toml", path.display());
    }
    let mut settings: Settings = paths.read_config()?;
    settings.validate().with_context(|| format!("{} is not valid", paths.config().display()))?;
    // Only looks: the run may be under way in another process.
    let Some(found) = CheckpointStore::view(&paths.checkpoints()).load_newest()? else {
        bail!("{} has no checkpoint yet", path.display());
    };
    for (_, damage) in &found.damaged {
        eprintln!("note: {damage}; taking {} instead", found.path.display());
    }
    // The vocabulary that was taken from the tokenizer is that of the stored embedding.
    if settings.model.vocabulary == 0
        && let Some(embedding) = found.checkpoint.model.iter().find(|t| t.name == "embed_tokens.weight")
    {
        settings.model.vocabulary = embedding.data.shape[0];
    }
    let step = found.checkpoint.header.step;
    let model = Llama::<B>::new(&settings.model, settings.seed, device)?;
    Ok((settings, parameters::import(model, found.checkpoint.model)?, step))
}

/// How many micro-batches go through the model at the same time on the CPU.
fn workers(settings: &Settings) -> usize {
    cores().min(settings.accumulation()).max(1)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
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
    estimate.add("AdamW's two moments", parameters.saturating_mul(2 * arms));
    if evaluation > gradients.saturating_add(activations) {
        estimate.add(format!("evaluating {cores} x {evaluation_rows} x {} tokens", data.context), evaluation);
    } else {
        estimate.add("gradients of one step", gradients);
        estimate.add(format!("activations of {at_once} x {} x {} tokens", data.micro_batch, data.context), activations);
    }
    estimate
}

/// Follows how much memory the steps of a run take, between evaluations and checkpoints.
#[derive(Debug, Default)]
pub struct StepMemory {
    steps: usize,
    before: usize,
    transient: u64,
}

impl StepMemory {
    /// Call before a step.
    pub fn begin(&mut self) {
        self.before = memory::current_bytes();
        memory::reset_peak();
    }

    /// Call after it.
    pub fn end(&mut self, report: &StepReport, settings: &Settings) {
        self.steps += 1;
        let every = settings.training.checkpoint_every;
        let saved = report.step == report.steps || (every > 0 && report.step.is_multiple_of(every));
        // The first steps make moments and work space that stay; evaluations and checkpoints are not the step's.
        if self.steps > 2 && report.evaluation.is_none() && !saved {
            self.transient = self.transient.max(memory::peak_bytes().saturating_sub(self.before) as u64);
        }
    }

    /// Bytes of weights and moments and of the largest step; unknown where tensors do not live in main memory, where no
    /// allocator counts, or after too few steps.
    pub fn peak<B>(&self, trainer: &LlmTrainer<B>) -> Option<u64>
    where
        B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
    {
        let resident = trainer.model().num_params() as u64 * 4 + trainer.optimizer().state_bytes() as u64;
        (on_cpu::<B>() && self.transient > 0).then(|| resident + self.transient)
    }
}

/// Whether kernels run on the cores: the CPU backend is the only one with fused kernels.
pub fn on_cpu<B: AutodiffBackend<InnerBackend: FusedOps>>() -> bool {
    <B::InnerBackend as FusedOps>::fused(DType::F32)
}
