//! From arguments to settings: what is stored or a preset, then a file, then flags, then `--set`, each laid over the one
//! before and checked.
//!
//! Settings have their batch as `data.batch` and `data.micro_batch`, the peak learning rate as `training.lr`, and the
//! connections as `model.arm` and `model.tau`; the rest is as [`RunSettings`](experiment_kit::RunSettings) asks for.

use std::path::PathBuf;

use anyhow::Result;
use experiment_kit::{
    layers::{lay_file, lay_pairs, micro_batch_for},
    request::{self, CompareFlags, CompareRequest, TrainRequest, next_directory},
};
use training::settings::Layers;

use crate::{CompareArgs, RunFlags, TrainArgs};

/// What the arguments of a comparison mean.
///
/// # Errors
/// If they do not make sense together; the message names the flag, the file or the setting.
pub fn compare<R: RunFlags>(args: &CompareArgs<R>) -> Result<CompareRequest<R::Settings>> {
    let (options, usual) = (args.run.options(), R::usual_arms());
    let flags = CompareFlags {
        resume: options.resume.as_deref(),
        config: options.config.as_deref(),
        arms: &args.arms,
        usual_arms: &usual,
        depths: &args.depths,
        seeds: args.seeds,
        sequential: args.sequential,
    };
    request::compare(&flags, |stored| settings(&args.run, stored, |_| Ok(())), || directory(&args.run, "compare"))
}

/// What the arguments of one run mean.
///
/// # Errors
/// As [`compare`].
pub fn train<R: RunFlags>(args: &TrainArgs<R>) -> Result<TrainRequest<R::Settings>> {
    let more = |layers: &mut Layers<R::Settings>| {
        layers.set_if("--arm", "model.arm", args.arm.as_ref())?;
        layers.set_if("--init-from", "init_from", args.init_from.as_ref())?;
        Ok(())
    };
    request::train(
        args.run.options().resume.as_deref(),
        args.allow_changes,
        |stored| settings(&args.run, stored, more),
        || directory(&args.run, "train"),
    )
}

/// The settings of a run.
fn settings<R: RunFlags>(
    flags: &R,
    stored: Option<R::Settings>,
    more: impl FnOnce(&mut Layers<R::Settings>) -> Result<()>,
) -> Result<R::Settings> {
    let options = flags.options();
    let mut layers = Layers::preset(stored.unwrap_or_else(|| flags.preset_settings()))?;
    if let Some(file) = &options.config {
        lay_file(&mut layers, file)?;
    }
    layers.set_if("--seed", "seed", options.seed)?;
    if let Some(steps) = options.steps {
        R::lay_steps(&mut layers, steps)?;
    }
    layers.set_if("--lr", "training.lr", options.lr)?;
    layers.set_if("--tau", "model.tau", options.tau)?;
    if let Some(batch) = options.batch {
        let before = R::micro_batch(layers.settings());
        layers.set("--batch", "data.batch", batch)?;
        layers.set("--batch", "data.micro_batch", micro_batch_for(batch, before))?;
    }
    layers.set_if("--micro-batch", "data.micro_batch", options.micro_batch)?;
    flags.lay(&mut layers)?;
    more(&mut layers)?;
    lay_pairs(&mut layers, &options.set)?;
    Ok(layers.into_settings())
}

/// The directory of a new run: the one asked for, or the next free one.
fn directory<R: RunFlags>(flags: &R, command: &str) -> PathBuf {
    let asked = flags.options().out.clone();
    asked.unwrap_or_else(|| next_directory(&format!("{command}-{}", flags.preset_name())))
}

#[cfg(test)]
mod tests;
