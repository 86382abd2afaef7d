//! The program: arguments, then requests, then the work, and messages for people.

use std::{path::PathBuf, process::ExitCode};

use ancre::Arm;
use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use command_line::{Failure, note, say};
use experiment_kit::request::{check_is_free, next_directory};
use plotting::{Figure, Table};
use training::{
    progress::Progress,
    run_directory::{Environment, NewRun, RunDirectory},
};

use crate::{
    measure::{Request, distinct, measure},
    report::{Record, Settings, ShapeRecord},
    shape::Shape,
    workload::{self, Size},
};

/// What connections cost: step time and peak memory of every arm against the cascade, with counted FLOPs and bytes.
///
/// Training steps of all arms are made in turn, in one process; ratios are medians over rounds. Leave the machine alone meanwhile.
#[derive(Debug, Parser)]
#[command(
    name = "experiments-overhead",
    version,
    after_help = "Examples:\n  experiments-overhead                                       minutes on two cores\n  \
                  experiments-overhead --preset smoke                        does everything run? seconds\n  \
                  experiments-overhead --shapes llama-60m,llama-130m --arms ancre --seconds 120\n  \
                  experiments-overhead --shapes llm-cpu --arms ancre,rezero,hyper-connections:2\n  \
                  experiments-overhead --list"
)]
struct Cli {
    /// Named choice of shapes, arms and time
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// Shapes to measure, separated by commas; see --list
    #[arg(long, value_delimiter = ',', value_name = "SHAPES")]
    shapes: Vec<String>,
    /// Arms to compare with the cascade, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "ARMS")]
    arms: Vec<String>,
    /// Seconds of measuring for each shape, longer where a few rounds take longer
    #[arg(long)]
    seconds: Option<f64>,
    /// Exactly so many rounds for each shape, whatever time they take
    #[arg(long, conflicts_with = "seconds")]
    rounds: Option<usize>,
    /// Sequences, images or transitions of a micro-batch [default: the preset's; 1 at the paper's shapes]
    #[arg(long)]
    rows: Option<usize>,
    /// Directory for tables, record and figure, which must not exist [default: the next free one under runs/]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// List the shapes
    #[arg(long)]
    list: bool,
}

/// A choice of shapes, arms and time.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Preset {
    /// Seconds: does everything run?
    Smoke,
    /// Four minutes on two cores: the CPU presets, and the paper's 60M and 130M layers
    #[default]
    Default,
}

impl Preset {
    fn shapes(self) -> &'static [&'static str] {
        match self {
            Self::Smoke => &["llm-smoke", "diffusion-smoke", "resnet-smoke"],
            Self::Default => &["llm-cpu", "diffusion-cpu", "resnet-cpu", "llama-60m", "llama-130m"],
        }
    }

    fn arms(self) -> &'static [&'static str] {
        match self {
            Self::Smoke => &["ancre", "rezero", "hyper-connections:2"],
            Self::Default => {
                &["ancre", "constant", "naive", "rezero", "dense-former", "hyper-connections:2", "attention-residuals"]
            }
        }
    }

    fn seconds(self) -> f64 {
        match self {
            Self::Smoke => 0.0,
            Self::Default => 40.0,
        }
    }

    fn rounds(self) -> Option<usize> {
        match self {
            Self::Smoke => Some(3),
            Self::Default => None,
        }
    }
}

/// The longest time that can be asked for: a day.
const LONGEST: f64 = 86_400.0;

/// The most rounds.
const MOST_ROUNDS: usize = 1_000_000;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    command_line::end(if cli.list { list() } else { overhead(&cli) })
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new(["shape", "what it is", "a step"]);
    for (shape, purpose) in Shape::all() {
        let plan = workload::plan(shape, &Arm::Cascade, Size { rows: None })?;
        table.push([shape.to_string(), purpose.to_owned(), plan.description]);
    }
    say(table.to_text().trim_end());
    Ok(())
}

/// What the arguments mean.
fn requests(cli: &Cli) -> Result<Vec<Request>> {
    let or = |given: &[String], otherwise: &[&str]| -> Vec<String> {
        if given.is_empty() { otherwise.iter().map(|&s| s.to_owned()).collect() } else { given.to_vec() }
    };
    let shapes: Vec<Shape> =
        or(&cli.shapes, cli.preset.shapes()).iter().map(|text| text.parse()).collect::<Result<_>>()?;
    let arms: Vec<Arm> = or(&cli.arms, cli.preset.arms()).iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let arms = distinct(std::iter::once(Arm::Cascade).chain(arms));
    let seconds = cli.seconds.unwrap_or(cli.preset.seconds());
    ensure!((0.0..=LONGEST).contains(&seconds), "--seconds {seconds}: give 0 to {LONGEST}");
    let rounds = if cli.seconds.is_some() { None } else { cli.rounds.or(cli.preset.rounds()) };
    if let Some(rounds) = rounds.filter(|rounds| !(1..=MOST_ROUNDS).contains(rounds)) {
        bail!("--rounds {rounds}: give 1 to {MOST_ROUNDS}");
    }
    let size = Size { rows: cli.rows };
    let mut requests: Vec<Request> = Vec::new();
    for shape in shapes {
        if requests.iter().all(|request| request.shape != shape) {
            // The sizes are checked before anything is measured.
            workload::plan(shape, &Arm::Cascade, size).with_context(|| shape.to_string())?;
            requests.push(Request { shape, arms: arms.clone(), size, seconds, rounds });
        }
    }
    Ok(requests)
}

fn overhead(cli: &Cli) -> Result<(), Failure> {
    let requests = requests(cli).map_err(Failure::Usage)?;
    let path = cli.out.clone().unwrap_or_else(|| next_directory("overhead"));
    check_is_free(&path).map_err(Failure::Usage)?;
    let environment = Environment::collect(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), "cpu");
    if cfg!(debug_assertions) {
        note("this build checks itself as it runs: for numbers, use `cargo run --release`");
    }
    let progress = Progress::new();
    let mut seen = Vec::new();
    for request in &requests {
        let measured = measure(request, &progress)?;
        let record = Record::new(environment.clone(), std::slice::from_ref(&measured));
        record.shapes.iter().for_each(show);
        seen.push(measured);
    }
    let record = Record::new(environment, &seen);
    let written = write(&record, &Settings::new(&requests), &path)?;
    say(format_args!("tables, record and figure: {}", written.display()));
    Ok(())
}

fn show(shape: &ShapeRecord) {
    say(format_args!("{}: {}\n", shape.shape, shape.description));
    say(shape.table().to_text().trim_end());
    say("");
    let notes = shape.notes();
    for line in &notes {
        say(line);
    }
    if !notes.is_empty() {
        say("");
    }
}

fn write(record: &Record, settings: &Settings, path: &std::path::Path) -> Result<PathBuf> {
    let json = serde_json::to_string_pretty(record)?;
    let contents = NewRun::new(settings, &record.environment)?
        .with_file("overhead.json", json)?
        .with_file("overhead.md", record.markdown())?;
    let directory = RunDirectory::create(path, &contents)?;
    if let Some(figure) = record.figure() {
        // Places of arms that a model refuses stay empty; the tables say why.
        figure.save(directory.paths().figures(), "time_ratios")?;
    }
    Ok(directory.path().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn presets_name_shapes_and_arms_that_exist() {
        for preset in [Preset::Smoke, Preset::Default] {
            preset.shapes().iter().for_each(|shape| _ = shape.parse::<Shape>().unwrap());
            preset.arms().iter().for_each(|arm| _ = arm.parse::<Arm>().unwrap());
        }
    }
}
