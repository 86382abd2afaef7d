//! How fast a hidden-only layout is from zero weights: its number alpha of pure-shortcut paths `0 -> K-1` decides.
//!
//! On the diagonal ansatz ([`ScalarFlows`](super::scalar_flows::ScalarFlows)) the flow is d scalar ones of
//! `f = w_K a(w_1..w_{K-1})`, where a is a polynomial with coefficients >= 0 and `a(0) = alpha`. From 0,
//! `0 <= f <= sigma` and no weight ever shrinks, so that `a >= alpha`, and the slope of `w_K` alone gives
//! `L' <= -2 alpha² L`.

use connection_layout::Layout;
use nalgebra::DMatrix;
use rayon::prelude::*;

use super::decay::{Decay, ExponentialBound};
use super::hypothesis::{self, HypothesisError};
use super::measure::{largest, median, smallest};
use super::scalar_flows;
use crate::flow::{FlowSettings, GradientFlow};
use crate::network::{Gradient, Problem};
use crate::{Draw, Finding, Source, TargetLaw, Verdict};

/// A certificate that from zero weights `L(t) <= L(0) exp(-2 alpha² t)`, whatever the target is.
///
/// ```
/// use connection_layout::Layout;
/// use theory::network::Problem;
/// use theory::theorems::zero_init::ZeroInit;
/// use theory::{Draw, TargetLaw};
///
/// let target = Draw::new(0, 0).target(TargetLaw::Gaussian, 3);
/// let dense = Problem::whitened(&Layout::parse("hidden-dense", 4)?, target.clone())?;
/// assert_eq!(ZeroInit::new(&dense)?.rate(), 32.0);
/// // No pure-shortcut path leads from the input to the last hidden node.
/// let slow = Problem::whitened(&Layout::parse("0:1", 4)?, target)?;
/// assert!(ZeroInit::new(&slow).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ZeroInit {
    problem: Problem,
    alpha: f64,
}

impl ZeroInit {
    /// The certificate of a problem.
    ///
    /// # Errors
    ///
    /// [`HypothesisError`] for coefficients that are not those of a layout, inputs that are not whitened, a shortcut
    /// into the output, and alpha = 0.
    pub fn new(problem: &Problem) -> Result<Self, HypothesisError> {
        let layout = hidden_only(problem)?;
        let alpha = layout.pure_paths().to_last_hidden();
        hypothesis::expect_at_least("the number of pure-shortcut paths 0 -> K-1", alpha, 1.0)?;
        Ok(Self { problem: problem.clone(), alpha })
    }

    /// The number of pure-shortcut paths `0 -> K-1`.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The rate `2 alpha²` of the loss. It is exact at time 0.
    pub fn rate(&self) -> f64 {
        2.0 * self.alpha.powi(2)
    }

    /// The bound on the loss from zero weights.
    pub fn bound(&self) -> ExponentialBound {
        ExponentialBound { first: self.problem.target().scale(), rate: self.rate() }
    }

    /// Follows the flow from zero weights.
    pub fn follow(&self) -> Decay {
        Decay::follow(&self.problem, &self.problem.zeros(), |_, _| ())
    }
}

/// The layout of a problem with whitened inputs and no shortcut into the output.
pub(super) fn hidden_only(problem: &Problem) -> Result<Layout, HypothesisError> {
    let layout = hypothesis::whitened_layout_of(problem)?;
    if layout.is_hidden_only() {
        return Ok(layout);
    }
    Err(HypothesisError::Layout { found: layout.to_string(), needed: "layouts without a shortcut into the output" })
}

/// The rate of one hidden-only layout from zero weights.
#[derive(Clone, Debug, PartialEq)]
pub struct AlphaRate {
    /// The layout.
    pub layout: Layout,
    /// Its number of pure-shortcut paths `0 -> K-1`, at least 1.
    pub alpha: f64,
    /// The largest rate r with `L(t) <= L(0) exp(-r t)` at every step; not below `2 alpha²`.
    pub kept: f64,
    /// The mean rate down to 1e-6 of the first loss, `ln(1e6) / t`.
    pub mean: f64,
}

/// The rates of all fast hidden-only layouts of a depth (at most 5) from zero weights, for one Gaussian target of width
/// 4.
pub fn rates_by_alpha(seed: u64, depth: usize) -> Vec<AlphaRate> {
    let target = Draw::new(seed, 0).target(TargetLaw::Gaussian, 4);
    fast_layouts(depth)
        .into_par_iter()
        .filter_map(|layout| {
            let certificate = ZeroInit::new(&Problem::whitened(&layout, target.clone()).ok()?).ok()?;
            let decay = certificate.follow();
            let first = certificate.bound().first;
            let later = decay.points().iter().filter(|p| p.time > 0.0);
            let kept = smallest(later.map(|p| -(p.loss / first).ln() / p.time));
            let time = decay.time_to(1e-6 * first)?;
            Some(AlphaRate { layout, alpha: certificate.alpha(), kept, mean: 1e6_f64.ln() / time })
        })
        .collect()
}

