//! DiT diffusion with and without ANCRe: trained, sampled and scored, from one command.
//!
//! `cargo run -p experiments-diffusion` trains the cascaded baseline and ANCRe side by side on embedded handwritten digits,
//! draws samples of each class from both, scores them in the features of a classifier that it trains on the same images, and
//! ends with tables, grids of samples, curves and a run directory. The models of the paper (arXiv 2602.09009), DiT-S/2 and
//! DiT-B/2 on latents, are presets of the same code.
//!
//! Data flows one way: arguments ([`cli`]) become [`settings`], which begin from [`presets`]; [`data`] turns images into noised
//! batches; [`model`] is the DiT with connections between its blocks; [`task`] ties both to the training loop; [`sampling`] draws
//! samples, which [`scores`] measures with the [`classifier`] and [`pictures`] shows; [`run`] tells the kit how to make runs;
//! [`report`] reads their logs.

pub mod classifier;
pub mod cli;
pub mod data;
pub mod model;
pub mod pictures;
pub mod presets;
pub mod report;
pub mod run;
pub mod sampling;
pub mod scores;
pub mod settings;
pub mod task;
