//! One step of a sampler, and guidance.

use burn::tensor::{Tensor, backend::Backend};
use serde::{Deserialize, Serialize};

use crate::{Diffusion, Variance, at_steps};

/// What a sampling step gives.
#[derive(Clone, Debug)]
pub struct StepOutput<B: Backend> {
    /// The images one step earlier, `[batch, channels, height, width]`.
    pub sample: Tensor<B, 4>,
    /// What the model takes the clean images to be.
    pub predicted: Tensor<B, 4>,
}

impl Diffusion {
    /// One step of ancestral sampling (Ho et al. 2020), from `noised` at the step `step` of this process to the one before.
    /// At step 0 the noise is not used.
    ///
    /// `output` is the model's at `noised`; `clip` keeps predicted images in -1..1, which suits pictures and not latents.
    ///
    /// # Panics
    /// Where shapes do not fit or the step is not one of the process.
    pub fn ddpm_step<B: Backend>(
        &self,
        output: Tensor<B, 4>,
        noised: Tensor<B, 4>,
        step: usize,
        noise: Tensor<B, 4>,
        clip: bool,
    ) -> StepOutput<B> {
        let steps = vec![step; noised.dims()[0]];
        let (predicted_noise, choice) = self.split(output, noised.dims()[1]);
        let log_variance = self.log_variance(choice, &steps, &noised);
        let predicted = self.clean(noised.clone(), predicted_noise, &steps, clip);
        let mean = self.posterior_mean(predicted.clone(), noised, &steps);
        let sample = if step == 0 { mean } else { mean + (log_variance * 0.5).exp() * noise };
        StepOutput { sample, predicted }
    }

    /// One step of DDIM (Song et al. 2021); `eta` 0 is deterministic and does not use the noise, 1 has the variance of the
    /// true posterior.
    ///
    /// # Panics
    /// As [`ddpm_step`](Self::ddpm_step).
    pub fn ddim_step<B: Backend>(
        &self,
        output: Tensor<B, 4>,
        noised: Tensor<B, 4>,
        step: usize,
        noise: Tensor<B, 4>,
        eta: f64,
        clip: bool,
    ) -> StepOutput<B> {
        let steps = vec![step; noised.dims()[0]];
        let (predicted_noise, _) = self.split(output, noised.dims()[1]);
        let predicted = self.clean(noised.clone(), predicted_noise, &steps, clip);
        // The noise that belongs to the clean images, which clipping may have changed.
        let a = at_steps(&self.tables.sqrt_recip_alphas_cumprod, &steps, &noised);
        let b = at_steps(&self.tables.sqrt_recipm1_alphas_cumprod, &steps, &noised);
        let direction = (noised * a - predicted.clone()) / b;
        let (level, before) = (self.tables.alphas_cumprod[step], self.tables.alphas_cumprod_prev[step]);
        let sigma = eta * ((1.0 - before) / (1.0 - level)).sqrt() * (1.0 - level / before).sqrt();
        let mean = predicted.clone() * before.sqrt() + direction * (1.0 - before - sigma * sigma).max(0.0).sqrt();
        let sample = if step == 0 || sigma == 0.0 { mean } else { mean + noise * sigma };
        StepOutput { sample, predicted }
    }

    fn clean<B: Backend>(
        &self,
        noised: Tensor<B, 4>,
        predicted_noise: Tensor<B, 4>,
        steps: &[usize],
        clip: bool,
    ) -> Tensor<B, 4> {
        let predicted = self.predicted_images(noised, predicted_noise, steps);
        if clip { predicted.clamp(-1.0, 1.0) } else { predicted }
    }

    /// Channels of a model's output that hold the predicted noise, for images of so many channels.
    pub fn output_channels(&self, channels: usize) -> usize {
        match self.variance {
            Variance::Learned => 2 * channels,
            Variance::FixedLarge => channels,
        }
    }
}

/// Which channels of the output are guided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guidance {
    /// The predicted noise, all its channels and nothing else.
    #[default]
    Noise,
    /// The first three channels of the output whatever they are: what DiT's code does, for the sake of equal samples. Of four
    /// latent channels the last stays unguided; of one channel the variance is guided too.
    FirstThree,
}

