//! Gradient flows for another program to solve and to race against; `benches/scipy_flow.py` is that program.
//!
//! Prints each case as five lines (`case LAYOUT K D LEVEL`, then the shortcuts, the target, and the weights: matrices
//! by rows, all numbers with every digit) and a line `ready`. Then, for each line with the number of a case on standard
//! input, solves it once and answers `TIME STEPS EVALUATIONS SECONDS`: the time at which the loss reaches LEVEL, the
//! cost of getting there, and the wall time of the solution alone.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Context, Result};
use connection_layout::Layout;
use nalgebra::DMatrix;
use theory::flow::{FlowSettings, GradientFlow, Tolerance};
use theory::network::Problem;
use theory::{Draw, TargetLaw};

const DEPTH: usize = 4;
const WIDTH: usize = 5;
const LAYOUTS: [&str; 4] = ["0:3", "hidden-cascade", "dense", "0:2+2:3"];

fn rows(matrix: &DMatrix<f64>) -> String {
    matrix.transpose().iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
}

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    let mut cases = Vec::new();
    for notation in LAYOUTS {
        let layout = Layout::parse(notation, DEPTH)?;
        let mut draw = Draw::new(0, 0);
        let problem = Problem::whitened(&layout, draw.target(TargetLaw::Gaussian, WIDTH))?;
        let start = draw.weights(&problem, 0.01);
        let level = 1e-6 * problem.target().scale();
        writeln!(out, "case {notation} {DEPTH} {WIDTH} {level}")?;
        writeln!(out, "{}", layout.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(" "))?;
        writeln!(out, "{}", rows(problem.target().map()))?;
        writeln!(out, "{}", start.layers().iter().map(rows).collect::<Vec<_>>().join(" "))?;
        let settings = FlowSettings { until_loss: level, tolerance: Tolerance::RANKING, ..FlowSettings::default() };
        cases.push((GradientFlow::new(&problem, settings), start));
    }
    writeln!(out, "ready")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        let number: usize = line?.trim().parse().context("give the number of a case on each line")?;
        let (flow, start) = cases.get_mut(number).with_context(|| format!("there is no case {number}"))?;
        let clock = Instant::now();
        let outcome = flow.run(start, |_, _| ());
        let seconds = clock.elapsed().as_secs_f64();
        let time = outcome.reached().with_context(|| format!("case {number} ended with {:?}", outcome.ending))?;
        writeln!(out, "{time} {} {} {seconds}", outcome.steps, outcome.evaluations)?;
        out.flush()?;
    }
    Ok(())
}