/// The hidden-only layouts of a depth with a pure-shortcut path `0 -> K-1`.
fn fast_layouts(depth: usize) -> Vec<Layout> {
    Layout::all_hidden_only(depth).map_or_else(|_| Vec::new(), |layouts| layouts.filter(Layout::is_fast).collect())
}

/// Those without one, for which zero weights are a critical point.
fn slow_layouts(depth: usize) -> Vec<Layout> {
    Layout::all_hidden_only(depth).map_or_else(|_| Vec::new(), |layouts| layouts.filter(|l| !l.is_fast()).collect())
}

/// The smallest local rate of a flow from Gaussian weights of size `epsilon`, as a multiple of `2 alpha²`.
pub fn rate_from_small_weights(certificate: &ZeroInit, draw: &mut Draw, epsilon: f64) -> f64 {
    let weights = draw.weights(&certificate.problem, epsilon);
    Decay::follow(&certificate.problem, &weights, |_, _| ()).lowest_rate() / certificate.rate()
}

/// The time that a layout takes from Gaussian weights of size `epsilon` to half the loss of zero weights; infinite if
/// it takes longer than 1e7.
pub fn escape_time(problem: &Problem, draw: &mut Draw, epsilon: f64) -> f64 {
    let settings =
        FlowSettings { until_loss: 0.5 * problem.target().scale(), until_time: 1e7, ..FlowSettings::default() };
    let weights = draw.weights(problem, epsilon);
    GradientFlow::new(problem, settings).run(&weights, |_, _| ()).reached().unwrap_or(f64::INFINITY)
}

/// Checks the statements on fresh instances.
pub fn verify(seed: u64) -> Vec<Finding> {
    let mut findings = vec![every_target(seed), scalar_flows::finding(seed), small_weights(seed)];
    findings.extend(slow(seed));
    findings.push(counts());
    findings
}

/// Targets of every kind: large, small, singular, of either determinant.
fn any_target(draw: &mut Draw) -> DMatrix<f64> {
    let d = 1 + draw.below(5);
    let law = [TargetLaw::Gaussian, TargetLaw::Singular, TargetLaw::NearIdentity][draw.below(3)];
    let target = draw.target(law, d);
    let factor = (2.0 * draw.normal()).exp();
    // A singular target of width 1 is 0, and every rate holds for it.
    if target.norm() > 1e-6 { target * factor } else { DMatrix::identity(d, d) * factor }
}

fn problem(layout: &Layout, target: DMatrix<f64>) -> Problem {
    Problem::whitened(layout, target).unwrap_or_else(|error| unreachable!("{error}"))
}

fn certified(seed: u64) -> Vec<(u64, ZeroInit)> {
    let mut layouts: Vec<Layout> = [3, 4].into_iter().flat_map(fast_layouts).collect();
    layouts.extend((0..200).filter_map(|i| {
        let layout = Draw::new(seed, 10_000 + i).layout(5 + i as usize % 2, true);
        layout.is_fast().then_some(layout)
    }));
    let instances = layouts.iter().flat_map(|layout| [layout; 3]).zip(0..);
    instances
        .filter_map(|(layout, i)| Some((i, ZeroInit::new(&problem(layout, any_target(&mut Draw::new(seed, i)))).ok()?)))
        .collect()
}

fn every_target(seed: u64) -> Finding {
    let certificates = certified(seed);
    let runs: Vec<(f64, bool)> = certificates
        .par_iter()
        .map(|(_, certificate)| {
            let decay = certificate.follow();
            (decay.lowest_rate() / certificate.rate(), decay.keeps(certificate.rate()))
        })
        .collect();
    let slack = smallest(runs.iter().map(|run| run.0));
    Finding {
        section: 3,
        source: Source::Proved,
        statement: "hidden-only, alpha >= 1, W = 0: L <= L(0) e^(-2 alpha^2 t)".into(),
        measured: format!("least rate / bound {slack:.6}, {} runs", runs.len()),
        bound: ">= 1, every Y".into(),
        verdict: Verdict::holds_if(runs.len() > 200 && runs.iter().all(|run| run.1)),
    }
}

fn small_weights(seed: u64) -> Finding {
    let target = Draw::new(seed, 30_000).target(TargetLaw::Gaussian, 3);
    let certificates: Vec<ZeroInit> =
        fast_layouts(4).iter().filter_map(|l| ZeroInit::new(&problem(l, target.clone())).ok()).collect();
    let shares = [1e-1, 1e-2, 1e-3].map(|epsilon| {
        let runs = certificates.par_iter().enumerate().map(|(i, certificate)| {
            rate_from_small_weights(certificate, &mut Draw::new(seed, 30_001 + i as u64), epsilon)
        });
        smallest(runs.collect::<Vec<_>>())
    });
    Finding {
        section: 3,
        source: Source::Proved,
        statement: "alpha >= 1, weights -> 0: rate -> 2 alpha^2 or more (K = 4)".into(),
        measured: format!("least {:.2}, {:.3}, {:.4} of 2 alpha^2", shares[0], shares[1], shares[2]),
        bound: ">= .95 at size 1e-3".into(),
        verdict: Verdict::holds_if(
            certificates.len() == 47 && shares[2] >= 0.95 && shares[0] < shares[1] && shares[1] < shares[2],
        ),
    }
}

