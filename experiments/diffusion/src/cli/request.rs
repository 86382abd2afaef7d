//! What the flags of a run mean as settings.

use ancre::Arm;
use anyhow::Result;
use experiment_cli::{RunFlags, RunOptions};
use experiment_kit::layers;
use training::settings::Layers;

use super::args::RunArgs;
use crate::{presets::Preset, settings::Settings};

impl RunArgs {
    fn preset(&self) -> Preset {
        self.preset.unwrap_or(Preset::Cpu)
    }
}

impl RunFlags for RunArgs {
    type Settings = Settings;

    fn options(&self) -> &RunOptions {
        &self.options
    }

    fn preset_name(&self) -> String {
        self.preset().to_string()
    }

    fn preset_settings(&self) -> Settings {
        self.preset().settings()
    }

    fn micro_batch(settings: &Settings) -> usize {
        settings.data.micro_batch
    }

    fn lay(&self, layers: &mut Layers<Settings>) -> Result<()> {
        layers.set_if("--patch", "model.patch", self.patch)?;
        layers.set_if("--samples", "evaluation.samples", self.samples)?;
        layers.set_if("--data", "data.images", self.data.as_ref())?;
        layers.set_if("--size", "data.size", self.size)?;
        Ok(())
    }

    fn lay_steps(layers: &mut Layers<Settings>, steps: usize) -> Result<()> {
        let before = layers.settings();
        let every = before.evaluation.score_every as u128 * steps as u128 / before.training.steps.max(1) as u128;
        layers::lay_steps(layers, steps)?;
        layers.set("--steps", "evaluation.score_every", usize::try_from(every).unwrap_or(usize::MAX))?;
        Ok(())
    }

    fn usual_arms() -> Vec<Arm> {
        vec![Arm::Cascade, Arm::default(), Arm::Fixed("0:l".to_owned())]
    }
}
