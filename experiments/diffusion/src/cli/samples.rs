//! Sampling from a run, and scoring features of other programs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use burn::tensor::backend::AutodiffBackend;
use command_line::{Failure, say, write_new};
use experiment_kit::{
    on_device,
    state_dict::{StoredTensor, to_bytes},
};
use fused_ops::FusedOps;
use generative_metrics::{FeatureSet, Reference, Scores, score as score_features};
use plotting::{Align, Table, fixed};
use serde::Serialize;
use training::progress::Progress;

use super::{
    args::{SampleArgs, ScoreArgs},
    commands::Outcome,
};
use crate::{
    data::Images,
    pictures,
    run::{self, Weights},
    sampling::{Wanted, draw, labels_in_turn},
    settings::{SamplingSettings, Settings},
};

/// How samples were made: `sampling.toml` beside them.
#[derive(Serialize)]
struct Origin<'a> {
    run: &'a Path,
    step: usize,
    weights: Weights,
    seed: u64,
    sampling: &'a SamplingSettings,
}

/// `sample`.
pub fn sample(args: &SampleArgs) -> Outcome {
    if args.count == 0 || args.count > 1 << 24 {
        return Err(Failure::Usage(anyhow!("--count {}: give a number from 1 to {}", args.count, 1 << 24)));
    }
    on_device!(args.device, |B, device| sample_on::<<B as AutodiffBackend>::InnerBackend>(args, device))
}

