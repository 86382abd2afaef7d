//! The numbers of a training run.

use serde::{Deserialize, Serialize};

use super::TrainError;
use crate::{
    optimizer::OptimizerSettings,
    schedule::{Schedule, Warmup},
};

/// How the micro-batches of a step are weighted against each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accumulation {
    /// By their weights, so that the gradient is that of the mean over all tokens of the step, however they are cut
    /// into micro-batches.
    #[default]
    Tokens,
    /// All alike: the mean of the micro-batches' means, as in the paper's runs. Those that are skipped do not count.
    Equal,
}

/// The settings of the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSettings {
    /// The number of updates.
    pub steps: usize,
    /// The peak learning rate.
    pub lr: f64,
    /// Its shape over the run.
    pub schedule: Schedule,
    /// Over how many of the steps it rises.
    pub warmup: usize,
    /// Whether the rise begins at 0 (as in the paper's runs) or at `1 / warmup`; see [`Warmup`].
    pub warmup_from_zero: bool,
    /// The update rule, the weight decay and who gets it.
    pub optimizer: OptimizerSettings,
    /// The largest L2 norm of the whole gradient; unset means no clipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// How micro-batches are weighted.
    pub accumulation: Accumulation,
    /// A line in the log every so many steps (and at the first and the last).
    pub log_every: usize,
    /// An evaluation every so many steps, and at the end; 0 means at the end only.
    pub evaluate_every: usize,
    /// Whether to evaluate before the first step, too.
    pub evaluate_at_start: bool,
    /// A checkpoint every so many steps, and at the end; 0 means at the end only.
    pub checkpoint_every: usize,
    /// How many checkpoints stay, at least 2.
    pub keep_checkpoints: usize,
}

impl Default for TrainSettings {
    /// A thousand steps of AdamW at 1e-3, a cosine to a tenth with 10% warm-up, no clipping: the paper's recipe in small.
    fn default() -> Self {
        Self {
            steps: 1000,
            lr: 1e-3,
            schedule: Schedule::default(),
            warmup: 100,
            warmup_from_zero: false,
            optimizer: OptimizerSettings::default(),
            clip: None,
            accumulation: Accumulation::default(),
            log_every: 10,
            evaluate_every: 100,
            evaluate_at_start: false,
            checkpoint_every: 100,
            keep_checkpoints: 2,
        }
    }
}

impl TrainSettings {
    /// The learning rate of the update that follows `step` updates.
    pub fn lr_at(&self, step: usize) -> f64 {
        let warmup = Warmup { steps: self.warmup, from_zero: self.warmup_from_zero };
        self.lr * self.schedule.multiplier(step, warmup, self.steps)
    }

    /// # Errors
    /// Names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), TrainError> {
        let complain = |setting: &'static str, message: &'static str| Err(TrainError::Setting { setting, message });
        if self.steps == 0 {
            return complain("steps", "must be at least 1");
        }
        if !(0.0..=f64::from(f32::MAX)).contains(&self.lr) {
            return complain("lr", "must be a number of at least 0, and finite in single precision");
        }
        if self.warmup > self.steps {
            return complain("warmup", "must not be longer than the run (`steps`)");
        }
        if self.clip.is_some_and(|clip| !(clip.is_finite() && clip > 0.0)) {
            return complain("clip", "must be a finite number above 0; leave it out for no clipping");
        }
        if self.log_every == 0 {
            return complain("log_every", "must be at least 1");
        }
        if self.keep_checkpoints < 2 {
            return complain("keep_checkpoints", "must be at least 2: the newest one may turn out to be damaged");
        }
        self.schedule.validate()?;
        self.optimizer.validate()?;
        // Each may be a number, and their product not.
        if self.optimizer.groups.iter().any(|group| self.lr * group.lr_factor > f64::from(f32::MAX)) {
            return complain("lr", "is too large for single precision, times the `lr_factor` of a group");
        }
        Ok(())
    }

    /// Whether something that happens `every` so many steps happens after step number `step`.
    pub(super) fn due(&self, every: usize, step: usize) -> bool {
        step == self.steps || (every > 0 && step.is_multiple_of(every))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterGroup;

    #[test]
    fn settings_that_make_no_sense_are_named() {
        TrainSettings::default().validate().unwrap();
        let default = TrainSettings::default;
        let with_group = |lr_factor| {
            let group = ParameterGroup { parameters: vec!["*".into()], weight_decay: None, lr_factor };
            OptimizerSettings { groups: vec![group], ..Default::default() }
        };
        for (settings, name) in [
            (TrainSettings { steps: 0, ..default() }, "steps"),
            (TrainSettings { lr: f64::NAN, ..default() }, "lr"),
            (TrainSettings { lr: 1e39, ..default() }, "lr"),
            (TrainSettings { lr: -1.0, ..default() }, "lr"),
            (TrainSettings { schedule: Schedule::Cosine { min_ratio: f64::NAN }, ..default() }, "min_ratio"),
            (TrainSettings { schedule: Schedule::CosineRestarts { restarts: 0 }, ..default() }, "restarts"),
            (TrainSettings { optimizer: with_group(f64::NAN), ..default() }, "lr_factor"),
            (TrainSettings { optimizer: with_group(f64::INFINITY), ..default() }, "lr_factor"),
            (TrainSettings { lr: 1e20, optimizer: with_group(1e20), ..default() }, "lr_factor"),
            (TrainSettings { clip: Some(f64::NAN), ..default() }, "clip"),
            (TrainSettings { warmup: 1001, ..default() }, "warmup"),
            (TrainSettings { clip: Some(0.0), ..default() }, "clip"),
            (TrainSettings { log_every: 0, ..default() }, "log_every"),
            (TrainSettings { keep_checkpoints: 1, ..default() }, "keep_checkpoints"),
        ] {
            let message = settings.validate().unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn what_toml_calls_a_number_and_is_none_is_refused() {
        // Regression: these went through, and the weights became NaN.
        let text = toml::to_string(&TrainSettings::default()).unwrap();
        for (old, new) in [("min_ratio = 0.1", "min_ratio = nan"), ("weight_decay = 0.0", "weight_decay = inf")] {
            let changed = text.replace(old, new);
            assert_ne!(changed, text);
            assert!(toml::from_str::<TrainSettings>(&changed).unwrap().validate().is_err(), "{new}");
        }
    }

    #[test]
    fn settings_come_back_from_toml() {
        let settings = TrainSettings {
            steps: usize::MAX,
            clip: Some(1.0),
            accumulation: Accumulation::Equal,
            ..Default::default()
        };
        assert_eq!(toml::from_str::<TrainSettings>(&toml::to_string(&settings).unwrap()).unwrap(), settings);
    }

    #[test]
    fn events_are_due_at_their_steps_and_at_the_end() {
        let settings = TrainSettings { steps: 10, ..Default::default() };
        let due = |every| (1..=10).filter(|step| settings.due(every, *step)).collect::<Vec<_>>();
        assert_eq!(due(0), [10]);
        assert_eq!(due(4), [4, 8, 10]);
    }
}
