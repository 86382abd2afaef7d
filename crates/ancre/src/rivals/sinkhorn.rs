//! Sinkhorn's normalisation: matrices that are doubly stochastic, out of logits.

use burn::tensor::Tensor;
use fused_ops::FusedOps;

/// Rounds of the normalisation.
pub(crate) const ROUNDS: usize = 20;

/// A doubly stochastic matrix for every token out of logits `[tokens, n, n]`: exponentials, whose columns and rows are divided by
/// their sums in turn, rows last, [`ROUNDS`] times. Logits may be far apart.
pub(super) fn sinkhorn<B: FusedOps>(logits: Tensor<B, 3>) -> Tensor<B, 3> {
    let [tokens, n, _] = logits.dims();
    fused_ops::sinkhorn(logits.reshape([tokens, n * n]), n, ROUNDS).reshape([tokens, n, n])
}

#[cfg(test)]
mod tests {
    use burn::{
        backend::{Autodiff, Flex},
        tensor::TensorData,
    };

    use super::*;

    type B = Autodiff<Flex>;

    /// Rows and columns that are offset as wholes have the same limit; exponentials of some rows would be zeros alone, and their
    /// quotients 0/0.
    #[test]
    fn logits_far_apart_give_numbers() {
        let logits = |far: f32| {
            let offset = |i: usize| far * ([1.0, -1.0, 0.0][i / 3] + [0.0, 1.0, -1.0][i % 3]);
            let logits: Vec<f32> = (0..9).map(|i| (i as f32 * 1.7).sin() + offset(i)).collect();
            Tensor::<B, 3>::from_data(TensorData::new(logits, [1, 3, 3]), &Default::default()).require_grad()
        };
        let weights: Vec<f32> = (0..9).map(|i| (i as f32 * 2.3).cos()).collect();
        let weights = Tensor::<B, 3>::from_data(TensorData::new(weights, [1, 3, 3]), &Default::default());
        let of = |logits: Tensor<B, 3>| {
            let mix = sinkhorn(logits.clone());
            let gradients = (mix.clone() * weights.clone()).sum().backward();
            [mix, Tensor::from_inner(logits.grad(&gradients).unwrap())]
                .map(|t| t.into_data().iter::<f32>().collect::<Vec<_>>())
        };
        let near = of(logits(0.0));
        for far in [1e2, 1e3] {
            for (far, near) in of(logits(far)).concat().iter().zip(&near.concat()) {
                assert!((far - near).abs() < 1e-3, "{far} for {near}");
            }
        }
    }

    #[test]
    fn rows_and_columns_sum_to_one() {
        let logits: Vec<f32> = (0..32).map(|i| (i as f32 * 1.7).sin() * 3.0).collect();
        let logits = Tensor::<Flex, 3>::from_data(TensorData::new(logits, [2, 4, 4]), &Default::default());
        let mix = sinkhorn(logits);
        for (dim, tolerance) in [(1, 1e-3), (2, 1e-6)] {
            for sum in mix.clone().sum_dim(dim).into_data().iter::<f32>() {
                assert!((sum - 1.0).abs() < tolerance, "dimension {dim}: {sum}");
            }
        }
    }
}
