//! The command line as typed. What it means is decided in a second step, in `request`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Residual layouts in deep linear networks: the convergence theorems, verified on fresh random instances.
///
/// Without a subcommand it verifies every statement of docs/theory.md, a line each, and draws the figures.
#[derive(Debug, Parser)]
#[command(
    name = "theory",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  theory                                         every statement, then the figures\n  \
                  theory --seed 7                                on other instances\n  \
                  theory rank --depth 3\n  \
                  theory flow --layout 0:2 --depth 3 --dim 8 --init 1e-2 --target gaussian"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub verify: VerifyArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check every statement on random instances, and draw the figures (what a bare run does)
    #[command(after_help = "Example:\n  theory verify --seed 7 --no-figures")]
    Verify(VerifyArgs),
    /// Rank all layouts of a depth by how fast they train
    #[command(
        allow_negative_numbers = true,
        after_help = "Examples:\n  theory rank --depth 3\n  \
                      theory rank --depth 4 --seeds 1 --csv ranking.csv\n  \
                      theory rank --depth 5 --pool hidden-only --seeds 1 --rates 0.1,0.4"
    )]
    Rank(RankArgs),
    /// Train one network and show its loss
    #[command(
        allow_negative_numbers = true,
        after_help = "Examples:\n  theory flow --layout 0:2 --depth 3 --dim 8 --init 1e-2 --target gaussian\n  \
                      theory flow --layout 0:1 --depth 3 --init 0.3 --target singular --time 1000\n  \
                      theory flow --learned hidden-only --tau 0.01 --depth 4\n  \
                      theory flow --layout 0:2+2:3 --depth 4 --gd 0.3 --target y.txt --inputs x.txt"
    )]
    Flow(FlowArgs),
    /// Draw the figures only
    #[command(after_help = "Example:\n  theory figures --out figures")]
    Figures(FiguresArgs),
}

/// Arguments of a verification.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Source of all random instances
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Directory for findings and figures, which must not exist [default: the next free one under runs/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Verify only: write nothing
    #[arg(long, conflicts_with = "out")]
    pub no_figures: bool,
}

/// Arguments of the figures.
#[derive(Debug, Args)]
pub struct FiguresArgs {
    /// Source of all random instances
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Directory for the figures, which must not exist [default: the next free one under runs/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// How a target is drawn, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LawArg {
    /// Entries N(0, 1/d)
    Gaussian,
    /// The same with its smallest singular value set to 0
    Singular,
    /// The identity plus half of such a matrix
    NearIdentity,
}

/// Which layouts are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PoolArg {
    /// Every layout of the depth
    All,
    /// Those without a shortcut into the output
    HiddenOnly,
}

/// Arguments of a ranking.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Number K of layers
    #[arg(long, value_name = "K", default_value_t = 4)]
    pub depth: usize,
    /// Width d
    #[arg(long, value_name = "D", default_value_t = 5)]
    pub dim: usize,
    /// Number of seeds, each with a target and weights of its own
    #[arg(long, default_value_t = 5)]
    pub seeds: u64,
    /// Source of all random instances
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Which layouts
    #[arg(long, value_enum, default_value_t = PoolArg::All)]
    pub pool: PoolArg,
    /// How targets are drawn
    #[arg(long, value_enum, default_value_t = LawArg::Gaussian)]
    pub target: LawArg,
    /// Standard deviation of the initial weights
    #[arg(long, value_name = "STD", default_value_t = 0.01)]
    pub init: f64,
    /// The loss to reach, relative to that of zero weights without shortcuts
    #[arg(long, value_name = "SHARE", default_value = "1e-6")]
    pub until: f64,
    /// Time at which a flow is given up
    #[arg(long, default_value_t = 200.0)]
    pub time: f64,
    /// Learning rates of gradient descent, separated by commas [default: nine powers of two]
    #[arg(long, value_delimiter = ',', value_name = "RATES")]
    pub rates: Option<Vec<f64>>,
    /// Steps at which gradient descent is given up
    #[arg(long)]
    pub steps: Option<usize>,
    /// Rows of the printed table
    #[arg(long, default_value_t = 20)]
    pub top: usize,
    /// File for all rows with their classes, which must not exist
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Where learned shortcuts may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// In hidden nodes, as the paper's summary counts
    HiddenOnly,
    /// In the output too, as in the authors' code
    WithOutput,
}

/// Arguments of one training.
#[derive(Debug, Args)]
pub struct FlowArgs {
    /// The shortcuts: `0:2+2:3`, or a name such as none, cascade, hidden-cascade, dense [default: 0:K-1]
    #[arg(long)]
    pub layout: Option<String>,
    /// Learn the shortcuts instead, as ANCRe does
    #[arg(long, value_enum, value_name = "SCOPE", conflicts_with = "layout")]
    pub learned: Option<ScopeArg>,
    /// With --learned: temperature of the softmax
    #[arg(long, default_value_t = 0.01, requires = "learned")]
    pub tau: f64,
    /// With --learned: share out each source over its targets instead of each target over its sources
    #[arg(long, requires = "learned")]
    pub outgoing: bool,
    /// With --learned: speed of the logits relative to the weights
    #[arg(long, default_value_t = 1.0, requires = "learned")]
    pub logit_speed: f64,
    /// Number K of layers
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub depth: usize,
    /// Width d [default: that of the target file, or 8]
    #[arg(long, value_name = "D")]
    pub dim: Option<usize>,
    /// Standard deviation of the initial weights
    #[arg(long, value_name = "STD", default_value_t = 0.01)]
    pub init: f64,
    /// gaussian, singular, near-identity, or a file with a row a line
    #[arg(long, value_name = "LAW|FILE", default_value = "gaussian")]
    pub target: String,
    /// A file with inputs X; the target is then Y, both with a column a sample [default: whitened inputs]
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// Source of target and weights
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The relative excess loss at which it ends
    #[arg(long, value_name = "SHARE", default_value = "1e-12")]
    pub until: f64,
    /// Time at which it is given up
    #[arg(long, default_value_t = 200.0)]
    pub time: f64,
    /// Gradient descent at this rate instead of the flow
    #[arg(long, value_name = "RATE", conflicts_with = "adam")]
    pub gd: Option<f64>,
    /// Adam at this rate instead of the flow
    #[arg(long, value_name = "RATE")]
    pub adam: Option<f64>,
    /// Steps at which it is given up [default: 10000 of gradient descent or Adam, 200000 of the flow's solver]
    #[arg(long)]
    pub steps: Option<usize>,
    /// File for the loss and the learned coefficients at every step, which must not exist
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}
