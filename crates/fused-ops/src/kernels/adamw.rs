//! PyTorch's AdamW on flat slices.

use rayon::prelude::*;

use super::{CHUNK, simd::simd_kernel};

/// The constants of one AdamW step, already reduced to what the inner loop needs.
#[derive(Clone, Copy, Debug)]
pub struct Coefficients {
    /// `1 - lr * weight_decay`, applied to the parameter before the update.
    pub keep: f32,
    /// `lr / (1 - beta1^t)`.
    pub step_size: f32,
    /// First-moment decay `beta1`.
    pub beta1: f32,
    /// `1 - beta1`, rounded from `f64`.
    pub one_minus_beta1: f32,
    /// Second-moment decay `beta2`.
    pub beta2: f32,
    /// `1 - beta2`, rounded from `f64`.
    pub one_minus_beta2: f32,
    /// `sqrt(1 - beta2^t)`.
    pub root_correction: f32,
    /// Added to the corrected root of the second moment.
    pub eps: f32,
}

/// One step in place over slices of equal length: `p <- keep p - step_size m / (sqrt(v) / root_correction + eps)`.
pub fn step(parameter: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], c: Coefficients) {
    same_length!("adamw", parameter, gradient, first, second);
    if parameter.len() <= CHUNK {
        return chunk(parameter, gradient, first, second, c);
    }
    parameter
        .par_chunks_mut(CHUNK)
        .zip(first.par_chunks_mut(CHUNK))
        .zip(second.par_chunks_mut(CHUNK))
        .zip(gradient.par_chunks(CHUNK))
        .for_each(|(((p, m), v), g)| chunk(p, g, m, v, c));
}

simd_kernel! {
    fn chunk(parameter: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], c: Coefficients) {
        for (((p, g), m), v) in parameter.iter_mut().zip(gradient).zip(first).zip(second) {
            *m = c.beta1 * *m + c.one_minus_beta1 * g;
            *v = c.beta2 * *v + c.one_minus_beta2 * (g * g);
            *p = *p * c.keep - c.step_size * *m / (v.sqrt() / c.root_correction + c.eps);
        }
    }
}
