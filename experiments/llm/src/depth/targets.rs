//! The models that are measured: runs, all runs of a comparison, and Hugging Face folders.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use command_line::Failure;
use datasets::text::{Batch, Corpus, Document, Tokenizer, TokenizerSpec};
use experiment_kit::{compare, request::check_memory, run::cores};
use fused_ops::FusedOps;
use serde::Serialize;
use training::{device::DeviceChoice, memory::MemoryEstimate, progress::Progress};

use super::{
    measure::{Utilisation, measure},
    text,
};
use crate::{
    data,
    hugging_face::Folder,
    model::{Llama, LlamaConfig},
    run,
    settings::Settings,
};

/// Models that are shown as one line: the seeds of an arm, or a single model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they are called.
    pub name: String,
    /// Their directories.
    pub members: Vec<PathBuf>,
}

/// What the models are measured on.
#[derive(Clone, Debug)]
pub struct Request {
    /// Files and folders of text; none takes what a run held out, and for a folder the held-out part of the embedded text.
    pub text: Vec<PathBuf>,
    /// The JSON field or parquet column that holds the text.
    pub text_field: String,
    /// About how many tokens.
    pub tokens: usize,
    /// Tokens in a row; none takes a run's own, and for a folder as many as fit, up to 512.
    pub context: Option<usize>,
    /// The tokenizer of folders that have no `tokenizer.json`.
    pub tokenizer: Option<TokenizerSpec>,
    /// Where tensors live.
    pub device: DeviceChoice,
}

/// A model that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its directory.
    pub path: PathBuf,
    /// What it is: `ancre after 600 steps`, or `Hugging Face folder`.
    pub what: String,
    /// Its parameters, but for those of connections.
    pub parameters: u64,
    /// The text.
    pub text: String,
    /// Tokens in a row.
    pub context: usize,
    /// What its blocks do.
    #[serde(flatten)]
    pub utilisation: Utilisation,
}

const DEFAULT_CONTEXT: usize = 512;
const REMEDY: &str = "a smaller --context or a smaller model";

/// What is at some paths. A comparison gives a group for each of its arms, with a run for each seed.
///
/// # Errors
/// If a path holds nothing that can be measured.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    let comparisons = paths.iter().filter(|path| is_comparison(path)).count();
    for path in paths {
        if is_comparison(path) {
            let comparison = compare::read::<Settings>(path)?;
            for variant in comparison.variants() {
                let members = comparison.seed_range().map(|seed| compare::run_path(path, &variant, seed)).collect();
                let name = match comparisons {
                    1 => variant.to_string(),
                    _ => format!("{}: {variant}", own_name(path)),
                };
                groups.push(Group { name, members });
            }
        } else if Folder::is_one(path) || path.join("config.toml").is_file() {
            groups.push(Group { name: own_name(path), members: vec![path.clone()] });
        } else if path.exists() {
            bail!(
                "{} is no model: the directory of a run or a comparison has a config.toml, a Hugging Face folder a config.json",
                path.display()
            );
        } else {
            bail!("{} does not exist", path.display());
        }
    }
    Ok(groups)
}

fn is_comparison(path: &Path) -> bool {
    path.join("arms").is_dir()
}

