//! A training run: from its settings to its last checkpoint, for any burn module and any data.
//!
//! An experiment supplies a model and a [`Task`](trainer::Task) (its batches, its loss, its evaluation); this crate
//! supplies everything around them: a [run directory](run_directory) that appears whole and is never overwritten, [settings] in layers,
//! [named random streams](seed), the [learning-rate schedule](schedule), [optimizers](optimizer) with PyTorch's arithmetic,
//! [gradient accumulation and clipping](gradients), [checkpoints](checkpoint) from which a run goes on to the same bits,
//! a [log](metrics) that does not depend on the clock, [progress bars](progress) and a clean [stop](interrupt).
//!
//! ```
//! use burn::{backend::{Autodiff, Flex}, nn::{Linear, LinearConfig}, prelude::*};
//! use training::{
//!     run_directory::{Environment, NewRun, RunDirectory}, seed,
//!     trainer::{Task, TrainError, TrainSettings, Trainer},
//! };
//! use rand::Rng;
//!
//! type B = Autodiff<Flex>;
//!
//! /// Learns to double a number.
//! struct Doubling;
//!
//! impl Task<B, Linear<B>> for Doubling {
//!     type Batch = f32;
//!
//!     fn batches(&mut self, step: usize) -> Result<Vec<f32>, TrainError> {
//!         let mut numbers = seed::stream(42, "numbers", step as u64);
//!         Ok(vec![numbers.next_u32() as f32 / u32::MAX as f32])
//!     }
//!
//!     fn weight(&self, _: &f32) -> f64 {
//!         1.0
//!     }
//!
//!     fn loss(&self, model: &Linear<B>, number: f32) -> Result<Tensor<B, 1>, TrainError> {
//!         let output = model.forward(Tensor::<B, 2>::from_floats([[number]], &Default::default()));
//!         Ok((output - 2.0 * number).square().mean())
//!     }
//!
//!     fn evaluate(&mut self, model: &Linear<Flex>, _step: usize) -> Result<Vec<(String, f64)>, TrainError> {
//!         let output = model.forward(Tensor::<Flex, 2>::from_floats([[0.5]], &Default::default()));
//!         Ok(vec![("double of a half".into(), output.into_scalar().into())])
//!     }
//! }
//!
//! let folder = tempfile::tempdir()?;
//! let settings = TrainSettings { steps: 200, warmup: 10, lr: 0.1, ..Default::default() };
//! let contents = NewRun::new(&settings, &Environment::collect("doubling", "0.1.0", "cpu"))?;
//! let directory = RunDirectory::create(folder.path().join("doubling"), &contents)?;
//! let model = LinearConfig::new(1, 1).init(&Default::default());
//! // The first `&settings` is what a resumed run must agree with; an experiment gives all its settings there.
//! let mut trainer = Trainer::start(directory, &settings, &settings, model, Doubling)?;
//! while !trainer.is_finished() {
//!     trainer.advance()?;
//! }
//! let (_, metrics) = trainer.evaluation().unwrap();
//! assert!((metrics[0].1 - 1.0).abs() < 0.1, "{metrics:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod average;
pub mod checkpoint;
pub mod device;
pub mod gradients;
pub mod interrupt;
pub mod memory;
pub mod metrics;
pub mod optimizer;
pub mod parameters;
pub mod progress;
pub mod run_directory;
pub mod schedule;
pub mod seed;
pub mod settings;
pub mod trainer;
