//! Deep linear networks with shortcuts: the model that every statement is about.
//!
//! A [`LinearNet`] has K layers of width d and [`Connections`] between its nodes; with a [`Target`] it is a
//! [`Problem`]. [`Weights`] are a point of its parameter space, and a [`Gradient`] evaluates loss and gradient there
//! without allocating. [`EndToEnd`] holds what the gradient does not need: the Jacobian of the end-to-end map, the
//! neural tangent kernel, and the homogeneous parts.

mod connections;
mod end_to_end;
mod gradient;
mod matmul;
mod problem;
mod svd;
mod target;
mod weights;

pub use connections::{Connections, Scope, Softmax};
pub use end_to_end::EndToEnd;
pub use gradient::Gradient;
pub use problem::{LinearNet, Problem, ProblemError};
pub(crate) use svd::Svd;
pub use target::{Target, TargetError};
pub use weights::Weights;
