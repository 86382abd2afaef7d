//! Paths through a layout that use no weight layer, and what they decide at the start of training.
//!
//! A *pure-shortcut path* runs along shortcuts only. In a linear network with all weights at zero,
//! layer l sees the input `alpha_l` times and the loss sees layer l `beta_l` times, where `alpha_l`
//! counts the pure paths `0 → l-1` and `beta_l` the pure paths `l → K`. The products `alpha_l
//! beta_l` are the derivatives of the end-to-end map with respect to the weights, and the sum of
//! their squares, [`kappa0`](PurePaths::kappa0), is the only eigenvalue of the neural tangent
//! kernel there.

use crate::layout::Layout;

/// The pure-shortcut paths of a layout of K layers, counted from the input and to the output.
///
/// A path counts with the product of its coefficients, which is 1 for a [`Layout`]. Values are
/// `f64`: counts are exact below 2^53 and rounded above, and the largest one, `2^(K-1)`, is far
/// from overflow at every legal depth.
#[derive(Clone, Debug, PartialEq)]
pub struct PurePaths {
    from_input: Vec<f64>,
    to_output: Vec<f64>,
}

impl PurePaths {
    /// Sums over paths, where `coefficient(source, target)` is 0 for a shortcut that is not there.
    pub(crate) fn sum(depth: usize, coefficient: impl Fn(usize, usize) -> f64) -> Self {
        let mut from_input = vec![0.0; depth + 1];
        from_input[0] = 1.0;
        for target in 1..=depth {
            from_input[target] = (0..target).map(|i| coefficient(i, target) * from_input[i]).sum();
        }
        let mut to_output = vec![0.0; depth + 1];
        to_output[depth] = 1.0;
        for source in (0..depth).rev() {
            to_output[source] = (source + 1..=depth).map(|j| coefficient(source, j) * to_output[j]).sum();
        }
        Self { from_input, to_output }
    }

    /// For each node `0..=K`, the pure paths that lead from the input to it.
    pub fn from_input(&self) -> &[f64] {
        &self.from_input
    }

    /// For each node `0..=K`, the pure paths that lead from it to the output.
    pub fn to_output(&self) -> &[f64] {
        &self.to_output
    }

    /// `alpha_l` for the layers `l = 1..=K`, at index `l - 1`: the pure paths from the input to the
    /// layer's own input, node `l - 1`.
    pub fn alphas(&self) -> &[f64] {
        &self.from_input[..self.depth()]
    }

    /// `beta_l` for the layers `l = 1..=K`, at index `l - 1`: the pure paths from the layer's
    /// output, node `l`, to the output.
    pub fn betas(&self) -> &[f64] {
        &self.to_output[1..]
    }

    /// The pure paths from the input to the last hidden node, `0 → K-1`.
    ///
    /// For a hidden-only layout this is the `alpha` that sets the speed: trained from zero weights
    /// by gradient flow on whitened data, a linear network has `L(t) <= L(0) exp(-2 alpha² t)` for
    /// every target.
    pub fn to_last_hidden(&self) -> f64 {
        self.from_input[self.depth() - 1]
    }

    /// `kappa0 = sum_l (alpha_l beta_l)²`: at zero weights the neural tangent kernel of a linear
    /// network on whitened data is `kappa0` times the identity.
    ///
    /// It is 0 exactly when zero weights are a critical point whatever the target is.
    pub fn kappa0(&self) -> f64 {
        self.alphas().iter().zip(self.betas()).map(|(alpha, beta)| (alpha * beta).powi(2)).sum()
    }

    fn depth(&self) -> usize {
        self.from_input.len() - 1
    }
}

impl Layout {
    /// Counts the pure-shortcut paths of this layout.
    ///
    /// ```
    /// use connection_layout::Layout;
    ///
    /// let paths = Layout::parse("hidden-dense", 4)?.pure_paths();
    /// assert_eq!(paths.alphas(), [1.0, 1.0, 2.0, 4.0]);
    /// assert_eq!(paths.betas(), [0.0, 0.0, 0.0, 1.0]);
    /// assert_eq!(paths.kappa0(), 16.0);
    /// # Ok::<(), connection_layout::ParseLayoutError>(())
    /// ```
    pub fn pure_paths(&self) -> PurePaths {
        PurePaths::sum(self.depth(), |source, target| f64::from(u8::from(self.contains(source, target))))
    }

    /// Whether this layout is hidden-only and has a pure path from the input to the last hidden
    /// node.
    ///
    /// Among hidden-only layouts these are the fast ones. With such a path, linear networks that
    /// start near zero converge at a linear rate for every target (see
    /// [`PurePaths::to_last_hidden`]); without it, zero weights are a critical point, and the time
    /// to leave it grows without bound as the initial weights shrink. At depth 1 the input is the
    /// last hidden node and the answer is yes.
    pub fn is_fast(&self) -> bool {
        self.is_hidden_only() && self.reachable()[self.depth() - 1]
    }

    /// The fewest weight layers on a path from the input to the output that uses any: 1 to K.
    ///
    /// This is the lowest degree, constant apart, of the end-to-end map of a linear network in its
    /// weights, hence the order of the saddle at zero weights. Order 1 means that there is none
    /// ([`kappa0`](PurePaths::kappa0) is positive). From weights of size eps the escape takes a
    /// time of the order of `ln(1/eps)` for order 2 and `eps^-(order - 2)` above.
    pub fn saddle_order(&self) -> usize {
        let depth = self.depth();
        // A node that no pure path reaches has no entry; the chain of layers reaches every node.
        let pure = self.reachable();
        let mut fewest = vec![usize::MAX; depth + 1];
        for target in 1..=depth {
            let through_layer = if pure[target - 1] { 1 } else { fewest[target - 1].saturating_add(1) };
            fewest[target] = self.sources(target).map(|source| fewest[source]).fold(through_layer, usize::min);
        }
        fewest[depth]
    }

