//! Small measurements that several statements share.

use nalgebra::{DMatrix, DMatrixView};

use crate::flow::{Ending, FlowOutcome};

/// The largest of some numbers; not a number if one of them is not, so that no failure is passed over.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) })
}

/// The smallest of some numbers; not a number if one of them is not.
pub(crate) fn smallest(values: impl IntoIterator<Item = f64>) -> f64 {
    -largest(values.into_iter().map(|value| -value))
}

/// The upper median of some numbers; infinite ones count. Not a number if there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The exponent p of the power law `y = c x^p` that fits the pairs best in the logarithms.
pub(crate) fn exponent(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let logarithms: Vec<(f64, f64)> = pairs.into_iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logarithms.len() as f64;
    let mean = (logarithms.iter().map(|p| p.0).sum::<f64>() / n, logarithms.iter().map(|p| p.1).sum::<f64>() / n);
    let product =
        |f: fn((f64, f64)) -> f64| -> f64 { logarithms.iter().map(|&(x, y)| f((x - mean.0, y - mean.1))).sum() };
    product(|(x, y)| x * y) / product(|(x, _)| x * x)
}

/// Whether a flow got where it was sent: to its loss, to the noise floor or to its time. One that ran out of steps or
/// diverged did not, and what was seen along it says nothing about the rest.
pub(crate) fn arrived(outcome: &FlowOutcome, until_time: f64) -> bool {
    match outcome.ending {
        Ending::Reached | Ending::NoiseFloor => true,
        Ending::Limit => outcome.time >= until_time,
        Ending::Diverged => false,
    }
}

/// The largest singular value.
pub(crate) fn spectral_norm(matrix: &DMatrix<f64>) -> f64 {
    largest(matrix.singular_values().iter().copied())
}

/// The largest singular value of a layer.
pub(crate) fn norm_of(layer: DMatrixView<'_, f64>) -> f64 {
    spectral_norm(&layer.into_owned())
}

#[cfg(test)]
mod tests {
    use connection_layout::Layout;

    use super::*;
    use crate::flow::{FlowSettings, GradientFlow};
    use crate::network::Problem;

    #[test]
    fn what_is_not_a_number_is_not_passed_over() {
        assert!(largest([1.0, f64::NAN, 2.0]).is_nan() && smallest([f64::NAN, 0.0]).is_nan());
        assert_eq!((largest([1.0, 3.0, 2.0]), smallest([1.0, 3.0, 2.0])), (3.0, 1.0));
        assert_eq!(median([1.0, f64::INFINITY, 5.0, 0.0]), 5.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_flow_that_runs_out_of_steps_did_not_arrive() {
        let problem = Problem::whitened(&Layout::parse("0:2", 3).unwrap(), DMatrix::identity(2, 2)).unwrap();
        let run = |settings| GradientFlow::new(&problem, settings).run(&problem.zeros(), |_, _| ());
        let settings = FlowSettings { until_time: 5.0, ..FlowSettings::default() };
        assert!(arrived(&run(settings), 5.0));
        assert!(!arrived(&run(FlowSettings { most_steps: 3, ..settings }), 5.0));
        assert!(arrived(&run(FlowSettings { until_loss: 0.5, ..settings }), 5.0));
        assert!(!arrived(&FlowOutcome { ending: Ending::Diverged, ..run(settings) }, 5.0));
    }

    #[test]
    fn a_power_law_has_its_exponent() {
        let pairs = [1.0, 2.0, 5.0, 9.0].map(|x: f64| (x, 3.0 * x.powf(-1.5)));
        assert!((exponent(pairs) + 1.5).abs() < 1e-12);
    }
}