fn sample_on<B: FusedOps>(args: &SampleArgs, device: B::Device) -> Outcome {
    let (mut settings, model, step) = run::load::<B>(&args.run, args.weights, &device)?;
    let sampling = &mut settings.sampling;
    sampling.guidance = args.guidance.unwrap_or(sampling.guidance);
    sampling.sampler = args.sampler.unwrap_or(sampling.sampler);
    sampling.steps = args.steps.clone().unwrap_or(sampling.steps.clone());
    settings.evaluation.batch = args.batch.unwrap_or(settings.evaluation.batch);
    settings.validate().map_err(|error| Failure::Usage(error.into()))?;
    let config = model.config();
    let labels = match &args.class {
        None => labels_in_turn(args.count, config.classes),
        Some(class) => vec![class_number(class, &settings).map_err(Failure::Usage)?; args.count],
    };
    let folder = match &args.out {
        Some(folder) if folder.symlink_metadata().is_ok() => {
            return Err(Failure::Usage(anyhow!("{} exists: give --out another name", folder.display())));
        }
        Some(folder) => folder.clone(),
        None => next_folder(&args.run),
    };
    let bar = Progress::new();
    let task = bar.task("samples", args.count);
    let wanted = Wanted { seed: args.seed, first: 0, labels: &labels, batch: settings.evaluation.batch };
    let samples = draw(&model, &settings.sampling, wanted, &device, &|done| task.advance(done))
        .map_err(|error| Failure::Usage(error.into()))?;
    task.finish();
    if let Some(at) = samples.iter().position(|value| !value.is_finite()) {
        let number = at / (samples.len() / args.count);
        return Err(
            anyhow!("sample {number} is not finite: the run has diverged, or the guidance is too strong").into()
        );
    }
    let shape = [config.channels, config.size, config.size];
    let origin = Origin { run: &args.run, step, weights: args.weights, seed: args.seed, sampling: &settings.sampling };
    let origin = toml::to_string_pretty(&origin).map_err(anyhow::Error::from)?;
    write(&folder, &samples, shape, &labels, config.classes)
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    let path = folder.join("sampling.toml");
    write_new(&path, origin.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    say(format!("{} samples after {step} steps in {}", args.count, folder.display()));
    Ok(())
}

/// The number of a class given by the name that the images have for it, or by number. A name goes first: classes may be called
/// `1`, `2` and `10`. Numbers do without the images.
fn class_number(class: &str, settings: &Settings) -> Result<u32> {
    let classes = settings.model.classes;
    let images = Images::load(settings).context("the names of the classes come with the images");
    if let Ok(images) = &images
        && let Some(number) = images.train.class_names().iter().position(|name| name.eq_ignore_ascii_case(class))
    {
        return Ok(number as u32);
    }
    if let Ok(number) = class.parse::<u32>() {
        if number as usize >= classes {
            bail!("--class {class}: the run has {classes} classes, from 0 to {}", classes - 1);
        }
        return Ok(number);
    }
    bail!("--class {class}: the classes are {}", images?.train.class_names().join(", "))
}

/// The first `samples-N` that is not there.
fn next_folder(run: &Path) -> PathBuf {
    let numbered = |n: usize| run.join(format!("samples-{n}"));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

/// Writes the samples: pictures as a grid, single files and an `.npz`; latents as safetensors.
fn write(folder: &Path, samples: &[f32], shape: [usize; 3], labels: &[u32], classes: usize) -> Result<()> {
    fs::create_dir_all(folder)?;
    if shape[0] != 1 && shape[0] != 3 {
        let mut tensors = std::collections::BTreeMap::new();
        let sizes = vec![labels.len(), shape[0], shape[1], shape[2]];
        tensors.insert("latents".to_owned(), StoredTensor { shape: sizes, values: samples.to_vec() });
        let values = labels.iter().map(|&label| label as f32).collect();
        tensors.insert("labels".to_owned(), StoredTensor { shape: vec![labels.len()], values });
        write_new(&folder.join("latents.safetensors"), &to_bytes(&tensors)?)?;
        say(
            "These are latents, scaled as in training: decode them with the autoencoder that the images were encoded with.",
        );
        return Ok(());
    }
    const MOST_FILES: usize = 1000;
    const MOST_IN_GRID: usize = 400;
    let size: usize = shape.iter().product();
    let columns = if labels.windows(2).all(|pair| pair[0] == pair[1]) { 10 } else { classes.min(20) };
    let shown = samples.len().min(MOST_IN_GRID * size);
    write_new(&folder.join("samples.png"), &pictures::grid(&samples[..shown], shape, columns)?)?;
    write_new(&folder.join("samples.npz"), &pictures::npz(samples, shape, labels)?)?;
    for (i, (sample, label)) in samples.chunks_exact(size).zip(labels).enumerate().take(MOST_FILES) {
        write_new(&folder.join(format!("{i:06}-class{label}.png")), &pictures::png(sample, shape)?)?;
    }
    Ok(())
}

/// `score`.
pub fn score(args: &ScoreArgs) -> Outcome {
    let read = |path: &Path| FeatureSet::read(path).map_err(anyhow::Error::from);
    let (references, samples) = (read(&args.references)?, read(&args.samples)?);
    let reference = Reference::measure(&references, args.neighbours, &args.extractor, &args.resize)
        .map_err(|error| Failure::Usage(error.into()))?;
    let scores = score_features(&reference, &samples, args.split).map_err(anyhow::Error::from)?;
    say(table(&scores).to_text());
    say(&scores.protocol);
    Ok(())
}

fn table(scores: &Scores) -> Table {
    let mut table = Table::new(["score", "value"]).align(0, Align::Left);
    let unknown = || "-".to_owned();
    let rows = [
        ("Fréchet distance", fixed(scores.frechet_distance, 4)),
        ("spatial Fréchet distance", scores.spatial_frechet_distance.map_or_else(unknown, |value| fixed(value, 4))),
        (
            "inception-style score",
            scores.inception_score.map_or_else(unknown, |(mean, sd)| format!("{} ± {}", fixed(mean, 3), fixed(sd, 3))),
        ),
        ("precision", fixed(scores.precision, 4)),
        ("recall", fixed(scores.recall, 4)),
        ("density", fixed(scores.density, 4)),
        ("coverage", fixed(scores.coverage, 4)),
    ];
    for (name, value) in rows {
        table.push([name.to_owned(), value]);
    }
    table
}
