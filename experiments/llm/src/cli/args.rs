//! The command line as typed. What it means is decided in a second step, in `request`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use datasets::text::{RowMode, TokenizerSpec};
use experiment_cli::{CompareArgs, ExportOptions, RunOptions, TrainArgs};
use training::device::DeviceChoice;

use crate::presets::{OptimizerChoice, Preset};

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
    pub compare: CompareArgs<RunArgs>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train several arms side by side and report (what a bare run does)
    #[command(after_help = "Example:\n  experiments-llm compare --arms cascade,ancre,0:l --seeds 3 --data books/")]
    Compare(CompareArgs<RunArgs>),
    /// Train one arm
    #[command(after_help = "Examples:\n  experiments-llm train --arm ancre --data books/ --tokenizer bpe:4096\n  \
                      experiments-llm train --preset llama-60m --data c4/ --tokenizer t5.json --device cuda\n  \
                      experiments-llm train --resume runs/train-cpu-1")]
    Train(TrainArgs<RunArgs>),
    /// Score a trained run on all held-out text
    #[command(after_help = "Example:\n  experiments-llm evaluate runs/compare-cpu-1/arms/ancre-seed0")]
    Evaluate(EvaluateArgs),
    /// Continue a prompt
    #[command(
        after_help = "Example:\n  experiments-llm generate runs/compare-cpu-1/arms/ancre-seed0 --prompt \"In the beginning\""
    )]
    Generate(GenerateArgs),
    /// Leave out each block in turn and measure what changes
    #[command(
        after_help = "Examples:\n  experiments-llm depth runs/compare-cpu-1                    all arms in one figure\n  \
                      experiments-llm depth Llama-3.2-1B/ --text my.txt --tokens 8192"
    )]
    Depth(DepthArgs),
    /// Write the weights under the authors' names, as safetensors
    #[command(after_help = "Example:\n  experiments-llm export runs/train-cpu-1 --to ancre.safetensors")]
    Export(ExportOptions),
    /// List the presets with their sizes
    #[command(after_help = "Example:\n  experiments-llm presets")]
    Presets,
}

/// Arguments that every kind of training shares.
#[derive(Debug, Args)]
#[command(
    mut_arg("batch", |arg| arg.help("Rows of one optimizer step")),
    mut_arg("micro_batch", |arg| arg.help("Rows that go through the model at once; a divisor of the batch"))
)]
pub struct RunArgs {
    /// Named settings to begin from [default: cpu]
    #[arg(long, value_enum, conflicts_with = "resume")]
    pub preset: Option<Preset>,
    /// The optimizer, with the learning rate that the preset has for it [default: adamw]
    #[arg(long, value_enum, conflicts_with = "resume")]
    pub optimizer: Option<OptimizerChoice>,
    /// With GaLore: how many directions of each matrix are kept
    #[arg(long)]
    pub rank: Option<usize>,
    /// Learning rate of the embeddings (and of a head that is tied to them), as a multiple of the others'; their weight decay, as it is
    /// before `--set`, is divided by it
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    pub embedding_lr: Option<f64>,
    /// Tokens in a row
    #[arg(long)]
    pub context: Option<usize>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub options: RunOptions,
}

fn positive(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0 && factor.is_finite());
    factor.ok_or_else(|| "give a positive number, such as 10".to_owned())
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

/// Arguments of a measurement of depth utilisation.
#[derive(Debug, Args)]
pub struct DepthArgs {
    /// Runs, comparisons (all their arms), or Hugging Face folders of LLaMA models (config.json, *.safetensors, tokenizer.json)
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Text to measure on [default: what a run held out; for a folder the held-out part of the embedded text]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub text: Vec<PathBuf>,
    /// The JSON field or parquet column that holds the text
    #[arg(long, value_name = "NAME", default_value = "text")]
    pub text_field: String,
    /// About how many tokens to measure on
    #[arg(long, default_value_t = 4096)]
    pub tokens: usize,
    /// Tokens in a row [default: a run's own; for a folder 512]
    #[arg(long)]
    pub context: Option<usize>,
    /// The tokenizer of a folder without tokenizer.json: bytes, or the path of one
    #[arg(long)]
    pub tokenizer: Option<TokenizerSpec>,
    /// Directory to make for the report and its figures [default: runs/depth-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}
