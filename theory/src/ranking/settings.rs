//! What is ranked, and how far each run goes.

use connection_layout::{Layout, LayoutError, Layouts, hidden_only_count, layout_count};
use nalgebra::DMatrix;
use thiserror::Error;

use crate::network::TargetError;
use crate::{Draw, TargetLaw};

/// The most layouts of a ranking: all of depth 5, or the hidden-only ones of depth 6.
pub const MOST_LAYOUTS: u128 = 1 << 15;

/// The largest width of a ranking.
pub const LARGEST_WIDTH: usize = 64;
/// The most runs of a ranking, layouts times instances: each keeps its times.
pub const MOST_RUNS: u64 = 1 << 22;
/// The most steps of gradient descent.
pub const MOST_STEPS: usize = 10_000_000;

/// Learning rates that a ranking tries by default: the powers of two from 1/256 to 1.
///
/// Of the powers of two every one from 1/128 to 1 is the best for some layout of depth 5 or less, and no other one is:
/// dense layouts of depth 5 take 1/64 or below, `0:K-1` takes 1. At 2 nothing converges: a layout that leaves zero
/// weights without a saddle has curvature `kappa0 >= 1` there, and the stable rates end at `2 / kappa0`.
pub const RATES: [f64; 9] = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015_625, 0.007_812_5, 0.003_906_25];

/// Why a ranking cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RankingError {
    /// The depth is no depth of a layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The depth has more layouts than anyone waits for.
    #[error(
        "depth {depth} has {count} layouts of this pool and a ranking takes at most {MOST_LAYOUTS}: rank depth 5 or \
         less, or 6 with hidden-only layouts"
    )]
    TooMany {
        /// The depth.
        depth: usize,
        /// Its layouts, in words where the number is too large to say.
        count: String,
    },
    /// A number that makes no sense.
    #[error("{name} is {value}: it must be {allowed}")]
    Number {
        /// What it is.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// The drawn target is none.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Which layouts are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// All `2^(K(K+1)/2)` layouts of the depth.
    All,
    /// The `2^(K(K-1)/2)` layouts without a shortcut into the output.
    HiddenOnly,
}

/// What is ranked: the layouts, the random instances, and how far each run goes.
#[derive(Clone, Debug, PartialEq)]
pub struct RankingSettings {
    /// The number K of layers.
    pub depth: usize,
    /// The width d.
    pub width: usize,
    /// Which layouts.
    pub pool: Pool,
    /// The seed of all random instances.
    pub seed: u64,
    /// How many instances, each a target and initial weights; every layout trains on the same ones.
    pub instances: u64,
    /// The law of the targets.
    pub law: TargetLaw,
    /// The standard deviation of the initial weights.
    pub deviation: f64,
    /// The loss to reach, relative to `1/2 ||Y||²`.
    pub relative_loss: f64,
    /// The time at which gradient flow is given up.
    pub flow_time: f64,
    /// The learning rates of gradient descent; none for gradient flow alone.
    pub rates: Vec<f64>,
    /// The steps after which gradient descent is given up.
    pub most_steps: usize,
}

impl RankingSettings {
    /// All layouts of a depth on Gaussian targets, weights of deviation .01, a relative loss of 1e-6, flow to time 200,
    /// and [`RATES`] for 2000 steps: one instance.
    pub fn new(depth: usize, width: usize, seed: u64) -> Self {
        Self {
            depth,
            width,
            pool: Pool::All,
            seed,
            instances: 1,
            law: TargetLaw::Gaussian,
            deviation: 0.01,
            relative_loss: 1e-6,
            flow_time: 200.0,
            rates: RATES.to_vec(),
            most_steps: 2000,
        }
    }

    /// How many layouts the pool has.
    ///
    /// # Errors
    ///
    /// [`RankingError::Layout`] for an illegal depth, [`RankingError::TooMany`] above [`MOST_LAYOUTS`].
    pub fn layouts(&self) -> Result<usize, RankingError> {
        Layout::none(self.depth)?;
        let count = match self.pool {
            Pool::All => layout_count(self.depth),
            Pool::HiddenOnly => hidden_only_count(self.depth),
        };
        let too_many = |count| RankingError::TooMany { depth: self.depth, count };
        match count {
            Some(count) if count <= MOST_LAYOUTS => usize::try_from(count).map_err(|_| too_many(count.to_string())),
            Some(count) => Err(too_many(count.to_string())),
            None => Err(too_many("more than 2^127".to_owned())),
        }
    }

    /// How many runs the ranking takes: layouts times instances. Its progress counts these.
    ///
    /// # Errors
    ///
    /// As [`layouts`](Self::layouts), and [`RankingError::Number`] above [`MOST_RUNS`].
    pub fn runs(&self) -> Result<u64, RankingError> {
        let layouts = self.layouts()? as u64;
        layouts.checked_mul(self.instances).filter(|runs| *runs <= MOST_RUNS).ok_or(RankingError::Number {
            name: "the number of seeds",
            value: self.instances as f64,
            allowed: "such that layouts times seeds are at most 4194304",
        })
    }

