//! From arguments to settings: preset, then file, then flags, each laid over the one before and checked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use training::{run_directory::RunPaths, settings::Layers};

use super::args::{CompareArgs, RunArgs, TrainArgs};
use crate::{
    compare::{self, Comparison},
    presets::Preset,
    run::Start,
    settings::Settings,
};

/// A comparison to be made.
#[derive(Debug)]
pub struct CompareRequest {
    /// What is compared.
    pub comparison: Comparison,
    /// The directory.
    pub path: PathBuf,
    /// Whether it is there already.
    pub resume: bool,
}

/// One run to be made.
#[derive(Debug)]
pub struct TrainRequest {
    /// Its settings.
    pub settings: Settings,
    /// The directory.
    pub path: PathBuf,
    /// Whether it is there already.
    pub start: Start,
}

/// What the arguments of a comparison mean.
///
/// # Errors
/// If they do not make sense together; the message names the flag, the file or the setting.
pub fn compare(args: &CompareArgs) -> Result<CompareRequest> {
    let stored = args.run.resume.as_deref().map(compare::read).transpose()?;
    // The config.toml of a comparison says which arms and seeds, too.
    let from_file = |file: &PathBuf| toml::from_str::<Comparison>(&std::fs::read_to_string(file).ok()?).ok();
    let given = args.run.config.as_ref().and_then(from_file);
    let base = stored.as_ref().map(|comparison| comparison.run.clone());
    let run = settings(&args.run, base, |_| Ok(()))?;
    let known = stored.as_ref().or(given.as_ref());
    let mut arms = match (known, args.arms.as_slice()) {
        (Some(known), []) => known.arms.clone(),
        (None, []) => Comparison::default_arms(),
        (_, given) => given.to_vec(),
    };
    let mut seen = Vec::new();
    arms.retain(|arm| {
        !seen.contains(arm) && {
            seen.push(arm.clone());
            true
        }
    });
    let comparison = Comparison {
        arms,
        seeds: args.seeds.or(known.map(|k| k.seeds)).unwrap_or(1),
        // Whether arms share the memory changes no value, so a resumed comparison may choose anew.
        sequential: args.sequential || known.is_some_and(|k| k.sequential),
        run,
    };
    if comparison.seeds == 0 {
        bail!("there is no seed to run: seeds must be at least 1");
    }
    // The last seed has to fit a settings file, too.
    let last = comparison.run.seed.saturating_add(comparison.seeds - 1);
    Settings { seed: last, ..comparison.run.clone() }.validate()?;
    for arm in &comparison.arms {
        comparison.settings(arm, 0).validate().with_context(|| format!("arm {arm}"))?;
    }
    if let (Some(stored), Some(path)) = (&stored, &args.run.resume) {
        let unchanged = Comparison { sequential: stored.sequential, ..comparison.clone() } == *stored;
        if !unchanged {
            bail!(
                "{} was started with other settings (its config.toml has them): resume it without further flags, or start a \
                 new comparison with --out",
                path.display()
            );
        }
    }
    if comparison.arms.is_empty() {
        bail!("there is no arm to compare: give --arms, such as --arms cascade,ancre");
    }
    let path = directory(&args.run, "compare");
    Ok(CompareRequest { comparison, path, resume: args.run.resume.is_some() })
}

/// What the arguments of one run mean.
///
/// # Errors
/// As [`compare`].
pub fn train(args: &TrainArgs) -> Result<TrainRequest> {
    let stored = match &args.run.resume {
        Some(path) if path.join("arms").is_dir() => {
            bail!("{} is a comparison: resume it without `train`", path.display())
        }
        Some(path) => Some(RunPaths::new(path).read_config::<Settings>()?),
        None => None,
    };
    let settings = settings(&args.run, stored, |layers| {
        layers.set_if("--arm", "model.arm", args.arm.as_ref())?;
        layers.set_if("--init-from", "init_from", args.init_from.as_ref())?;
        Ok(())
    })?;
    settings.validate()?;
    let start = match args.run.resume {
        Some(_) => Start::Resume { allow_changes: args.allow_changes },
        None => Start::New,
    };
    Ok(TrainRequest { settings, path: directory(&args.run, "train"), start })
}