/// The last part of a path that names something.
fn own_name(path: &Path) -> String {
    // Of `.` and its kin only the whole path tells.
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Loads one model and leaves out each of its blocks.
///
/// # Errors
/// If the model or the text cannot be used; the message names the directory.
pub fn measured<B: FusedOps>(
    path: &Path,
    request: &Request,
    device: &B::Device,
    progress: &Progress,
) -> Result<Measured, Failure> {
    let in_path = || format!("cannot measure {}", path.display());
    match Folder::is_one(path) {
        true => {
            let folder = Folder::open(path).map_err(anyhow::Error::from)?;
            of_folder::<B>(path, &folder, request, device, progress)
        }
        false => of_run::<B>(path, request, device, progress).with_context(in_path).map_err(Failure::from),
    }
}

fn of_run<B: FusedOps>(path: &Path, request: &Request, device: &B::Device, progress: &Progress) -> Result<Measured> {
    let (settings, model, step) = run::load::<B>(path, device)?;
    let tokenizer = run::kept_tokenizer(path, &settings)?.load(&Corpus::default(), None)?;
    let context = request.context.unwrap_or(settings.data.context);
    check_context(context, settings.model.positions)?;
    let (documents, text) = match request.text.as_slice() {
        [] => {
            let corpus = data::corpus(&settings.data)?;
            (corpus.held_out, corpus.held_out_rule)
        }
        _ => own_text(request)?,
    };
    let rows = settings.data.rows;
    let batches = text::run_rows(&documents, &tokenizer, rows, &settings.model, context, request.tokens)?;
    let what = format!("{} after {step} steps", settings.model.arm);
    let about = About { path, what, text, config: &settings.model, context };
    about.measure(&model, &batches, device, progress)
}

fn of_folder<B: FusedOps>(
    path: &Path,
    folder: &Folder,
    request: &Request,
    device: &B::Device,
    progress: &Progress,
) -> Result<Measured, Failure> {
    let config = folder.config();
    let context = request.context.unwrap_or(DEFAULT_CONTEXT.min(config.positions));
    check_context(context, config.positions).with_context(|| path.display().to_string())?;
    // Text and tokenizer first: weights may take minutes.
    let tokenizer = folder_tokenizer(path, folder, request)?;
    let (documents, text) = match request.text.as_slice() {
        [] => {
            let corpus = Corpus::embedded().map_err(anyhow::Error::from)?;
            (corpus.held_out, format!("embedded text, {}", corpus.held_out_rule))
        }
        _ => own_text(request)?,
    };
    let batches = text::windows(&documents, &tokenizer, config, context, request.tokens)
        .with_context(|| path.display().to_string())?;
    check_memory(request.device, || memory_estimate(config, context), REMEDY)?;
    let model = {
        let name = format!("reading {}", own_name(path));
        const PART: u64 = 1 << 20;
        let bar = progress.task(&name, config.parameters().div_ceil(PART) as usize);
        let (mut read, mut shown) = (0, 0);
        let model = folder.model::<B>(context, device, |parameters| {
            read += parameters as u64;
            bar.advance((read / PART - shown) as usize);
            shown = read / PART;
        });
        bar.finish();
        model.map_err(anyhow::Error::from)?
    };
    let about = About { path, what: "Hugging Face folder".to_owned(), text, config, context };
    Ok(about.measure(&model, &batches, device, progress)?)
}

fn check_context(context: usize, positions: usize) -> Result<()> {
    match context {
        0 => bail!("--context 0: give a positive number of tokens"),
        context if context > positions => {
            bail!("--context {context} is more than the {positions} positions of the model")
        }
        _ => Ok(()),
    }
}

fn own_text(request: &Request) -> Result<(Vec<Document>, String)> {
    let corpus = data::whole(&request.text, &request.text_field)?;
    Ok((corpus.train, corpus.source))
}

fn folder_tokenizer(path: &Path, folder: &Folder, request: &Request) -> Result<Tokenizer> {
    let spec = match (&request.tokenizer, folder.tokenizer()) {
        (Some(TokenizerSpec::Bpe { .. }), _) => {
            bail!("--tokenizer: a pre-trained model has a tokenizer already; give its tokenizer.json, or bytes")
        }
        (Some(spec), _) => spec.clone(),
        (None, Some(file)) => TokenizerSpec::File(file),
        (None, None) => bail!(
            "{} has no tokenizer.json: give one with --tokenizer (a tokenizer.model has to be converted first, which \
             AutoTokenizer.from_pretrained(...).save_pretrained(...) of transformers does)",
            path.display()
        ),
    };
    Ok(spec.load(&Corpus::default(), None)?)
}

/// What measuring a folder holds in main memory on the CPU.
fn memory_estimate(config: &LlamaConfig, context: usize) -> MemoryEstimate {
    let rows = text::rows_at_once(config, context);
    let batches = if super::measure::is_large(config.parameters()) { 1 } else { cores() as u64 };
    // The whole model's logits stay while those without a block are made, and both are copied out of their tensors.
    let logits = 3 * 4 * (rows as u64).saturating_mul(context as u64).saturating_mul(config.vocabulary as u64);
    let pass = config.inference_bytes(rows, context).saturating_add(logits);
    let mut estimate = MemoryEstimate::new();
    estimate.add("weights in f32", config.parameters().saturating_mul(4));
    estimate.add(format!("forward passes of {batches} x {rows} x {context} tokens"), pass.saturating_mul(batches));
    estimate
}

/// What is known of a model before it is measured.
struct About<'a> {
    path: &'a Path,
    what: String,
    text: String,
    config: &'a LlamaConfig,
    context: usize,
}

impl About<'_> {
    fn measure<B: FusedOps>(
        self,
        model: &Llama<B>,
        batches: &[Batch],
        device: &B::Device,
        progress: &Progress,
    ) -> Result<Measured> {
        let Self { path, what, text, config, context } = self;
        let tokens: usize = batches.iter().map(|batch| batch.target_tokens).sum();
        let parameters = config.parameters();
        progress.message(&format!(
            "{}: {what}, {} layers of width {}, {} parameters; {tokens} tokens ({text})",
            path.display(),
            config.layers,
            config.width,
            plotting::si(parameters as f64)
        ));
        let bar = progress.task(&own_name(path), batches.len() * config.layers);
        let utilisation = measure(model, parameters, batches, device, || bar.advance(1));
        bar.finish();
        let utilisation = utilisation.with_context(|| path.display().to_string())?;
        Ok(Measured { path: path.to_owned(), what, parameters, text, context, utilisation })
    }
}
