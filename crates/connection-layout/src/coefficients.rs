//! One number per possible shortcut: the weights with which states are added, or the logits behind
//! them.

use std::fmt;

use thiserror::Error;

use crate::layout::{Layout, LayoutError};
use crate::normalize::Direction;
use crate::paths::PurePaths;
use crate::shortcut::{Shortcut, capacity, row_start};

/// Why coefficients could not be built or normalised.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CoefficientsError {
    /// The depth, that is the number of rows, is illegal.
    #[error(transparent)]
    Depth(#[from] LayoutError),
    /// A row that does not have one number per source.
    #[error("row {target} has {found} coefficients: node {target} has {target} possible sources, 0 to {}", target - 1)]
    RowLength {
        /// The target that the row stands for, from 1.
        target: usize,
        /// How many numbers were given.
        found: usize,
    },
    /// A coefficient that is infinite or not a number.
    #[error("the coefficient of {shortcut} is {value}: coefficients must be finite")]
    NotFinite {
        /// The shortcut.
        shortcut: Shortcut,
        /// The offending value.
        value: f64,
    },
    /// A negative coefficient where shares are asked for.
    #[error("the coefficient of {shortcut} is {value}: only coefficients that are not negative have an entropy")]
    Negative {
        /// The shortcut.
        shortcut: Shortcut,
        /// The offending value.
        value: f64,
    },
    /// Coefficients that cancel and so cannot be scaled to a sum of 1.
    #[error("the {direction} coefficients of node {node} sum to 0 and cannot be normalised")]
    ZeroSum {
        /// Whether the coefficients enter or leave the node.
        direction: Direction,
        /// The node.
        node: usize,
    },
    /// A softmax temperature that is not a positive number.
    #[error("the softmax temperature is {0}: it must be positive and finite")]
    Temperature(f64),
    /// Coefficients and a layout of different depths.
    #[error("the coefficients have depth {coefficients} and the layout has depth {layout}: they must agree")]
    DepthMismatch {
        /// The depth of the coefficients.
        coefficients: usize,
        /// The depth of the layout.
        layout: usize,
    },
    /// A coefficient for a pair of nodes that is no shortcut at this depth.
    #[error("there is no shortcut {source_node}:{target} at depth {depth}: 0 <= source < target <= {depth}")]
    NoSuchShortcut {
        /// The first node.
        source_node: usize,
        /// The second node.
        target: usize,
        /// The depth of the coefficients.
        depth: usize,
    },
}

/// A strictly triangular matrix of finite `f64`: a coefficient `c[l][i]` for every shortcut `i:l`,
/// `0 <= i < l <= K`.
///
/// In the forward rule `h_l = B_l(h_{l-1}) + sum_i c[l][i] h_i` the coefficients scale the states
/// that enter node l. The same type holds the logits from which a
/// [softmax](Coefficients::softmax) makes them. Row l has the `l` sources of node l, so that there
/// are `K(K+1)/2` numbers in all and none is stored in vain.
///
/// ```
/// use connection_layout::{Coefficients, Direction};
///
/// // Every node averages all earlier ones. When the blocks are the identity the state grows.
/// let uniform = Coefficients::uniform_incoming(4)?;
/// assert_eq!(uniform.row(4), [0.25; 4]);
/// assert_eq!(uniform.sums(Direction::Incoming), [1.0; 4]);
/// assert!((uniform.identity_growth()[4] - 8.708).abs() < 1e-3);
/// # Ok::<(), connection_layout::CoefficientsError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Coefficients {
    depth: u16,
    /// At `Shortcut::position`, so row by row.
    values: Vec<f64>,
}

impl Coefficients {
    /// The coefficient that `value(source, target)` gives to each shortcut.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::Depth`] for an illegal depth, [`CoefficientsError::NotFinite`] for a
    /// value that is infinite or not a number.
    pub fn from_fn(depth: usize, mut value: impl FnMut(usize, usize) -> f64) -> Result<Self, CoefficientsError> {
        let mut coefficients = Self::from_layout(&Layout::none(depth)?);
        for target in 1..=depth {
            for source in 0..target {
                coefficients.set(source, target, value(source, target))?;
            }
        }
        Ok(coefficients)
    }

