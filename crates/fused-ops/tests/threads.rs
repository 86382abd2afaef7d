//! No gradient is lost where several threads build graphs and go back through theirs at the same time.

use burn::{
    backend::{Autodiff, Flex},
    tensor::{DType, Tensor, TensorData},
};

type B = Autodiff<Flex>;

fn leaf(first: usize, dims: [usize; 2], dtype: DType) -> Tensor<B, 2> {
    let values: Vec<f64> = (first..first + dims[0] * dims[1]).map(|i| (i as f64 * 0.9).sin()).collect();
    Tensor::from_data(TensorData::new(values, dims), (&Default::default(), dtype)).require_grad()
}

/// Runs `operation` on slices of leaves, which nobody else holds, on six threads. In one graph it runs many times: burn-autodiff 0.21
/// puts later slices of a leaf into graphs apart, and backward passes of other threads end in between.
fn check(name: &str, dims: &[[usize; 2]], dtype: DType, operation: impl Fn(Vec<Tensor<B, 2>>) -> Tensor<B, 2> + Sync) {
    const TIMES: usize = 20;
    let gradients = || {
        let leaf = |(k, [rows, columns]): (usize, &[usize; 2])| leaf(100 * k, [TIMES * rows, *columns], dtype);
        let leaves: Vec<_> = dims.iter().enumerate().map(leaf).collect();
        let outputs = (0..TIMES).map(|i| {
            let slice = |(leaf, [rows, columns]): (&Tensor<B, 2>, &[usize; 2])| {
                leaf.clone().slice([i * rows..(i + 1) * rows, 0..*columns])
            };
            operation(leaves.iter().zip(dims).map(slice).collect()).square().sum()
        });
        // Graphs that are merged twice are those that leave leaves behind.
        let gradients = outputs.fold(self::leaf(0, [1, 1], dtype).sum(), |sum, output| sum + output).backward();
        let read = |leaf: &Tensor<B, 2>| leaf.grad(&gradients).unwrap().into_data().iter::<f64>().collect::<Vec<_>>();
        leaves.iter().map(read).collect::<Vec<_>>()
    };
    let expected = gradients();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..400 {
                    assert!(gradients() == expected, "{name}: a gradient is lost");
                }
            });
        }
    });
}

#[test]
fn concatenated_tensors_keep_their_gradients() {
    check("concatenate", &[[2, 3], [2, 1]], DType::F32, |tensors| fused_ops::concatenate(tensors, 1));
}

#[test]
fn composed_streams_keep_their_gradients() {
    check("update_streams in f64", &[[1, 6], [5, 8], [5, 4]], DType::F64, |t| {
        let [weights, streams, added] = t.try_into().unwrap();
        fused_ops::update_streams(weights, streams, added, 2)
    });
}
