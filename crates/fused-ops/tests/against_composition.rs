//! Every fused kernel against the composition of ordinary operations in `f64`, values and gradients, at odd sizes.

use burn::{
    backend::{Autodiff, Flex},
    tensor::{DType, Int, Tensor, TensorData},
};
use fused_ops::{AdamWStep, AttentionShape, IGNORE_TARGET, RotaryTable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type B = Autodiff<Flex>;

/// Reproducible values in `-1..1`.
fn values(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Rounded to f32, so that both precisions start from the same numbers.
    (0..n).map(|_| f64::from(rng.random_range(-1.0f32..1.0))).collect()
}

fn leaf<const D: usize>(values: &[f64], dims: [usize; D], dtype: DType) -> Tensor<B, D> {
    let data = TensorData::new(values.to_vec(), dims);
    Tensor::<B, D>::from_data(data, (&Default::default(), dtype)).require_grad()
}

fn read<const D: usize>(tensor: Tensor<impl burn::tensor::backend::Backend, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Largest difference, relative to the largest entry.
fn assert_close(name: &str, actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{name}");
    let scale = expected.iter().fold(1e-30f64, |m, x| m.max(x.abs()));
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        // Written so that a NaN fails.
        assert!((a - e).abs() <= tolerance * scale, "{name}: entry {i} is {a}, expected {e}");
    }
}

/// Runs `operation` on the same leaves in f32 (kernel) and f64 (composition); compares the output and each gradient.
fn check(
    name: &str,
    leaves: &[(Vec<f64>, [usize; 2])],
    tolerance: f64,
    operation: impl Fn(&[Tensor<B, 2>]) -> Tensor<B, 2>,
) {
    let run = |dtype: DType| {
        let tensors: Vec<_> = leaves.iter().map(|(v, dims)| leaf(v, *dims, dtype)).collect();
        let output = operation(&tensors);
        let n = output.dims().iter().product();
        let weights = leaf(&values(99, n), output.dims(), dtype);
        let gradients = (output.clone() * weights.detach()).sum().backward();
        let gradients: Vec<_> = tensors.iter().map(|t| t.grad(&gradients).map(read)).collect();
        (read(output), gradients)
    };
    let (actual, actual_gradients) = run(DType::F32);
    let (expected, expected_gradients) = run(DType::F64);
    assert_close(name, &actual, &expected, tolerance);
    for (i, (a, e)) in actual_gradients.iter().zip(&expected_gradients).enumerate() {
        match (a, e) {
            (Some(a), Some(e)) => assert_close(&format!("{name}: gradient {i}"), a, e, tolerance),
            (None, None) => panic!("{name}: gradient {i} is missing"),
            _ => panic!("{name}: gradient {i} exists in one precision only"),
        }
    }
}

#[test]
fn rms_norm() {
    for (rows, width) in [(1, 2), (3, 7), (5, 33), (130, 64), (17, 1000)] {
        let leaves = [(values(1, rows * width), [rows, width]), (values(2, width), [1, width])];
        check(&format!("rms_norm {rows}x{width}"), &leaves, 2e-6, |t| {
            fused_ops::rms_norm(t[0].clone(), t[1].clone().reshape([width]), 1e-6)
        });
    }
}

#[test]
fn bias_norm_swish() {
    for (rows, width) in [(1, 3), (3, 7), (5, 33), (130, 64), (17, 1000)] {
        let row = |seed| (values(seed, width), [1, width]);
        let leaves = [(values(1, rows * width), [rows, width]), row(2), row(3), row(4)];
        check(&format!("bias_norm_swish {rows}x{width}"), &leaves, 5e-6, |t| {
            let row = |i: usize| t[i].clone().reshape([width]);
            fused_ops::bias_norm_swish(t[0].clone(), row(1), row(2), row(3), 1e-6)
        });
    }
}

#[test]
fn residual_block() {
    // One task, several with a remainder, one layer, widths that are no multiple of a register.
    for (rows, layers, width) in [(1, 4, 3), (5, 1, 7), (130, 4, 32), (701, 3, 65), (161, 2, 130)] {
        let size = (width + 3) * width;
        let mut parameters = values(2, layers * size);
        for layer in parameters.chunks_mut(size) {
            // Products of the size of one, as at the beginning of a training.
            layer[..width * width].iter_mut().for_each(|w| *w /= (width as f64).sqrt());
        }
        let leaves = [(values(1, rows * width), [rows, width]), (parameters, [layers, size])];
        check(&format!("residual_block {rows} rows, {layers}x{width}"), &leaves, 2e-5, |t| {
            fused_ops::residual_block(t[0].clone(), t[1].clone().reshape([layers, width + 3, width]), 1e-6)
        });
    }
}

#[test]
fn residual_block_gives_gradients_only_where_they_are_wanted() {
    let (x, parameters) = (leaf(&values(1, 6), [2, 3], DType::F32), leaf(&values(2, 36), [6, 6], DType::F32));
    let block = |x: &Tensor<B, 2>, p: &Tensor<B, 2>| {
        fused_ops::residual_block(x.clone(), p.clone().reshape([2, 6, 3]), 1e-6).sum().backward()
    };
    let both = block(&x, &parameters);
    let only_input = block(&x, &parameters.clone().detach());
    let only_parameters = block(&x.clone().detach(), &parameters);
    assert_eq!(read(x.grad(&only_input).unwrap()), read(x.grad(&both).unwrap()));
    assert!(parameters.grad(&only_input).is_none() && x.grad(&only_parameters).is_none());
    assert_eq!(read(parameters.grad(&only_parameters).unwrap()), read(parameters.grad(&both).unwrap()));
}

#[test]
fn pairwise_distances() {
    for (m, n, width) in [(1, 1, 1), (3, 5, 7), (33, 20, 64), (130, 128, 64)] {
        let leaves = [(values(1, m * width), [m, width]), (values(2, n * width), [n, width])];
        check(&format!("pairwise_distances {m}x{n}x{width}"), &leaves, 5e-6, |t| {
            fused_ops::pairwise_distances(t[0].clone(), t[1].clone())
        });
    }
}

#[test]
fn equal_rows_have_no_gradient_and_no_nan() {
    let rows = leaf(&values(1, 6), [2, 3], DType::F32);
    let gradients = fused_ops::pairwise_distances(rows.clone(), rows.clone().detach()).sum().backward();
    let gradient = read(rows.grad(&gradients).unwrap());
    assert!(gradient.iter().all(|g| g.is_finite()) && gradient.iter().any(|g| *g != 0.0), "{gradient:?}");
}

#[test]
fn swiglu() {
    for (rows, width) in [(1, 1), (3, 7), (64, 301)] {
        let leaves: Vec<_> =
            (0..2).map(|s| (values(s, rows * width).iter().map(|x| 8.0 * x).collect(), [rows, width])).collect();
        check(&format!("swiglu {rows}x{width}"), &leaves, 1e-6, |t| fused_ops::swiglu(t[0].clone(), t[1].clone()));
    }
}

#[test]
fn row_softmax_by_finite_differences() {
    let (rows, entries, h) = (3, 5, 1e-6);
    let logits = values(6, rows * entries);
    let loss = |x: &[f64]| {
        let x = leaf(x, [rows, entries], DType::F64);
        let weights = leaf(&values(7, rows * entries), [rows, entries], DType::F64);
        let loss = (fused_ops::row_softmax(x.clone() * 3.0) * weights.detach()).powi_scalar(2).sum();
        let gradients = loss.backward();
        (read(loss)[0], read(x.grad(&gradients).unwrap()))
    };
    let numeric: Vec<f64> = (0..logits.len())
        .map(|i| {
            let at = |delta: f64| {
                let mut x = logits.clone();
                x[i] += delta;
                loss(&x).0
            };
            (at(h) - at(-h)) / (2.0 * h)
        })
        .collect();
    assert_close("row_softmax", &loss(&logits).1, &numeric, 1e-7);
}

#[test]
fn causal_attention() {
    for (batch, length, heads, head_size) in [(1, 1, 1, 2), (2, 5, 3, 4), (2, 64, 2, 16), (1, 65, 2, 6), (2, 150, 1, 8)]
    {
        let shape = AttentionShape { batch, length, heads, head_size };
        let dims = [batch * length, heads * head_size];
        let leaves: Vec<_> = (0..3).map(|s| (values(s, dims[0] * dims[1]), dims)).collect();
        check(&format!("{shape:?}"), &leaves, 5e-6, |t| {
            let rotary = RotaryTable::new(length + 3, head_size, 10_000.0, &Default::default());
            fused_ops::causal_attention(t[0].clone(), t[1].clone(), t[2].clone(), &rotary, shape)
        });
    }
}

#[test]
fn attention_does_not_see_the_future() {
    let shape = AttentionShape { batch: 1, length: 70, heads: 1, head_size: 4 };
    let rotary = RotaryTable::<Flex>::new(70, 4, 10_000.0, &Default::default());
    let run = |last: f64| {
        let mut x = values(5, 280);
        x[276..].fill(last);
        let x = Tensor::<Flex, 2>::from_data(TensorData::new(x, [70, 4]), (&Default::default(), DType::F32));
        read(fused_ops::causal_attention(x.clone(), x.clone(), x, &rotary, shape))
    };
    assert_eq!(run(0.5)[..276], run(-3.0)[..276]);
}

#[test]
fn cross_entropy() {
    for (rows, classes) in [(1, 2), (5, 7), (40, 257), (9, 1000)] {
        let leaves = [(values(3, rows * classes).iter().map(|x| 10.0 * x).collect(), [rows, classes])];
        let targets: Vec<i64> =
            (0..rows).map(|r| if r % 3 == 1 { IGNORE_TARGET } else { (r * 31 % classes) as i64 }).collect();
        check(&format!("cross_entropy {rows}x{classes}"), &leaves, 1e-6, |t| {
            let targets = Tensor::<B, 1, Int>::from_data(TensorData::new(targets.clone(), [rows]), &Default::default());
            fused_ops::cross_entropy(t[0].clone(), targets).reshape([1, 1])
        });
    }
}

#[test]
fn cross_entropy_without_targets_is_zero_and_so_is_its_gradient() {
    for dtype in [DType::F32, DType::F64] {
        let logits = leaf(&values(1, 12), [3, 4], dtype);
        let targets = Tensor::<B, 1, Int>::from_data([IGNORE_TARGET; 3], &Default::default());
        let loss = fused_ops::cross_entropy(logits.clone(), targets);
        let gradients = loss.clone().backward();
        assert_eq!(read(loss), [0.0]);
        assert_eq!(read(logits.grad(&gradients).unwrap()), [0.0; 12]);
    }
}

/// Rows that a network is sure of filled its backward pass with subnormal numbers, and a step took ten times as long.
#[test]
fn the_gradient_of_cross_entropy_has_no_numbers_that_end_as_subnormal_ones() {
    let logits = leaf(&[0.0, -40.0, -60.0, -85.0, -87.0, -100.0], [1, 6], DType::F32);
    let target = Tensor::<B, 1, Int>::from_data([0], &Default::default());
    let gradients = fused_ops::cross_entropy(logits.clone(), target).backward();
    let gradient = read(logits.grad(&gradients).unwrap());
    assert!((gradient[1] / (-40f64).exp() - 1.0).abs() < 1e-5, "{gradient:?}");
    assert_eq!(gradient[2..], [0.0; 4]);
}

/// `mix` is one node in both precisions, so the composition is checked on its own by finite differences below.
#[test]
fn mix() {
    for (n, elements) in [(1, 1), (2, 5), (5, 1023), (12, 4097), (33, 20), (70, 3), (3, 20_001)] {
        let mut leaves: Vec<_> = (0..=n).map(|s| (values(s as u64, elements), [1, elements])).collect();
        leaves.push((values(1000, n + 3), [1, n + 3]));
        check(&format!("mix of {n} states"), &leaves, 2e-5, |t| {
            let coefficients = t[n + 1].clone().reshape([n + 3]);
            // States are used elsewhere too, so that their gradients are sums begun by other nodes.
            let others = t[1].clone().powi_scalar(2) + t[n].clone();
            fused_ops::mix_at(coefficients, 2, t[0].clone(), t[1..=n].to_vec()) * others
        });
    }
}

#[test]
fn mix_gradient_by_finite_differences() {
    let (n, elements, h) = (3, 4, 1e-6);
    let (base, states, c) = (values(1, elements), values(2, n * elements), values(3, n));
    let loss = |base: &[f64], states: &[f64], c: &[f64]| {
        let b = leaf(base, [1, elements], DType::F64);
        let s: Vec<_> = states.chunks(elements).map(|s| leaf(s, [1, elements], DType::F64)).collect();
        let c = leaf(c, [n], DType::F64);
        // Used twice in a row, as a network does.
        let once = fused_ops::mix(c.clone(), b.clone(), s.clone());
        let loss = fused_ops::mix(c.clone(), once.powi_scalar(2), s.clone()).powi_scalar(3).sum();
        let g = loss.backward();
        let of = |t: &Tensor<B, 2>| read(t.grad(&g).unwrap());
        let states_gradient: Vec<f64> = s.iter().flat_map(of).collect();
        (read(loss)[0], of(&b), states_gradient, read(c.grad(&g).unwrap()))
    };
    let (_, base_gradient, states_gradient, c_gradient) = loss(&base, &states, &c);
    let numeric = |which: usize, length: usize| -> Vec<f64> {
        (0..length)
            .map(|i| {
                let at = |delta: f64| {
                    let (mut b, mut s, mut k) = (base.clone(), states.clone(), c.clone());
                    [&mut b, &mut s, &mut k][which][i] += delta;
                    loss(&b, &s, &k).0
                };
                (at(h) - at(-h)) / (2.0 * h)
            })
            .collect()
    };
    assert_close("base", &base_gradient, &numeric(0, elements), 1e-7);
    assert_close("states", &states_gradient, &numeric(1, n * elements), 1e-7);
    assert_close("coefficients", &c_gradient, &numeric(2, n), 1e-7);
}

#[test]
fn mix_keeps_half_precision_states_and_full_precision_coefficients() {
    let dtype = DType::BF16;
    let state = leaf(&[1.0, 2.0, 3.0], [1, 3], DType::F32).cast(dtype);
    let base = leaf(&[0.5, 0.5, 0.5], [1, 3], DType::F32).cast(dtype);
    // 1/3 is not a bf16 number: a coefficient rounded to bf16 would give 0.33398 + 0.5 for the first entry.
    let c = leaf(&[1.0 / 3.0, 1.0 / 3.0], [2], DType::F32);
    let mixed = fused_ops::mix(c.clone(), base, vec![state.clone(), state]);
    assert_eq!(mixed.dtype(), dtype);
    let gradients = mixed.clone().sum().backward();
    assert_eq!(c.grad(&gradients).unwrap().dtype(), DType::F32);
    assert_eq!(read(mixed), [1.1640625, 1.8359375, 2.5]);
}

#[test]
fn adamw_kernel_equals_its_composition() {
    let n = 10_007;
    let step = AdamWStep { lr: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, step: 3 };
    let run = |dtype: DType| {
        let [p, g, m, v] = [1, 2, 3, 4].map(|seed| {
            let positive = seed == 4;
            let x = values(seed, n).iter().map(|x| if positive { x * x } else { *x }).collect::<Vec<_>>();
            Tensor::<Flex, 1>::from_data(TensorData::new(x, [n]), (&Default::default(), dtype))
        });
        fused_ops::adamw(p, g, m, v, &step).map(read)
    };
    for (a, e) in run(DType::F32).iter().zip(&run(DType::F64)) {
        assert_close("adamw", a, e, 1e-6);
    }
}

#[test]
fn self_attention() {
    // Up to 64 positions the kernel has loops of its own, beyond it calls matrix products in blocks of 128 queries.
    for (batch, length, heads, head_size) in [
        (1, 1, 1, 1),
        (2, 5, 3, 7),
        (3, 16, 4, 16),
        (2, 17, 2, 33),
        (1, 31, 1, 20),
        (1, 64, 2, 5),
        (1, 65, 2, 5),
        (2, 150, 1, 9),
        (1, 256, 2, 64),
    ] {
        let shape = AttentionShape { batch, length, heads, head_size };
        let dims = [batch * length, 3 * heads * head_size];
        // Scores of a few units, so that the softmax is far from uniform.
        let packed = values(8, dims[0] * dims[1]).iter().map(|x| 3.0 * x).collect();
        check(&format!("self_attention {shape:?}"), &[(packed, dims)], 5e-6, |t| {
            fused_ops::self_attention(t[0].clone(), shape)
        });
    }
}

/// Batches, lengths and widths at which operations with a row of modulation for each sequence are checked.
const SEQUENCES: [(usize, usize, usize); 6] =
    [(1, 1, 5), (2, 3, 7), (3, 16, 64), (5, 30, 33), (2, 300, 65), (40, 9, 96)];

#[test]
fn modulated_layer_norm() {
    for (batch, length, width) in SEQUENCES {
        let (rows, modulation) = ([batch * length, width], [batch, width]);
        // Rows with a mean that is not small beside their spread.
        let input: Vec<f64> = values(1, rows[0] * width).iter().map(|x| f64::from(*x as f32 + 1.5)).collect();
        let leaves = [(input, rows), (values(2, batch * width), modulation), (values(3, batch * width), modulation)];
        check(&format!("modulated_layer_norm {batch}x{length}x{width}"), &leaves, 5e-6, |t| {
            fused_ops::modulated_layer_norm(t[0].clone(), t[1].clone(), t[2].clone(), 1e-6)
        });
    }
}

#[test]
fn gated_add() {
    for (batch, length, width) in SEQUENCES {
        let (rows, modulation) = ([batch * length, width], [batch, width]);
        let leaves = [
            (values(1, rows[0] * width), rows),
            (values(2, batch * width), modulation),
            (values(3, rows[0] * width), rows),
        ];
        check(&format!("gated_add {batch}x{length}x{width}"), &leaves, 2e-6, |t| {
            fused_ops::gated_add(t[0].clone(), t[1].clone(), t[2].clone())
        });
    }
}

#[test]
fn gated_shortcut() {
    // One task, several with a remainder, a width beyond a task.
    for (rows, width) in [(1, 1), (3, 7), (130, 64), (271, 67), (2, 9000)] {
        let matrix = |seed| (values(seed, rows * width), [rows, width]);
        let row = |seed| (values(seed, width), [1, width]);
        let leaves = [matrix(1), matrix(2), row(3), row(4)];
        check(&format!("gated_shortcut {rows}x{width}"), &leaves, 5e-6, |t| {
            let row = |i: usize| t[i].clone().reshape([width]);
            fused_ops::gated_shortcut(t[0].clone(), t[1].clone(), row(2), row(3), 1e-6)
        });
    }
}

/// Rows of one type beside parameters of another went through the forward pass and stopped the backward pass.
#[test]
#[should_panic(expected = "gated_shortcut: tensors have one type")]
fn parameters_of_a_gated_shortcut_are_not_in_half_precision() {
    let row = || leaf(&values(1, 4), [4], DType::BF16);
    let rows = || leaf(&values(1, 8), [2, 4], DType::F32);
    let _ = fused_ops::gated_shortcut(rows(), rows(), row(), row(), 1e-6);
}

#[test]
#[should_panic(expected = "update_streams: tensors have one type")]
fn what_is_added_to_streams_is_of_their_type() {
    let rows = |dtype| leaf(&values(1, 8), [2, 4], dtype);
    let weights = leaf(&values(1, 9), [1, 9], DType::F32);
    let _ = fused_ops::update_streams(weights, rows(DType::F32), leaf(&values(2, 4), [2, 2], DType::BF16), 2);
}

#[test]
fn add_bias_and_bias_gelu() {
    for (rows, width) in [(1, 1), (3, 7), (130, 64), (9, 1000), (3000, 33)] {
        let leaves = [
            (values(1, rows * width).iter().map(|x| 4.0 * x).collect(), [rows, width]),
            (values(2, width), [1, width]),
        ];
        let bias = |t: &[Tensor<B, 2>]| t[1].clone().reshape([width]);
        check(&format!("add_bias {rows}x{width}"), &leaves, 2e-6, |t| fused_ops::add_bias(t[0].clone(), bias(t)));
        check(&format!("bias_gelu {rows}x{width}"), &leaves, 2e-6, |t| fused_ops::bias_gelu(t[0].clone(), bias(t)));
    }
}

/// Kernels write into storage that nobody else holds: what somebody does hold must stay as it was.
#[test]
fn inputs_that_are_used_again_keep_their_values() {
    let (x, bias) = (leaf(&values(1, 12), [4, 3], DType::F32), leaf(&values(2, 3), [3], DType::F32));
    let gate = leaf(&values(3, 6), [2, 3], DType::F32);
    // Not a leaf: the result of an operation, of which this is one handle of several.
    let hidden = x.clone() * 2.0;
    let before = read(hidden.clone());
    let sum = fused_ops::add_bias(hidden.clone(), bias.clone())
        + fused_ops::bias_gelu(hidden.clone(), bias.clone())
        + fused_ops::gated_add(hidden.clone(), gate, hidden.clone());
    assert_eq!(read(hidden.clone()), before);
    let gradients = (sum.clone().sum() + sum.sum()).backward();
    assert!(x.grad(&gradients).is_some() && bias.grad(&gradients).is_some());
    assert_eq!(read(hidden), before);
    // Outside the graph too.
    let plain = x.clone().inner() * 2.0;
    let _ = fused_ops::bias_gelu(plain.clone(), bias.clone().inner());
    let _ = fused_ops::add_bias(plain.clone(), bias.inner());
    assert_eq!(read(plain), before);
}

#[test]
fn streams() {
    // One row with weights of its own is one that shares them.
    for (rows, n, targets, width) in [(1, 1, 1, 1), (3, 2, 1, 7), (5, 4, 4, 33), (300, 3, 2, 65), (70, 4, 4, 64)] {
        for (alike, added) in [(rows, 0), (1, 0), (rows, 1), (1, 1)] {
            let dims = [alike, (n + added) * targets];
            let leaves = [
                (values(1, dims[0] * dims[1]), dims),
                (values(2, rows * n * width), [rows, n * width]),
                (values(3, rows * width), [rows, width]),
            ];
            check(
                &format!("{rows} rows of {n}+{added} streams to {targets}x{width}"),
                &leaves,
                5e-6,
                |t| match added {
                    0 => {
                        // All leaves have a gradient.
                        let mixed = fused_ops::mix_streams(t[0].clone(), t[1].clone(), n);
                        mixed + t[2].clone().sum().reshape([1, 1])
                    }
                    _ => fused_ops::update_streams(t[0].clone(), t[1].clone(), t[2].clone(), n),
                },
            );
        }
    }
}

#[test]
fn sinkhorn() {
    for (matrices, n, rounds) in [(1, 1, 1), (3, 2, 1), (5, 3, 20), (300, 4, 20), (17, 4, 2), (2, 9, 5)] {
        let logits = values(1, matrices * n * n).iter().map(|x| 3.0 * x).collect();
        check(&format!("sinkhorn of {matrices}x{n}x{n}, {rounds} rounds"), &[(logits, [matrices, n * n])], 1e-5, |t| {
            fused_ops::sinkhorn(t[0].clone(), n, rounds)
        });
    }
}

/// Exponentials of such logits are zero or infinite, and a column of zeros would be divided by its sum.
#[test]
fn sinkhorn_takes_logits_of_any_size() {
    let logits = [1e3, -1e3, -1e3, 1e3, 0.0, -1e3, 1e3, 100.0, -1e3];
    for dtype in [DType::F32, DType::F64] {
        let logits = leaf(&logits, [1, 9], dtype);
        let matrix = fused_ops::sinkhorn(logits.clone(), 3, 20);
        let gradients = (matrix.clone() * leaf(&values(3, 9), [1, 9], dtype).detach()).sum().backward();
        let matrix = read(matrix);
        for row in matrix.chunks(3) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{dtype:?}: {matrix:?}");
        }
        let gradient = read(logits.grad(&gradients).unwrap());
        assert!(gradient.iter().all(|g| g.is_finite()), "{dtype:?}: {gradient:?}");
    }
}

#[test]
fn streams_keep_half_precision_and_are_summed_in_full() {
    let (rows, n, width) = (5, 3, 7);
    let weights = leaf(&values(1, rows * (n + 1) * 2), [rows, (n + 1) * 2], DType::F32);
    let halves = |seed, columns| leaf(&values(seed, rows * columns), [rows, columns], DType::BF16);
    let (streams, added) = (halves(2, n * width), halves(3, width));
    let mixed = fused_ops::update_streams(weights.clone(), streams.clone(), added.clone(), n);
    assert_eq!(mixed.dtype(), DType::BF16);
    let wide = |tensor: &Tensor<B, 2>| tensor.clone().cast(DType::F64).detach();
    let expected = fused_ops::update_streams(wide(&weights), wide(&streams), wide(&added), n);
    // Half a unit in the last of 8 binary digits.
    assert_close("streams in bf16", &read(mixed.clone()), &read(expected), 1.0 / 256.0);
    let gradients = mixed.sum().backward();
    assert_eq!(weights.grad(&gradients).unwrap().dtype(), DType::F32);
    assert_eq!(streams.grad(&gradients).unwrap().dtype(), DType::BF16);
    assert!(added.grad(&gradients).is_some());
}
