//! Arguments that were typed, checked and turned into a problem.

use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use connection_layout::{Direction, Layout, MAX_DEPTH};
use nalgebra::DMatrix;

use super::args::{FlowArgs, LawArg, ScopeArg};
use crate::flow::{DescentSettings, FlowSettings, Optimizer};
use crate::network::{Connections, Gradient, LinearNet, Problem, Scope, Softmax, Target, Weights};
use crate::{Draw, TargetLaw, matrix_file};

/// Widths beyond this take hours and gigabytes.
const LARGEST_WIDTH: usize = 512;
/// Weights beyond this overflow in a deep product.
const LARGEST_INIT: f64 = 1e3;
/// The loss of every step is kept.
const MOST_STEPS: usize = 10_000_000;

/// How a network is trained.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// Gradient flow.
    Flow(FlowSettings),
    /// Discrete steps.
    Descent(DescentSettings),
}

/// One training, ready to run.
#[derive(Debug)]
pub struct FlowRequest {
    /// The network and its target.
    pub problem: Problem,
    /// The initial weights.
    pub start: Weights,
    /// How it is trained.
    pub method: Method,
    /// The layout, unless it is learned.
    pub layout: Option<Layout>,
    /// What the target is, in words.
    pub target: String,
    /// The loss that relative losses are relative to: that of the zero map, or the first one where the target is zero.
    pub unit: f64,
}

impl From<LawArg> for TargetLaw {
    fn from(law: LawArg) -> Self {
        match law {
            LawArg::Gaussian => Self::Gaussian,
            LawArg::Singular => Self::Singular,
            LawArg::NearIdentity => Self::NearIdentity,
        }
    }
}

/// Checks the arguments of one training and builds its problem.
///
/// # Errors
/// If an argument makes no sense; the message says which and why.
pub fn flow(args: &FlowArgs) -> Result<FlowRequest> {
    ensure!(
        (1..=MAX_DEPTH).contains(&args.depth),
        "--depth {}: a network has between 1 and {MAX_DEPTH} layers",
        args.depth
    );
    within("--init", args.init, 0.0..=LARGEST_INIT)?;
    within("--until", args.until, f64::MIN_POSITIVE..=1.0)?;
    above("--time", args.time, 0.0)?;
    within("--logit-speed", args.logit_speed, 0.0..=1e6)?;
    if let Some(steps) = args.steps {
        ensure!((1..=MOST_STEPS).contains(&steps), "--steps {steps}: expected a number from 1 to {MOST_STEPS}");
    }
    let (connections, layout) = connections(args)?;
    let net = LinearNet::new(args.depth, connections).context("--depth")?;
    let mut draw = Draw::new(args.seed, 0);
    let (target, words) = target(args, &mut draw)?;
    let problem = Problem::new(net, target);
    ensure!(
        problem.len() <= 1 << 24,
        "{} layers of width {} have {} parameters: at most {} are trained here",
        args.depth,
        problem.width(),
        problem.len(),
        1 << 24
    );
    let start = draw.weights(&problem, args.init);
    let scale = problem.target().scale();
    let first = Gradient::new(&problem).loss(start.values());
    let unit = if scale > 0.0 { scale } else { first };
    ensure!(unit != 0.0, "the loss is 0 at the start and stays there: the target is zero, or all inputs are");
    ensure!(
        (1e-200..=1e200).contains(&unit) && first <= 1e200 && problem.target().floor() <= 1e200,
        "the loss of these numbers is {unit:e} for the zero map and {first:e} at the start: rescale the data, or --init"
    );
    let until_loss = args.until * unit;
    let optimizer = match (args.gd, args.adam) {
        (Some(rate), _) => Some(("--gd", rate, Optimizer::gradient_descent(rate))),
        (_, Some(rate)) => Some(("--adam", rate, Optimizer::adam(rate))),
        _ => None,
    };
    let method = match optimizer {
        None => Method::Flow(FlowSettings {
            until_loss,
            until_time: args.time,
            logit_speed: args.logit_speed,
            most_steps: args.steps.unwrap_or(FlowSettings::default().most_steps),
            ..FlowSettings::default()
        }),
        Some((flag, rate, optimizer)) => {
            within(flag, rate, f64::MIN_POSITIVE..=1e6)?;
            let optimizer = with_logit_speed(optimizer, args.logit_speed);
            Method::Descent(DescentSettings::new(optimizer, until_loss, args.steps.unwrap_or(10_000)))
        }
    };
    Ok(FlowRequest { problem, start, method, layout, target: words, unit })
}

