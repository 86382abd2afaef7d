//! Training a linear network: gradient flow, gradient descent and Adam.
//!
//! [`GradientFlow`] follows `dW/dt = -grad L` with an adaptive Runge-Kutta method, [`Descent`] takes discrete steps.
//! Both report when a loss was first reached, and stop at the noise floor: below [`NOISE_FLOOR`] of the first loss,
//! rounding decides and monotonicity is lost.

mod descent;
mod dormand_prince;
mod gradient_flow;
mod trajectory;

pub use descent::{Descent, DescentOutcome, DescentSettings, Optimizer};
pub use dormand_prince::{DormandPrince, StepError, Tolerance};
pub use gradient_flow::{FlowOutcome, FlowSettings, GradientFlow};
pub use trajectory::{Point, Trajectory};

/// The share of the first loss below which a run ends: what follows is rounding.
pub const NOISE_FLOOR: f64 = 1e-14;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The loss that was asked for is reached.
    Reached,
    /// The noise floor is reached, and no loss was asked for or the one asked for lies below it.
    NoiseFloor,
    /// Time, or the number of steps, is up.
    Limit,
    /// A number became infinite or not a number, or the loss grew beyond all bounds.
    Diverged,
}
