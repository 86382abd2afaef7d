use std::{
    fs,
    path::{Path, PathBuf},
};

use ancre::Arm;
use anyhow::Result;
use clap::{Args, CommandFactory, Parser};
use experiment_kit::{RunSettings, layers, run::Start};
use serde::{Deserialize, Serialize};
use training::{settings::Layers, trainer::TrainSettings};

use super::{compare, train};
use crate::{CompareArgs, RunFlags, RunOptions, TrainArgs};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_from: Option<PathBuf>,
    data: Data,
    model: Model,
    /// Moves along with the steps.
    draw_every: usize,
    training: TrainSettings,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    words: usize,
    batch: usize,
    micro_batch: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    arm: Arm,
    tau: f64,
}

impl RunSettings for Settings {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn arm(&self) -> &Arm {
        &self.model.arm
    }

    fn tau(&self) -> f64 {
        self.model.tau
    }

    fn set_tau(&mut self, tau: f64) {
        self.model.tau = tau;
    }

    fn with_arm_and_seed(&self, arm: &Arm, seed: u64) -> Self {
        Self { seed, model: Model { arm: arm.clone(), ..self.model }, ..self.clone() }
    }

    fn depth(&self) -> usize {
        1
    }

    fn with_depth(&self, _: usize) -> Self {
        self.clone()
    }

    fn training(&self) -> &TrainSettings {
        &self.training
    }

    fn accumulation(&self) -> usize {
        self.data.batch / self.data.micro_batch
    }

    fn init_from(&self) -> Option<&Path> {
        self.init_from.as_deref()
    }

    fn parameters(&self) -> u64 {
        1
    }

    fn check(&self) -> Result<()> {
        Ok(self.training.validate()?)
    }
}

#[derive(Debug, Args)]
#[command(mut_arg("batch", |arg| arg.help("Pages of one optimizer step")))]
struct Flags {
    /// Words on a page
    #[arg(long)]
    words: Option<usize>,
    #[command(flatten)]
    options: RunOptions,
}

impl RunFlags for Flags {
    type Settings = Settings;

    fn options(&self) -> &RunOptions {
        &self.options
    }

    fn preset_name(&self) -> String {
        "small".to_owned()
    }

    fn preset_settings(&self) -> Settings {
        let training = TrainSettings { steps: 100, lr: 0.5, ..TrainSettings::default() };
        let data = Data { words: 5, batch: 12, micro_batch: 4 };
        Settings {
            seed: 0,
            init_from: None,
            data,
            model: Model { arm: Arm::default(), tau: 1.0 },
            draw_every: 10,
            training,
        }
    }

    fn micro_batch(settings: &Settings) -> usize {
        settings.data.micro_batch
    }

    fn lay(&self, layers: &mut Layers<Settings>) -> Result<()> {
        layers.set_if("--words", "data.words", self.words)?;
        Ok(())
    }

    fn lay_steps(layers: &mut Layers<Settings>, steps: usize) -> Result<()> {
        let draw_every = layers.settings().draw_every * steps / layers.settings().training.steps;
        layers::lay_steps(layers, steps)?;
        layers.set("--steps", "draw_every", draw_every)?;
        Ok(())
    }

    fn usual_arms() -> Vec<Arm> {
        ["cascade", "0:l"].map(|arm| arm.parse().unwrap()).into()
    }
}

#[derive(Debug, Parser)]
struct Comparing {
    #[command(flatten)]
    args: CompareArgs<Flags>,
}

#[derive(Debug, Parser)]
struct Training {
    #[command(flatten)]
    args: TrainArgs<Flags>,
}

fn trained(flags: &[&str]) -> Result<Settings> {
    let args = Training::try_parse_from([&["program"], flags].concat())?.args;
    Ok(train(&args)?.settings)
}

fn arms(flags: &[&str]) -> Vec<String> {
    let args = Comparing::try_parse_from([&["program"], flags].concat()).unwrap().args;
    compare(&args).unwrap().comparison.arms.iter().map(ToString::to_string).collect()
}

