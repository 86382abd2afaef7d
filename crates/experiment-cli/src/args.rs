//! The command line as typed, as far as programs share it.

use std::path::PathBuf;

use ancre::{Arm, rivals::RivalKind};
use anyhow::Result;
use clap::Args;
use experiment_kit::{RunSettings, compare, layers};
use training::{device::DeviceChoice, settings::Layers};

/// The flags of a run as a program has them: the shared ones, flattened into its own.
///
/// A help text that names what the program trains on is the program's:
///
/// ```
/// use clap::Args;
/// use experiment_cli::RunOptions;
///
/// /// Arguments that every kind of training shares.
/// #[derive(Debug, Args)]
/// #[command(mut_arg("batch", |arg| arg.help("Pages of one optimizer step")))]
/// struct RunArgs {
///     /// Words on a page
///     #[arg(long)]
///     words: Option<usize>,
///     #[command(flatten)]
///     options: RunOptions,
/// }
///
/// let help = RunArgs::augment_args(clap::Command::new("paging")).render_help().to_string();
/// assert!(help.contains("--words") && help.contains("--micro-batch") && help.contains("Pages of one optimizer step"));
/// ```
pub trait RunFlags: Args {
    /// The settings of a run.
    type Settings: RunSettings;

    /// The shared flags.
    fn options(&self) -> &RunOptions;

    /// The name of the preset, which new directories are called after.
    fn preset_name(&self) -> String;

    /// The settings of the preset.
    fn preset_settings(&self) -> Self::Settings;

    /// Examples that go through the model at once.
    fn micro_batch(settings: &Self::Settings) -> usize;

    /// Lays the program's own flags over what there is; the shared ones lie below, `--set` comes above.
    ///
    /// # Errors
    /// If a value does not fit.
    fn lay(&self, layers: &mut Layers<Self::Settings>) -> Result<()>;

    /// Lays `--steps` over what there is. A program with intervals of its own moves them along, too.
    ///
    /// # Errors
    /// As [`layers::lay_steps`].
    fn lay_steps(layers: &mut Layers<Self::Settings>, steps: usize) -> Result<()> {
        layers::lay_steps(layers, steps)
    }

    /// The arms of a comparison for which no flag, file or directory names any.
    fn usual_arms() -> Vec<Arm> {
        compare::default_arms()
    }
}

/// What `--arms` says for itself.
fn arms_help<R: RunFlags>() -> String {
    let usual: Vec<String> = R::usual_arms().iter().map(ToString::to_string).collect();
    format!(
        "Arms, separated by commas: cascade, ancre, hadamard, constant, outgoing, replacing, naive, scalars, zero-scalars, gated-first-state, \
         or a layout such as 0:2+2:3 or 0:l; or one of another paper: {} [default: {}]",
        RivalKind::NOTATION,
        usual.join(",")
    )
}

/// Arguments of a comparison.
#[derive(Debug, Args)]
pub struct CompareArgs<R: RunFlags> {
    /// The arms; none are those of a file or a directory, or the usual ones.
    #[arg(long, value_delimiter = ',', value_name = "ARMS", help = arms_help::<R>())]
    pub arms: Vec<Arm>,
    /// Depths to make every arm at, separated by commas, in place of the one of the settings [default: that one]
    #[arg(long, value_delimiter = ',', value_name = "DEPTHS")]
    pub depths: Vec<usize>,
    /// Number of seeds, from --seed on [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Make arms one after another: slower comparison of step times, but the memory of one arm
    #[arg(long)]
    pub sequential: bool,
    /// The flags of each of its runs.
    #[command(flatten)]
    pub run: R,
}

/// Arguments of one run.
#[derive(Debug, Args)]
pub struct TrainArgs<R: RunFlags> {
    /// The connections: cascade, ancre, hadamard, constant, outgoing, replacing, naive, scalars, zero-scalars, gated-first-state, a
    /// layout such as 0:2+2:3 or 0:l, or those of another paper (see `--help` of compare) [default: ancre]
    #[arg(long)]
    pub arm: Option<Arm>,
    /// Begin from these weights: a safetensors file under the authors' names
    #[arg(long, value_name = "FILE")]
    pub init_from: Option<PathBuf>,
    /// With --resume: go on although settings differ from those of the checkpoint
    #[arg(long, requires = "resume")]
    pub allow_changes: bool,
    /// The other flags.
    #[command(flatten)]
    pub run: R,
}

/// The flags of every kind of training that mean the same in every program.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// A TOML file of settings, over the usual ones; flags go over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Any setting by its name in config.toml, such as model.width=128; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Where to train: cpu, cuda or cuda:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// Directory of the run, which must not exist [default: the next free one under runs/]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Go on with the run in this directory
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Source of all randomness [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Optimizer steps; warm-up, evaluations and checkpoints move along in proportion
    #[arg(long)]
    pub steps: Option<usize>,
    /// Peak learning rate
    #[arg(long)]
    pub lr: Option<f64>,
    /// Temperature of the connections' softmax
    #[arg(long)]
    pub tau: Option<f64>,
    /// Examples of one optimizer step
    #[arg(long)]
    pub batch: Option<usize>,
    /// Examples that go through the model at once; a divisor of the batch
    #[arg(long)]
    pub micro_batch: Option<usize>,
}

/// Arguments of an export.
#[derive(Clone, Debug, Args)]
pub struct ExportOptions {
    /// Directory of a run
    pub run: PathBuf,
    /// File to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}
