//! What a [`Connections`](crate::Connections) is made from.

use burn::tensor::backend::Backend;
use connection_layout::{LayoutError, ParseLayoutError};
use thiserror::Error;

use crate::{
    Arm, Connections,
    plan::Plan,
    rivals::{RivalConfig, RivalError},
};

/// The authors' temperature of the softmax in language models and diffusion.
pub const DEFAULT_TAU: f64 = 0.01;

/// Depth, arm and temperature of a network's connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionsConfig {
    /// Number `K` of blocks.
    pub depth: usize,
    /// Which connections follow the blocks.
    pub arm: Arm,
    /// Temperature of the softmax; of no effect on arms without one.
    pub tau: f64,
    /// The residual branches of the network, which [rivals](crate::rivals) stand around; `None` where a model does not open them.
    pub branches: Option<Branches>,
}

/// The residual branches of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branches {
    /// In each block: 2 in a transformer.
    pub per_block: usize,
    /// Width of the stream.
    pub width: usize,
}

/// Why connections cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConnectionsError {
    /// The depth is 0, or beyond what a layout can describe.
    #[error(transparent)]
    Depth(#[from] LayoutError),
    /// The fixed layout does not parse at this depth.
    #[error("{0}")]
    Layout(#[from] ParseLayoutError),
    /// The weight before a fixed layout is not a number.
    #[error("`{0}` is not a weight: write a number before the layout, such as 2*0:l")]
    Weight(String),
    /// The temperature is not a positive number.
    #[error("tau = {0} is not a temperature: give a positive number that f32 can hold, such as {DEFAULT_TAU}")]
    Tau(f64),
    /// A rival in a model that does not open its blocks.
    #[error(
        "the arm `{0}` stands around the residual branches inside blocks, which this model does not open: take one of {names}",
        names = Arm::NAMES.join(", ")
    )]
    Closed(Arm),
    /// The rival does not fit the branches.
    #[error(transparent)]
    Rival(#[from] RivalError),
    /// Stored parameters do not fit the arm and depth.
    #[error("stored connections do not fit: {0}")]
    Stored(String),
}

impl ConnectionsConfig {
    /// ANCRe with the default temperature, for a network of `depth` blocks.
    pub fn new(depth: usize) -> Self {
        Self { depth, arm: Arm::default(), tau: DEFAULT_TAU, branches: None }
    }

    /// Another arm.
    #[must_use]
    pub fn with_arm(mut self, arm: Arm) -> Self {
        self.arm = arm;
        self
    }

    /// Another temperature.
    #[must_use]
    pub fn with_tau(mut self, tau: f64) -> Self {
        self.tau = tau;
        self
    }

    /// With the residual branches of the network, for models that open their blocks to rivals.
    #[must_use]
    pub fn with_branches(mut self, branches: Branches) -> Self {
        self.branches = Some(branches);
        self
    }

    /// Checks that a module can be made.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn validate(&self) -> Result<(), ConnectionsError> {
        check_tau(self.tau)?;
        if let Some(rival) = self.rival()? {
            rival.validate()?;
        }
        self.plan().map(drop)
    }

    /// The module on a device. It draws no random numbers: every arm starts from constants.
    ///
    /// # Errors
    /// For a depth of 0, a layout that is wrong at this depth, or a temperature that is not positive.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Result<Connections<B>, ConnectionsError> {
        let rival = self.rival()?.map(|rival| rival.init(device)).transpose()?;
        Ok(Connections::new(self.plan()?, check_tau(self.tau)?, rival, device))
    }

    /// Number of parameters that training changes. A softmax over one entry is 1 whatever its parameter, so that one
    /// does not count: `K(K+1)/2 - 1` for ANCRe.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn trained_parameters(&self) -> Result<usize, ConnectionsError> {
        let plan = self.plan()?;
        if let Some(rival) = self.rival()? {
            return Ok(rival.parameters());
        }
        Ok(match self.arm {
            _ if !self.arm.is_learned() => 0,
            Arm::Scalars | Arm::ZeroScalars => plan.coefficients,
            // One entry fewer than is stored: the first of ANCRe, the last of outgoing, the first of the naive scalars.
            _ => plan.coefficients - 1,
        })
    }

    /// The rival that the arm is, at the size of the network.
    ///
    /// # Errors
    /// [`ConnectionsError::Closed`] where the model does not open its blocks.
    pub fn rival(&self) -> Result<Option<RivalConfig>, ConnectionsError> {
        let Arm::Rival(kind) = &self.arm else { return Ok(None) };
        let Branches { per_block, width } = self.branches.ok_or_else(|| ConnectionsError::Closed(self.arm.clone()))?;
        let branches = self.depth.saturating_mul(per_block);
        Ok(Some(RivalConfig { kind: kind.clone(), branches, per_block, width, tau: self.tau }))
    }

    fn plan(&self) -> Result<Plan, ConnectionsError> {
        Plan::new(&self.arm, self.depth, self.tau)
    }
}

/// The temperature, if the softmax can use it: its reciprocal is formed in `f32`.
pub(crate) fn check_tau(tau: f64) -> Result<f64, ConnectionsError> {
    let reciprocal = 1.0 / tau as f32;
    if tau > 0.0 && reciprocal.is_finite() && reciprocal > 0.0 { Ok(tau) } else { Err(ConnectionsError::Tau(tau)) }
}
