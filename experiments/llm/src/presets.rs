//! Named settings: two that a laptop finishes in minutes, and the paper's four models. All are the same code with other
//! numbers.

use std::fmt;

use ancre::{Arm, DEFAULT_TAU};
use clap::ValueEnum;
use datasets::text::{RowMode, TokenizerSpec};
use training::{
    optimizer::{Galore, OptimizerSettings, ParameterGroup, Rule},
    schedule::Schedule,
    trainer::{Accumulation, TrainSettings},
};

use crate::{
    model::{LlamaConfig, LlamaVariant},
    settings::{DataSettings, Settings},
};

/// A preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Seconds: does everything run?
    Smoke,
    /// Minutes on two cores: 12 layers of width 64 on bytes, where the layouts already differ.
    Cpu,
    /// The paper's 60M model: 10k steps of 512 x 256 tokens.
    #[value(name = "llama-60m")]
    Llama60M,
    /// The paper's 130M model: 20k steps.
    #[value(name = "llama-130m")]
    Llama130M,
    /// The paper's 350M model: 60k steps.
    #[value(name = "llama-350m")]
    Llama350M,
    /// The paper's 1B model: 100k steps.
    #[value(name = "llama-1b")]
    Llama1B,
}

impl Preset {
    /// All presets, small ones first.
    pub const ALL: [Self; 6] =
        [Self::Smoke, Self::Cpu, Self::Llama60M, Self::Llama130M, Self::Llama350M, Self::Llama1B];

    /// What it is for, in a line.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Smoke => "seconds: does everything run?",
            Self::Cpu => "minutes on two cores; the layouts already differ",
            Self::Llama60M | Self::Llama130M | Self::Llama350M | Self::Llama1B => {
                "the paper's model and recipe, in f32 (the paper: bf16)"
            }
        }
    }

    /// The settings, with ANCRe as the arm and seed 0.
    pub fn settings(self) -> Settings {
        match self {
            Self::Smoke => small([32, 88, 4, 2], [48, 8, 60], 4e-3, 15, 4096),
            Self::Cpu => small([64, 172, 12, 4], [64, 8, 600], 4e-3, 50, 32_768),
            Self::Llama60M => paper([512, 1376, 8, 8], 10_000, 5e-3),
            Self::Llama130M => paper([768, 2048, 12, 12], 20_000, 1e-3),
            Self::Llama350M => paper([1024, 2736, 24, 16], 60_000, 1e-3),
            Self::Llama1B => paper([2048, 5461, 24, 32], 100_000, 5e-4),
        }
    }
}

/// An optimizer that a preset knows its numbers for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OptimizerChoice {
    /// AdamW on all parameters.
    #[default]
    #[value(name = "adamw")]
    AdamW,
    /// GaLore: attention and feed-forward matrices in a few directions of their gradients.
    #[value(name = "galore")]
    Galore,
}

impl Preset {
    /// The settings with this optimizer in place of the usual AdamW. GaLore's ranks and learning rates are the paper's for its
    /// models; of the small ones a quarter of the width, and the best rate of four for the cascade of `cpu`. Its other numbers are GaLore's.
    pub fn settings_with(self, optimizer: OptimizerChoice) -> Settings {
        let mut settings = self.settings();
        if optimizer == OptimizerChoice::Galore {
            let (rank, lr) = match self {
                Self::Smoke => (8, 4e-2),
                Self::Cpu => (16, 4e-2),
                Self::Llama60M => (128, 1e-2),
                Self::Llama130M | Self::Llama350M => (256, 5e-2),
                Self::Llama1B => (512, 5e-3),
            };
            let training = &mut settings.training;
            let [beta1, beta2] = match training.optimizer.rule {
                Rule::AdamW { beta1, beta2, .. } => [beta1, beta2],
                _ => [0.9, 0.999],
            };
            training.lr = lr;
            training.optimizer.rule = Rule::TransformersAdamW { beta1, beta2, eps: 1e-6 };
            training.optimizer.galore = Some(Galore::new(["layers.*.self_attn.*", "layers.*.mlp.*"], rank));
        }
        settings
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.pad(value.get_name()),
            None => unreachable!("no preset is hidden"),
        }
    }
}

/// A model of `[width, feed-forward width, layers, heads]`.
fn model([width, feed_forward, layers, heads]: [usize; 4], positions: usize) -> LlamaConfig {
    LlamaConfig {
        vocabulary: 0,
        width,
        feed_forward,
        layers,
        heads,
        positions,
        rotary_base: 10_000.0,
        norm_eps: 1e-6,
        init_std: 0.02,
        freeze_last_embedding: false,
        arm: Arm::default(),
        tau: DEFAULT_TAU,
        variant: LlamaVariant::default(),
    }
}