    /// The layouts of the pool in the order of their enumeration.
    pub(super) fn pool(&self) -> Result<Layouts, RankingError> {
        self.layouts()?;
        Ok(match self.pool {
            Pool::All => Layout::all(self.depth)?,
            Pool::HiddenOnly => Layout::all_hidden_only(self.depth)?,
        })
    }

    /// The target and the initial weight matrices of an instance; the same ones for every layout.
    pub fn instance(&self, instance: u64) -> (DMatrix<f64>, Vec<DMatrix<f64>>) {
        let mut draw = Draw::new(self.seed, instance);
        let target = draw.target(self.law, self.width);
        (target, (0..self.depth).map(|_| draw.gaussian(self.width, self.deviation)).collect())
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    ///
    /// [`RankingError`] names the setting and what it may be.
    pub fn check(&self) -> Result<(), RankingError> {
        let number = |ok, name, value, allowed| {
            if ok { Ok(()) } else { Err(RankingError::Number { name, value, allowed }) }
        };
        let positive = |x: f64| x > 0.0 && x.is_finite();
        self.layouts()?;
        number((1..=LARGEST_WIDTH).contains(&self.width), "the width", self.width as f64, "from 1 to 64")?;
        let zero = self.width == 1 && self.law == TargetLaw::Singular;
        number(!zero, "the width", 1.0, "at least 2 for singular targets, which are zero at width 1")?;
        number(self.instances >= 1, "the number of seeds", self.instances as f64, "at least 1")?;
        let deviation = self.deviation;
        let allowed = "from 0 to 1000";
        number((0.0..=1e3).contains(&deviation), "the deviation of the weights", deviation, allowed)?;
        let share = self.relative_loss;
        let allowed = "between 1e-12, above rounding, and 1";
        number((1e-12..1.0).contains(&share), "the relative loss", share, allowed)?;
        number(positive(self.flow_time), "the time of the flow", self.flow_time, "positive")?;
        let steps = (1..=MOST_STEPS).contains(&self.most_steps);
        number(steps, "the number of steps", self.most_steps as f64, "from 1 to 10000000")?;
        for (index, &rate) in self.rates.iter().enumerate() {
            number(positive(rate), "a learning rate", rate, "positive")?;
            number(!self.rates[..index].contains(&rate), "a learning rate", rate, "given once")?;
        }
        self.runs().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_counted_and_limited() {
        let count = |depth, pool| RankingSettings { pool, ..RankingSettings::new(depth, 2, 0) }.layouts();
        assert_eq!((count(5, Pool::All), count(5, Pool::HiddenOnly)), (Ok(32_768), Ok(1024)));
        assert_eq!(count(6, Pool::HiddenOnly), Ok(32_768));
        let message = count(6, Pool::All).unwrap_err().to_string();
        assert!(message.contains("2097152 layouts") && message.contains("depth 5 or less"), "{message}");
        assert!(count(200, Pool::All).unwrap_err().to_string().contains("more than 2^127"));
        assert!(count(0, Pool::All).unwrap_err().to_string().contains("between 1 and 256"));
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let base = RankingSettings::new(2, 2, 0);
        let message = |settings: RankingSettings| settings.check().unwrap_err().to_string();
        assert_eq!(base.check(), Ok(()));
        assert!(message(RankingSettings { width: 0, ..base.clone() }).contains("width is 0"));
        assert!(message(RankingSettings { instances: 0, ..base.clone() }).contains("seeds is 0"));
        assert!(message(RankingSettings { relative_loss: 1.0, ..base.clone() }).contains("above rounding"));
        assert!(message(RankingSettings { relative_loss: 1e-20, ..base.clone() }).contains("above rounding"));
        assert!(message(RankingSettings { width: usize::MAX, ..base.clone() }).contains("from 1 to 64"));
        assert!(message(RankingSettings { instances: u64::MAX, ..base.clone() }).contains("at most 4194304"));
        assert!(message(RankingSettings { rates: vec![0.5, 0.5], ..base.clone() }).contains("given once"));
        let singular = RankingSettings { law: TargetLaw::Singular, width: 1, ..base.clone() };
        assert!(message(singular).contains("at least 2"));
        assert!(message(RankingSettings { deviation: f64::NAN, ..base.clone() }).contains("is NaN"));
        assert!(message(RankingSettings { rates: vec![0.5, -1.0], ..base.clone() }).contains("rate is -1"));
        assert!(message(RankingSettings { flow_time: f64::INFINITY, ..base.clone() }).contains("flow is inf"));
        assert!(message(RankingSettings { most_steps: 0, ..base }).contains("steps is 0"));
    }
}
