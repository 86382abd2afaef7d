//! Cores and memory of a run.

use burn::{
    module::Module,
    tensor::{DType, backend::AutodiffBackend},
};
use fused_ops::FusedOps;
use training::{memory, trainer::StepReport};

use super::RunTrainer;
use crate::{Experiment, RunSettings};

/// How many micro-batches go through the model at the same time on the CPU.
pub fn workers(settings: &impl RunSettings) -> usize {
    cores().min(settings.accumulation()).max(1)
}

/// How many threads this process can run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Whether kernels run on the cores: the CPU backend is the only one with fused kernels.
pub fn on_cpu<B: AutodiffBackend<InnerBackend: FusedOps>>() -> bool {
    <B::InnerBackend as FusedOps>::fused(DType::F32)
}

/// Follows how much memory the steps of a run take, between evaluations and checkpoints.
#[derive(Debug, Default)]
pub struct StepMemory {
    steps: usize,
    before: usize,
    transient: u64,
}

impl StepMemory {
    /// Call before a step.
    pub fn begin(&mut self) {
        self.before = memory::current_bytes();
        memory::reset_peak();
    }

    /// Call after it.
    pub fn end(&mut self, report: &StepReport, settings: &impl RunSettings) {
        self.steps += 1;
        let every = settings.training().checkpoint_every;
        let saved = report.step == report.steps || (every > 0 && report.step.is_multiple_of(every));
        // The first steps make moments and work space that stay; evaluations and checkpoints are not the step's.
        if self.steps > 2 && report.evaluation.is_none() && !saved {
            self.transient = self.transient.max(memory::peak_bytes().saturating_sub(self.before) as u64);
        }
    }

    /// Bytes of weights and moments and of the largest step; unknown where tensors do not live in main memory, where no
    /// allocator counts, or after too few steps.
    pub fn peak<E: Experiment>(&self, trainer: &RunTrainer<E>) -> Option<u64> {
        let resident = trainer.model().num_params() as u64 * 4 + trainer.optimizer().state_bytes() as u64;
        (on_cpu::<E::Backend>() && self.transient > 0).then(|| resident + self.transient)
    }
}
