//! Random layouts and coefficients for the property tests of the other files.

use std::ops::Range;

use proptest::prelude::*;

use crate::coefficients::Coefficients;
use crate::layout::Layout;
use crate::shortcut::{Shortcut, capacity};

/// A layout of a given depth, of any density from empty to dense.
pub(crate) fn layout_of_depth(depth: usize) -> impl Strategy<Value = Layout> {
    (0.0..=1.0).prop_flat_map(move |density| {
        prop::collection::vec(prop::bool::weighted(density), capacity(depth)).prop_map(move |kept| {
            let position = |source, target| Shortcut::new(source, target).unwrap().position();
            Layout::from_fn(depth, |source, target| kept[position(source, target)]).unwrap()
        })
    })
}

/// A layout of at most 6 layers, small enough for brute force over all paths.
pub(crate) fn small_layout() -> impl Strategy<Value = Layout> {
    (1usize..=6).prop_flat_map(layout_of_depth)
}

/// A layout of at most 20 layers: both representations, below and above one word.
pub(crate) fn any_layout() -> impl Strategy<Value = Layout> {
    (1usize..=20).prop_flat_map(layout_of_depth)
}

/// Coefficients of at most `max_depth` layers with values from a range.
pub(crate) fn coefficients(max_depth: usize, values: Range<f64>) -> impl Strategy<Value = Coefficients> {
    (1..=max_depth).prop_flat_map(move |depth| {
        prop::collection::vec(values.clone(), capacity(depth)).prop_map(move |values| {
            let mut values = values.into_iter();
            Coefficients::from_fn(depth, |_, _| values.next().unwrap()).unwrap()
        })
    })
}
