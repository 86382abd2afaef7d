//! What a [`Connections`](crate::Connections) is made from.

use burn::tensor::backend::Backend;
use connection_layout::{LayoutError, ParseLayoutError};
use thiserror::Error;

use crate::{
    Arm, Connections, GatedFirstState, InitialWeight,
    plan::Plan,
    rivals::{LARGEST_SIZE, RivalConfig, RivalError},
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
    /// The residual branches of the network, which [rivals](crate::rivals) stand around, and the width of its stream, which a
    /// [gated first state](Arm::GatedFirstState) needs; `None` where a model does not open them.
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
        names = anywhere()
    )]
    Closed(Arm),
    /// Weights of features in a model that does not say how many there are.
    #[error(
        "the arm `{0}` has weights for every feature of the stream, of which this model does not tell the number: take one of {names}",
        names = anywhere()
    )]
    Featureless(Arm),
    /// No features, or more than any machine holds.
    #[error("a stream of width {0} cannot be connected: give 1 to {LARGEST_SIZE}")]
    Width(usize),
    /// The rival does not fit the branches.
    #[error(transparent)]
    Rival(#[from] RivalError),
    /// Stored parameters do not fit the arm and depth.
    #[error("stored connections do not fit: {0}")]
    Stored(String),
}

/// The names of the arms that any model can have.
fn anywhere() -> String {
    let fits = |name: &&str| name.parse().is_ok_and(|arm: Arm| !arm.acts_on_features());
    Arm::NAMES.into_iter().filter(fits).collect::<Vec<_>>().join(", ")
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
        self.gated()?;
        if let Some(rival) = self.rival()? {
            rival.validate()?;
        }
        self.plan().map(drop)
    }

    /// The module on a device. It draws no random numbers: every arm starts from constants.
    ///
    /// # Errors
    /// For a depth of 0, a layout that is wrong at this depth, a temperature that is not positive, or an arm that needs to know the
    /// network's branches where they are not given.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Result<Connections<B>, ConnectionsError> {
        let plan = self.plan()?;
        let rival = self.rival()?.map(|rival| rival.init(device)).transpose()?;
        let gate = self.gated()?.map(|(width, initial)| GatedFirstState::new(self.depth, width, initial, device));
        Ok(Connections::new(plan, check_tau(self.tau)?, gate, rival, device))
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
        if let Some((width, _)) = self.gated()? {
            return Ok(self.depth.saturating_mul(width).saturating_mul(2));
        }
        Ok(plan.trained_coefficients())
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

    /// The width of the stream and what the weights begin at, where the arm is a gated first state.
    ///
    /// # Errors
    /// [`ConnectionsError::Featureless`] where the model does not tell the width, [`ConnectionsError::Width`] where it is out of range.
    pub(crate) fn gated(&self) -> Result<Option<(usize, InitialWeight)>, ConnectionsError> {
        let Arm::GatedFirstState(initial) = self.arm else { return Ok(None) };
        let Branches { width, .. } = self.branches.ok_or_else(|| ConnectionsError::Featureless(self.arm.clone()))?;
        if (1..=LARGEST_SIZE).contains(&width) {
            Ok(Some((width, initial)))
        } else {
            Err(ConnectionsError::Width(width))
        }
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
