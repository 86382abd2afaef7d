//! Learning-rate schedules: a multiplier of the peak rate as a function of the step.
//!
//! Steps are counted from 0, as in PyTorch's `LambdaLR`: `multiplier(s, ..)` belongs to the update that turns the
//! parameters after `s` updates into those after `s + 1`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The first steps of a run, over which the rate rises linearly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmup {
    /// How many steps the rise takes; 0 means none.
    pub steps: usize,
    /// Whether the first step gets the multiplier 0 (`step / steps`) instead of `(step + 1) / steps`.
    ///
    /// PyTorch recipes usually start from zero, the paper's among them: their first update then only fills the moment
    /// estimates and moves no weight. Without it, the first update already counts and the last warm-up step is at the
    /// peak; this is the default here.
    #[serde(default)]
    pub from_zero: bool,
}

impl Warmup {
    /// A warm-up whose first step already moves the weights: `1/steps, 2/steps, ..., 1`.
    pub fn new(steps: usize) -> Self {
        Self { steps, from_zero: false }
    }

    /// A warm-up whose first step has rate zero: `0, 1/steps, ..., (steps-1)/steps`.
    pub fn from_zero(steps: usize) -> Self {
        Self { steps, from_zero: true }
    }

    /// The multiplier of `step`, where `step` lies within the warm-up.
    fn multiplier(self, step: usize) -> f64 {
        (step + usize::from(!self.from_zero)) as f64 / self.steps.max(1) as f64
    }
}

/// The shape of the learning rate after the warm-up.
///
/// In settings files: `schedule = { kind = "cosine", min_ratio = 0.1 }`; on a command line: `cosine:0.1`
/// (see [`FromStr`]).
///
/// With `w` warm-up steps, `N` steps in total and `p = (s - w) / max(1, N - w)`:
///
/// | kind | multiplier of step `s` |
/// |---|---|
/// | `constant` | `1` |
/// | `linear` | `max(0, N - s) / max(1, N - w)` |
/// | `cosine` | `r + (1 - r) (1 + cos(pi p)) / 2`, with `s` taken modulo `N` |
/// | `cosine-cycles` | `r + (1 - r) max(0, (1 + cos(2 pi c p)) / 2)` |
/// | `cosine-restarts` | `(1 + cos(pi ((n p) mod 1))) / 2`, `0` from `p = 1` on |
///
/// `cosine` is the form of the paper's runs (GaLore's `cyclical_cosine`); the others are those of the `transformers`
/// library's `get_*_schedule_with_warmup`. Within `0..N`, `cosine` with `r` equals `cosine-cycles` with `c = 0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// The peak rate throughout.
    Constant,
    /// Falls linearly to zero at the last step.
    Linear,
    /// Falls along a half cosine to `min_ratio` of the peak, and starts anew after `N` steps.
    ///
    /// With a warm-up from zero, the first two steps of every further cycle get `1e-7` if they lie within the
    /// warm-up, as in the paper's runs. A run of exactly `N` steps never gets there.
    Cosine {
        /// The multiplier at the end.
        min_ratio: f64,
    },
    /// Falls along `cycles` waves of a cosine; it is not clamped past step `N`, where a half wave rises again.
    CosineCycles {
        /// How many full waves there are; 0.5 falls once.
        cycles: f64,
        /// The multiplier at the bottom of a wave.
        #[serde(default)]
        min_ratio: f64,
    },
    /// Falls along a half cosine to zero, `restarts` times, and jumps back to the peak in between.
    CosineRestarts {
        /// How many falls there are.
        restarts: u32,
    },
}

impl Default for Schedule {
    /// The paper's: a cosine to a tenth of the peak.
    fn default() -> Self {
        Self::Cosine { min_ratio: 0.1 }
    }
}

/// A number of a schedule is out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the schedule's {name} is {value}, but must be {range}")]
pub struct ScheduleError {
    /// Which number.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What it may be.
    pub range: &'static str,
}

/// More waves than this are more than one a step, and far more would give no number at all.
const MAX_CYCLES: f64 = 1e6;

