//! The reduced net: what is left of a layout near zero weights.
//!
//! Start the weights of a linear network at zero. A layer moves only if its gradient is not zero,
//! so only if the signal reaches it from the input and its output reaches the loss, along shortcuts
//! and layers that have moved before. Such layers are *alive*; the others stay at zero and might as
//! well not be there. What remains is the *reduced net*, and layouts with the same one train alike.

use std::fmt;

use crate::layout::{Layout, LayoutError};

/// The alive layers of a layout and the number of pure-shortcut paths between them.
///
/// With `x` the input, `v_l = W_l u_l` the output of alive layer l and `y` the output of the net,
///
/// ```text
/// u_l = n(0, l) x + sum over alive k < l of n(k, l) v_k
/// y   = n(0, y) x + sum over alive k     of n(k, y) v_k
/// ```
///
/// where `n` counts pure-shortcut paths. These numbers are the canonical form: whatever nodes the
/// paths pass, two layouts with the same numbers compute the same function of their alive weights.
///
/// Equality also compares the distances between the alive layers, counted in layers from the first
/// alive one: dead layers at either end are dropped, dead layers in the middle leave a gap. At
/// depth 4 this sorts the 1024 layouts into 874 classes. [`without_gaps`](Self::without_gaps)
/// forgets the distances too, and equality then means the same function of the alive weights, first
/// layer for first layer; the classes are 860.
///
/// ```
/// use connection_layout::Layout;
///
/// let reduced = |text| Layout::parse(text, 4).unwrap().reduced_net();
/// // Layers 1 and 2 are dead, and node 2 is a copy of the input.
/// assert_eq!(reduced("0:2+2:3")?.to_string(), "v1 = W1 (x); v2 = W2 (x + v1); y = v2");
/// assert_eq!(reduced("0:2+2:3")?, reduced("0:2+0:3")?);
/// // The same function again, but of the weights of layers 1 and 4.
/// assert_ne!(reduced("0:2+2:3")?, reduced("0:1+1:3")?);
/// assert_eq!(reduced("0:2+2:3")?.without_gaps(), reduced("0:1+1:3")?.without_gaps());
/// # Ok::<(), connection_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReducedNet {
    /// The alive layers, the first one being 1.
    layers: Vec<usize>,
    /// Row by row, from the input and from each alive layer, to each alive layer and to the output.
    paths: Vec<u128>,
}

impl ReducedNet {
    /// The number of alive layers.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether no layer is alive, so that training from zero weights does not move.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The positions of the alive layers, counted so that the first one is 1.
    pub fn layers(&self) -> &[usize] {
        &self.layers
    }

    /// The number of pure-shortcut paths from `from` to `to`.
    ///
    /// `from` is 0 for the input and k for the output of the k-th alive layer; `to` is k for the
    /// input of the k-th alive layer and `len() + 1` for the output of the net. The answer is 0 for
    /// numbers that stand for nothing.
    pub fn paths(&self, from: usize, to: usize) -> u128 {
        let ends = self.len() + 1;
        if from < ends && (1..=ends).contains(&to) { self.paths[from * ends + to - 1] } else { 0 }
    }

    /// The same net with its alive layers numbered 1, 2, 3, ...
    #[must_use]
    pub fn without_gaps(mut self) -> Self {
        self.layers = (1..=self.len()).collect();
        self
    }
}

impl Layout {
    /// The layers that move when training starts from zero weights, ascending, from 1 to K.
    ///
    /// Layer l is alive if its input, node l-1, can be reached from the input of the stack and the
    /// output of the stack can be reached from node l, through shortcuts and alive layers. The set
    /// is the smallest one with this property, built up from the shortcuts alone.
    pub fn alive_layers(&self) -> Vec<usize> {
        let depth = self.depth();
        let mut alive = vec![false; depth + 1];
        loop {
            let mut reached = vec![false; depth + 1];
            reached[0] = true;
            for node in 1..=depth {
                reached[node] = (alive[node] && reached[node - 1]) || self.sources(node).any(|source| reached[source]);
            }
            let mut reaches = vec![false; depth + 1];
            reaches[depth] = true;
            for node in (0..depth).rev() {
                reaches[node] =
                    (alive[node + 1] && reaches[node + 1]) || self.targets(node).any(|target| reaches[target]);
            }
            let mut grown = false;
            for layer in 1..=depth {
                if !alive[layer] && reached[layer - 1] && reaches[layer] {
                    alive[layer] = true;
                    grown = true;
                }
            }
            if !grown {
                return (1..=depth).filter(|&layer| alive[layer]).collect();
            }
        }
    }

