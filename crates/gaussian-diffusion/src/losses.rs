//! The losses of a prediction, one number an image.

use std::f64::consts::{LN_2, PI};

use burn::tensor::{Tensor, TensorData, backend::Backend};

use crate::{Diffusion, at_steps};

/// Losses of a batch, `[batch]` each.
#[derive(Clone, Debug)]
pub struct Losses<B: Backend> {
    /// Mean squared error of the predicted noise.
    pub mse: Tensor<B, 1>,
    /// A term of the variational bound in bits a dimension, which trains only the learned variance; none without one.
    pub vb: Option<Tensor<B, 1>>,
}

impl<B: Backend> Losses<B> {
    /// What is trained on: the sum of both, an image each.
    pub fn total(self) -> Tensor<B, 1> {
        match self.vb {
            Some(vb) => self.mse + vb,
            None => self.mse,
        }
    }
}

impl Diffusion {
    /// Losses of the model's `output` at noised images, whose images, noise and steps are given.
    ///
    /// # Panics
    /// Where shapes do not fit together.
    pub fn losses<B: Backend>(
        &self,
        output: Tensor<B, 4>,
        images: Tensor<B, 4>,
        noise: Tensor<B, 4>,
        noised: Tensor<B, 4>,
        steps: &[usize],
    ) -> Losses<B> {
        let (predicted, choice) = self.split(output, images.dims()[1]);
        // The bound trains the variance alone: the prediction is a constant to it.
        let vb = choice.map(|choice| self.bound(predicted.clone().detach(), choice, images, noised, steps));
        Losses { mse: mean_of_each((predicted - noise).square()), vb }
    }

    /// A term of the bound in bits a dimension: the divergence of the model's step from the true posterior or, at the
    /// first step, the negative log-likelihood of the image in 256 levels.
    fn bound<B: Backend>(
        &self,
        predicted_noise: Tensor<B, 4>,
        choice: Tensor<B, 4>,
        images: Tensor<B, 4>,
        noised: Tensor<B, 4>,
        steps: &[usize],
    ) -> Tensor<B, 1> {
        let predicted = self.predicted_images(noised.clone(), predicted_noise, steps);
        let mean = self.posterior_mean(predicted, noised.clone(), steps);
        let log_variance = self.log_variance(Some(choice), steps, &noised);
        let true_mean = self.posterior_mean(images.clone(), noised, steps);
        let true_log_variance = at_steps(&self.tables.posterior_log_variance_clipped, steps, &images);
        let divergence =
            mean_of_each(normal_divergence(true_mean, true_log_variance, mean.clone(), log_variance.clone()));
        let bits = if steps.contains(&0) {
            let first: Vec<f64> = steps.iter().map(|&t| if t == 0 { 1.0 } else { 0.0 }).collect();
            let batch = first.len();
            let first =
                Tensor::<B, 1>::from_data(TensorData::new(first, [batch]), (&divergence.device(), divergence.dtype()));
            let nll = mean_of_each(log_likelihood(images, mean, log_variance * 0.5).neg());
            divergence.mask_where(first.greater_elem(0.5), nll)
        } else {
            divergence
        };
        bits / LN_2
    }
}

/// The mean over all but the first dimension.
fn mean_of_each<B: Backend>(values: Tensor<B, 4>) -> Tensor<B, 1> {
    let batch = values.dims()[0];
    let size = values.dims().iter().skip(1).product::<usize>();
    values.reshape([batch, size]).mean_dim(1).reshape([batch])
}

/// Kullback-Leibler divergence of normal distributions in nats, element by element.
fn normal_divergence<B: Backend>(
    mean: Tensor<B, 4>,
    log_variance: Tensor<B, 4>,
    other_mean: Tensor<B, 4>,
    other_log_variance: Tensor<B, 4>,
) -> Tensor<B, 4> {
    let difference = other_log_variance.clone() - log_variance;
    let distance = (mean - other_mean).square() * other_log_variance.neg().exp();
    (difference.clone() + difference.neg().exp() + distance - 1.0) * 0.5
}

/// The smallest probability whose logarithm is taken.
const SMALLEST: f64 = 1e-12;
/// Values beyond this are in the outermost of the 256 levels, which reach to infinity.
const EDGE: f64 = 0.999;

/// Log-likelihood in nats of values in -1..1, in 256 levels, under normal distributions; element by element.
fn log_likelihood<B: Backend>(values: Tensor<B, 4>, means: Tensor<B, 4>, log_scales: Tensor<B, 4>) -> Tensor<B, 4> {
    let centred = values.clone() - means;
    let inverse = log_scales.neg().exp();
    let half_level = 1.0 / 255.0;
    let upper = normal_cdf((centred.clone() + half_level) * inverse.clone());
    let lower = normal_cdf((centred - half_level) * inverse);
    let log = |probability: Tensor<B, 4>| probability.clamp_min(SMALLEST).log();
    log(upper.clone() - lower.clone())
        .mask_where(values.clone().greater_elem(EDGE), log(lower.neg() + 1.0))
        .mask_where(values.lower_elem(-EDGE), log(upper))
}

/// The tanh approximation of the normal distribution function that GELU uses, too.
fn normal_cdf<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 4> {
    let cubic = x.clone().powi_scalar(3) * 0.044715;
    (((x + cubic) * (2.0 / PI).sqrt()).tanh() + 1.0) * 0.5
}

#[cfg(test)]
mod tests {
    use burn::{backend::Flex, tensor::DType};

    use super::*;
    use crate::{Respacing, Tables, Variance};

    fn tensor(values: &[f64]) -> Tensor<Flex, 4> {
        Tensor::from_data(TensorData::new(values.to_vec(), [1, 1, 1, values.len()]), (&Default::default(), DType::F64))
    }

    fn read<const D: usize>(tensor: Tensor<Flex, D>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    #[test]
    fn all_levels_together_are_certain() {
        let levels: Vec<f64> = (0..256).map(|b| f64::from(b) / 127.5 - 1.0).collect();
        for (mean, log_scale) in [(0.1, -1.0), (-0.9, -3.0), (0.99, 0.0)] {
            let all = |x: f64| tensor(&vec![x; 256]);
            let total: f64 =
                read(log_likelihood(tensor(&levels), all(mean), all(log_scale))).into_iter().map(f64::exp).sum();
            // Levels that are nearly impossible count 1e-12 each.
            assert!((total - 1.0).abs() < 1e-9, "{mean} {log_scale}: {total}");
        }
    }

    #[test]
    fn the_bound_vanishes_for_the_true_posterior() {
        // The true noise and the smallest variance: the model's step is the posterior itself.
        let diffusion = Diffusion::new(Tables::dit(&Respacing::All).unwrap(), Variance::Learned);
        let (images, noise) = (tensor(&[0.3, -0.7, 0.1]), tensor(&[1.0, -0.2, 0.5]));
        let noised = diffusion.noised(images.clone(), noise.clone(), &[500]);
        let output = Tensor::cat(vec![noise.clone(), tensor(&[-1.0; 3])], 1);
        let losses = diffusion.losses(output, images, noise, noised, &[500]);
        assert!(read(losses.mse)[0] < 1e-20 && read(losses.vb.unwrap())[0].abs() < 1e-12);
    }
}
