//! Checks that several statements share, and how a hypothesis fails.

use connection_layout::Layout;
use nalgebra::DMatrix;
use thiserror::Error;

use super::measure::largest;
use crate::network::{Connections, Problem, Weights};

/// Which hypothesis of a statement does not hold, and by how much.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum HypothesisError {
    /// The layout is another one.
    #[error("the layout is {found}: the statement is about {needed}")]
    Layout {
        /// The layout of the problem, in the notation.
        found: String,
        /// The layouts that the statement is about.
        needed: &'static str,
    },
    /// The coefficients are learned, or one of them is neither 0 nor 1.
    #[error("the statement is about a layout: its coefficients are fixed, and each is 0 or 1")]
    Coefficients,
    /// The inputs are not whitened.
    #[error("the statement is about whitened inputs, X Xᵀ = I")]
    NotWhitened,
    /// The weights are those of another problem.
    #[error("the weights have {found:?} layers and width, and the problem has {needed:?}")]
    Shape {
        /// Depth and width of the weights.
        found: (usize, usize),
        /// Depth and width of the problem.
        needed: (usize, usize),
    },
    /// A number lies outside of what the statement allows.
    #[error("{what} is {found:.4e}: it has to be {relation} {limit:.4e}")]
    OutOfRange {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: f64,
        /// How it has to compare to the limit.
        relation: &'static str,
        /// The limit.
        limit: f64,
    },
}

/// The layout of a problem that has fixed coefficients 0 and 1.
pub(super) fn layout_of(problem: &Problem) -> Result<Layout, HypothesisError> {
    match problem.net().connections() {
        Connections::Fixed(coefficients) if coefficients.iter().all(|(_, c)| c == 0.0 || c == 1.0) => {
            Ok(coefficients.layout_above(0.5))
        }
        _ => Err(HypothesisError::Coefficients),
    }
}

/// The same, for a problem with whitened inputs.
pub(super) fn whitened_layout_of(problem: &Problem) -> Result<Layout, HypothesisError> {
    if problem.target().gram().is_some() { Err(HypothesisError::NotWhitened) } else { layout_of(problem) }
}

/// Checks that the layout of a problem consists of these shortcuts.
pub(super) fn expect_layout(
    layout: &Layout,
    shortcuts: impl IntoIterator<Item = (usize, usize)>,
    needed: &'static str,
) -> Result<(), HypothesisError> {
    match Layout::new(layout.depth(), shortcuts) {
        Ok(expected) if &expected == layout => Ok(()),
        _ => Err(HypothesisError::Layout { found: layout.to_string(), needed }),
    }
}

/// Checks that weights fit a problem and are finite.
pub(super) fn expect_shape(problem: &Problem, weights: &Weights) -> Result<(), HypothesisError> {
    let (found, needed) = ((weights.depth(), weights.width()), (problem.depth(), problem.width()));
    if found != needed {
        return Err(HypothesisError::Shape { found, needed });
    }
    // Singular values of what is not a number would never be found.
    expect_below("the largest weight", largest(weights.values().iter().map(|w| w.abs())), f64::INFINITY)
}

/// Checks that the rows of a matrix with d rows are orthonormal, and with `square` that it has d columns.
pub(super) fn expect_orthonormal(matrix: &DMatrix<f64>, d: usize, square: bool) -> Result<(), HypothesisError> {
    let fits = matrix.nrows() == d && (!square || matrix.ncols() == d);
    let defect = if fits {
        largest((matrix * matrix.transpose() - DMatrix::identity(d, d)).iter().map(|entry| entry.abs()))
    } else {
        f64::INFINITY
    };
    expect_below("the defect of orthogonality", defect, 1e-12)
}

/// Checks `found < limit`.
pub(super) fn expect_below(what: &'static str, found: f64, limit: f64) -> Result<(), HypothesisError> {
    // Not a number is out of range.
    if found < limit { Ok(()) } else { Err(HypothesisError::OutOfRange { what, found, relation: "below", limit }) }
}

/// Checks `found > limit`.
pub(super) fn expect_above(what: &'static str, found: f64, limit: f64) -> Result<(), HypothesisError> {
    if found > limit { Ok(()) } else { Err(HypothesisError::OutOfRange { what, found, relation: "above", limit }) }
}

/// Checks `found >= limit`.
pub(super) fn expect_at_least(what: &'static str, found: f64, limit: f64) -> Result<(), HypothesisError> {
    let relation = "at least";
    if found >= limit { Ok(()) } else { Err(HypothesisError::OutOfRange { what, found, relation, limit }) }
}

#[cfg(test)]
mod tests {
    use connection_layout::Coefficients;

    use super::*;
    use crate::network::{LinearNet, Target};

    #[test]
    fn a_layout_is_read_back_and_mixed_coefficients_are_refused() {
        let layout = Layout::parse("0:2+1:3", 4).unwrap();
        let problem = Problem::whitened(&layout, DMatrix::identity(2, 2)).unwrap();
        assert_eq!(whitened_layout_of(&problem), Ok(layout));
        let net = LinearNet::new(3, Connections::Fixed(Coefficients::uniform_incoming(3).unwrap())).unwrap();
        let mixed = Problem::new(net, Target::whitened(DMatrix::identity(2, 2)).unwrap());
        assert_eq!(layout_of(&mixed), Err(HypothesisError::Coefficients));
    }

    #[test]
    fn data_is_whitened_or_not() {
        let inputs = DMatrix::from_fn(2, 3, |i, j| (i + j) as f64);
        let net = LinearNet::of_layout(&Layout::parse("0:1", 2).unwrap());
        let problem = Problem::new(net, Target::from_data(&inputs, &inputs).unwrap());
        assert_eq!(whitened_layout_of(&problem), Err(HypothesisError::NotWhitened));
        assert!(layout_of(&problem).is_ok());
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        let problem = Problem::whitened(&Layout::none(2).unwrap(), DMatrix::identity(2, 2)).unwrap();
        let mut weights = problem.zeros();
        assert!(expect_shape(&problem, &weights).is_ok());
        weights.values_mut()[3] = f64::NAN;
        assert!(expect_shape(&problem, &weights).is_err());
        assert!(expect_orthonormal(&DMatrix::from_element(2, 2, f64::NAN), 2, true).is_err());
        let wide = DMatrix::identity(2, 3);
        assert!(expect_orthonormal(&wide, 2, false).is_ok() && expect_orthonormal(&wide, 2, true).is_err());
    }

    #[test]
    fn messages_name_the_numbers() {
        let error = expect_below("the size of the weights", 0.25, 0.125).unwrap_err();
        assert_eq!(error.to_string(), "the size of the weights is 2.5000e-1: it has to be below 1.2500e-1");
        assert!(expect_below("x", f64::NAN, 1.0).is_err() && expect_at_least("x", f64::NAN, 1.0).is_err());
        let error = expect_above("eps", -0.5, 0.0).unwrap_err();
        assert_eq!(error.to_string(), "eps is -5.0000e-1: it has to be above 0.0000e0");
        assert!(expect_above("x", 1.0, 1.0).is_err() && expect_above("x", f64::NAN, 1.0).is_err());
        let error = expect_layout(&Layout::parse("0:1", 3).unwrap(), [(0, 2)], "0:K-1").unwrap_err();
        assert_eq!(error.to_string(), "the layout is 0:1: the statement is about 0:K-1");
    }
}
