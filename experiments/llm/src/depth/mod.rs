//! Depth utilisation: how much a model's outputs change when one of its blocks is left out.
//!
//! The paper's motivation is that dropping a late layer of a pre-trained cascade changes its outputs far less than dropping an
//! early one. [`targets`] finds the models (runs, comparisons, Hugging Face folders), [`text`] the tokens, [`measure`] passes over
//! each block in turn, and [`report`] makes tables, `report.json` and figures.

pub mod measure;
pub mod report;
pub mod targets;
pub mod text;