    /// The coefficients in rows: row l, counted from 1, has those of the sources `0..l` of node l.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::RowLength`] unless the rows have lengths 1, 2, 3, ..., and the errors
    /// of [`from_fn`](Self::from_fn).
    pub fn from_rows<R: AsRef<[f64]>>(rows: impl IntoIterator<Item = R>) -> Result<Self, CoefficientsError> {
        let rows: Vec<R> = rows.into_iter().collect();
        for (row, target) in rows.iter().zip(1..) {
            let found = row.as_ref().len();
            if found != target {
                return Err(CoefficientsError::RowLength { target, found });
            }
        }
        Self::from_fn(rows.len(), |source, target| rows[target - 1].as_ref()[source])
    }

    /// 1 for the shortcuts of a layout and 0 for the others.
    pub fn from_layout(layout: &Layout) -> Self {
        let mut values = vec![0.0; capacity(layout.depth())];
        for shortcut in layout.iter() {
            values[shortcut.position()] = 1.0;
        }
        Self { depth: layout.short_depth(), values }
    }

    /// Every node takes the mean of all earlier ones: `c[l][i] = 1/l`. ANCRe starts here.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::Depth`] for an illegal depth.
    pub fn uniform_incoming(depth: usize) -> Result<Self, CoefficientsError> {
        Self::from_fn(depth, |_, target| 1.0 / target as f64)
    }

    /// Every node is shared out equally among all later ones: `c[l][i] = 1/(K-i)`.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::Depth`] for an illegal depth.
    pub fn uniform_outgoing(depth: usize) -> Result<Self, CoefficientsError> {
        Self::from_fn(depth, |source, _| 1.0 / (depth - source) as f64)
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        usize::from(self.depth)
    }

    /// The coefficient of the shortcut `source:target`; `None` for pairs that are no shortcut here.
    pub fn get(&self, source: usize, target: usize) -> Option<f64> {
        self.row(target).get(source).copied()
    }

    /// Sets the coefficient of the shortcut `source:target`.
    ///
    /// # Errors
    ///
    /// [`CoefficientsError::NoSuchShortcut`] and [`CoefficientsError::NotFinite`].
    pub fn set(&mut self, source: usize, target: usize, value: f64) -> Result<(), CoefficientsError> {
        let depth = self.depth();
        match Shortcut::new(source, target) {
            Ok(shortcut) if !value.is_finite() => Err(CoefficientsError::NotFinite { shortcut, value }),
            Ok(shortcut) if target <= depth => {
                self.values[shortcut.position()] = value;
                Ok(())
            }
            _ => Err(CoefficientsError::NoSuchShortcut { source_node: source, target, depth }),
        }
    }

    /// The coefficients of the sources `0..target` of a node; empty when the node has no sources.
    pub fn row(&self, target: usize) -> &[f64] {
        if (1..=self.depth()).contains(&target) { &self.values[row_start(target)..][..target] } else { &[] }
    }