impl Schedule {
    /// # Errors
    /// If a number is out of range; TOML can hold `nan` and `inf`, too.
    pub fn validate(self) -> Result<(), ScheduleError> {
        let ratio = |value: f64| match (0.0..=1.0).contains(&value) {
            true => Ok(()),
            false => Err(ScheduleError { name: "min_ratio", value, range: "a number from 0 to 1" }),
        };
        match self {
            Self::Constant | Self::Linear => Ok(()),
            Self::Cosine { min_ratio } => ratio(min_ratio),
            Self::CosineCycles { cycles, min_ratio } if (0.0..=MAX_CYCLES).contains(&cycles) => ratio(min_ratio),
            Self::CosineCycles { cycles, .. } => {
                Err(ScheduleError { name: "cycles", value: cycles, range: "a number from 0 to a million" })
            }
            Self::CosineRestarts { restarts: 0 } => {
                Err(ScheduleError { name: "restarts", value: 0.0, range: "a whole number of at least 1" })
            }
            Self::CosineRestarts { .. } => Ok(()),
        }
    }

    /// The factor by which the peak rate is multiplied at `step` (counted from 0) of a run of `total` steps.
    ///
    /// Defined for every step, also past `total`. A `total` of 0 is read as 1.
    ///
    /// ```
    /// use training::schedule::{Schedule, Warmup};
    /// let cosine = Schedule::Cosine { min_ratio: 0.1 };
    /// assert_eq!(cosine.multiplier(0, Warmup::new(4), 20), 0.25);
    /// assert_eq!(cosine.multiplier(0, Warmup::from_zero(4), 20), 0.0);
    /// assert_eq!(cosine.multiplier(4, Warmup::new(4), 20), 1.0);
    /// assert!((cosine.multiplier(12, Warmup::new(4), 20) - 0.55).abs() < 1e-12);
    /// ```
    pub fn multiplier(self, step: usize, warmup: Warmup, total: usize) -> f64 {
        use std::f64::consts::PI;
        let total = total.max(1);
        let start = warmup.steps;
        // How far the part after the warm-up has come; the length is 1 where the warm-up fills the run.
        let progress = |step: usize| (step - start) as f64 / total.saturating_sub(start).max(1) as f64;
        if let Self::Cosine { min_ratio } = self {
            let in_cycle = step % total;
            return if in_cycle < start {
                // The paper's runs avoid a rate of exactly 0 where a cycle repeats.
                if warmup.from_zero && step != in_cycle && in_cycle < 2 { 1e-7 } else { warmup.multiplier(in_cycle) }
            } else {
                min_ratio + (1.0 - min_ratio) * 0.5 * (1.0 + (PI * progress(in_cycle)).cos())
            };
        }
        if step < start {
            return warmup.multiplier(step);
        }
        match self {
            Self::Constant => 1.0,
            Self::Linear => total.saturating_sub(step) as f64 / total.saturating_sub(start).max(1) as f64,
            Self::CosineCycles { cycles, min_ratio } => {
                let wave = 0.5 * (1.0 + (2.0 * PI * cycles * progress(step)).cos());
                min_ratio + (1.0 - min_ratio) * wave.max(0.0)
            }
            Self::CosineRestarts { restarts } => {
                let progress = progress(step);
                if progress >= 1.0 { 0.0 } else { 0.5 * (1.0 + (PI * (f64::from(restarts) * progress).fract()).cos()) }
            }
            Self::Cosine { .. } => unreachable!("returned above"),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => write!(f, "constant"),
            Self::Linear => write!(f, "linear"),
            Self::Cosine { min_ratio } => write!(f, "cosine:{min_ratio}"),
            Self::CosineCycles { cycles, min_ratio } => write!(f, "cosine-cycles:{cycles}:{min_ratio}"),
            Self::CosineRestarts { restarts } => write!(f, "cosine-restarts:{restarts}"),
        }
    }
}

/// A text that names no schedule.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}` is no schedule ({reason}); write one of constant, linear, cosine[:MIN_RATIO], \
     cosine-cycles:CYCLES[:MIN_RATIO], cosine-restarts:COUNT"
)]
pub struct ParseScheduleError {
    text: String,
    reason: String,
}