    /// What is left of this layout when its dead layers are taken away.
    ///
    /// # Errors
    ///
    /// [`LayoutError::TooManyPaths`] when a count does not fit into 128 bits, which takes a dense
    /// layout of more than 128 layers.
    pub fn reduced_net(&self) -> Result<ReducedNet, LayoutError> {
        let alive = self.alive_layers();
        let inputs = alive.iter().map(|layer| layer - 1);
        let ends: Vec<usize> = inputs.chain([self.depth()]).collect();
        let mut paths = Vec::with_capacity(ends.len() * ends.len());
        for start in std::iter::once(0).chain(alive.iter().copied()) {
            let counts = self.pure_paths_from(start)?;
            paths.extend(ends.iter().map(|&end| counts[end]));
        }
        let before_first = alive.first().map_or(0, |first| first - 1);
        let layers = alive.iter().map(|layer| layer - before_first).collect();
        Ok(ReducedNet { layers, paths })
    }

    /// The exact number of pure-shortcut paths from `start` to every node.
    fn pure_paths_from(&self, start: usize) -> Result<Vec<u128>, LayoutError> {
        let mut counts = vec![0u128; self.depth() + 1];
        counts[start] = 1;
        for target in start + 1..=self.depth() {
            counts[target] = self
                .sources(target)
                .try_fold(0u128, |sum, source| sum.checked_add(counts[source]))
                .ok_or(LayoutError::TooManyPaths)?;
        }
        Ok(counts)
    }
}