/// The settings of a run: those stored or of the preset, then the file, then flags.
fn settings(
    args: &RunArgs,
    stored: Option<Settings>,
    more: impl FnOnce(&mut Layers<Settings>) -> Result<()>,
) -> Result<Settings> {
    let base = stored.unwrap_or_else(|| args.preset.unwrap_or(Preset::Cpu).settings());
    let mut layers = Layers::preset(base)?;
    if let Some(file) = &args.config {
        settings_file(&mut layers, file)?;
    }
    layers.set_if("--seed", "seed", args.seed)?;
    if let Some(steps) = args.steps {
        let before = layers.settings().training.clone();
        // In 128 bits, where no product of two sizes overflows; 0 stays 0.
        let scale = |size: usize| size as u128 * steps as u128 / before.steps.max(1) as u128;
        let warmup = usize::try_from(scale(before.warmup)).unwrap_or(usize::MAX);
        let scaled = |every: usize| usize::try_from(scale(every)).unwrap_or(usize::MAX).max(usize::from(every > 0));
        layers.set("--steps", "training.steps", steps)?;
        layers.set("--steps", "training.warmup", warmup)?;
        layers.set("--steps", "training.evaluate_every", scaled(before.evaluate_every))?;
        layers.set("--steps", "training.checkpoint_every", scaled(before.checkpoint_every))?;
    }
    layers.set_if("--lr", "training.lr", args.lr)?;
    layers.set_if("--tau", "model.tau", args.tau)?;
    if let Some(batch) = args.batch {
        let before = layers.settings().data.micro_batch;
        layers.set("--batch", "data.batch", batch)?;
        // The largest part of the batch that is no larger than before.
        let micro = (1..=before.min(batch).min(1 << 16)).rev().find(|m| batch.is_multiple_of(*m)).unwrap_or(1);
        let whole = before == layers.settings().data.batch || before >= batch;
        layers.set("--batch", "data.micro_batch", if whole { batch } else { micro })?;
    }
    layers.set_if("--micro-batch", "data.micro_batch", args.micro_batch)?;
    if let Some(context) = args.context {
        layers.set("--context", "data.context", context)?;
        if context > layers.settings().model.positions {
            layers.set("--context", "model.positions", context)?;
        }
    }
    let data = &args.data;
    layers.set_if("--data", "data.train", (!data.data.is_empty()).then_some(&data.data))?;
    layers.set_if("--validation", "data.validation", (!data.validation.is_empty()).then_some(&data.validation))?;
    layers.set_if("--text-field", "data.text_field", data.text_field.as_ref())?;
    layers.set_if("--tokenizer", "data.tokenizer", data.tokenizer.as_ref())?;
    layers.set_if("--rows", "data.rows", data.rows)?;
    more(&mut layers)?;
    for pair in &args.set {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("--set {pair}: write KEY=VALUE, such as --set model.width=128");
        };
        // As it stands in the config.toml of a comparison.
        let key = key.trim().strip_prefix("run.").unwrap_or(key.trim());
        layers.text(&format!("--set {pair}"), &format!("{key} = {}", toml_value(value.trim())))?;
    }
    Ok(layers.into_settings())
}

/// Lays a settings file over what there is. Of the config.toml of a comparison it takes the settings of its runs.
fn settings_file(layers: &mut Layers<Settings>, file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    match toml::from_str::<Comparison>(&text) {
        Ok(comparison) => layers.table(&file.display().to_string(), toml::Table::try_from(comparison.run)?)?,
        Err(_) => layers.text(&file.display().to_string(), &text)?,
    };
    Ok(())
}

/// A value as TOML: as it stands where it is TOML already, else as a string, so that quotes can be left out.
fn toml_value(text: &str) -> String {
    let parses = toml::from_str::<toml::Table>(&format!("x = {text}")).is_ok();
    if parses { text.to_owned() } else { toml::Value::String(text.to_owned()).to_string() }
}

/// The directory of a run: the one asked for, or the next free one.
fn directory(args: &RunArgs, command: &str) -> PathBuf {
    if let Some(path) = args.resume.as_ref().or(args.out.as_ref()) {
        return path.clone();
    }
    let preset = args.preset.unwrap_or(Preset::Cpu);
    let numbered = |n: usize| Path::new("runs").join(format!("{command}-{preset}-{n}"));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}