#[test]
fn each_layer_lies_over_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    fs::write(&file, "seed = 1\ndata.words = 1\nmodel.tau = 0.25\n[training]\nlr = 0.25\n").unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let with = |flags: &[&str]| trained(&[&config[..], flags].concat()).unwrap();
    let values = |settings: &Settings| (settings.seed, settings.data.words, settings.model.tau, settings.training.lr);
    assert_eq!(values(&trained(&[]).unwrap()), (0, 5, 1.0, 0.5), "the preset");
    assert_eq!(values(&with(&[])), (1, 1, 0.25, 0.25), "the file");
    let flags = ["--seed", "2", "--words", "2", "--tau", "0.125", "--lr", "0.125"];
    assert_eq!(values(&with(&flags)), (2, 2, 0.125, 0.125), "the flags, shared ones and others");
    let set = ["--set", "seed=3", "--set", "data.words=3", "--set", "model.tau=2.0"];
    assert_eq!(values(&with(&[&flags[..], &set].concat())), (3, 3, 2.0, 0.125), "--set");
    let begun = trained(&["--arm", "cascade", "--init-from", "w.safetensors"]).unwrap();
    assert_eq!((begun.model.arm, begun.init_from), (Arm::Cascade, Some("w.safetensors".into())));
}

#[test]
fn what_is_stored_takes_the_place_of_the_preset() {
    let folder = tempfile::tempdir().unwrap();
    let stored = Settings { seed: 7, ..trained(&["--words", "9"]).unwrap() };
    fs::write(folder.path().join("config.toml"), toml::to_string(&stored).unwrap()).unwrap();
    let resume = ["program", "--resume", folder.path().to_str().unwrap(), "--lr", "0.25", "--allow-changes"];
    let request = train(&Training::try_parse_from(resume).unwrap().args).unwrap();
    assert_eq!((request.settings.seed, request.settings.data.words, request.settings.training.lr), (7, 9, 0.25));
    assert_eq!((request.start, request.path), (Start::Resume { allow_changes: true }, folder.path().to_owned()));
}

#[test]
fn a_batch_and_the_steps_take_their_parts_along() {
    let batch =
        |flags: &[&str]| trained(flags).map(|settings| (settings.data.batch, settings.data.micro_batch)).unwrap();
    assert_eq!(batch(&["--batch", "6"]), (6, 3), "the largest part that is no larger than before");
    assert_eq!(batch(&["--batch", "6", "--micro-batch", "2"]), (6, 2));
    let settings = trained(&["--steps", "50"]).unwrap();
    assert_eq!((settings.training.steps, settings.draw_every), (50, 5));
}

#[test]
fn the_usual_arms_stand_where_nothing_names_any() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(arms(&[]), ["cascade", "0:l"]);
    assert_eq!(arms(&["--arms", "ancre,cascade"]), ["ancre", "cascade"]);
    let args = Comparing::try_parse_from(["program", "--arms", "ancre", "--seeds", "2"]).unwrap().args;
    let file = folder.path().join("config.toml");
    fs::write(&file, toml::to_string(&compare(&args).unwrap().comparison).unwrap()).unwrap();
    assert_eq!(arms(&["--config", file.to_str().unwrap()]), ["ancre"]);
}

#[test]
fn a_new_directory_is_called_after_command_and_preset() {
    let path = |flags: &[&str]| {
        let args = Training::try_parse_from([&["program"], flags].concat()).unwrap().args;
        train(&args).unwrap().path
    };
    assert!(path(&[]).to_string_lossy().contains("train-small-"), "{}", path(&[]).display());
    assert_eq!(path(&["--out", "here"]), Path::new("here"));
    assert!(Training::try_parse_from(["program", "--out", "here", "--resume", "there"]).is_err());
}

#[test]
fn help_names_the_usual_arms_and_what_the_program_counts() {
    let mut command = Comparing::command();
    command.clone().debug_assert();
    Training::command().debug_assert();
    let help = command.render_help().to_string();
    for words in ["[default: cascade,0:l]", "Pages of one optimizer step", "--words"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}
