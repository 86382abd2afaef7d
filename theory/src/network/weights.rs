//! A point of parameter space.

use nalgebra::{DMatrix, DMatrixView};

/// The weight matrices `W_1, ..., W_K` and the logits of a network, in one vector: column by column, layer by layer,
/// then one logit a shortcut by target and source (none where connections are fixed).
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    depth: usize,
    width: usize,
    values: Vec<f64>,
}

impl Weights {
    pub(crate) fn from_values(depth: usize, width: usize, values: Vec<f64>) -> Self {
        debug_assert!(values.len() >= depth * width * width);
        Self { depth, width, values }
    }

    /// The number K of layers.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The width d.
    pub fn width(&self) -> usize {
        self.width
    }

    /// `W_l`, d x d, for a layer l from 1 to K.
    ///
    /// # Panics
    ///
    /// When there is no such layer.
    pub fn layer(&self, layer: usize) -> DMatrixView<'_, f64> {
        assert!((1..=self.depth).contains(&layer), "layer {layer} of {}", self.depth);
        let size = self.width * self.width;
        DMatrixView::from_slice(&self.values[(layer - 1) * size..][..size], self.width, self.width)
    }

    /// The weight matrices, first layer first.
    pub fn layers(&self) -> Vec<DMatrix<f64>> {
        (1..=self.depth).map(|layer| self.layer(layer).into_owned()).collect()
    }

    /// Sets `W_l`.
    ///
    /// # Panics
    ///
    /// When there is no such layer, or the matrix has another shape.
    pub fn set_layer(&mut self, layer: usize, matrix: &DMatrix<f64>) {
        assert!((1..=self.depth).contains(&layer), "layer {layer} of {}", self.depth);
        assert_eq!(matrix.shape(), (self.width, self.width), "shape of layer {layer}");
        let size = self.width * self.width;
        self.values[(layer - 1) * size..][..size].copy_from_slice(matrix.as_slice());
    }

    /// The logits; empty where connections are fixed.
    pub fn logits(&self) -> &[f64] {
        &self.values[self.depth * self.width * self.width..]
    }

    /// The logits, to be changed.
    pub fn logits_mut(&mut self) -> &mut [f64] {
        &mut self.values[self.depth * self.width * self.width..]
    }

    /// All numbers.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All numbers, to be changed.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }
}
