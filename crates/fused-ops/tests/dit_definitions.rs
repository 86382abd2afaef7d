//! The operations of DiT's blocks against their definitions, written as loops in `f64`: layout, order and constants.

use burn::{
    backend::Flex,
    tensor::{DType, Tensor, TensorData},
};
use fused_ops::AttentionShape;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn values(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| rng.random_range(-2.0..2.0)).collect()
}

/// Runs an operation in both precisions: the kernel, and the composition that other types and backends take.
fn assert_defined(expected: &[f64], operation: impl Fn(DType) -> Vec<f64>) {
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-5)] {
        let actual = operation(dtype);
        assert_eq!(actual.len(), expected.len());
        for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
            assert!((a - e).abs() < tolerance, "{dtype:?}, entry {i}: {a}, not {e}");
        }
    }
}

fn tensor<const D: usize>(values: &[f64], dims: [usize; D], dtype: DType) -> Tensor<Flex, D> {
    Tensor::from_data(TensorData::new(values.to_vec(), dims), (&Default::default(), dtype))
}

fn read(tensor: Tensor<Flex, 2>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

#[test]
fn self_attention() {
    for (batch, length, heads, size) in [(2, 5, 3, 4), (2, 19, 2, 3), (1, 70, 2, 5)] {
        let width = heads * size;
        let packed = values(1, batch * length * 3 * width);
        let at = |b: usize, t: usize, block: usize, h: usize, d: usize| {
            packed[(b * length + t) * 3 * width + block * width + h * size + d]
        };
        let mut expected = vec![0.0; batch * length * width];
        for b in 0..batch {
            for h in 0..heads {
                for t in 0..length {
                    let weights: Vec<f64> = (0..length)
                        .map(|s| (0..size).map(|d| at(b, t, 0, h, d) * at(b, s, 1, h, d)).sum::<f64>())
                        .map(|score| (score / (size as f64).sqrt()).exp())
                        .collect();
                    let total: f64 = weights.iter().sum();
                    for d in 0..size {
                        expected[(b * length + t) * width + h * size + d] =
                            (0..length).map(|s| weights[s] / total * at(b, s, 2, h, d)).sum();
                    }
                }
            }
        }
        let shape = AttentionShape { batch, length, heads, head_size: size };
        assert_defined(&expected, |dtype| {
            read(fused_ops::self_attention(tensor(&packed, [batch * length, 3 * width], dtype), shape))
        });
    }
}

#[test]
fn modulated_layer_norm_and_gated_add() {
    let (batch, length, width, eps) = (3, 4, 5, 1e-3);
    let (x, branch) = (values(1, batch * length * width), values(2, batch * length * width));
    let (shift, scale) = (values(3, batch * width), values(4, batch * width));
    let (mut normed, mut added) = (Vec::new(), Vec::new());
    for r in 0..batch * length {
        let row = &x[r * width..(r + 1) * width];
        let mean = row.iter().sum::<f64>() / width as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        for (j, x) in row.iter().enumerate() {
            let m = r / length * width + j;
            normed.push((x - mean) / (variance + eps).sqrt() * (1.0 + scale[m]) + shift[m]);
            added.push(x + shift[m] * branch[r * width + j]);
        }
    }
    let rows = |values: &[f64], dtype| tensor(values, [batch * length, width], dtype);
    let modulation = |values: &[f64], dtype| tensor(values, [batch, width], dtype);
    assert_defined(&normed, |dtype| {
        let (shift, scale) = (modulation(&shift, dtype), modulation(&scale, dtype));
        read(fused_ops::modulated_layer_norm(rows(&x, dtype), shift, scale, eps))
    });
    assert_defined(&added, |dtype| {
        read(fused_ops::gated_add(rows(&x, dtype), modulation(&shift, dtype), rows(&branch, dtype)))
    });
}

#[test]
fn add_bias_and_bias_gelu() {
    let (rows, width) = (40, 3);
    let x: Vec<f64> = (0..rows * width).map(|i| 0.2 * i as f64 - 12.0).collect();
    let bias = [0.5, -0.25, 0.0];
    let sums: Vec<f64> = x.iter().enumerate().map(|(i, x)| x + bias[i % width]).collect();
    let gelu = |u: f64| 0.5 * u * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (u + 0.044715 * u.powi(3))).tanh());
    let activated: Vec<f64> = sums.iter().map(|u| gelu(*u)).collect();
    let run = |operation: fn(Tensor<Flex, 2>, Tensor<Flex, 1>) -> Tensor<Flex, 2>, dtype| {
        read(operation(tensor(&x, [rows, width], dtype), tensor(&bias, [width], dtype)))
    };
    assert_defined(&sums, |dtype| run(fused_ops::add_bias, dtype));
    assert_defined(&activated, |dtype| run(fused_ops::bias_gelu, dtype));
}

#[test]
fn gelu_is_finite_far_out() {
    let x = tensor(&[-1e4, -100.0, 0.0, 100.0, 1e4], [5, 1], DType::F32);
    let bias = tensor(&[0.0], [1], DType::F32);
    let y = read(fused_ops::bias_gelu(x, bias));
    assert!(y[0].abs() < 1e-30 && y[1].abs() < 1e-30, "{y:?}");
    assert_eq!(y[2..], [0.0, 100.0, 1e4]);
}

#[test]
fn empty_batches_give_empty_results() {
    let none = |columns| Tensor::<Flex, 2>::zeros([0, columns], &Default::default());
    let shape = AttentionShape { batch: 0, length: 16, heads: 2, head_size: 3 };
    assert_eq!(fused_ops::self_attention(none(18), shape).dims(), [0, 6]);
    assert_eq!(fused_ops::gated_add(none(6), none(6), none(6)).dims(), [0, 6]);
    assert_eq!(fused_ops::modulated_layer_norm(none(6), none(6), none(6), 1e-6).dims(), [0, 6]);
    let bias = Tensor::<Flex, 1>::zeros([6], &Default::default());
    assert_eq!(fused_ops::bias_gelu(fused_ops::add_bias(none(6), bias.clone()), bias).dims(), [0, 6]);
}

#[test]
#[should_panic(expected = "no sequences of one length")]
fn modulation_must_divide_the_rows() {
    let rows = Tensor::<Flex, 2>::zeros([7, 3], &Default::default());
    let gate = Tensor::<Flex, 2>::zeros([2, 3], &Default::default());
    let _ = fused_ops::gated_add(rows.clone(), gate, rows);
}

#[test]
fn half_precision_stays_half_precision() {
    let (rows, modulation, bias) = (values(1, 24), values(2, 8), values(3, 4));
    let shape = AttentionShape { batch: 2, length: 3, heads: 2, head_size: 1 };
    let run = |dtype| {
        let x = tensor(&rows, [6, 4], dtype);
        let m = tensor(&modulation, [2, 4], dtype);
        let bias = tensor(&bias, [4], dtype);
        [
            fused_ops::self_attention(tensor(&values(4, 36), [6, 6], dtype), shape),
            fused_ops::modulated_layer_norm(x.clone(), m.clone(), m.clone(), 1e-6),
            fused_ops::gated_add(x.clone(), m, x.clone()),
            fused_ops::add_bias(x.clone(), bias.clone()),
            fused_ops::bias_gelu(x, bias),
        ]
    };
    for (half, single) in run(DType::BF16).into_iter().zip(run(DType::F32)) {
        assert_eq!(half.dtype(), DType::BF16);
        for (h, s) in read(half).into_iter().zip(read(single)) {
            // Eight bits of mantissa in the inputs and in the result.
            assert!((h - s).abs() < 0.06, "{h}, not {s}");
        }
    }
}
