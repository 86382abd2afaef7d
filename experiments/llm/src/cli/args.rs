//! The command line as typed. What it means is decided in a second step, in `request`.

use std::path::PathBuf;

use ancre::Arm;
use clap::{Args, Parser, Subcommand};
use datasets::text::{RowMode, TokenizerSpec};
use training::device::DeviceChoice;

use crate::presets::Preset;

/// LLaMA pre-training with and without ANCRe, on real text.
///
/// Without a subcommand it compares four arms on the embedded text: the cascaded baseline, ANCRe, the frozen uniform
/// mix, and the fixed shortcut from the embeddings to every layer.
#[derive(Debug, Parser)]
#[command(
    name = "experiments-llm",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  experiments-llm                              the comparison, minutes on two cores\n  \
                  experiments-llm --preset smoke               the same in seconds\n  \
                  experiments-llm --seeds 3 --arms cascade,ancre\n  \
                  experiments-llm --resume runs/compare-cpu-1  after a kill or Ctrl-C"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub compare: CompareArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train several arms side by side and report (what a bare run does)
    #[command(after_help = "Example:\n  experiments-llm compare --arms cascade,ancre,0:l --seeds 3 --data books/")]
    Compare(CompareArgs),
    /// Train one arm
    #[command(after_help = "Examples:\n  experiments-llm train --arm ancre --data books/ --tokenizer bpe:4096\n  \
                      experiments-llm train --preset llama-60m --data c4/ --tokenizer t5.json --device cuda\n  \
                      experiments-llm train --resume runs/train-cpu-1")]
    Train(TrainArgs),
    /// Score a trained run on all held-out text
    #[command(after_help = "Example:\n  experiments-llm evaluate runs/compare-cpu-1/arms/ancre-seed0")]
    Evaluate(EvaluateArgs),
    /// Continue a prompt
    #[command(
        after_help = "Example:\n  experiments-llm generate runs/compare-cpu-1/arms/ancre-seed0 --prompt \"In the beginning\""
    )]
    Generate(GenerateArgs),
    /// Write the weights under the authors' names, as safetensors
    #[command(after_help = "Example:\n  experiments-llm export runs/train-cpu-1 --to ancre.safetensors")]
    Export(ExportArgs),
    /// List the presets with their sizes
    #[command(after_help = "Example:\n  experiments-llm presets")]
    Presets,
}

/// Arguments of a comparison.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Arms, separated by commas: cascade, ancre, hadamard, constant, outgoing, naive, scalars, zero-scalars, or a layout such as 0:2+2:3
    /// or 0:l [default: cascade,ancre,constant,0:l]
    #[arg(long, value_delimiter = ',', value_name = "ARMS")]
    pub arms: Vec<Arm>,
    /// Number of seeds, from --seed on [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Make arms one after another: slower comparison of step times, but the memory of one arm
    #[arg(long)]
    pub sequential: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Arguments of one run.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// The connections: cascade, ancre, hadamard, constant, outgoing, naive, scalars, zero-scalars, or a layout such as 0:2+2:3 or 0:l
    /// [default: ancre]
    #[arg(long)]
    pub arm: Option<Arm>,
    /// Begin from these weights: a safetensors file under the authors' names
    #[arg(long, value_name = "FILE")]
    pub init_from: Option<PathBuf>,
    /// With --resume: go on although settings differ from those of the checkpoint
    #[arg(long, requires = "resume")]
    pub allow_changes: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Arguments that every kind of training shares.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Named settings to begin from [default: cpu]
    #[arg(long, value_enum, conflicts_with = "resume")]
    pub preset: Option<Preset>,
    /// A TOML file of settings over the preset; flags go over it
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
    /// Rows of one optimizer step
    #[arg(long)]
    pub batch: Option<usize>,
    /// Rows that go through the model at once; a divisor of the batch
    #[arg(long)]
    pub micro_batch: Option<usize>,
    /// Tokens in a row
    #[arg(long)]
    pub context: Option<usize>,
    #[command(flatten)]
    pub data: DataArgs,
}

/// Arguments about the text.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Text to train on: .txt, .jsonl, .json.gz, .parquet files or folders of them [default: the embedded text]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Text to evaluate on [default: a held-out part of the training text]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub validation: Vec<PathBuf>,
    /// The JSON field or parquet column that holds the text [default: text]
    #[arg(long, value_name = "NAME")]
    pub text_field: Option<String>,
    /// bytes, bpe:N (trained on the text), or the path of a tokenizer.json
    #[arg(long)]
    pub tokenizer: Option<TokenizerSpec>,
    /// packed, or document (one document a row, truncated and padded, as in the paper)
    #[arg(long)]
    pub rows: Option<RowMode>,
}

/// Arguments of an evaluation.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// Text to evaluate on [default: all that the run held out]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub validation: Vec<PathBuf>,
    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}

/// Arguments of text generation.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// The text to continue
    #[arg(long, default_value = "In the beginning")]
    pub prompt: String,
    /// Tokens to write
    #[arg(long, default_value_t = 300)]
    pub tokens: usize,
    /// Above 0; lower is safer, 0 takes the likeliest token always
    #[arg(long, default_value_t = 0.8)]
    pub temperature: f64,
    /// Seed of the choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}

/// Arguments of an export.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// File to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}
