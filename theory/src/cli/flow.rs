//! `theory flow`: one network, trained and shown.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use connection_layout::{Coefficients, Shortcut};
use indicatif::{ProgressBar, ProgressStyle};
use plotting::Table;

use super::Failure;
use super::args::FlowArgs;
use super::output::NewFile;
use super::request::{self, FlowRequest, Method};
use crate::flow::{Descent, Ending, GradientFlow, NOISE_FLOOR, Optimizer, Trajectory};
use crate::network::{Connections, Problem, Scope, Softmax, Weights};

/// The losses that the table has a row for, relative to the scale of the target.
const DECADES: i32 = 14;

/// What a training leaves behind, a row a step.
struct Record {
    /// Time or steps, loss, and, for a file, the learned coefficients.
    rows: Vec<(f64, f64, Vec<f64>)>,
    /// The same losses with their slopes, of a flow.
    trajectory: Option<Trajectory>,
    ending: Ending,
    end: f64,
    steps: usize,
    weights: Weights,
}

pub(super) fn flow(args: &FlowArgs) -> Result<(), Failure> {
    let request = request::flow(args).map_err(Failure::Usage)?;
    let csv = args.csv.as_deref().map(NewFile::begin).transpose().map_err(Failure::Usage)?;
    let record = train(&request, csv.is_some());
    // The file first: a reader of the output may be gone by now.
    let written = match csv {
        None => None,
        Some(mut file) => {
            write_csv(&request, &record, file.writer())?;
            Some(file.finish()?)
        }
    };
    let mut out = io::stdout().lock();
    print(&mut out, args, &request, &record)?;
    if let Some(path) = written {
        writeln!(out, "wrote {}", path.display()).context("output")?;
    }
    Ok(())
}

/// Trains, and keeps the loss of every step; the coefficients too where a file will take them.
fn train(request: &FlowRequest, with_shares: bool) -> Record {
    let bar = ProgressBar::new_spinner().with_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let problem = &request.problem;
    let learned = matches!(problem.net().connections(), Connections::Learned(_));
    let mut rows: Vec<(f64, f64, Vec<f64>)> = Vec::new();
    let scale = request.unit;
    let mut keep = |time: f64, loss: f64, weights: &[f64]| {
        let shares = if learned && with_shares { shares(problem, weights) } else { Vec::new() };
        rows.push((time, loss, shares));
        if rows.len().is_multiple_of(64) {
            bar.set_message(format!("{time:.4}: relative loss {:.2e}", loss / scale));
        }
    };
    let (ending, end, steps, weights, trajectory) = match &request.method {
        Method::Flow(settings) => {
            let mut trajectory = Trajectory::default();
            let outcome = GradientFlow::new(problem, *settings).run(&request.start, |point, weights| {
                trajectory.push(point);
                keep(point.time, point.loss, weights);
            });
            (outcome.ending, outcome.time, outcome.steps, outcome.weights, Some(trajectory))
        }
        Method::Descent(settings) => {
            let observe = |step: usize, loss: f64, weights: &[f64]| keep(step as f64, loss, weights);
            let outcome = Descent::new(problem).run(&request.start, settings, observe);
            (outcome.ending, outcome.steps as f64, outcome.steps, outcome.weights, None)
        }
    };
    bar.finish_and_clear();
    Record { rows, trajectory, ending, end, steps, weights }
}

/// The coefficients of the shortcuts that are learned, by target and source.
fn in_scope(problem: &Problem, weights: &Weights) -> impl Iterator<Item = (Shortcut, f64)> {
    let coefficients = problem.net().coefficients(weights);
    let last = last_target(problem);
    coefficients.iter().filter(move |(s, _)| s.target() <= last).collect::<Vec<_>>().into_iter()
}

/// The last node that learned shortcuts end in.
fn last_target(problem: &Problem) -> usize {
    match problem.net().connections() {
        Connections::Learned(Softmax { scope: Scope::HiddenOnly, .. }) => problem.depth() - 1,
        _ => problem.depth(),
    }
}

/// The learned coefficients as numbers.
fn shares(problem: &Problem, values: &[f64]) -> Vec<f64> {
    let mut weights = problem.zeros();
    weights.values_mut().copy_from_slice(values);
    in_scope(problem, &weights).map(|(_, share)| share).collect()
}

fn print(out: &mut impl Write, args: &FlowArgs, request: &FlowRequest, record: &Record) -> Result<()> {
    let problem = &request.problem;
    writeln!(
        out,
        "{}, {} layers of width {}, weights of deviation {}, {}, seed {}",
        describe(request),
        problem.depth(),
        problem.width(),
        args.init,
        request.target,
        args.seed
    )?;
    if let Some(layout) = &request.layout {
        let paths = layout.pure_paths();
        let numbers = (paths.to_last_hidden(), paths.kappa0(), layout.saddle_order());
        write!(out, "alpha {}, kappa0 {}, saddle order {}", numbers.0, numbers.1, numbers.2)?;
        match layout.reduced_net() {
            Ok(net) if net.len() <= 3 => writeln!(out, "; near zero weights it is {net}")?,
            // Too long for a line, or with more paths than can be counted.
            _ => writeln!(out)?,
        }
    }
    if problem.target().floor() > 0.0 {
        writeln!(
            out,
            "no linear network gets below a loss of {:.6e}; what follows is the excess",
            problem.target().floor()
        )?;
    }
    writeln!(out)?;
    write!(out, "{}", decades(request, record).to_text())?;
    writeln!(out, "\n{}", ending(request, record))?;
    if let Connections::Learned(_) = problem.net().connections() {
        writeln!(out, "\n{}", learned(problem, &problem.net().coefficients(&record.weights)))?;
    }
    Ok(())
}