    /// The rows of the targets `1..=K`.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        (0..self.depth()).map(|index| self.row(index + 1))
    }

    /// Every shortcut with its coefficient, by target, then by source.
    pub fn iter(&self) -> impl Iterator<Item = (Shortcut, f64)> + '_ {
        let pairs = (1..=self.depth()).flat_map(|target| (0..target).map(move |source| (source, target)));
        // `Shortcut::new` cannot refuse: the source is smaller than the target, and the depth is
        // legal.
        pairs.filter_map(|(source, target)| Shortcut::new(source, target).ok()).zip(self.values.iter().copied())
    }

    /// The layout of the shortcuts whose coefficient is larger than `threshold` in absolute value.
    ///
    /// With threshold 0 it is the support; with 1/2 it is the layout that a saturated softmax has
    /// settled on.
    pub fn layout_above(&self, threshold: f64) -> Layout {
        let mut layout = Layout::blank(self.depth);
        for (position, _) in self.values.iter().enumerate().filter(|(_, c)| c.abs() > threshold) {
            layout.insert_position(position);
        }
        layout
    }

    /// The state `h_0, ..., h_K` of a stack whose blocks are the identity, from `h_0 = 1`:
    /// `h_l = h_{l-1} + sum_i c[l][i] h_i`.
    ///
    /// This is how much the connections alone scale the stream, and at a start where the blocks are
    /// the identity it is what happens. For [uniform incoming](Self::uniform_incoming) coefficients
    /// `h_K = sum_j binomial(K, j) / j!`, the Laguerre polynomial `L_K` at -1: 8.7 for 4 layers,
    /// 111 for 12, 3295 for 28. A value that leaves the range of `f64` is infinite.
    pub fn identity_growth(&self) -> Vec<f64> {
        let mut states = Vec::with_capacity(self.depth() + 1);
        states.push(1.0);
        for row in self.rows() {
            let mixed: f64 = row.iter().zip(&states).map(|(c, h)| c * h).sum();
            states.push(states[states.len() - 1] + mixed);
        }
        states
    }

    /// The pure-shortcut paths, each with the product of its coefficients.
    ///
    /// For the coefficients of a layout these are its path counts, [`Layout::pure_paths`].
    pub fn pure_paths(&self) -> PurePaths {
        PurePaths::sum(self.depth(), |source, target| self.values[row_start(target) + source])
    }

    /// Each node with the positions of the coefficients that enter or leave it.
    pub(crate) fn groups(&self, direction: Direction) -> impl Iterator<Item = (usize, Vec<usize>)> + use<> {
        let depth = self.depth();
        (0..depth).map(move |index| match direction {
            Direction::Incoming => (index + 1, (row_start(index + 1)..row_start(index + 2)).collect()),
            Direction::Outgoing => (index, (index + 1..=depth).map(|l| row_start(l) + index).collect()),
        })
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Coefficients of the same depth with other values.
    pub(crate) fn with_values(&self, values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len(), self.values.len());
        Self { depth: self.depth, values }
    }
}

