//! Named settings: two that a laptop finishes in minutes, and the models of DiT. All are the same code with other numbers.

use std::{fmt, str::FromStr};

use ancre::{Arm, DEFAULT_TAU};
use datasets::images::{ImageSpec, LATENT_SCALE};
use gaussian_diffusion::{Guidance, Respacing};
use thiserror::Error;
use training::{
    optimizer::{OptimizerSettings, ParameterGroup},
    schedule::Schedule,
    trainer::{Accumulation, TrainSettings},
};

use crate::{
    model::DitConfig,
    settings::{DataSettings, EvaluationSettings, Sampler, SamplingSettings, Settings},
};

/// A size of DiT (Peebles and Xie 2023, table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 12 blocks of width 384.
    S,
    /// 12 blocks of width 768.
    B,
    /// 24 blocks of width 1024.
    L,
    /// 28 blocks of width 1152.
    XL,
}

/// A preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Seconds: does everything run?
    Smoke,
    /// Minutes on two cores: 12 blocks of width 64 on handwritten digits.
    Cpu,
    /// A model of DiT on latents, with its patch.
    Dit(Size, usize),
}

use Size::{B, L, S, XL};

/// All presets, small ones first.
const ALL: [Preset; 14] = [
    Preset::Smoke,
    Preset::Cpu,
    Preset::Dit(S, 8),
    Preset::Dit(S, 4),
    Preset::Dit(S, 2),
    Preset::Dit(B, 8),
    Preset::Dit(B, 4),
    Preset::Dit(B, 2),
    Preset::Dit(L, 8),
    Preset::Dit(L, 4),
    Preset::Dit(L, 2),
    Preset::Dit(XL, 8),
    Preset::Dit(XL, 4),
    Preset::Dit(XL, 2),
];

/// A text that names no preset.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a preset: give one of {}", ALL.map(|preset| preset.to_string()).join(", "))]
pub struct ParsePresetError {
    text: String,
}

impl FromStr for Preset {
    type Err = ParsePresetError;

    fn from_str(text: &str) -> Result<Self, ParsePresetError> {
        let named = |preset: &Self| preset.to_string().eq_ignore_ascii_case(text.trim());
        ALL.into_iter().find(named).ok_or_else(|| ParsePresetError { text: text.to_owned() })
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smoke => f.pad("smoke"),
            Self::Cpu => f.pad("cpu"),
            Self::Dit(size, patch) => f.pad(&format!("dit-{}-{patch}", format!("{size:?}").to_lowercase())),
        }
    }
}

impl Preset {
    /// All presets, small ones first.
    pub const ALL: [Self; ALL.len()] = ALL;

    /// What it is for, in a line.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Smoke => "seconds: does everything run?",
            Self::Cpu => "minutes on two cores, on handwritten digits",
            Self::Dit(S | B, 2) => "the paper's model and recipe",
            Self::Dit(..) => "a model of DiT, the paper's recipe",
        }
    }

    /// The settings, with ANCRe as the arm and seed 0.
    pub fn settings(self) -> Settings {
        match self {
            Self::Smoke => small([32, 3, 2], 60, 6e-3),
            Self::Cpu => small([64, 12, 4], 1500, 6e-3),
            Self::Dit(size, patch) => paper(size, patch),
        }
    }
}

/// A model of `[width, layers, heads]` whose images the data settles.
fn model([width, layers, heads]: [usize; 3], patch: usize) -> DitConfig {
    DitConfig {
        size: 0,
        channels: 0,
        classes: 0,
        patch,
        width,
        layers,
        heads,
        mlp_ratio: 4.0,
        frequency_features: 256,
        learn_sigma: true,
        label_dropout: 0.1,
        arm: Arm::default(),
        tau: DEFAULT_TAU,
    }
}

fn data(images: ImageSpec, batch: usize, micro_batch: usize) -> DataSettings {
    DataSettings {
        images,
        size: None,
        channels: None,
        held_out: 0.1,
        latent_scale: f64::from(LATENT_SCALE),
        flip: None,
        batch,
        micro_batch,
    }
}

/// AdamW (.9, .999) without decay, as in DiT. The group matters only to those who set a decay.
fn optimizer() -> OptimizerSettings {
    OptimizerSettings { groups: vec![ParameterGroup::without_decay(["connections.*"])], ..OptimizerSettings::default() }
}