fn data(tokenizer: TokenizerSpec, rows: RowMode, context: usize, batch: usize, micro_batch: usize) -> DataSettings {
    DataSettings {
        train: Vec::new(),
        validation: Vec::new(),
        held_out: 0.1,
        text_field: "text".to_owned(),
        tokenizer,
        rows,
        context,
        batch,
        micro_batch,
        evaluation_tokens: 0,
    }
}

/// What weight decay leaves alone: gains and connections.
fn undecayed() -> ParameterGroup {
    ParameterGroup::without_decay(["*norm.weight", "connections.*"])
}

/// Bytes of the embedded text in packed rows; AdamW (.9, .95) with decay .1 on matrices, clipping at 1, cosine to a tenth.
/// `[context, batch, steps]`.
fn small(
    sizes: [usize; 4],
    [context, batch, steps]: [usize; 3],
    lr: f64,
    evaluate_every: usize,
    evaluation_tokens: usize,
) -> Settings {
    let optimizer = OptimizerSettings {
        rule: Rule::AdamW { beta1: 0.9, beta2: 0.95, eps: 1e-8, amsgrad: false },
        weight_decay: 0.1,
        groups: vec![undecayed()],
        galore: None,
    };
    Settings {
        seed: 0,
        init_from: None,
        data: DataSettings {
            evaluation_tokens, // Two micro-batches, for two cores.
            ..data(TokenizerSpec::Bytes, RowMode::Packed, context, batch, batch / 2)
        },
        model: model(sizes, context),
        training: TrainSettings {
            steps,
            lr,
            schedule: Schedule::default(),
            warmup: steps / 10,
            warmup_from_zero: false,
            optimizer,
            clip: Some(1.0),
            accumulation: Accumulation::Tokens,
            log_every: 10,
            evaluate_every,
            evaluate_at_start: false,
            checkpoint_every: steps.div_ceil(6),
            keep_checkpoints: 2,
        },
    }
}

/// The paper's recipe: one document a row of 256 tokens, 512 rows a step, AdamW (.9, .999) without decay or clipping,
/// cosine to a tenth with 10% warm-up from zero, micro-batches weighted alike, evaluation every 1000 steps on 10M tokens.
fn paper(sizes: [usize; 4], steps: usize, lr: f64) -> Settings {
    Settings {
        seed: 0,
        init_from: None,
        data: DataSettings {
            evaluation_tokens: 10_000_000,
            ..data(TokenizerSpec::Bpe { entries: 32_000 }, RowMode::Document, 256, 512, 8)
        },
        model: LlamaConfig { vocabulary: 32_000, freeze_last_embedding: true, ..model(sizes, 1024) },
        training: TrainSettings {
            steps,
            lr,
            schedule: Schedule::default(),
            warmup: steps / 10,
            warmup_from_zero: true,
            // The group matters only to those who set a decay.
            optimizer: OptimizerSettings { groups: vec![undecayed()], ..OptimizerSettings::default() },
            clip: None,
            accumulation: Accumulation::Equal,
            log_every: 10,
            evaluate_every: 1000,
            evaluate_at_start: false,
            checkpoint_every: 1000,
            keep_checkpoints: 2,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_survives_its_own_file() {
        let choices = [OptimizerChoice::AdamW, OptimizerChoice::Galore];
        for (preset, choice) in Preset::ALL.iter().flat_map(|preset| choices.map(|choice| (preset, choice))) {
            let settings = preset.settings_with(choice);
            settings.validate().unwrap_or_else(|e| panic!("{preset}: {e}"));
            let text = toml::to_string(&settings).unwrap();
            assert_eq!(toml::from_str::<Settings>(&text).unwrap(), settings, "{preset}");
        }
    }

    #[test]
    fn galore_keeps_less_than_adamw() {
        let bytes = |choice| Preset::Llama60M.settings_with(choice).state_bytes();
        assert_eq!(bytes(OptimizerChoice::AdamW), 2 * 4 * 58_073_600);
        // Both moments of the embedding, the head and the gains; of each matrix moments of rank 128 and a basis.
        let layer = 4 * (2 * 128 * 512 + 128 * 512) + 3 * (2 * 128 * 1376 + 128 * 512);
        let others = 2 * (2 * 32_000 * 512 + 17 * 512);
        assert_eq!(bytes(OptimizerChoice::Galore), 4 * (8 * layer + others));
    }

    #[test]
    fn the_papers_models_have_the_sizes_of_their_names() {
        let millions = |preset: Preset| preset.settings().model.parameters() as f64 / 1e6;
        for (preset, expected) in [
            (Preset::Llama60M, 58.0),
            (Preset::Llama130M, 134.0),
            (Preset::Llama350M, 368.0),
            (Preset::Llama1B, 1339.0),
        ] {
            assert!((millions(preset) / expected - 1.0).abs() < 0.01, "{preset}: {}", millions(preset));
        }
    }
}
