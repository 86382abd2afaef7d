//! What the subcommands that programs share do.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use command_line::{Failure, note, say, write_new};
use experiment_kit::{
    Experiment,
    compare::{self, open_directory},
    on_device,
    request::{CompareRequest, TrainRequest, check_is_free, check_memory},
    run::{self, Start},
    state_dict::{StateDict, to_bytes},
};
use fused_ops::FusedOps;
use plotting::{Align, Table, significant};
use training::{
    device::DeviceChoice,
    interrupt::Interrupt,
    metrics::{RecordKind, read_metrics},
    run_directory::RunPaths,
    trainer::RunEnd,
};

use crate::{CompareArgs, ExportOptions, RunFlags, TrainArgs, TrainingProgram, request};

const COMPARE_REMEDY: &str = "--sequential, fewer --arms, a smaller --micro-batch or --preset";

/// `compare`: several arms, side by side, and their report.
///
/// # Errors
/// As a command of the program ends.
pub fn compare<P: TrainingProgram>(args: &CompareArgs<P::Flags>) -> Result<(), Failure> {
    let choice = args.run.options().device;
    let request = request::compare(args).map_err(Failure::Usage)?;
    let CompareRequest { comparison, path, resume } = &request;
    check_memory(choice, || P::memory_estimate(&comparison.deepest(), comparison.at_once()), COMPARE_REMEDY)?;
    if !resume {
        check_is_free(path)?;
    }
    on_device!(choice, |B, device| compare_on::<P, B>(request, choice, device))
}

fn compare_on<P: TrainingProgram, B>(
    request: CompareRequest<P::Settings>,
    choice: DeviceChoice,
    device: <B as BackendTypes>::Device,
) -> Result<(), Failure>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let CompareRequest { mut comparison, path, resume } = request;
    let program = <P::Experiment<B> as Experiment>::PROGRAM;
    let progress = P::progress();
    let data = P::load(&mut comparison.run)?;
    check_memory(choice, || P::memory_estimate(&comparison.deepest(), comparison.at_once()), COMPARE_REMEDY)?;
    // Only now: data that cannot be read leaves no directory behind.
    let directory = open_directory(program, &path, &comparison, resume, &B::name(&device))?;
    // Of several depths the deepest is described.
    P::describe(&progress, &comparison.deepest(), &data);
    let experiment = P::experiment::<B>(data, &comparison.run, device, &progress)?;
    // Only now: until here there is nothing to save, and Ctrl-C ends the program at once. Once the directory is named, it is
    // answered with how to go on.
    let interrupt = Interrupt::install().map_err(anyhow::Error::from)?;
    let names: Vec<String> = comparison.variants().iter().map(ToString::to_string).collect();
    progress.message(&format!("arms: {}; run directory: {}", names.join("; "), path.display()));
    let end = compare::run(&experiment, &path, &comparison, &progress, &interrupt)?;
    drop(directory);
    if end == RunEnd::Interrupted {
        return Err(interrupted(program.name, P::COMPARE, &path));
    }
    let written = P::report(&path, &comparison)?;
    say(format!("\n{}", written.text));
    for warning in written.warnings {
        note(format!("note: {warning}"));
    }
    for figure in written.figures.iter().filter(|path| path.extension().is_some_and(|e| e == "png")) {
        say(format!("figure: {}", figure.display()));
    }
    say(path.display());
    Ok(())
}

/// `train`: one arm, and the metrics of its last evaluation.
///
/// # Errors
/// As a command of the program ends.
pub fn train<P: TrainingProgram>(args: &TrainArgs<P::Flags>) -> Result<(), Failure> {
    let choice = args.run.options().device;
    let request = request::train(args).map_err(Failure::Usage)?;
    check_memory(choice, || P::memory_estimate(&request.settings, 1), P::TRAIN_REMEDY)?;
    if request.start == Start::New {
        check_is_free(&request.path)?;
    }
    on_device!(choice, |B, device| train_on::<P, B>(request, choice, device))
}

fn train_on<P: TrainingProgram, B>(
    request: TrainRequest<P::Settings>,
    choice: DeviceChoice,
    device: <B as BackendTypes>::Device,
) -> Result<(), Failure>
where
    B: AutodiffBackend<InnerBackend: FusedOps> + FusedOps,
{
    let TrainRequest { mut settings, path, start } = request;
    let progress = P::progress();
    let data = P::load(&mut settings)?;
    check_memory(choice, || P::memory_estimate(&settings, 1), P::TRAIN_REMEDY)?;
    P::describe(&progress, &settings, &data);
    let experiment = P::experiment::<B>(data, &settings, device, &progress)?;
    // Only now: until here there is nothing to save, and Ctrl-C ends the program at once.
    let interrupt = Interrupt::install().map_err(anyhow::Error::from)?;
    if run::train(&experiment, &path, start, &settings, &progress, &interrupt)? == RunEnd::Interrupted {
        return Err(interrupted(<P::Experiment<B> as Experiment>::PROGRAM.name, P::TRAIN, &path));
    }
    let metrics = read_metrics(&RunPaths::new(&path).metrics()).map_err(anyhow::Error::from)?;
    if let Some(last) = metrics.iter().rev().find(|record| record.kind == RecordKind::Evaluation) {
        say(metrics_table(P::METRICS, &last.values).to_text());
    }
    say(path.display());
    Ok(())
}

/// Says how an interrupted run goes on; `command` is empty or ends with a space.
fn interrupted(program: &str, command: &str, path: &Path) -> Failure {
    let path = path.display();
    note(format!("stopped and saved; go on with: cargo run -p {program} -- {command}--resume {path}"));
    Failure::Interrupted
}

/// Metrics and their values, to six digits; `title` stands above their names.
pub fn metrics_table(title: &str, values: &[(String, f64)]) -> Table {
    let mut table = Table::new([title, "value"]).align(0, Align::Left);
    for (name, value) in values {
        table.push([name.clone(), significant(*value, 6)]);
    }
    table
}

/// `export`: writes the weights of a run to a file. `load` reads them from its directory, under the stored names, and
/// says after how many steps.
///
/// # Errors
/// [`Failure::Usage`] if the file exists; [`Failure::Work`] if there are no weights or the file cannot be written.
pub fn export(options: &ExportOptions, load: impl FnOnce(&Path) -> Result<(StateDict, usize)>) -> Result<(), Failure> {
    let ExportOptions { run, to } = options;
    // Links that lead nowhere exist, too.
    if to.symlink_metadata().is_ok() {
        return Err(Failure::Usage(anyhow!("{} exists: give --to another name", to.display())));
    }
    let (tensors, step) = load(run)?;
    let bytes = to_bytes(&tensors).map_err(anyhow::Error::from)?;
    write_new(to, &bytes).with_context(|| format!("cannot write {}", to.display()))?;
    say(format!("{} tensors after {step} steps in {}", tensors.len(), to.display()));
    Ok(())
}
