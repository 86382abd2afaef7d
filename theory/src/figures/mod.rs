//! The figures, each a function of a seed.

mod losses;

use std::path::Path;

use anyhow::Result;
use plotting::Saved;

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct NamedFigure {
    /// File name without extension.
    pub name: &'static str,
    /// Computes the data of a seed and draws it into a folder.
    pub draw: fn(u64, &Path) -> Result<Saved>,
}

/// Every figure, in the order of `docs/theory.md`.
pub const FIGURES: &[NamedFigure] = &[
    NamedFigure { name: "loss-3-layers", draw: |seed, folder| losses::three_layers(seed, folder, "loss-3-layers") },
    NamedFigure { name: "loss-4-layers", draw: |seed, folder| losses::four_layers(seed, folder, "loss-4-layers") },
];
