//! Where the parameters of a model come from when it is made.

use rand_distr::{Distribution, StandardNormal};

use super::ModelError;

/// A source of the parameters of a [`Llama`](super::Llama), asked for each of them once. Names are the authors', without
/// `.weight`: `model.layers.0.self_attn.q_proj`. So a model is never in memory twice.
pub trait Weights {
    /// What can go wrong.
    type Error: From<ModelError>;

    /// A linear map, row-major `[input, output]`: the transpose of what files hold.
    ///
    /// # Errors
    /// If there is no such map.
    fn projection(&mut self, name: &str, dims: [usize; 2]) -> Result<Vec<f32>, Self::Error>;

    /// The embeddings, row-major `[vocabulary, width]`.
    ///
    /// # Errors
    /// If there are none.
    fn embedding(&mut self, name: &str, dims: [usize; 2]) -> Result<Vec<f32>, Self::Error>;

    /// The gain of a normalisation.
    ///
    /// # Errors
    /// If there is none.
    fn gain(&mut self, name: &str, width: usize) -> Result<Vec<f32>, Self::Error>;
}

/// Initial weights: normal numbers, each parameter's from the random stream that carries its name. So it is the same in every
/// arm, on every device, and whatever else the model holds. Gains are 1.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Seed of the streams.
    pub seed: u64,
    /// Standard deviation of the matrices.
    pub std: f64,
    /// Standard deviation of the embeddings.
    pub embedding_std: f64,
}

impl Drawn {
    fn normal(&self, name: &str, dims: [usize; 2], std: f64) -> Vec<f32> {
        let rng = training::seed::stream(self.seed, name, 0);
        let values = Distribution::<f64>::sample_iter(StandardNormal, rng);
        values.take(dims[0] * dims[1]).map(|z| (z * std) as f32).collect()
    }
}

impl Weights for Drawn {
    type Error = ModelError;

    fn projection(&mut self, name: &str, dims: [usize; 2]) -> Result<Vec<f32>, ModelError> {
        Ok(self.normal(name, dims, self.std))
    }

    fn embedding(&mut self, name: &str, dims: [usize; 2]) -> Result<Vec<f32>, ModelError> {
        Ok(self.normal(name, dims, self.embedding_std))
    }

    fn gain(&mut self, _: &str, width: usize) -> Result<Vec<f32>, ModelError> {
        Ok(vec![1.0; width])
    }
}
