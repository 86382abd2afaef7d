//! The command line as typed. What it means is decided in a second step, in `request`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use datasets::images::ImageSpec;
use experiment_cli::{CompareArgs, ExportOptions, RunOptions, TrainArgs};
use gaussian_diffusion::Respacing;
use training::device::DeviceChoice;

use crate::{presets::Preset, run::Weights, settings::Sampler};

/// DiT diffusion with and without ANCRe, on real images.
///
/// Without a subcommand it compares arms on embedded handwritten digits: the cascaded baseline, ANCRe, and the fixed shortcut
/// from the embeddings to every block. Each is trained, sampled and scored.
#[derive(Debug, Parser)]
#[command(
    name = "experiments-diffusion",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  experiments-diffusion                              the comparison, minutes on two cores\n  \
                  experiments-diffusion --preset smoke               the same in seconds\n  \
                  experiments-diffusion --seeds 3 --arms cascade,ancre\n  \
                  experiments-diffusion --resume runs/compare-cpu-1  after a kill or Ctrl-C"
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
    /// Train several arms side by side, sample, score and report (what a bare run does)
    #[command(
        after_help = "Example:\n  experiments-diffusion compare --arms cascade,ancre,0:l --seeds 3 --data twemoji"
    )]
    Compare(CompareArgs<RunArgs>),
    /// Train one arm
    #[command(after_help = "Examples:\n  experiments-diffusion train --arm ancre --data fashion-mnist/\n  \
                      experiments-diffusion train --preset dit-s-2 --data latents.safetensors --device cuda\n  \
                      experiments-diffusion train --resume runs/train-cpu-1")]
    Train(TrainArgs<RunArgs>),
    /// Draw samples from a trained run: pictures and an .npz for evaluators
    #[command(
        after_help = "Examples:\n  experiments-diffusion sample runs/compare-cpu-1/arms/ancre-seed0 --count 100\n  \
                      experiments-diffusion sample runs/train-cpu-1 --class 7 --guidance 3 --steps 250"
    )]
    Sample(SampleArgs),
    /// Score features that another program has computed (safetensors), such as those of ADM's Inception
    #[command(
        after_help = "Example:\n  experiments-diffusion score --samples samples.safetensors --references imagenet.safetensors \\\n    \
                      --extractor \"Inception-v3 pool3 of ADM's evaluator\" --resize \"none (256 x 256)\""
    )]
    Score(ScoreArgs),
    /// Write the weights under the authors' names, as safetensors
    #[command(after_help = "Example:\n  experiments-diffusion export runs/train-cpu-1 --to dit.safetensors")]
    Export(ExportArgs),
    /// List the presets with their sizes
    #[command(after_help = "Example:\n  experiments-diffusion presets")]
    Presets,
}

/// Arguments that every kind of training shares.
#[derive(Debug, Args)]
#[command(
    mut_arg("steps", |arg| {
        arg.help("Optimizer steps; warm-up, evaluations, scores and checkpoints move along in proportion")
    }),
    mut_arg("batch", |arg| arg.help("Images of one optimizer step")),
    mut_arg("micro_batch", |arg| arg.help("Images that go through the model at once; a divisor of the batch"))
)]
pub struct RunArgs {
    /// Named settings to begin from: smoke, cpu, or dit-SIZE-PATCH such as dit-s-2 [default: cpu]
    #[arg(long, conflicts_with = "resume")]
    pub preset: Option<Preset>,
    /// Height and width of a patch
    #[arg(long)]
    pub patch: Option<usize>,
    /// Samples to draw and score at the end; 0 scores nothing
    #[arg(long)]
    pub samples: Option<usize>,
    /// Images: digits or twemoji (embedded), a folder of IDX files, of CIFAR binary files or of class folders, or a file of
    /// latents (.safetensors, .npy) [default: digits]
    #[arg(long, value_name = "IMAGES")]
    pub data: Option<ImageSpec>,
    /// Bring pictures to this height and width
    #[arg(long)]
    pub size: Option<usize>,
    #[command(flatten)]
    pub options: RunOptions,
}

/// Arguments of sampling.
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// How many samples, equally many of each class
    #[arg(long, default_value_t = 100)]
    pub count: usize,
    /// Only this class, by number or name
    #[arg(long)]
    pub class: Option<String>,
    /// Seed of the noise
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Scale of classifier-free guidance; 1 is none [default: the run's]
    #[arg(long)]
    pub guidance: Option<f64>,
    /// The sampler [default: the run's]
    #[arg(long, value_enum)]
    pub sampler: Option<Sampler>,
    /// Which of the 1000 steps the sampler visits: 50, ddim50, 10,15,20 or all [default: the run's]
    #[arg(long)]
    pub steps: Option<Respacing>,
    /// Which weights: the moving average, or those of the last step
    #[arg(long, value_enum, default_value_t)]
    pub weights: Weights,
    /// Samples that go through the model at once [default: the run's]
    #[arg(long)]
    pub batch: Option<usize>,
    /// Folder for the files, which must not exist [default: the next free samples-N in the run]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}

/// Arguments of scoring.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// Features of the samples: tensor `features` [n, d]; `spatial`, `probabilities` or `logits` if there are any
    #[arg(long, value_name = "FILE")]
    pub samples: PathBuf,
    /// Features of the reference images, likewise
    #[arg(long, value_name = "FILE")]
    pub references: PathBuf,
    /// The network, its weights and the layer that the features come from
    #[arg(long)]
    pub extractor: String,
    /// How images were brought to the extractor's size
    #[arg(long)]
    pub resize: String,
    /// Neighbours of precision, recall, density and coverage
    #[arg(long, default_value_t = 3)]
    pub neighbours: usize,
    /// Samples of one split of the inception-style score
    #[arg(long, default_value_t = 5000)]
    pub split: usize,
}

/// Arguments of an export.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub options: ExportOptions,
    /// Which weights: the moving average, or those of the last step
    #[arg(long, value_enum, default_value_t)]
    pub weights: Weights,
}