impl fmt::Debug for Coefficients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::{any_layout, coefficients};

    #[test]
    fn messages_say_what_where_and_what_to_do() {
        let message = |rows: &[Vec<f64>]| Coefficients::from_rows(rows).unwrap_err().to_string();
        expect!["a depth of 0 is not possible: a stack has between 1 and 256 layers"].assert_eq(&message(&[]));
        expect!["row 2 has 1 coefficients: node 2 has 2 possible sources, 0 to 1"]
            .assert_eq(&message(&[vec![1.0], vec![1.0]]));
        expect!["the coefficient of 1:2 is NaN: coefficients must be finite"]
            .assert_eq(&message(&[vec![1.0], vec![1.0, f64::NAN]]));
        expect!["the coefficient of 0:1 is inf: coefficients must be finite"]
            .assert_eq(&message(&[vec![f64::INFINITY]]));
        let mut coefficients = Coefficients::uniform_incoming(3).unwrap();
        expect!["there is no shortcut 1:4 at depth 3: 0 <= source < target <= 3"]
            .assert_eq(&coefficients.set(1, 4, 0.5).unwrap_err().to_string());
        expect!["there is no shortcut 2:2 at depth 3: 0 <= source < target <= 3"]
            .assert_eq(&coefficients.set(2, 2, 0.5).unwrap_err().to_string());
        assert_eq!(coefficients, Coefficients::uniform_incoming(3).unwrap());
    }

    #[test]
    fn entries_are_found_by_source_and_target() {
        let mut coefficients = Coefficients::from_fn(3, |source, target| (10 * source + target) as f64).unwrap();
        assert_eq!(coefficients.row(3), [3.0, 13.0, 23.0]);
        assert_eq!(coefficients.get(1, 3), Some(13.0));
        coefficients.set(1, 3, -1.0).unwrap();
        assert_eq!(format!("{coefficients:?}"), "[[1.0], [2.0, 12.0], [3.0, -1.0, 23.0]]");
        for (source, target) in [(0, 0), (1, 1), (2, 1), (0, 4), (usize::MAX, 0), (0, usize::MAX)] {
            assert_eq!(coefficients.get(source, target), None);
        }
        assert_eq!(coefficients.row(0), [0.0; 0]);
        assert_eq!(Coefficients::from_rows(coefficients.rows()).unwrap(), coefficients);
    }

    /// `sum_j binomial(K, j) / j!`
    fn laguerre_at_minus_one(degree: usize) -> f64 {
        let (mut term, mut sum) = (1.0, 1.0);
        for j in 1..=degree {
            term *= (degree - j + 1) as f64 / (j * j) as f64;
            sum += term;
        }
        sum
    }

    #[test]
    fn uniform_coefficients_grow_like_a_laguerre_polynomial() {
        // Published to the digits shown.
        let published = [(4, 8.708, 5e-4), (12, 111.3, 0.05), (16, 296.3, 0.05), (28, 3294.6, 0.05)];
        for (depth, value, half_a_digit) in published {
            let growth = Coefficients::uniform_incoming(depth).unwrap().identity_growth();
            assert!((growth[depth] - value).abs() <= half_a_digit);
            for (degree, state) in growth.into_iter().enumerate() {
                let exact = laguerre_at_minus_one(degree);
                assert!((state - exact).abs() <= 1e-13 * exact, "degree {degree}");
            }
        }
    }

    #[test]
    fn growth_of_well_known_layouts() {
        let growth = |text| Coefficients::from_layout(&Layout::parse(text, 4).unwrap()).identity_growth();
        assert_eq!(growth("none"), [1.0; 5]);
        assert_eq!(growth("cascade"), [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(growth("0:l"), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(growth("0:3"), [1.0, 1.0, 1.0, 2.0, 2.0]);
    }

    /// The weight of all paths from `node` to the output, through layers with weight 1 and shortcuts
    /// with theirs, one path at a time.
    fn sum_over_paths(coefficients: &Coefficients, node: usize, layer: f64) -> f64 {
        let depth = coefficients.depth();
        if node == depth {
            return 1.0;
        }
        let shortcuts: f64 = (node + 1..=depth)
            .map(|next| coefficients.get(node, next).unwrap() * sum_over_paths(coefficients, next, layer))
            .sum();
        shortcuts + layer * sum_over_paths(coefficients, node + 1, layer)
    }

    proptest! {
        #[test]
        fn growth_is_the_sum_over_all_paths(coefficients in coefficients(6, -2.0..2.0)) {
            let growth = coefficients.identity_growth();
            let expected = sum_over_paths(&coefficients, 0, 1.0);
            prop_assert!((growth[coefficients.depth()] - expected).abs() <= 1e-10 * (1.0 + expected.abs()));
        }

        #[test]
        fn pure_paths_are_the_sum_over_shortcuts_alone(coefficients in coefficients(6, -2.0..2.0)) {
            let paths = coefficients.pure_paths();
            for node in 0..=coefficients.depth() {
                let expected = sum_over_paths(&coefficients, node, 0.0);
                prop_assert!((paths.to_output()[node] - expected).abs() <= 1e-10 * (1.0 + expected.abs()));
            }
            let (forward, backward) = (paths.from_input()[coefficients.depth()], paths.to_output()[0]);
            prop_assert!((forward - backward).abs() <= 1e-10 * (1.0 + forward.abs()));
        }

        #[test]
        fn a_layout_and_its_coefficients_agree(layout in any_layout()) {
            let coefficients = Coefficients::from_layout(&layout);
            prop_assert_eq!(coefficients.pure_paths(), layout.pure_paths());
            prop_assert_eq!(&coefficients.layout_above(0.0), &layout);
            prop_assert_eq!(&coefficients.layout_above(0.999), &layout);
            prop_assert!(coefficients.layout_above(1.0).is_empty());
            prop_assert!(coefficients.layout_above(f64::NAN).is_empty());
            for (shortcut, value) in coefficients.iter() {
                prop_assert_eq!(value == 1.0, layout.contains(shortcut.source(), shortcut.target()));
            }
        }
    }
}