/// Writes the net as equations, the layers numbered by their [positions](ReducedNet::layers).
impl fmt::Display for ReducedNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |to: usize| {
            let terms: Vec<String> = (0..=self.len())
                .filter(|&from| self.paths(from, to) > 0)
                .map(|from| {
                    let factor = match self.paths(from, to) {
                        1 => String::new(),
                        count => count.to_string(),
                    };
                    let state = if from == 0 { "x".to_owned() } else { format!("v{}", self.layers[from - 1]) };
                    factor + &state
                })
                .collect();
            if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
        };
        for (index, layer) in self.layers.iter().enumerate() {
            write!(f, "v{layer} = W{layer} ({}); ", sum(index + 1))?;
        }
        write!(f, "y = {}", sum(self.len() + 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::NamedLayout;
    use crate::strategies::{any_layout, small_layout};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&Layout::parse(text, 4).unwrap().reduced_net().unwrap().to_string());
    }

    #[test]
    fn nets_of_well_known_layouts() {
        check("none", expect!["y = 0"]);
        check("0:4", expect!["y = x"]);
        check("0:3", expect!["v1 = W1 (x); y = v1"]);
        check("0:1", expect!["y = 0"]);
        check("0:1+1:3", expect!["v1 = W1 (x); v4 = W4 (x + v1); y = v4"]);
        check("0:2+2:3", expect!["v1 = W1 (x); v2 = W2 (x + v1); y = v2"]);
        check(
            "hidden-cascade",
            expect!["v1 = W1 (x); v2 = W2 (x + v1); v3 = W3 (x + v1 + v2); v4 = W4 (x + v1 + v2 + v3); y = v4"],
        );
        check(
            "cascade",
            expect![
                "v1 = W1 (x); v2 = W2 (x + v1); v3 = W3 (x + v1 + v2); v4 = W4 (x + v1 + v2 + v3); y = x + v1 + v2 + v3 + v4"
            ],
        );
        check("0:1+0:2+1:2+1:4+2:4", expect!["v1 = W1 (x); v2 = W2 (x + v1); y = 3x + 2v1 + v2"]);
    }

    /// The end-to-end map as a polynomial: how often each word of layers occurs. Layers that are
    /// not in `alive` are zero.
    fn polynomial(layout: &Layout, alive: &[usize]) -> BTreeMap<Vec<usize>, u128> {
        let mut states: Vec<BTreeMap<Vec<usize>, u128>> = vec![BTreeMap::from([(vec![], 1)])];
        for node in 1..=layout.depth() {
            let mut state = BTreeMap::new();
            for source in layout.sources(node) {
                for (word, count) in &states[source] {
                    *state.entry(word.clone()).or_default() += count;
                }
            }
            if alive.contains(&node) {
                for (word, count) in &states[node - 1] {
                    *state.entry([word.as_slice(), &[node]].concat()).or_default() += count;
                }
            }
            states.push(state);
        }
        states.pop().unwrap()
    }

    /// The polynomial of a reduced net in its own layer numbers.
    fn polynomial_of_net(net: &ReducedNet) -> BTreeMap<Vec<usize>, u128> {
        let mut outputs: Vec<BTreeMap<Vec<usize>, u128>> = vec![BTreeMap::from([(vec![], 1)])];
        for to in 1..=net.len() + 1 {
            let mut state = BTreeMap::new();
            for (from, output) in outputs.iter().enumerate().filter(|(from, _)| net.paths(*from, to) > 0) {
                for (word, count) in output {
                    let mut word = word.clone();
                    word.extend(net.layers().get(to - 1));
                    *state.entry(word).or_default() += count * net.paths(from, to);
                }
            }
            outputs.push(state);
        }
        outputs.pop().unwrap()
    }

    fn renumbered(
        polynomial: &BTreeMap<Vec<usize>, u128>,
        number: impl Fn(usize) -> usize,
    ) -> BTreeMap<Vec<usize>, u128> {
        polynomial.iter().map(|(word, &n)| (word.iter().map(|&l| number(l)).collect(), n)).collect()
    }

    #[test]
    fn the_number_of_classes() {
        let classes = |depth, gaps| {
            let nets = Layout::all(depth).unwrap().map(|layout| layout.reduced_net().unwrap());
            nets.map(|net| if gaps { net } else { net.without_gaps() }).collect::<HashSet<_>>().len()
        };
        assert_eq!([1, 2, 3, 4].map(|depth| classes(depth, true)), [2, 8, 53, 874]);
        assert_eq!([1, 2, 3, 4].map(|depth| classes(depth, false)), [2, 8, 53, 860]);
    }

    #[test]
    fn a_class_without_gaps_is_a_function_of_the_alive_weights() {
        for depth in 1..=4 {
            let mut function_of_net = HashMap::new();
            let mut net_of_function = HashMap::new();
            for layout in Layout::all(depth).unwrap() {
                let alive = layout.alive_layers();
                let rank = |layer| 1 + alive.iter().position(|&l| l == layer).unwrap();
                let function = (alive.len(), renumbered(&polynomial(&layout, &alive), rank));
                let net = layout.reduced_net().unwrap().without_gaps();
                assert_eq!(function_of_net.entry(net.clone()).or_insert_with(|| function.clone()), &function);
                assert_eq!(net_of_function.entry(function).or_insert_with(|| net.clone()), &net);
            }
        }
    }

    #[test]
    fn chains_with_one_layer_beside_the_last_are_one_class() {
        let nets: HashSet<_> = ["0:2+2:3", "0:1+1:3", "0:2+0:3", "0:3+1:3"]
            .map(|text| Layout::parse(text, 4).unwrap().reduced_net().unwrap().without_gaps())
            .into();
        assert_eq!(nets.len(), 1);
    }

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        let reduced = |depth| NamedLayout::Dense.at_depth(depth).unwrap().reduced_net();
        assert_eq!(reduced(128).unwrap().paths(0, 129), 1 << 127);
        assert_eq!(reduced(crate::MAX_DEPTH), Err(LayoutError::TooManyPaths));
    }

    #[test]
    fn numbers_that_stand_for_nothing_have_no_paths() {
        let net = NamedLayout::Dense.at_depth(3).unwrap().reduced_net().unwrap();
        assert_eq!((net.paths(0, 4), net.paths(0, 0), net.paths(0, 5), net.paths(4, 4)), (4, 0, 0, 0));
        assert_eq!(net.paths(usize::MAX, usize::MAX), 0);
    }

    proptest! {
        #[test]
        fn alive_layers_are_those_that_gradients_move(layout in small_layout()) {
            // Scalar weights from zero; every gradient is taken as positive, so that nothing
            // cancels.
            let depth = layout.depth();
            let mut weights = vec![0.0; depth + 1];
            for _ in 0..=depth {
                let mut forward = vec![1.0; depth + 1];
                for node in 1..=depth {
                    forward[node] = weights[node] * forward[node - 1]
                        + layout.sources(node).map(|i| forward[i]).sum::<f64>();
                }
                let mut backward = vec![1.0; depth + 1];
                for node in (0..depth).rev() {
                    backward[node] = weights[node + 1] * backward[node + 1]
                        + layout.targets(node).map(|j| backward[j]).sum::<f64>();
                }
                for layer in 1..=depth {
                    weights[layer] += 1e-2 * forward[layer - 1] * backward[layer];
                }
            }
            let moved: Vec<usize> = (1..=depth).filter(|&l| weights[l] > 0.0).collect();
            prop_assert_eq!(layout.alive_layers(), moved);
        }

        #[test]
        fn the_net_computes_what_the_layout_computes(layout in small_layout()) {
            let alive = layout.alive_layers();
            let net = layout.reduced_net().unwrap();
            let shift = alive.first().map_or(0, |first| first - 1);
            prop_assert_eq!(polynomial_of_net(&net), renumbered(&polynomial(&layout, &alive), |l| l - shift));
        }

        #[test]
        fn the_net_keeps_kappa0(layout in any_layout()) {
            let net = layout.reduced_net().unwrap();
            let kappa0: f64 =
                (1..=net.len()).map(|k| (net.paths(0, k) as f64 * net.paths(k, net.len() + 1) as f64).powi(2)).sum();
            let expected = layout.pure_paths().kappa0();
            prop_assert!((kappa0 - expected).abs() <= 1e-12 * expected);
            prop_assert_eq!(net.is_empty(), expected == 0.0);
        }

        #[test]
        fn reversal_transposes_the_net(layout in any_layout()) {
            let (net, reversed) = (layout.reduced_net().unwrap(), layout.reversed().reduced_net().unwrap());
            let end = net.len() + 1;
            prop_assert_eq!(reversed.len(), net.len());
            for from in 0..end {
                for to in 1..=end {
                    prop_assert_eq!(reversed.paths(end - to, end - from), net.paths(from, to));
                }
            }
        }
    }
}
