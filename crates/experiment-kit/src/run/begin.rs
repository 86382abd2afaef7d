//! How a run starts, and how it goes on.

use std::{io::Write, path::Path};

use anyhow::{Context, Result, bail};
use burn::tensor::backend::Backend;
use serde::Serialize;
use training::{
    checkpoint::CheckpointStore,
    run_directory::{Environment, NewRun, RunDirectory, RunPaths, atomic_write},
    trainer::Trainer,
};

use super::{on_cpu, workers};
use crate::{Connected, Experiment, Program, RunSettings};

/// The trainer of an experiment's run.
pub type RunTrainer<E> = Trainer<<E as Experiment>::Backend, <E as Experiment>::Model, <E as Experiment>::Task>;

/// What a run's values depend on.
#[derive(Clone, Debug, Serialize)]
struct Identity<'a, S> {
    settings: &'a S,
    /// See [`Experiment::data_fingerprint`].
    data: String,
}

/// Whether a run is to be new or to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// In a directory that must not exist.
    New,
    /// From the newest checkpoint in the directory; with `allow_changes`, also one of other settings.
    Resume {
        /// Whether settings may differ from those of the checkpoint.
        allow_changes: bool,
    },
}

/// Starts or continues the run in a directory; `notes` takes what the user should know.
///
/// # Errors
/// If the directory cannot be made or held, weights do not fit, or no checkpoint is usable.
pub fn begin<E: Experiment>(
    experiment: &E,
    path: &Path,
    start: Start,
    settings: &E::Settings,
    notes: &mut Vec<String>,
) -> Result<RunTrainer<E>> {
    let mut settings = settings.clone();
    let mut model = experiment.model(&settings)?;
    let paths = RunPaths::new(path);
    // What a killed writer left half-written is no checkpoint: the run then begins again, from the same weights.
    let has_checkpoint = || CheckpointStore::view(&paths.checkpoints()).newest().is_some();
    if let Some(file) = settings.init_from()
        && (start == Start::New || !has_checkpoint())
    {
        let (loaded, found) = experiment.initial_weights(model, file, &settings)?;
        notes.extend(found);
        // Part of the run from now on: a resume, an evaluation and an export find it in config.toml.
        settings.set_tau(loaded.connections().tau());
        model = loaded;
    }
    let settings = &settings;
    let task = experiment.task(settings, &model)?;
    let identity = Identity { settings, data: experiment.data_fingerprint() };
    let (training, device) = (settings.training(), E::Backend::name(experiment.device()));
    let mut trainer = match start {
        Start::New => {
            let mut contents = new_run(E::PROGRAM, settings, &device)?;
            for (name, bytes) in experiment.files(settings)? {
                contents = contents.with_file(name, bytes)?;
            }
            Trainer::start(RunDirectory::create(path, &contents)?, &identity, training, model, task)?
        }
        Start::Resume { allow_changes } => {
            let stored: E::Settings = paths.read_config()?;
            if !allow_changes && stored != *settings && !has_checkpoint() {
                bail!("{} was started with other settings: give the same ones, or --allow-changes", path.display());
            }
            let directory = RunDirectory::open(path)?;
            let trainer = Trainer::resume(directory, &identity, training, model, task, allow_changes)?;
            trainer.directory().add_environment(&environment(E::PROGRAM, &device))?;
            if stored != *settings {
                let text = toml::to_string_pretty(settings)?;
                atomic_write(&paths.config(), |file| file.write_all(text.as_bytes()))
                    .with_context(|| format!("cannot write {}", paths.config().display()))?;
            }
            trainer
        }
    };
    if on_cpu::<E::Backend>() {
        trainer.set_workers(workers(settings))?;
    }
    // Every arm has the same optimizer settings, and not every arm has connections with parameters.
    let frozen = !settings.arm().is_learned();
    let expected = |note: &&String| !(frozen && note.contains("`connections.*`"));
    notes.extend(trainer.warnings().iter().filter(expected).cloned());
    Ok(trainer)
}

/// Starts a run of a comparison, or continues it where it has begun.
///
/// # Errors
/// As [`begin`].
pub fn begin_or_continue<E: Experiment>(
    experiment: &E,
    path: &Path,
    settings: &E::Settings,
    notes: &mut Vec<String>,
) -> Result<RunTrainer<E>> {
    if !path.is_dir() {
        return begin(experiment, path, Start::New, settings, notes);
    }
    let settings = with_stored_tau(path, settings)?;
    begin(experiment, path, Start::Resume { allow_changes: false }, &settings, notes)
}

/// The settings of a run of a comparison as its directory has them: weights to begin from may bring a temperature.
///
/// # Errors
/// If the directory has no settings.
pub fn with_stored_tau<S: RunSettings>(path: &Path, settings: &S) -> Result<S> {
    let mut settings = settings.clone();
    if settings.init_from().is_some() {
        let stored: S = RunPaths::new(path).read_config()?;
        settings.set_tau(stored.tau());
    }
    Ok(settings)
}

fn environment(program: Program, device: &str) -> Environment {
    Environment::collect(program.name, program.version, device)
}

/// What a new directory begins with: settings and the facts about this process.
///
/// # Errors
/// If the settings cannot be written as TOML.
pub fn new_run(program: Program, settings: &impl Serialize, device: &str) -> Result<NewRun> {
    Ok(NewRun::new(settings, &environment(program, device))?)
}