impl FromStr for Schedule {
    type Err = ParseScheduleError;

    /// Reads `constant`, `linear`, `cosine` (to 0.1), `cosine:MIN_RATIO`, `cosine-cycles:CYCLES[:MIN_RATIO]` or
    /// `cosine-restarts:COUNT`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |reason: String| ParseScheduleError { text: text.to_owned(), reason };
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let mut number = |name: &str, default: Option<f64>| match parts.next() {
            None => default.ok_or_else(|| error(format!("{kind} needs {name}"))),
            Some(part) => {
                part.parse::<f64>().ok().ok_or_else(|| error(format!("{name} must be a number, not `{part}`")))
            }
        };
        let schedule = match kind {
            "constant" => Self::Constant,
            "linear" => Self::Linear,
            "cosine" => Self::Cosine { min_ratio: number("MIN_RATIO", Some(0.1))? },
            "cosine-cycles" => {
                Self::CosineCycles { cycles: number("CYCLES", None)?, min_ratio: number("MIN_RATIO", Some(0.0))? }
            }
            "cosine-restarts" => {
                let count = number("COUNT", None)?;
                if count.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&count) {
                    return Err(error("COUNT must be a whole number of at least 1".into()));
                }
                Self::CosineRestarts { restarts: count as u32 }
            }
            _ => return Err(error("unknown kind".into())),
        };
        if let Some(rest) = parts.next() {
            return Err(error(format!("`{rest}` is too much")));
        }
        schedule.validate().map_err(|out_of_range| error(out_of_range.to_string()))?;
        Ok(schedule)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_schedule() -> impl Strategy<Value = Schedule> {
        prop_oneof![
            Just(Schedule::Constant),
            Just(Schedule::Linear),
            (0.0..=1.0f64).prop_map(|min_ratio| Schedule::Cosine { min_ratio }),
            ((0.0..3.0f64), (0.0..=1.0f64))
                .prop_map(|(cycles, min_ratio)| Schedule::CosineCycles { cycles, min_ratio }),
            (1..9u32).prop_map(|restarts| Schedule::CosineRestarts { restarts }),
        ]
    }

    #[test]
    fn the_first_update_of_the_default_warmup_moves_and_the_last_is_at_the_peak() {
        let values: Vec<f64> = (0..5).map(|s| Schedule::Constant.multiplier(s, Warmup::new(4), 9)).collect();
        assert_eq!(values, [0.25, 0.5, 0.75, 1.0, 1.0]);
        let values: Vec<f64> = (0..5).map(|s| Schedule::Constant.multiplier(s, Warmup::from_zero(4), 9)).collect();
        assert_eq!(values, [0.0, 0.25, 0.5, 0.75, 1.0]);
    }

    #[test]
    fn the_papers_cosine_wraps_and_avoids_zero_after_the_first_cycle() {
        let cosine = Schedule::Cosine { min_ratio: 0.1 };
        let at = |step| cosine.multiplier(step, Warmup::from_zero(3), 12);
        assert_eq!([at(0), at(12), at(13)], [0.0, 1e-7, 1e-7]);
        assert_eq!(at(14), 2.0 / 3.0);
        assert_eq!(at(15), at(3));
        // Without a warm-up the repeated cycle starts at the peak.
        assert_eq!(cosine.multiplier(12, Warmup::from_zero(0), 12), 1.0);
    }

    #[test]
    fn a_warmup_that_fills_the_run_and_an_empty_run_are_defined() {
        for schedule in
            [Schedule::Constant, Schedule::Linear, Schedule::default(), "cosine-restarts:2".parse().unwrap()]
        {
            for (warmup, total) in [(5, 5), (7, 5), (0, 0), (3, 1)] {
                for step in 0..12 {
                    let value = schedule.multiplier(step, Warmup::new(warmup), total);
                    assert!((0.0..=1.0).contains(&value), "{schedule} step {step}: {value}");
                }
            }
        }
    }

    #[test]
    fn texts_that_name_no_schedule_are_refused_with_the_choices() {
        for text in [
            "",
            "cos",
            "cosine:x",
            "cosine:-1",
            "cosine:0.1:2",
            "cosine-restarts:0",
            "cosine-cycles",
            "cosine:nan",
            "cosine:1.5",
            "cosine-cycles:inf",
            "cosine-restarts:0.5",
            "cosine-restarts:nan",
            "cosine-restarts:-1",
        ] {
            let message = text.parse::<Schedule>().unwrap_err().to_string();
            assert!(message.contains("constant, linear, cosine"), "{message}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let cycles = |cycles, min_ratio| Schedule::CosineCycles { cycles, min_ratio };
        for (schedule, name) in [
            (Schedule::Cosine { min_ratio: f64::NAN }, "min_ratio is NaN"),
            (Schedule::Cosine { min_ratio: -0.1 }, "min_ratio is -0.1"),
            (Schedule::Cosine { min_ratio: 1.1 }, "min_ratio is 1.1"),
            (cycles(0.5, f64::INFINITY), "min_ratio is inf"),
            (cycles(f64::NAN, 0.1), "cycles is NaN"),
            (cycles(f64::INFINITY, 0.1), "cycles is inf"),
            (cycles(-0.5, 0.1), "cycles is -0.5"),
            (Schedule::CosineRestarts { restarts: 0 }, "restarts is 0"),
        ] {
            let message = schedule.validate().unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("must be"), "{message}");
        }
        for schedule in [Schedule::Cosine { min_ratio: 0.0 }, cycles(0.0, 1.0), Schedule::Constant, Schedule::Linear] {
            schedule.validate().unwrap();
        }
    }

    #[test]
    fn settings_files_use_kebab_case_kinds() {
        #[derive(Deserialize)]
        struct Holder {
            schedule: Schedule,
        }
        let read = |text: &str| toml::from_str::<Holder>(text).map(|holder| holder.schedule);
        assert_eq!(read("schedule = { kind = \"constant\" }").unwrap(), Schedule::Constant);
        assert_eq!(
            read("schedule = { kind = \"cosine-cycles\", cycles = 1.5 }").unwrap(),
            Schedule::CosineCycles { cycles: 1.5, min_ratio: 0.0 }
        );
        assert!(read("schedule = { kind = \"cosin\", min_ratio = 0.1 }").is_err());
        assert!(read("schedule = { kind = \"cosine\", min_ration = 0.1 }").is_err());
    }

    proptest! {
        #[test]
        fn multipliers_lie_between_zero_and_one(
            schedule in any_schedule(), step in 0usize..200, warmup in 0usize..40, total in 0usize..90, from_zero: bool,
        ) {
            let value = schedule.multiplier(step, Warmup { steps: warmup, from_zero }, total);
            prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{value}");
        }

        #[test]
        fn any_size_has_a_finite_multiplier(
            schedule in any_schedule(),
            sizes in prop::array::uniform3(prop_oneof![any::<usize>(), (0..3usize).prop_map(|below| usize::MAX - below)]),
            from_zero: bool,
        ) {
            let [step, warmup, total] = sizes;
            let value = schedule.multiplier(step, Warmup { steps: warmup, from_zero }, total);
            prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{value}");
        }

        #[test]
        fn text_and_settings_come_back(schedule in any_schedule()) {
            prop_assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule);
            let text = toml::to_string(&schedule).unwrap();
            prop_assert_eq!(toml::from_str::<Schedule>(&text).unwrap(), schedule);
        }

        #[test]
        fn a_single_cosine_cycle_is_the_half_wave(step in 0usize..50, warmup in 0usize..20, r in 0.0..1.0f64) {
            let (a, b) = (Schedule::Cosine { min_ratio: r }, Schedule::CosineCycles { cycles: 0.5, min_ratio: r });
            let warmup = Warmup::from_zero(warmup);
            prop_assert!((a.multiplier(step, warmup, 50) - b.multiplier(step, warmup, 50)).abs() < 1e-15);
        }
    }
}
