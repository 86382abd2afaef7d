//! Whether the time to a loss stays bounded as the initial weights go to zero.
//!
//! For a hidden-only layout `kappa0 = alpha²` with alpha the pure-shortcut paths to the last hidden node. From zero
//! weights `L <= L(0) exp(-2 alpha² t)` for every target, so that the time to a relative loss of r is at most `ln(1/r)
//! / (2 alpha²)`, and stays near or below this for small weights: no unbounded case is known.
//!
//! With shortcuts into the output `kappa0 > 0` is not enough. At depth 3 there are two counter-examples, the cascade
//! `0:1+1:2+2:3` and the cascade with `0:3`. Their end-to-end map is `(I + W_3) (I + W_2) (I + W_1) + c I` with c = 0
//! and 1. From zero weights the singular values of each `I + W_l` stay positive, hence its determinant does, and a
//! target with `det(Y - c I) < 0` is out of reach. From weights of size eps the obstacle is passed, in a time that
//! grows as eps shrinks: as `ln(1/eps)` at depth 2 and as `eps^-(K-2)/2` above (measured,
//! [`escape_exponent`](super::determinant::escape_exponent)).

use connection_layout::Layout;
use nalgebra::DMatrix;
use rayon::prelude::*;
use thiserror::Error;

use super::measure::largest;
use crate::flow::{FlowSettings, GradientFlow};
use crate::network::{Problem, TargetError};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// Why the time of a layout is not known to be bounded.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NotBounded {
    /// Shortcuts end in the output.
    #[error("{0} has shortcuts into the output: the bound is for hidden-only layouts")]
    Output(Layout),
    /// There is no pure-shortcut path to the last hidden node.
    #[error("{0} has no pure-shortcut path to the last hidden node: zero weights are a saddle, and the time unbounded")]
    Saddle(Layout),
}

/// A hidden-only layout with a pure-shortcut path from the input to the last hidden node.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    layout: Layout,
    alpha: f64,
}

