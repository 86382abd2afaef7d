//! Labelled images for diffusion models, from files to batches.
//!
//! | step | type | what it decides |
//! |---|---|---|
//! | source | [`ImageSpec`], with [`ImageOptions`] | which images, at which size and in how many channels |
//! | images | [`ImageData`]: two [`ImageSet`]s | which images are trained on, which are held out |
//! | batches | [`ImagePlan`], [`ImageSet::in_order`] | which images stand in one batch, which are mirrored |
//!
//! Two sets of real pictures are embedded (handwritten digits and emoji); everything else is read from the user's
//! files.

mod batches;
mod error;
mod formats;
mod options;
mod set;
mod spec;
mod split;

pub use batches::{ImageBatch, ImagePlan};
pub use error::ImageError;
pub use options::{ImageOptions, LATENT_SCALE};
pub use set::{ImageKind, ImageSet};
pub use spec::{ImageData, ImageSpec};
