//! What connections cost: the paper says that ANCRe adds less than one per cent of time and memory (arXiv 2602.09009), and
//! this program measures it.
//!
//! `cargo run --release -p experiments-overhead` takes training steps of every arm in turn, in one process, so that a slow
//! moment of the machine hits all arms alike. Each round takes one sample of each arm in a shuffled order; an arm's ratio is the median over
//! rounds of its time over that of the cascade in the same round, with an interval that supposes nothing about the noise. Beside it stand
//! the bytes that a step holds at its peak, and the operations and bytes that [`ancre`] counts.
//!
//! [`shape`] names what can be measured; [`workload`] makes a model, its random data and its loss of a shape and an arm, with
//! the code of the three experiments; [`step`] is one training step, timed; [`measure`] goes through the rounds;
//! [`statistics`] makes numbers of them; [`ledger`] counts what the model itself does; [`report`] shows it all; [`cli`] is
//! the program.

pub mod cli;
pub mod ledger;
pub mod measure;
pub mod report;
pub mod shape;
pub mod statistics;
pub mod step;
pub mod workload;

/// Training on the CPU.
pub type B = burn::backend::Autodiff<burn::backend::Flex>;
