//! From arguments to settings: preset, then file, then flags, each laid over the one before and checked.

use std::path::PathBuf;

use anyhow::Result;
use experiment_kit::{
    layers::{lay_file, lay_pairs, lay_steps, micro_batch_for},
    request::{self, CompareFlags, CompareRequest, TrainRequest, next_directory},
};
use training::settings::Layers;

use super::args::{CompareArgs, RunArgs, TrainArgs};
use crate::{presets::Preset, settings::Settings};

/// What the arguments of a comparison mean.
///
/// # Errors
/// If they do not make sense together; the message names the flag, the file or the setting.
pub fn compare(args: &CompareArgs) -> Result<CompareRequest<Settings>> {
    let flags = CompareFlags {
        resume: args.run.resume.as_deref(),
        config: args.run.config.as_deref(),
        arms: &args.arms,
        seeds: args.seeds,
        sequential: args.sequential,
    };
    request::compare(&flags, |stored| settings(&args.run, stored, |_| Ok(())), || directory(&args.run, "compare"))
}

/// What the arguments of one run mean.
///
/// # Errors
/// As [`compare`].
pub fn train(args: &TrainArgs) -> Result<TrainRequest<Settings>> {
    let more = |layers: &mut Layers<Settings>| {
        layers.set_if("--arm", "model.arm", args.arm.as_ref())?;
        layers.set_if("--init-from", "init_from", args.init_from.as_ref())?;
        Ok(())
    };
    request::train(
        args.run.resume.as_deref(),
        args.allow_changes,
        |stored| settings(&args.run, stored, more),
        || directory(&args.run, "train"),
    )
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
        lay_file(&mut layers, file)?;
    }
    layers.set_if("--seed", "seed", args.seed)?;
    if let Some(steps) = args.steps {
        lay_steps(&mut layers, steps)?;
    }
    layers.set_if("--lr", "training.lr", args.lr)?;
    layers.set_if("--tau", "model.tau", args.tau)?;
    if let Some(batch) = args.batch {
        let before = layers.settings().data.micro_batch;
        layers.set("--batch", "data.batch", batch)?;
        layers.set("--batch", "data.micro_batch", micro_batch_for(batch, before))?;
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
    lay_pairs(&mut layers, &args.set)?;
    Ok(layers.into_settings())
}

/// The directory of a new run: the one asked for, or the next free one.
fn directory(args: &RunArgs, command: &str) -> PathBuf {
    let preset = args.preset.unwrap_or(Preset::Cpu);
    args.out.clone().unwrap_or_else(|| next_directory(&format!("{command}-{preset}")))
}
