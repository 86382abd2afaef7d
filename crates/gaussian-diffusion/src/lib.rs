//! Gaussian diffusion as DiT uses it: a model learns to say which noise was added to an image, and samples are drawn by
//! taking noise away step by step.
//!
//! [`Tables`] holds the numbers of a process in `f64`, for all steps or for the few that a [`Respacing`] keeps.
//! [`Diffusion`] applies them to tensors: [`noised`](Diffusion::noised) images for training, the
//! [`losses`](Diffusion::losses) of a prediction (squared error, and the variational bound that trains learned variances),
//! and the steps of the two samplers, [`ddpm_step`](Diffusion::ddpm_step) and [`ddim_step`](Diffusion::ddim_step).
//! [`guided`] combines predictions with and without a label.
//!
//! Arithmetic follows OpenAI's guided-diffusion as DiT ships it (Ho et al. 2020; Nichol and Dhariwal 2021; Song et al. 2021;
//! Ho and Salimans 2022), and is tested against vectors computed with it. Random numbers come from the caller.
//!
//! ```
//! use burn::{backend::Flex, tensor::Tensor};
//! use gaussian_diffusion::{Diffusion, Respacing, Tables, Variance};
//! let tables = Tables::dit(&"50".parse()?)?;
//! assert_eq!((tables.steps(), tables.timestep_map[49]), (50, 999));
//! let diffusion = Diffusion::new(tables, Variance::Learned);
//! // At the last step nearly nothing of the image is left.
//! let device = Default::default();
//! let image = Tensor::<Flex, 4>::ones([1, 1, 2, 2], &device);
//! let noised = diffusion.noised(image, Tensor::zeros([1, 1, 2, 2], &device), &[49]);
//! assert!(noised.max().into_scalar() < 0.01);
//! # Ok::<(), gaussian_diffusion::RespacingError>(())
//! ```

mod losses;
mod respacing;
mod sampling;
mod tables;

pub use losses::Losses;
pub use respacing::{Respacing, RespacingError};
pub use sampling::{Guidance, StepOutput, guided};
pub use tables::{Tables, linear_betas};

use burn::tensor::{Tensor, TensorData, backend::Backend};

/// Where the variance of a sampling step comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variance {
    /// The model has a second half of channels that choose between the smallest and the largest variance on a logarithmic
    /// scale (Nichol and Dhariwal 2021).
    Learned,
    /// `beta_t`, fixed.
    FixedLarge,
}

/// A process with the rule for its variances.
#[derive(Clone, Debug, PartialEq)]
pub struct Diffusion {
    tables: Tables,
    variance: Variance,
}

impl Diffusion {
    /// The process with these tables.
    pub fn new(tables: Tables, variance: Variance) -> Self {
        Self { tables, variance }
    }

    /// Its tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Its rule for variances.
    pub fn variance(&self) -> Variance {
        self.variance
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.tables.steps()
    }

    /// What the model is told at each of these steps: the step of the process it was trained with.
    ///
    /// # Panics
    /// Where a step is not one of the process.
    pub fn model_steps(&self, steps: &[usize]) -> Vec<usize> {
        steps.iter().map(|&t| self.tables.timestep_map[t]).collect()
    }

    /// `sqrt(a_t) x_0 + sqrt(1 - a_t) noise` for images `[batch, channels, height, width]`, one step each.
    ///
    /// # Panics
    /// Where shapes differ, there is not one step an image, or a step is not one of the process.
    pub fn noised<B: Backend>(&self, images: Tensor<B, 4>, noise: Tensor<B, 4>, steps: &[usize]) -> Tensor<B, 4> {
        let image_share = at_steps(&self.tables.sqrt_alphas_cumprod, steps, &images);
        let noise_share = at_steps(&self.tables.sqrt_one_minus_alphas_cumprod, steps, &images);
        images * image_share + noise * noise_share
    }

    /// The model's output cut into the predicted noise and, for learned variances, what chooses them.
    ///
    /// # Panics
    /// Where the output does not have the channels that the variance asks for, given those of the images.
    fn split<B: Backend>(&self, output: Tensor<B, 4>, channels: usize) -> (Tensor<B, 4>, Option<Tensor<B, 4>>) {
        match self.variance {
            Variance::FixedLarge => {
                assert_eq!(
                    output.dims()[1],
                    channels,
                    "a model without learned variance has the channels of the images"
                );
                (output, None)
            }
            Variance::Learned => {
                assert_eq!(output.dims()[1], 2 * channels, "a model with learned variance has twice the channels");
                (output.clone().narrow(1, 0, channels), Some(output.narrow(1, channels, channels)))
            }
        }
    }

    /// Logarithm of the variance of a sampling step.
    fn log_variance<B: Backend>(
        &self,
        choice: Option<Tensor<B, 4>>,
        steps: &[usize],
        like: &Tensor<B, 4>,
    ) -> Tensor<B, 4> {
        match choice {
            None => at_steps(&self.tables.fixed_large_log_variance, steps, like),
            Some(choice) => {
                let smallest = at_steps(&self.tables.posterior_log_variance_clipped, steps, like);
                let largest_values: Vec<f64> = self.tables.betas.iter().map(|beta| beta.ln()).collect();
                let largest = at_steps(&largest_values, steps, like);
                // From -1..1 to 0..1.
                let share = (choice + 1.0) * 0.5;
                share.clone() * largest + (share.neg() + 1.0) * smallest
            }
        }
    }

    /// Mean of `q(x_{t-1} | x_t, x_0)`.
    fn posterior_mean<B: Backend>(&self, images: Tensor<B, 4>, noised: Tensor<B, 4>, steps: &[usize]) -> Tensor<B, 4> {
        let first = at_steps(&self.tables.posterior_mean_coef1, steps, &noised);
        let second = at_steps(&self.tables.posterior_mean_coef2, steps, &noised);
        images * first + noised * second
    }

    /// `x_0` from the predicted noise.
    fn predicted_images<B: Backend>(&self, noised: Tensor<B, 4>, noise: Tensor<B, 4>, steps: &[usize]) -> Tensor<B, 4> {
        let (a, b) = (&self.tables.sqrt_recip_alphas_cumprod, &self.tables.sqrt_recipm1_alphas_cumprod);
        let (a, b) = (at_steps(a, steps, &noised), at_steps(b, steps, &noised));
        noised * a - noise * b
    }
}

/// Entries of a table, one a row of `like`, as `[batch, 1, 1, 1]` of its type and device.
fn at_steps<B: Backend>(table: &[f64], steps: &[usize], like: &Tensor<B, 4>) -> Tensor<B, 4> {
    let batch = like.dims()[0];
    assert_eq!(steps.len(), batch, "one step for each of {batch} images");
    let values: Vec<f64> = steps.iter().map(|&t| table[t]).collect();
    Tensor::from_data(TensorData::new(values, [batch, 1, 1, 1]), (&like.device(), like.dtype()))
}