fn describe(request: &FlowRequest) -> String {
    let net = match (request.problem.net().connections(), &request.layout) {
        (_, Some(layout)) => format!("layout {layout}"),
        (Connections::Learned(softmax), _) => {
            let scope = if softmax.scope == Scope::HiddenOnly { "hidden nodes" } else { "all nodes" };
            format!("learned {} softmax into {scope}, tau {}", softmax.direction, softmax.tau)
        }
        (Connections::Fixed(_), None) => "fixed coefficients".to_owned(),
    };
    let method = match request.method {
        Method::Flow(_) => "gradient flow",
        Method::Descent(settings) => match settings.optimizer {
            Optimizer::GradientDescent { .. } => "gradient descent",
            Optimizer::Adam { .. } => "Adam",
        },
    };
    format!("{method}, {net}")
}

/// When the loss first fell below each power of ten.
fn decades(request: &FlowRequest, record: &Record) -> Table {
    let scale = request.unit;
    let clock = if matches!(request.method, Method::Flow(_)) { "time" } else { "step" };
    let mut table = Table::new(["relative loss", clock, "rate since the row above"]);
    let first = record.rows.first().map_or(0.0, |row| row.1);
    table.push([format!("{:.2e}", first / scale), "0".to_owned(), String::new()]);
    let mut last = (0.0, first);
    for decade in 1..=DECADES {
        let level = scale * 10_f64.powi(-decade);
        if level >= first {
            continue;
        }
        // A flow passes the level between two steps, a descent is below it at one.
        let passed = match &record.trajectory {
            Some(trajectory) => trajectory.time_to(level).map(|time| (time, level)),
            None => record.rows.iter().find(|row| row.1 <= level).map(|row| (row.0, row.1)),
        };
        let Some((time, loss)) = passed else { break };
        let rate = if time > last.0 { rate((last.1 / loss).ln() / (time - last.0)) } else { String::new() };
        let time_text = if clock == "time" { format!("{time:.4}") } else { format!("{time}") };
        table.push([format!("1e-{decade}"), time_text, rate]);
        last = (time, loss);
    }
    table
}

fn rate(value: f64) -> String {
    if value < 1e6 { format!("{value:.3}") } else { format!("{value:.3e}") }
}

fn ending(request: &FlowRequest, record: &Record) -> String {
    let loss = record.rows.last().map_or(0.0, |row| row.1) / request.unit;
    let why = match record.ending {
        Ending::Reached => "reached the loss asked for".to_owned(),
        Ending::NoiseFloor => format!("ended at the noise floor, {NOISE_FLOOR:e} of the first loss"),
        Ending::Limit => match request.method {
            Method::Flow(settings) if record.steps >= settings.most_steps => {
                format!("given up before --time, a stiff flow: relative loss {loss:.3e}")
            }
            _ => format!("given up at a relative loss of {loss:.3e}"),
        },
        Ending::Diverged => format!("diverged, at a relative loss of {loss:.3e}: a smaller rate or init may help"),
    };
    match request.method {
        Method::Flow(_) => format!("{why}, at time {:.6} ({} steps of the solver)", record.end, record.steps),
        Method::Descent(_) => format!("{why}, at step {}", record.steps),
    }
}

fn learned(problem: &Problem, coefficients: &Coefficients) -> String {
    let mut table = Table::new(
        std::iter::once("into node".to_owned()).chain((0..last_target(problem)).map(|i| format!("from {i}"))),
    );
    for (row, target) in coefficients.rows().zip(1..=last_target(problem)) {
        table.push(std::iter::once(target.to_string()).chain(row.iter().map(|share| format!("{share:.4}"))));
    }
    format!("{}the shortcuts above 1/2: {}", table.to_text(), coefficients.layout_above(0.5))
}

fn write_csv(request: &FlowRequest, record: &Record, to: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    let mut header = vec!["time".to_owned(), "excess_loss".to_owned(), "relative_loss".to_owned()];
    if let Connections::Learned(_) = request.problem.net().connections() {
        let names = in_scope(&request.problem, &record.weights);
        header.extend(names.map(|(shortcut, _)| format!("p_{}_{}", shortcut.source(), shortcut.target())));
    }
    writer.write_record(&header)?;
    for (time, loss, shares) in &record.rows {
        let numbers = [*time, *loss, loss / request.unit];
        writer.write_record(numbers.iter().chain(shares).map(f64::to_string))?;
    }
    writer.flush()?;
    Ok(())
}