/// Classifier-free guidance (Ho and Salimans 2022): `without + scale (with - without)` on the guided channels; the others stay
/// those of the prediction with the label. Shapes are those of the model's output.
///
/// # Panics
/// Where shapes differ.
pub fn guided<B: Backend>(
    with_label: Tensor<B, 4>,
    without: Tensor<B, 4>,
    scale: f64,
    guidance: Guidance,
    image_channels: usize,
) -> Tensor<B, 4> {
    let channels = with_label.dims()[1];
    let guided = match guidance {
        Guidance::Noise => image_channels.min(channels),
        Guidance::FirstThree => channels.min(3),
    };
    let part = |output: &Tensor<B, 4>| output.clone().narrow(1, 0, guided);
    let (with, without) = (part(&with_label), part(&without));
    let pushed = without.clone() + (with - without) * scale;
    match channels - guided {
        0 => pushed,
        rest => Tensor::cat(vec![pushed, with_label.narrow(1, guided, rest)], 1),
    }
}

#[cfg(test)]
mod tests {
    use burn::{
        backend::Flex,
        tensor::{DType, TensorData},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::{Respacing, Tables};

    fn tensor(values: &[f64]) -> Tensor<Flex, 4> {
        Tensor::from_data(TensorData::new(values.to_vec(), [1, 1, 1, values.len()]), (&Default::default(), DType::F64))
    }

    fn read(tensor: Tensor<Flex, 4>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    proptest! {
        #[test]
        fn ddim_with_the_true_noise_goes_back_along_the_true_path(
            image in -1.0..1.0f64, noise in -2.0..2.0f64, step in 1usize..50,
        ) {
            let diffusion = Diffusion::new(Tables::dit(&"50".parse().unwrap()).unwrap(), Variance::FixedLarge);
            let (x, n) = (tensor(&[image]), tensor(&[noise]));
            let noised = diffusion.noised(x.clone(), n.clone(), &[step]);
            let back = diffusion.ddim_step(n.clone(), noised, step, tensor(&[0.0]), 0.0, false);
            let expected = diffusion.noised(x, n, &[step - 1]);
            prop_assert!((read(back.sample)[0] - read(expected)[0]).abs() < 1e-9);
            prop_assert!((read(back.predicted)[0] - image).abs() < 1e-6);
        }

        #[test]
        fn ddim_with_eta_1_has_the_variance_of_the_posterior(step in 1usize..1000) {
            let tables = Tables::dit(&Respacing::All).unwrap();
            let expected = tables.posterior_variance[step].sqrt();
            let diffusion = Diffusion::new(tables, Variance::FixedLarge);
            let at = |noise: f64| {
                let out = diffusion.ddim_step(tensor(&[0.1]), tensor(&[0.3]), step, tensor(&[noise]), 1.0, false);
                read(out.sample)[0]
            };
            prop_assert!((at(1.0) - at(0.0) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn the_last_step_adds_no_noise() {
        let diffusion = Diffusion::new(Tables::dit(&Respacing::All).unwrap(), Variance::FixedLarge);
        let at =
            |noise: f64| read(diffusion.ddpm_step(tensor(&[0.1]), tensor(&[0.3]), 0, tensor(&[noise]), true).sample);
        assert_eq!(at(0.0), at(9.0));
    }

    #[test]
    fn guidance_touches_its_channels_alone() {
        let output = |base: f64| {
            let values: Vec<f64> = (0..8).map(|c| base + f64::from(c)).collect();
            Tensor::<Flex, 4>::from_data(TensorData::new(values, [1, 8, 1, 1]), (&Default::default(), DType::F64))
        };
        let with = read(output(0.0));
        for (guidance, touched) in [(Guidance::Noise, 4), (Guidance::FirstThree, 3)] {
            let out = read(guided(output(0.0), output(10.0), 2.0, guidance, 4));
            for c in 0..8 {
                // 10 + c + 2 (c - 10 - c).
                assert_eq!(out[c], if c < touched { c as f64 - 10.0 } else { with[c] });
            }
        }
    }
}