/// Handwritten digits of 8 x 8; 64 a step in two micro-batches, for two cores. Unlike the paper's constant rate, a cosine: in so
/// few steps a constant one leaves an error that hides the differences between arms.
fn small(sizes: [usize; 3], steps: usize, lr: f64) -> Settings {
    Settings {
        seed: 0,
        init_from: None,
        data: data(ImageSpec::Digits, 64, 32),
        model: model(sizes, 2),
        sampling: SamplingSettings {
            sampler: Sampler::Ddpm,
            steps: Respacing::Sections(vec![50]),
            eta: 0.0,
            guidance: 1.5,
            guided: Guidance::Noise,
            clip: true,
        },
        evaluation: EvaluationSettings {
            noise_levels: 10,
            images: 64,
            samples: if steps < 100 { 40 } else { 300 },
            score_every: steps / 2,
            references: 0,
            batch: 64,
        },
        // An average over a sixth of the few steps of the smoke run, and over 100 steps of the other.
        ema_decay: if steps < 100 { 0.9 } else { 0.99 },
        training: TrainSettings {
            steps,
            lr,
            schedule: Schedule::Cosine { min_ratio: 0.05 },
            warmup: steps / 20,
            warmup_from_zero: false,
            optimizer: optimizer(),
            clip: None,
            accumulation: Accumulation::Tokens,
            log_every: 10,
            evaluate_every: (steps / 20).max(1),
            evaluate_at_start: false,
            checkpoint_every: steps.div_ceil(5),
            keep_checkpoints: 2,
        },
    }
}

/// The paper's recipe: ImageNet 256 in the latent space of an autoencoder (4 x 32 x 32), 256 a step, AdamW at 1e-4 throughout,
/// label dropout .1, average .9999, 400k steps; 250 steps of DDPM for 50,000 samples without guidance. The paper mirrors pictures
/// before they are encoded; a latent cannot be mirrored, so store those of mirrored pictures, too.
fn paper(size: Size, patch: usize) -> Settings {
    let sizes = match size {
        S => [384, 12, 6],
        B => [768, 12, 12],
        L => [1024, 24, 16],
        XL => [1152, 28, 16],
    };
    Settings {
        seed: 0,
        init_from: None,
        data: DataSettings { flip: Some(false), ..data(ImageSpec::Path("latents.safetensors".into()), 256, 32) },
        model: DitConfig { size: 32, channels: 4, classes: 1000, ..model(sizes, patch) },
        sampling: SamplingSettings {
            sampler: Sampler::Ddpm,
            steps: Respacing::Sections(vec![250]),
            eta: 0.0,
            guidance: 1.0,
            guided: Guidance::FirstThree,
            clip: false,
        },
        evaluation: EvaluationSettings {
            noise_levels: 10,
            images: 256,
            samples: 50_000,
            score_every: 0,
            references: 50_000,
            batch: 64,
        },
        ema_decay: 0.9999,
        training: TrainSettings {
            steps: 400_000,
            lr: 1e-4,
            schedule: Schedule::Constant,
            warmup: 0,
            warmup_from_zero: false,
            optimizer: optimizer(),
            clip: None,
            accumulation: Accumulation::Tokens,
            log_every: 100,
            evaluate_every: 10_000,
            evaluate_at_start: false,
            checkpoint_every: 10_000,
            keep_checkpoints: 2,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_survives_its_own_file() {
        for preset in Preset::ALL {
            let settings = preset.settings();
            settings.validate().unwrap_or_else(|e| panic!("{preset}: {e}"));
            let text = toml::to_string(&settings).unwrap();
            assert_eq!(toml::from_str::<Settings>(&text).unwrap(), settings, "{preset}");
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
    }

    #[test]
    fn the_models_of_dit_have_their_published_sizes() {
        // Peebles and Xie 2023, table 1, in millions; with patch 2.
        for (size, millions) in [(S, 33.0), (B, 130.0), (L, 458.0), (XL, 675.0)] {
            let ours = Preset::Dit(size, 2).settings().model.parameters() as f64 / 1e6;
            assert!((ours / millions - 1.0).abs() < 0.02, "{size:?}: {ours}");
        }
    }
}
