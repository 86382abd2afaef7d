//! LLaMA pre-training with and without ANCRe, on real text, from one command.
//!
//! `cargo run -p experiments-llm` trains the cascaded baseline, ANCRe, the frozen uniform mix and the fixed `0:l` layout
//! side by side on the embedded text, and ends with tables, two figures and a run directory. The paper's models
//! (arXiv 2602.09009) are presets of the same code.
//!
//! Data flows one way: arguments ([`cli`]) become [`settings`], which begin from [`presets`]; [`data`] turns text into
//! rows; [`model`] is the LLaMA with connections between its layers; [`task`] ties both to the training loop; [`run`] tells
//! [`experiment_kit`] of them, which makes one run or several side by side; [`report`] reads their logs. [`depth`] asks what each block of a trained model does,
//! also of one in a [`hugging_face`] folder.

pub mod cli;
pub mod data;
pub mod depth;
pub mod generate;
pub mod hugging_face;
pub mod model;
pub mod presets;
pub mod report;
pub mod run;
pub mod settings;
pub mod task;