impl Bounded {
    /// Checks that the layout is hidden-only and that alpha is at least 1.
    ///
    /// # Errors
    ///
    /// [`NotBounded`] with the hypothesis that fails.
    pub fn new(layout: Layout) -> Result<Self, NotBounded> {
        if !layout.is_hidden_only() {
            return Err(NotBounded::Output(layout));
        }
        let alpha = layout.pure_paths().to_last_hidden();
        if alpha == 0.0 { Err(NotBounded::Saddle(layout)) } else { Ok(Self { layout, alpha }) }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number alpha of pure-shortcut paths to the last hidden node.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The latest time at which the flow from zero weights has the loss `relative * L(0)`: `ln(1/relative) / (2
    /// alpha²)`.
    pub fn time(&self, relative: f64) -> f64 {
        -relative.ln() / (2.0 * self.alpha * self.alpha)
    }
}

/// The relative loss that the times of this module are measured to.
pub const RELATIVE_LOSS: f64 = 1e-6;

/// The times to a relative loss of 1e-6 from weights of these sizes in the same random direction; infinity for those
/// beyond `until_time`.
///
/// # Errors
///
/// [`TargetError`] for a matrix that is no target.
pub fn times(
    layout: &Layout,
    target: &DMatrix<f64>,
    sizes: &[f64],
    draw: &mut Draw,
    until_time: f64,
) -> Result<Vec<f64>, TargetError> {
    let problem = Problem::whitened(layout, target.clone())?;
    let direction = draw.weights(&problem, 1.0);
    let until_loss = RELATIVE_LOSS * problem.target().scale();
    let settings = FlowSettings { until_loss, until_time, ..FlowSettings::default() };
    let mut flow = GradientFlow::new(&problem, settings);
    let times = sizes.iter().map(|size| {
        let mut start = direction.clone();
        start.values_mut().iter_mut().for_each(|w| *w *= size);
        flow.run(&start, |_, _| ()).reached().unwrap_or(f64::INFINITY)
    });
    Ok(times.collect())
}

/// Whether the time keeps growing as the weights shrink: from 1e-6 to 1e-8 by more than 5%, and by no less than half of
/// what it grew from 1e-4 to 1e-6, or not to be reached at all.
///
/// A time that diverges does so as `ln(1/eps)` or faster, by equal or growing amounts; one that is bounded has settled
/// by then, up to terms of the order of the weights.
///
/// # Errors
///
/// [`TargetError`] for a matrix that is no target.
pub fn keeps_growing(
    layout: &Layout,
    target: &DMatrix<f64>,
    draw: &mut Draw,
    until_time: f64,
) -> Result<bool, TargetError> {
    let times = times(layout, target, &[1e-4, 1e-6, 1e-8], draw, until_time)?;
    let settled = times[2] <= 1.05 * times[1] || times[2] - times[1] < 0.5 * (times[1] - times[0]);
    Ok(times[2].is_infinite() || !settled)
}

/// The layouts among these that keep growing for some of `instances` Gaussian targets, with the share of such targets.
fn growing(layouts: &[Layout], width: usize, seed: u64, instances: u64) -> Vec<(Layout, f64)> {
    let share = |layout: &Layout| {
        let grows = |&instance: &u64| {
            let mut draw = Draw::new(seed, instance);
            let target = draw.target(TargetLaw::Gaussian, width);
            keeps_growing(layout, &target, &mut draw, 2e4).unwrap_or(true)
        };
        (0..instances).filter(grows).count() as f64 / instances as f64
    };
    let shares = layouts.par_iter().map(|layout| (layout.clone(), share(layout)));
    shares.filter(|(_, share)| *share > 0.0).collect()
}

/// Checks the statements on fresh instances: random hidden-only layouts of depth 3 to 5, and all layouts of depth 3
/// with shortcuts into the output.
pub fn verify(seed: u64) -> Vec<Finding> {
    let finding = |source, statement: &str, measured, bound: &str, verdict| {
        Finding::new(3, source, statement, measured, bound, verdict)
    };
    let runs = 3000;
    let ratios: Vec<f64> = (0..runs)
        .into_par_iter()
        .filter_map(|instance| {
            let mut draw = Draw::new(seed, instance);
            let depth = 3 + draw.below(3);
            let bounded = Bounded::new(draw.layout(depth, true)).ok()?;
            let law = [TargetLaw::Gaussian, TargetLaw::Singular, TargetLaw::NearIdentity][draw.below(3)];
            let width = 2 + draw.below(4);
            let target = draw.target(law, width);
            let size = [1e-2, 1e-3, 1e-4, 1e-6][draw.below(4)];
            let times = times(bounded.layout(), &target, &[size], &mut draw, 1e3).ok()?;
            Some(times[0] / bounded.time(RELATIVE_LOSS))
        })
        .collect();
    // Every second layout or so is an instance.
    let worst = largest(ratios.iter().copied());
    let mut findings = vec![finding(
        Source::Measured,
        "hidden-only, kappa0 > 0: time bounded as eps -> 0",
        format!("T <= {worst:.3} ln(1e6)/2a², {} runs", ratios.len()),
        "1.1",
        Verdict::holds_if(worst < 1.1 && ratios.len() >= 1500),
    )];
    let layouts: Vec<Layout> = Layout::all(3).into_iter().flatten().collect();
    let output = layouts.into_iter().filter(|layout| !layout.is_hidden_only() && layout.pure_paths().kappa0() > 0.0);
    let output: Vec<Layout> = output.collect();
    let growing = growing(&output, 3, seed, 12);
    let names: Vec<String> = growing.iter().map(|(layout, _)| layout.to_string()).collect();
    findings.push(finding(
        Source::Measured,
        "kappa0 > 0 with output shortcuts bounds it, K = 3",
        names.join(", "),
        &format!("all {} layouts", output.len()),
        Verdict::refuted_if(names == ["0:1+1:2+2:3", "0:1+1:2+0:3+2:3"]),
    ));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hypotheses_are_checked() {
        let check = |text: &str| Bounded::new(Layout::parse(text, 4).unwrap());
        assert!(matches!(check("0:3+0:4"), Err(NotBounded::Output(_))));
        assert!(matches!(check("0:2"), Err(NotBounded::Saddle(_))));
        let dense = check("hidden-dense").unwrap();
        assert_eq!((dense.alpha(), dense.time(1e-6)), (4.0, 1e6_f64.ln() / 32.0));
    }

    #[test]
    fn the_time_of_a_single_shortcut_is_the_bound() {
        let bounded = Bounded::new(Layout::parse("0:2", 3).unwrap()).unwrap();
        let target = DMatrix::identity(2, 2);
        let time = times(bounded.layout(), &target, &[0.0], &mut Draw::new(0, 0), 100.0).unwrap()[0];
        assert!((time - bounded.time(1e-6)).abs() < 1e-4, "{time}");
    }

    #[test]
    fn growth_is_told_from_a_limit() {
        let grows = |text: &str, target: &DMatrix<f64>| {
            keeps_growing(&Layout::parse(text, 3).unwrap(), target, &mut Draw::new(1, 0), 1e5).unwrap()
        };
        let mirrored = DMatrix::from_diagonal(&nalgebra::dvector![-1.0, 1.0]);
        let plain = DMatrix::from_diagonal(&nalgebra::dvector![0.7, 1.0]);
        // The determinant of Y decides for the cascade, that of Y - I with 0:3 beside it.
        assert!(grows("cascade", &mirrored) && !grows("cascade", &plain));
        assert!(grows("0:1+1:2+0:3+2:3", &DMatrix::from_diagonal(&nalgebra::dvector![0.5, 1.5])));
        assert!(!grows("0:1+1:2+0:3+2:3", &DMatrix::from_diagonal(&nalgebra::dvector![1.5, 1.8])));
        assert!(!grows("0:2", &mirrored) && !grows("0:1+1:2", &mirrored));
    }

    #[test]
    fn statements_come_out() {
        let findings = verify(4);
        assert_eq!(findings.len(), 2);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }
}
