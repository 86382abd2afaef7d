//! GaLore (Zhao et al. 2024): an optimizer that sees the gradients of matrices in a few directions only, and keeps its
//! moments there.
//!
//! Every so many updates of a matrix, the singular vectors of its gradient that belong to the largest singular values
//! become a basis of its shorter side. In each update the gradient is projected onto the basis, the rule updates the moments
//! of the projection, and its movement is projected back and scaled. The moments stay as they are when the basis
//! changes. This is the arithmetic of `galore-torch` with its projection `std`; there, matrices are `[output, input]`, and
//! here `[input, output]` as in burn's `Linear`.

mod basis;
mod update;

use serde::{Deserialize, Serialize};

pub use self::basis::leading_vectors;
pub(super) use self::update::{Job, update};
use super::{
    OptimizerError,
    settings::{matches_pattern, positive},
};

/// Which matrices are projected, and how. It goes with [`Rule::TransformersAdamW`](super::Rule::TransformersAdamW).
///
/// In settings files: `optimizer.galore = { parameters = ["*attention*"], rank = 128 }`; the other numbers are GaLore's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Galore {
    /// Patterns of names, as in [`ParameterGroup`](super::ParameterGroup). Of the parameters that match one, matrices are
    /// projected; others are not.
    pub parameters: Vec<String>,
    /// How many directions are kept; at most as many as the shorter side has.
    pub rank: usize,
    /// After how many updates the basis is computed anew.
    #[serde(default = "refresh_every")]
    pub refresh_every: usize,
    /// What the movement is multiplied by when it is projected back. Weight decay is not scaled.
    #[serde(default = "scale")]
    pub scale: f64,
}

fn refresh_every() -> usize {
    200
}

fn scale() -> f64 {
    0.25
}

impl Galore {
    /// GaLore with its authors' numbers.
    pub fn new(parameters: impl IntoIterator<Item = impl Into<String>>, rank: usize) -> Self {
        let parameters = parameters.into_iter().map(Into::into).collect();
        Self { parameters, rank, refresh_every: refresh_every(), scale: scale() }
    }

    /// Whether a parameter of this name and these sizes is projected.
    pub fn projects(&self, name: &str, dims: &[usize]) -> bool {
        dims.len() == 2
            && dims.iter().all(|&size| size > 0)
            && self.parameters.iter().any(|pattern| matches_pattern(pattern, name))
    }

    /// How a parameter is projected, if it is.
    pub(super) fn projection(&self, name: &str, dims: &[usize]) -> Option<Projection> {
        let &[inputs, outputs] = dims else { return None };
        self.projects(name, dims).then(|| Projection {
            side: if inputs <= outputs { Side::Inputs } else { Side::Outputs },
            rank: self.rank.min(inputs).min(outputs),
            refresh_every: self.refresh_every as u64,
            scale: self.scale,
        })
    }

    pub(super) fn validate(&self) -> Result<(), OptimizerError> {
        positive("galore.rank", self.rank)?;
        positive("galore.refresh_every", self.refresh_every)?;
        match self.scale > 0.0 && self.scale <= f64::from(f32::MAX) {
            true => Ok(()),
            false => {
                let (name, range) = ("galore.scale", "a finite number above 0");
                Err(OptimizerError::Setting { name, value: self.scale, range })
            }
        }
    }
}

/// The side of a matrix that is projected: the shorter one, of a square matrix the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The first dimension.
    Inputs,
    /// The second dimension.
    Outputs,
}

/// How one matrix is projected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Projection {
    side: Side,
    rank: usize,
    refresh_every: u64,
    scale: f64,
}

/// The name of the basis among the tensors of a parameter's state; it follows the moments.
pub(super) const BASIS: &str = "basis";

impl Projection {
    /// The shape of the moments of a matrix of these sizes.
    pub(super) fn moments(&self, [inputs, outputs]: [usize; 2]) -> [usize; 2] {
        match self.side {
            Side::Inputs => [self.rank, outputs],
            Side::Outputs => [inputs, self.rank],
        }
    }

    /// The shape of the basis: `[inputs, rank]`, or `[rank, outputs]`; the vectors are orthonormal.
    pub(super) fn basis(&self, [inputs, outputs]: [usize; 2]) -> [usize; 2] {
        match self.side {
            Side::Inputs => [inputs, self.rank],
            Side::Outputs => [self.rank, outputs],
        }
    }

    /// Whether the update after `step` updates begins with a new basis.
    pub(super) fn is_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.refresh_every)
    }
}

/// What computing bases has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RefreshCost {
    /// How many bases were computed.
    pub bases: u64,
    /// How long that took; several are computed at the same time.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_side_is_projected_and_of_squares_the_inputs() {
        let galore = Galore::new(["*attn*"], 4);
        let shapes = |dims: [usize; 2]| {
            let projection = galore.projection("0.attn.q", &dims).unwrap();
            (projection.moments(dims), projection.basis(dims))
        };
        assert_eq!(shapes([12, 36]), ([4, 36], [12, 4]));
        assert_eq!(shapes([30, 10]), ([30, 4], [4, 10]));
        assert_eq!(shapes([14, 14]), ([4, 14], [14, 4]));
        assert_eq!(shapes([3, 14]), ([3, 14], [3, 3]), "a rank above the shorter side is that side");
        assert_eq!(galore.projection("0.attn.bias", &[7]), None);
        assert_eq!(galore.projection("0.attn.none", &[7, 0]), None);
        assert_eq!(galore.projection("head", &[7, 7]), None);
    }
}
