//! Named settings: two that a laptop finishes in minutes, and the paper's. All are the same code with other numbers.

use std::{fmt, str::FromStr};

use ancre::{Arm, DEFAULT_TAU};
use goal_tasks::Variant;
use hindsight_replay::prefill_unrolls;
use thiserror::Error;
use training::{
    optimizer::OptimizerSettings,
    schedule::Schedule,
    trainer::{Accumulation, TrainSettings},
};

use crate::{
    contrastive::settings::{
        BatchSettings, CollectionSettings, EvaluationSettings, LearningSettings, Sampling, Settings, TaskSettings,
    },
    model::{Activation, MlpConfig},
};

/// A preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Seconds: does everything run?
    Smoke,
    /// Minutes on two cores: a point mass in the paper's big maze, networks of 16 layers of width 32.
    Cpu,
    /// The paper's recipe: 512 environments, networks of width 256, 100 million environment steps.
    Paper,
}

impl Preset {
    /// All presets, small ones first.
    pub const ALL: [Self; 3] = [Self::Smoke, Self::Cpu, Self::Paper];

    /// What it is for, in a line.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Smoke => "seconds: does everything run?",
            Self::Cpu => "minutes on two cores: a point mass in the paper's big maze",
            Self::Paper => "the paper's recipe, for --task ant_big_maze, humanoid and so on",
        }
    }

    /// The settings, with ANCRe as the arm and seed 0.
    pub fn settings(self) -> Settings {
        match self {
            Self::Smoke => small("point_u_maze", 8, 60, 20),
            Self::Cpu => small("point_big_maze", 32, 30_000, 2000),
            Self::Paper => paper(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Smoke => "smoke",
            Self::Cpu => "cpu",
            Self::Paper => "paper",
        })
    }
}

/// A text that names no preset.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a preset: give one of {}", Preset::ALL.map(|preset| preset.to_string()).join(", "))]
pub struct ParsePresetError {
    text: String,
}

impl FromStr for Preset {
    type Err = ParsePresetError;

    fn from_str(text: &str) -> Result<Self, ParsePresetError> {
        let named = |preset: &Self| preset.to_string().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(named).ok_or_else(|| ParsePresetError { text: text.to_owned() })
    }
}

fn network(depth: usize, width: usize) -> MlpConfig {
    MlpConfig {
        depth,
        width,
        activation: Activation::Swish,
        norm_before_heads: false,
        arm: Arm::default(),
        tau: DEFAULT_TAU,
    }
}

fn training(steps: usize, lr: f64, every: usize) -> TrainSettings {
    TrainSettings {
        steps,
        lr,
        schedule: Schedule::Constant,
        warmup: 0,
        warmup_from_zero: false,
        optimizer: OptimizerSettings::default(),
        clip: None,
        accumulation: Accumulation::Equal,
        log_every: (every / 10).max(1),
        evaluate_every: every,
        evaluate_at_start: false,
        checkpoint_every: every,
        keep_checkpoints: 2,
    }
}

/// One environment step of each environment for every update.
fn small(task: &str, width: usize, steps: usize, every: usize) -> Settings {
    Settings {
        seed: 0,
        task: TaskSettings { name: task.to_owned(), evaluate_on: None, variant: Variant::default() },
        collection: CollectionSettings {
            environments: 32,
            unroll: 1,
            updates: 1,
            replay: 10_000,
            prefill: 250,
            sampling: Sampling::Direct,
        },
        learning: LearningSettings { discount: 0.99, entropy: 0.4 },
        data: BatchSettings { batch: 128, micro_batch: 128 },
        model: network(16, width),
        evaluation: EvaluationSettings { episodes: 128 },
        training: training(steps, 1e-3, every),
    }
}

/// 512 environments; 62 steps of each, then 800 updates; an evaluation after each of 100 epochs of 31 such rounds.
fn paper() -> Settings {
    const UNROLL: usize = 62;
    const UPDATES: usize = 800;
    const EPOCH: usize = 31 * UPDATES;
    Settings {
        seed: 0,
        task: TaskSettings { name: "ant_big_maze".to_owned(), evaluate_on: None, variant: Variant::default() },
        collection: CollectionSettings {
            environments: 512,
            unroll: UNROLL,
            updates: UPDATES,
            replay: 10_000,
            prefill: UNROLL * prefill_unrolls(1000, UNROLL),
            sampling: Sampling::Windows,
        },
        learning: LearningSettings { discount: 0.99, entropy: -0.5 },
        data: BatchSettings { batch: 256, micro_batch: 256 },
        model: network(16, 256),
        evaluation: EvaluationSettings { episodes: 128 },
        training: training(100 * EPOCH, 3e-4, EPOCH),
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
}