    /// For each node, whether a pure path leads from the input to it.
    fn reachable(&self) -> Vec<bool> {
        let mut reached = vec![false; self.depth() + 1];
        reached[0] = true;
        for target in 1..=self.depth() {
            reached[target] = self.sources(target).any(|source| reached[source]);
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::{any_layout, small_layout};
    use crate::{MAX_DEPTH, NamedLayout};

    /// Every path from `node` to `end`, as its number of weight layers and whether it is pure, by
    /// plain recursion.
    fn layers_of_paths(layout: &Layout, node: usize, end: usize) -> Vec<usize> {
        if node == end {
            return vec![0];
        }
        let shortcuts = layout.targets(node).flat_map(|next| layers_of_paths(layout, next, end));
        let layer = (node < end).then(|| layers_of_paths(layout, node + 1, end));
        shortcuts.chain(layer.into_iter().flatten().map(|layers| layers + 1)).collect()
    }

    fn pure(layout: &Layout, from: usize, to: usize) -> f64 {
        layers_of_paths(layout, from, to).into_iter().filter(|&layers| layers == 0).count() as f64
    }

    #[test]
    fn counts_of_fast_layouts() {
        let fast = |depth| Layout::all_hidden_only(depth).unwrap().filter(Layout::is_fast).count();
        assert_eq!([1, 2, 3, 4, 5].map(fast), [1, 1, 5, 47, 841]);
        // A shortcut into the output disqualifies, however many paths there are.
        assert_eq!(Layout::all(4).unwrap().filter(Layout::is_fast).count(), 47);
    }

    #[test]
    fn saddle_orders_at_depth_four() {
        let mut counts = [0; 5];
        for layout in Layout::all(4).unwrap() {
            counts[layout.saddle_order()] += 1;
        }
        assert_eq!(counts, [0, 966, 48, 8, 2]);
    }

    #[test]
    fn named_layouts_have_the_known_constants() {
        let kappa0 = |named: NamedLayout| named.at_depth(4).unwrap().pure_paths().kappa0();
        assert_eq!(kappa0(NamedLayout::None), 0.0);
        assert_eq!(kappa0(NamedLayout::Cascade), 4.0);
        assert_eq!(kappa0(NamedLayout::HiddenCascade), 1.0);
        assert_eq!(kappa0(NamedLayout::InputToLastHidden), 1.0);
        // Dense: alpha = 1, 1, 2, 4 and beta = 4, 2, 1, 1.
        assert_eq!(kappa0(NamedLayout::Dense), 16.0 + 4.0 + 4.0 + 16.0);
    }

    #[test]
    fn the_deepest_dense_layout_does_not_overflow() {
        let paths = NamedLayout::Dense.at_depth(MAX_DEPTH).unwrap().pure_paths();
        assert_eq!(paths.to_last_hidden(), 2f64.powi(MAX_DEPTH as i32 - 2));
        assert!(paths.kappa0().is_finite());
    }

    proptest! {
        #[test]
        fn counts_agree_with_listing_the_paths(layout in small_layout()) {
            let depth = layout.depth();
            let paths = layout.pure_paths();
            for node in 0..=depth {
                prop_assert_eq!(paths.from_input()[node], pure(&layout, 0, node));
                prop_assert_eq!(paths.to_output()[node], pure(&layout, node, depth));
            }
            for layer in 1..=depth {
                prop_assert_eq!(paths.alphas()[layer - 1], pure(&layout, 0, layer - 1));
                prop_assert_eq!(paths.betas()[layer - 1], pure(&layout, layer, depth));
            }
            let order = layers_of_paths(&layout, 0, depth).into_iter().filter(|&n| n > 0).min();
            prop_assert_eq!(Some(layout.saddle_order()), order);
        }

        #[test]
        fn reversal_exchanges_alpha_and_beta(layout in any_layout()) {
            let (paths, reversed) = (layout.pure_paths(), layout.reversed().pure_paths());
            let backwards = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
            prop_assert_eq!(reversed.alphas(), backwards(paths.betas()));
            prop_assert_eq!(reversed.betas(), backwards(paths.alphas()));
            prop_assert_eq!(reversed.from_input(), backwards(paths.to_output()));
            prop_assert_eq!(layout.reversed().saddle_order(), layout.saddle_order());
        }

        #[test]
        fn the_saddle_order_is_one_exactly_when_the_kernel_is_positive(layout in any_layout()) {
            prop_assert_eq!(layout.saddle_order() == 1, layout.pure_paths().kappa0() > 0.0);
        }

        #[test]
        fn fast_is_a_positive_kernel_among_hidden_only_layouts(layout in any_layout()) {
            let hidden_only: Vec<_> =
                layout.iter().filter(|s| s.target() < layout.depth()).map(|s| (s.source(), s.target())).collect();
            let layout = Layout::new(layout.depth(), hidden_only).unwrap();
            let paths = layout.pure_paths();
            prop_assert_eq!(layout.is_fast(), paths.to_last_hidden() >= 1.0);
            prop_assert_eq!(layout.is_fast(), paths.kappa0() > 0.0);
            prop_assert_eq!(paths.kappa0(), paths.to_last_hidden().powi(2));
        }
    }
}
