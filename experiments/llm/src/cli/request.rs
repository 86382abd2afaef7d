//! What the flags of a run mean as settings.

use anyhow::{Result, ensure};
use experiment_cli::{RunFlags, RunOptions};
use training::{optimizer::ParameterGroup, settings::Layers};

use super::args::RunArgs;
use crate::{presets::Preset, settings::Settings};

/// The name of the embeddings' parameter.
const EMBEDDINGS: &str = "embed_tokens.weight";

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
        if let Some(factor) = self.embedding_lr {
            let optimizer = &layers.settings().training.optimizer;
            let mut groups = optimizer.groups.clone();
            // AdamW shrinks by rate times decay: so divided, the embeddings shrink as they would without the factor.
            let weight_decay = Some(optimizer.weight_decay / factor);
            // The first group that matches counts: before any other, and in the place of an earlier factor.
            groups.retain(|group| group.parameters != [EMBEDDINGS]);
            groups
                .insert(0, ParameterGroup { parameters: vec![EMBEDDINGS.to_owned()], weight_decay, lr_factor: factor });
            layers.set("--embedding-lr", "training.optimizer.groups", groups)?;
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
