//! One update of a projected matrix.

use burn::tensor::{Tensor, TensorData, backend::Backend};
use fused_ops::{AdamWStep, FusedOps};

use super::{Projection, Side, leading_vectors};

/// A basis to compute.
pub(in crate::optimizer) struct Job<I: Backend> {
    pub(in crate::optimizer) name: String,
    pub(in crate::optimizer) projection: Projection,
    pub(in crate::optimizer) gradient: Tensor<I, 2>,
}

impl<I: Backend> Job<I> {
    /// The name of the parameter, and its basis.
    pub(in crate::optimizer) fn run(self) -> (String, Tensor<I, 2>) {
        let Self { name, projection: Projection { side, rank, .. }, gradient } = self;
        let (dims, device, dtype) = (gradient.dims(), gradient.device(), gradient.dtype());
        let along_columns = match side {
            Side::Inputs => gradient.transpose(),
            Side::Outputs => gradient,
        };
        let rows = dims[side as usize];
        let values = along_columns.into_data().iter::<f64>().collect();
        let vectors = leading_vectors(rows, values, rank);
        let data = TensorData::new(vectors.concat(), [rank, rows]).convert_dtype(dtype);
        let basis = Tensor::from_data(data, (&device, dtype));
        let basis = match side {
            Side::Inputs => basis.transpose(),
            Side::Outputs => basis,
        };
        (name, basis)
    }
}

/// What a matrix and its state are after one update: the matrix, both moments. `step` moves the projection as far as the
/// rule says; weight decay is left to the caller.
pub(in crate::optimizer) fn update<I: FusedOps>(
    projection: Projection,
    parameter: Tensor<I, 2>,
    gradient: Tensor<I, 2>,
    moments: [Option<Tensor<I, 2>>; 2],
    basis: &Tensor<I, 2>,
    step: AdamWStep,
) -> [Tensor<I, 2>; 3] {
    let low = match projection.side {
        Side::Inputs => basis.clone().transpose().matmul(gradient),
        Side::Outputs => gradient.matmul(basis.clone().transpose()),
    };
    let [first, second] = moments.map(|moment| moment.unwrap_or_else(|| low.zeros_like()));
    let step = AdamWStep { lr: step.lr * projection.scale, ..step };
    // From the origin, the place that the rule arrives at is its movement.
    let [movement, first, second] = fused_ops::adamw(low.zeros_like(), low, first, second, &step);
    let movement = match projection.side {
        Side::Inputs => basis.clone().matmul(movement),
        Side::Outputs => movement.matmul(basis.clone()),
    };
    [parameter + movement, first, second]
}