fn slow(seed: u64) -> [Finding; 2] {
    let layouts: Vec<Layout> = (2..=5).flat_map(slow_layouts).collect();
    let gradients = largest(layouts.iter().zip(0..).map(|(layout, i)| {
        let problem = problem(layout, any_target(&mut Draw::new(seed, 40_000 + i)));
        largest(Gradient::at(&problem, &problem.zeros()).1.values().iter().map(|g| g.abs()))
    }));
    let sizes = [1e-1, 1e-2, 1e-3];
    let slow: Vec<Layout> = [3, 4].into_iter().flat_map(slow_layouts).collect();
    let times: Vec<[f64; 3]> = slow
        .par_iter()
        .map(|layout| {
            sizes.map(|epsilon| {
                median((0..9).map(|i| {
                    let mut draw = Draw::new(seed, 50_000 + i);
                    let problem = problem(layout, draw.target(TargetLaw::Gaussian, 2));
                    escape_time(&problem, &mut draw, epsilon)
                }))
            })
        })
        .collect();
    // Even the slowest growth, that of ln(1/eps), adds the same again from 1e-2 to 1e-3 as from 1e-1 to 1e-2.
    let growth = smallest(times.iter().map(|t| (t[2] - t[1]) / t[1]));
    [
        Finding {
            section: 3,
            source: Source::Proved,
            statement: "hidden-only, alpha = 0: W = 0 is a critical point".into(),
            measured: format!("|gradient| {gradients:.0e}, all {} of K = 2..5", layouts.len()),
            bound: "0 exactly".into(),
            verdict: Verdict::holds_if(gradients == 0.0),
        },
        Finding {
            section: 3,
            source: Source::Proved,
            statement: "hidden-only, alpha = 0: slower for smaller weights".into(),
            measured: format!("time to L/2 x{:.2} or more, {} layouts", 1.0 + growth, times.len()),
            bound: "> 1.1 from 1e-2 to 1e-3".into(),
            verdict: Verdict::holds_if(growth > 0.1 && times.iter().all(|t| t[0] < t[1] && t[2].is_finite())),
        },
    ]
}

fn counts() -> Finding {
    let counts =
        [3, 4, 5].map(|depth| (fast_layouts(depth).len(), fast_layouts(depth).len() + slow_layouts(depth).len()));
    Finding {
        section: 3,
        source: Source::Proved,
        statement: "fast hidden-only layouts at K = 3, 4, 5".into(),
        measured: counts.map(|(fast, all)| format!("{fast}/{all}")).join(", "),
        bound: "5/8, 47/64, 841/1024".into(),
        verdict: Verdict::holds_if(counts == [(5, 8), (47, 64), (841, 1024)]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_statements_hold() {
        let findings = verify(13);
        assert_eq!(findings.len(), 6);
        for finding in findings {
            assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
        }
    }

    #[test]
    fn the_slowest_fast_layout_is_the_single_shortcut() {
        let rates = rates_by_alpha(1, 4);
        assert_eq!(rates.len(), 47);
        for rate in &rates {
            let bound = 2.0 * rate.alpha.powi(2);
            assert!(rate.kept >= bound * (1.0 - 1e-5) && rate.mean >= rate.kept, "{rate:?}");
        }
        // Others are as slow, those that differ from it in dead layers only.
        let single = rates.iter().find(|rate| rate.layout.to_string() == "0:3").unwrap();
        assert!((single.mean - 2.0).abs() < 1e-5, "{single:?}");
        assert!(rates.iter().all(|rate| rate.mean >= single.mean - 1e-6));
        assert!(rates.iter().filter(|rate| rate.mean < 2.0 + 1e-5).count() < 6);
    }

    #[test]
    fn failed_hypotheses_are_named() {
        let problem = |text: &str| problem(&Layout::parse(text, 3).unwrap(), DMatrix::identity(2, 2));
        let message = |text: &str| ZeroInit::new(&problem(text)).unwrap_err().to_string();
        assert!(message("0:1").contains("pure-shortcut paths 0 -> K-1 is 0"));
        assert!(message("0:2+2:3").contains("0:2+2:3: the statement is about layouts without"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn fast_layouts_keep_their_rate(seed in any::<u64>(), depth in 2usize..=6) {
            let mut draw = Draw::new(seed, 0);
            let layout = draw.layout(depth, true);
            let problem = problem(&layout, any_target(&mut draw));
            match ZeroInit::new(&problem) {
                Ok(certificate) => {
                    let decay = certificate.follow();
                    prop_assert!(decay.keeps(certificate.rate()), "{}: {}", layout, decay.lowest_rate());
                }
                Err(_) => {
                    prop_assert!(!layout.is_fast(), "{}", layout);
                    let (_, gradient) = Gradient::at(&problem, &problem.zeros());
                    prop_assert!(gradient.values().iter().all(|g| *g == 0.0), "{}", layout);
                }
            }
        }
    }
}
