//! One run of one arm: made, continued, and read back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ancre::Connections;
use anyhow::{Context, Result, bail};
use burn::tensor::backend::{AutodiffBackend, Backend};
use connection_layout::Direction;
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};
use training::{
    checkpoint::CheckpointStore,
    memory::MemoryEstimate,
    parameters,
    run_directory::{Environment, RunDirectory, RunPaths, atomic_write},
    trainer::Trainer,
};

use crate::{
    data::TextData,
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
    let mut model = Llama::<B>::new(&settings.model, settings.seed, device)?;
    let identity = Identity { settings, data: data.fingerprint() };
    let training = settings.training.clone();
    let paths = RunPaths::new(path);
    if let Some(file) = &settings.init_from
        && (start == Start::New || is_empty(&paths.checkpoints()))
    {
        let stored = state_dict::read(file)?;
        let (loaded, report) =
            state_dict::into_model(model, &stored).with_context(|| format!("{} does not fit", file.display()))?;
        notes.extend(describe(&report, file));
        model = loaded;
    }
    let mut trainer = match start {
        Start::New => {
            let directory = RunDirectory::create(path)?;
            directory.write_environment(&Environment::collect(
                env!("CARGO_PKG_NAME"),
                env!("CARGO_PKG_VERSION"),
                &B::name(device),
            ))?;
            keep_tokenizer(&paths, data)?;
            // Last, since it is what makes the directory one of a run.
            directory.write_config(settings)?;
            Trainer::start(directory, &identity, training, model, task)?
        }
        Start::Resume { allow_changes } => {
            Trainer::resume(RunDirectory::open(path)?, &identity, training, model, task, allow_changes)?
        }
    };
    // Micro-batches share the cores where kernels run on them (the CPU is the only backend with fused kernels).
    if <B::InnerBackend as FusedOps>::fused(burn::tensor::DType::F32) {
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
    if path.is_dir() && !RunPaths::new(path).config().exists() {
        clear_unstarted(path)?;
    }
    let start = if path.is_dir() { Start::Resume { allow_changes: false } } else { Start::New };
    begin(path, start, settings, data, device, notes)
}

/// Removes the directory of a run that was killed before it had begun: one that has no settings yet, and nothing but what
/// is made before them. Nothing else is ever removed.
fn clear_unstarted(path: &Path) -> Result<()> {
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", path.display()))?.path();
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = ["lock", ".lock", "environment.json", TOKENIZER].contains(&name) || name.contains(".tmp");
        let removed = match entry.is_dir() {
            true => fs::remove_dir(&entry),
            false if known => fs::remove_file(&entry),
            false => bail!("{} is in the way: it is not of a run that has begun; move it away", entry.display()),
        };
        removed.with_context(|| format!("cannot remove {}", entry.display()))?;
    }
    fs::remove_dir(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Whether a folder is missing or has nothing in it.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
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

/// Keeps the tokenizer with the run, so that text can be generated without the training documents.
fn keep_tokenizer(paths: &RunPaths, data: &TextData) -> Result<()> {
    if let Some(json) = data.tokenizer.to_json()? {
        let path = paths.root().join(TOKENIZER);
        atomic_write(&path, |file| std::io::Write::write_all(file, json.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
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
    /// Parameters of the model without its connections.
    pub parameters: usize,
    /// Parameters of the connections that are trained.
    pub connection_parameters: usize,
    /// Final coefficients, one row a layer.
    pub coefficients: Vec<Vec<f64>>,
    /// Entropy of each row in nats; none where a coefficient is negative.
    pub entropies: Option<Vec<f64>>,
    /// Largest number of bytes that training the arm held at once: its parameters, moments, gradients and activations.
    pub peak_memory_bytes: u64,
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
    pub fn new<B: Backend>(settings: &Settings, connections: &Connections<B>, peak: u64) -> Result<Self> {
        let coefficients = connections.coefficients();
        Ok(Self {
            arm: settings.model.arm.to_string(),
            seed: settings.seed,
            parameters: settings.model.parameters(),
            connection_parameters: settings.model.connections().trained_parameters()?,
            entropies: coefficients.entropies(Direction::Incoming).ok(),
            coefficients: coefficients.rows().map(<[f64]>::to_vec).collect(),
            peak_memory_bytes: peak,
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
        let names: Vec<String> = fs::read_dir(&arms)
            .map(|entries| entries.flatten().map(|e| e.path().display().to_string()).collect())
            .unwrap_or_default();
        bail!("{} is a comparison: name one of its arms\n  {}", path.display(), names.join("\n  "));
    }
    let paths = RunPaths::new(path);
    let mut settings: Settings = paths.read_config()?;
    if !paths.checkpoints().is_dir() {
        bail!("{} has no checkpoints yet", path.display());
    }
    let store = CheckpointStore::open(&paths.checkpoints(), settings.training.keep_checkpoints)?;
    let Some(found) = store.load_newest()? else { bail!("{} has no checkpoints yet", path.display()) };
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
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.min(settings.accumulation()).max(1)
}

/// What a run will hold in memory, for `arms` runs at once.
pub fn memory_estimate(settings: &Settings, arms: usize) -> MemoryEstimate {
    let parameters = settings.model.parameters() as u64 * 4;
    let arms = arms as u64;
    let at_once = workers(settings) as u64;
    let mut estimate = MemoryEstimate::new();
    estimate
        .add(format!("weights of {arms} run(s)"), arms * parameters)
        .add("AdamW's two moments", arms * 2 * parameters)
        .add("gradients of one step", (at_once + 1) * parameters)
        .add(
            format!("activations of {at_once} x {} x {} tokens", settings.data.micro_batch, settings.data.context),
            at_once * settings.model.activation_bytes(settings.data.micro_batch, settings.data.context),
        );
    estimate
}
