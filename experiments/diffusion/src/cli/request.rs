//! From arguments to settings: preset, then file, then flags, each laid over the one before and checked.

use std::path::PathBuf;

use ancre::Arm;
use anyhow::Result;
use experiment_kit::{
    layers::{lay_file, lay_pairs, lay_steps, micro_batch_for},
    request::{self, CompareFlags, CompareRequest, TrainRequest, next_directory},
};
use training::settings::Layers;

use super::args::{CompareArgs, RunArgs, TrainArgs};
use crate::{presets::Preset, settings::Settings};

/// The arms of an ordinary comparison.
fn default_arms() -> Vec<Arm> {
    ["cascade", "ancre", "0:l"].iter().filter_map(|name| name.parse().ok()).collect()
}

/// What the arguments of a comparison mean.
///
/// # Errors
/// If they do not make sense together; the message names the flag, the file or the setting.
pub fn compare(args: &CompareArgs) -> Result<CompareRequest<Settings>> {
    let usual = default_arms();
    let given = args.run.resume.is_some() || args.run.config.is_some() || !args.arms.is_empty();
    let flags = CompareFlags {
        resume: args.run.resume.as_deref(),
        config: args.run.config.as_deref(),
        arms: if given { &args.arms } else { &usual },
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
        let before = layers.settings();
        let every = before.evaluation.score_every as u128 * steps as u128 / before.training.steps.max(1) as u128;
        lay_steps(&mut layers, steps)?;
        layers.set("--steps", "evaluation.score_every", usize::try_from(every).unwrap_or(usize::MAX))?;
    }
    layers.set_if("--lr", "training.lr", args.lr)?;
    layers.set_if("--tau", "model.tau", args.tau)?;
    if let Some(batch) = args.batch {
        let before = layers.settings().data.micro_batch;
        layers.set("--batch", "data.batch", batch)?;
        layers.set("--batch", "data.micro_batch", micro_batch_for(batch, before))?;
    }
    layers.set_if("--micro-batch", "data.micro_batch", args.micro_batch)?;
    layers.set_if("--patch", "model.patch", args.patch)?;
    layers.set_if("--samples", "evaluation.samples", args.samples)?;
    layers.set_if("--data", "data.images", args.data.as_ref())?;
    layers.set_if("--size", "data.size", args.size)?;
    more(&mut layers)?;
    lay_pairs(&mut layers, &args.set)?;
    Ok(layers.into_settings())
}

/// The directory of a new run: the one asked for, or the next free one.
fn directory(args: &RunArgs, command: &str) -> PathBuf {
    let preset = args.preset.unwrap_or(Preset::Cpu);
    args.out.clone().unwrap_or_else(|| next_directory(&format!("{command}-{preset}")))
}
