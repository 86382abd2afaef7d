//! What the flags of a run mean as settings.

use anyhow::{Result, ensure};
use experiment_cli::{RunFlags, RunOptions};
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
        self.preset().settings_with(self.optimizer.unwrap_or_default())
    }

    fn micro_batch(settings: &Settings) -> usize {
        settings.data.micro_batch
    }

    fn lay(&self, layers: &mut Layers<Settings>) -> Result<()> {
        if let Some(context) = self.context {
            layers.set("--context", "data.context", context)?;
            if context > layers.settings().model.positions {
                layers.set("--context", "model.positions", context)?;
            }
        }
        if let Some(rank) = self.rank {
            ensure!(
                layers.settings().training.optimizer.galore.is_some(),
                "--rank {rank} is GaLore's: add --optimizer galore, or leave --rank out"
            );
            layers.set("--rank", "training.optimizer.galore.rank", rank)?;
        }
        let data = &self.data;
        layers.set_if("--data", "data.train", (!data.data.is_empty()).then_some(&data.data))?;
        layers.set_if("--validation", "data.validation", (!data.validation.is_empty()).then_some(&data.validation))?;
        layers.set_if("--text-field", "data.text_field", data.text_field.as_ref())?;
        layers.set_if("--tokenizer", "data.tokenizer", data.tokenizer.as_ref())?;
        layers.set_if("--rows", "data.rows", data.rows)?;
        Ok(())
    }
}
