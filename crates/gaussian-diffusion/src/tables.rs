//! The numbers of a diffusion process, one of each per step, in `f64`.

use crate::{Respacing, RespacingError};

/// The tables of a process with given noise rates `beta_t` (Ho et al. 2020; Nichol and Dhariwal 2021), after respacing.
///
/// All vectors have one entry a kept step. `a_t` below is the product of `1 - beta` up to and including step t.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// The original step of each kept one: what the model is told.
    pub timestep_map: Vec<usize>,
    /// Variance that a step adds.
    pub betas: Vec<f64>,
    /// `a_t`.
    pub alphas_cumprod: Vec<f64>,
    /// `a_{t-1}`, 1 before the first.
    pub alphas_cumprod_prev: Vec<f64>,
    /// `a_{t+1}`, 0 after the last.
    pub alphas_cumprod_next: Vec<f64>,
    /// `sqrt(a_t)`: how much of the image is left.
    pub sqrt_alphas_cumprod: Vec<f64>,
    /// `sqrt(1 - a_t)`: how much noise there is.
    pub sqrt_one_minus_alphas_cumprod: Vec<f64>,
    /// `ln(1 - a_t)`.
    pub log_one_minus_alphas_cumprod: Vec<f64>,
    /// `sqrt(1 / a_t)`.
    pub sqrt_recip_alphas_cumprod: Vec<f64>,
    /// `sqrt(1 / a_t - 1)`.
    pub sqrt_recipm1_alphas_cumprod: Vec<f64>,
    /// Variance of `q(x_{t-1} | x_t, x_0)`.
    pub posterior_variance: Vec<f64>,
    /// Its logarithm; at the first step, where it is 0, that of the second.
    pub posterior_log_variance_clipped: Vec<f64>,
    /// Weight of `x_0` in the mean of `q(x_{t-1} | x_t, x_0)`.
    pub posterior_mean_coef1: Vec<f64>,
    /// Weight of `x_t` in it.
    pub posterior_mean_coef2: Vec<f64>,
    /// Logarithm of the larger fixed variance: `beta_t`, at the first step the posterior variance of the second.
    pub fixed_large_log_variance: Vec<f64>,
}

/// `beta_t` rising in a straight line from 1e-4 to 0.02 for 1000 steps (Ho et al. 2020), scaled by `1000 / steps` for others.
///
/// # Panics
/// For fewer than 21 steps, where the last rate would not be below 1.
pub fn linear_betas(steps: usize) -> Vec<f64> {
    assert!(steps > 20, "linear rates need more than 20 steps, not {steps}");
    let scale = 1000.0 / steps as f64;
    let (first, last) = (scale * 1e-4, scale * 0.02);
    let stride = (last - first) / (steps.max(2) - 1) as f64;
    // The end is hit exactly, not by adding up.
    (0..steps).map(|t| if t > 0 && t + 1 == steps { last } else { t as f64 * stride + first }).collect()
}

impl Tables {
    /// The process with these rates, of which only the chosen steps are kept: their rates are derived anew so that the
    /// noise levels at those steps stay what they were.
    ///
    /// # Errors
    /// If the steps cannot be chosen.
    pub fn new(betas: &[f64], respacing: &Respacing) -> Result<Self, RespacingError> {
        let timestep_map = respacing.steps(betas.len())?;
        let levels = cumulative_product(betas);
        // Rates are derived anew for all steps too, as in OpenAI's code: they differ from the given ones in the last digits.
        let mut before = 1.0;
        let betas = timestep_map
            .iter()
            .map(|&step| {
                let beta = 1.0 - levels[step] / before;
                before = levels[step];
                beta
            })
            .collect();
        Ok(Self::of_betas(betas, timestep_map))
    }

    /// The process of DiT: 1000 linear rates.
    ///
    /// # Errors
    /// If the steps cannot be chosen.
    pub fn dit(respacing: &Respacing) -> Result<Self, RespacingError> {
        Self::new(&linear_betas(1000), respacing)
    }

    fn of_betas(betas: Vec<f64>, timestep_map: Vec<usize>) -> Self {
        let n = betas.len();
        let cumprod = cumulative_product(&betas);
        let prev: Vec<f64> = std::iter::once(1.0).chain(cumprod.iter().copied()).take(n).collect();
        let next = cumprod.iter().skip(1).copied().chain(std::iter::once(0.0)).take(n).collect();
        let of = |f: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..n).map(f).collect() };
        let variance = of(&|t| betas[t] * (1.0 - prev[t]) / (1.0 - cumprod[t]));
        // A process of one step has no second variance to borrow.
        let first = variance.get(1).or(variance.first()).copied().unwrap_or(0.0);
        let clipped = |t: usize, value: f64| if t == 0 { first.ln() } else { value.ln() };
        Self {
            alphas_cumprod_next: next,
            sqrt_alphas_cumprod: of(&|t| cumprod[t].sqrt()),
            sqrt_one_minus_alphas_cumprod: of(&|t| (1.0 - cumprod[t]).sqrt()),
            log_one_minus_alphas_cumprod: of(&|t| (1.0 - cumprod[t]).ln()),
            sqrt_recip_alphas_cumprod: of(&|t| (1.0 / cumprod[t]).sqrt()),
            sqrt_recipm1_alphas_cumprod: of(&|t| (1.0 / cumprod[t] - 1.0).sqrt()),
            posterior_log_variance_clipped: of(&|t| clipped(t, variance[t])),
            posterior_mean_coef1: of(&|t| betas[t] * prev[t].sqrt() / (1.0 - cumprod[t])),
            posterior_mean_coef2: of(&|t| (1.0 - prev[t]) * (1.0 - betas[t]).sqrt() / (1.0 - cumprod[t])),
            fixed_large_log_variance: of(&|t| clipped(t, betas[t])),
            posterior_variance: variance,
            alphas_cumprod_prev: prev,
            alphas_cumprod: cumprod,
            betas,
            timestep_map,
        }
    }

    /// Number of kept steps.
    pub fn steps(&self) -> usize {
        self.betas.len()
    }
}

fn cumulative_product(betas: &[f64]) -> Vec<f64> {
    let mut product = 1.0;
    betas
        .iter()
        .map(|beta| {
            product *= 1.0 - beta;
            product
        })
        .collect()
}
