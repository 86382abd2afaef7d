//! The command line as typed, and what the flags of a run mean as settings.

use ancre::Arm;
use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use experiment_cli::{CompareArgs, RunFlags, RunOptions, TrainArgs};
use experiment_kit::layers;
use training::settings::Layers;

use crate::{classify::ClassifyArgs, contrastive::settings::Settings, presets::Preset};

/// Deep residual networks with and without ANCRe: goal-conditioned contrastive reinforcement learning.
///
/// Without a subcommand it compares networks of 16 layers with and without ANCRe on a point mass in the paper's big maze.
#[derive(Debug, Parser)]
#[command(
    name = "experiments-resnet",
    version,
    args_conflicts_with_subcommands = true,
    mut_arg("depth", |arg| arg.conflicts_with("depths")),
    after_help = "Examples:\n  experiments-resnet                              the comparison, minutes on two cores\n  \
                  experiments-resnet --preset smoke               the same in seconds\n  \
                  experiments-resnet --depths 16,64 --seeds 3\n  \
                  experiments-resnet --task ant_u_maze --steps 50000\n  \
                  experiments-resnet --resume runs/compare-cpu-1  after a kill or Ctrl-C"
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
    #[command(
        mut_arg("depth", |arg| arg.conflicts_with("depths")),
        after_help = "Example:\n  experiments-resnet compare --arms cascade,ancre --depths 16,64 --seeds 3"
    )]
    Compare(CompareArgs<RunArgs>),
    /// Train one arm
    #[command(mut_arg("init_from", |arg| arg.hide(true)), after_help = "Examples:\n  experiments-resnet train --arm ancre --task point_u_maze\n  \
                      experiments-resnet train --resume runs/train-cpu-1")]
    Train(TrainArgs<RunArgs>),
    /// Compare arms on image classification: a deep residual MLP on embedded digits
    #[command(
        mut_arg("depth", |arg| arg.conflicts_with("depths")),
        after_help = "Examples:\n  experiments-resnet classify --arms cascade,ancre --depths 16,64 --seeds 5 --lr 3e-3\n  \
                      experiments-resnet classify --network conv --depth 20 --data cifar-10-batches-bin/"
    )]
    Classify(CompareArgs<ClassifyArgs>),
    /// Train one classifier
    #[command(mut_arg("init_from", |arg| arg.hide(true)), after_help = "Example:\n  experiments-resnet train-classifier --arm ancre --depth 64")]
    TrainClassifier(TrainArgs<ClassifyArgs>),
    /// List the tasks with their sizes
    #[command(after_help = "Example:\n  experiments-resnet tasks ant_u")]
    Tasks(TaskArgs),
    /// List the presets with their sizes
    #[command(after_help = "Example:\n  experiments-resnet presets")]
    Presets,
}

/// Arguments of the list of tasks.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// Only those with this in their name
    pub part: Option<String>,
}

/// Arguments that every kind of training shares.
#[derive(Debug, Args)]
#[command(
    mut_arg("batch", |arg| arg.help("Transitions of one optimizer step; each is contrasted with the goals of the others")),
    mut_arg("micro_batch", |arg| arg.help("The same as --batch: a contrastive loss cannot be taken in parts").hide(true))
)]
pub struct RunArgs {
    /// Named settings to begin from: smoke, cpu or paper [default: cpu]
    #[arg(long, conflicts_with = "resume")]
    pub preset: Option<Preset>,
    /// The task: see `experiments-resnet tasks` [default: point_big_maze]
    #[arg(long)]
    pub task: Option<String>,
    /// Layers in the residual blocks of every network, a multiple of four [default: that of the preset, 16]
    #[arg(long)]
    pub depth: Option<usize>,
    /// Width of every network
    #[arg(long)]
    pub width: Option<usize>,
    #[command(flatten)]
    pub options: RunOptions,
}

impl RunArgs {
    fn preset(&self) -> Preset {
        self.preset.unwrap_or(Preset::Cpu)
    }
}

impl RunFlags for RunArgs {
    type Settings = Settings;

    fn options(&self) -> &RunOptions {
        &self.options
    }

    fn preset_name(&self) -> String {
        self.preset().to_string()
    }

    fn preset_settings(&self) -> Settings {
        self.preset().settings()
    }

    /// A contrastive loss cannot be taken in parts, so whatever batch is asked for goes through the model at once.
    fn micro_batch(_: &Settings) -> usize {
        usize::MAX
    }

    fn lay(&self, layers: &mut Layers<Settings>) -> Result<()> {
        layers.set_if("--task", "task.name", self.task.as_ref())?;
        // Batches come from windows of an episode's length, which differs between tasks. A name that is none is refused later.
        if self.task.is_some()
            && let Ok(task) = layers.settings().task()
        {
            let least = task.spec().episode_steps as usize + 1;
            let collection = layers.settings().collection.clone();
            layers.set("--task", "collection.prefill", collection.prefill.max(least))?;
            layers.set("--task", "collection.replay", collection.replay.max(least))?;
        }
        layers.set_if("--depth", "model.depth", self.depth)?;
        layers.set_if("--width", "model.width", self.width)?;
        Ok(())
    }

    fn lay_steps(layers: &mut Layers<Settings>, steps: usize) -> Result<()> {
        layers::lay_steps(layers, steps)
    }

    fn usual_arms() -> Vec<Arm> {
        vec![Arm::Cascade, Arm::default()]
    }
}