fn with_logit_speed(optimizer: Optimizer, speed: f64) -> Optimizer {
    match optimizer {
        Optimizer::GradientDescent { rate, .. } => Optimizer::GradientDescent { rate, logit_rate: rate * speed },
        Optimizer::Adam { rate, betas, epsilon, .. } => {
            Optimizer::Adam { rate, logit_rate: rate * speed, betas, epsilon }
        }
    }
}

fn connections(args: &FlowArgs) -> Result<(Connections, Option<Layout>)> {
    if let Some(scope) = args.learned {
        within("--tau", args.tau, 1e-6..=1e6)?;
        ensure!(args.depth >= 2, "--learned at --depth 1: there is nothing to choose, take 2 layers or more");
        let scope = match scope {
            ScopeArg::HiddenOnly => Scope::HiddenOnly,
            ScopeArg::WithOutput => Scope::WithOutput,
        };
        let direction = if args.outgoing { Direction::Outgoing } else { Direction::Incoming };
        return Ok((Connections::Learned(Softmax { direction, tau: args.tau, scope }), None));
    }
    // At depth 1 the last hidden node is the input itself.
    let text = args.layout.as_deref().unwrap_or(if args.depth == 1 { "none" } else { "0:K-1" });
    let layout = Layout::parse(text, args.depth).context("--layout")?;
    Ok((Connections::from(&layout), Some(layout)))
}

/// The target and what it is in words.
fn target(args: &FlowArgs, draw: &mut Draw) -> Result<(Target, String)> {
    use clap::ValueEnum;
    if let Some(width) = args.dim {
        ensure!((1..=LARGEST_WIDTH).contains(&width), "--dim {width}: widths go from 1 to {LARGEST_WIDTH}");
    }
    if let Ok(law) = LawArg::from_str(&args.target, true) {
        ensure!(args.inputs.is_none(), "--inputs needs a file of outputs: give one with --target");
        let width = args.dim.unwrap_or(8);
        let name = law.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        return Ok((Target::whitened(draw.target(law.into(), width))?, format!("{name} target")));
    }
    let path = Path::new(&args.target);
    if matches!(path.try_exists(), Ok(false)) {
        bail!("--target {:?}: neither a file nor one of gaussian, singular, near-identity", args.target);
    }
    let outputs = matrix_file::read(path).context("--target")?;
    let width = outputs.nrows();
    ensure!(width <= LARGEST_WIDTH, "{} has {width} rows: widths go from 1 to {LARGEST_WIDTH}", path.display());
    if let Some(dim) = args.dim {
        ensure!(dim == width, "--dim {dim}: {} has {width} rows; leave --dim out, or give the same", path.display());
    }
    Ok(match &args.inputs {
        None => (whitened(outputs, path)?, format!("target of {}", path.display())),
        Some(inputs_path) => {
            let inputs = matrix_file::read(inputs_path).context("--inputs")?;
            let words = format!("outputs of {}, inputs of {}", path.display(), inputs_path.display());
            (Target::from_data(&inputs, &outputs)?, words)
        }
    })
}

fn whitened(outputs: DMatrix<f64>, path: &Path) -> Result<Target> {
    Target::whitened(outputs)
        .with_context(|| format!("--target {} (for outputs of other inputs, give --inputs)", path.display()))
}

/// Checks a number that has to be positive.
///
/// # Errors
/// If it is not.
pub fn above(flag: &str, value: f64, bound: f64) -> Result<()> {
    ensure!(value.is_finite() && value > bound, "{flag} {value}: expected a finite number above {bound}");
    Ok(())
}

/// Checks a number that has to lie in a range.
///
/// # Errors
/// If it does not.
pub fn within(flag: &str, value: f64, range: RangeInclusive<f64>) -> Result<()> {
    let (low, high) = (*range.start(), *range.end());
    let low = if low == f64::MIN_POSITIVE { "above 0".to_owned() } else { format!("of at least {low}") };
    ensure!(range.contains(&value), "{flag} {value}: expected a number {low} and at most {high}");
    Ok(())
}
