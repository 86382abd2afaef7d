//! Results do not depend on the SIMD level or on the number of threads. One test in this file, since the level is set
//! for the whole process.

use fused_ops::kernels::{
    adamw, attention, bias,
    bias_norm_swish::{self, Affine},
    cross_entropy, distances, gated_add, gated_shortcut, mix,
    mix::StateGradient,
    modulated_layer_norm,
    residual_block::{self, BlockShape, Seen},
    rms_norm, self_attention,
    sequences::Sequences,
    simd::{SimdLevel, limit_simd, simd_level},
    sinkhorn, streams, swiglu,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| rng.random_range(-2.0f32..2.0)).collect()
}

/// Fills two buffers and returns whatever else a kernel gives.
type Run<'a> = &'a mut dyn FnMut(&mut [f32], &mut [f32]) -> Vec<f32>;

/// The outputs of every kernel whose arithmetic is ours alone, at sizes that are no multiple of anything.
fn outputs() -> Vec<Vec<f32>> {
    let (rows, width) = (271, 67);
    let n = rows * width;
    let (a, b, c) = (values(1, n), values(2, n), values(3, n));
    let weight = values(4, width);
    let mut all = Vec::new();
    let mut output = |f: Run| {
        let (mut x, mut y) = (vec![0.0; n], vec![0.0; n]);
        let extra = f(&mut x, &mut y);
        all.extend([x, y, extra]);
    };
    output(&mut |x, _| {
        rms_norm::forward(&a, &weight, 1e-6, x);
        vec![]
    });
    output(&mut |x, _| rms_norm::backward(&a, &weight, &b, 1e-6, x));
    let affine = Affine { bias: &weight, gain: &weight, offset: &weight };
    output(&mut |x, _| {
        bias_norm_swish::forward(&a, affine, 1e-6, x);
        vec![]
    });
    output(&mut |x, _| bias_norm_swish::backward(&a, affine, &b, 1e-6, x).concat());
    output(&mut |x, y| {
        let mut pairs = vec![0.0; rows * rows];
        distances::forward(&a, &b, width, &mut pairs);
        let upstream = values(5, rows * rows);
        distances::backward(&a, &b, width, (&pairs, &upstream, false), x);
        distances::backward(&b, &a, width, (&pairs, &upstream, true), y);
        pairs
    });
    output(&mut |x, _| {
        swiglu::forward(&a, &b, x);
        vec![]
    });
    output(&mut |x, y| {
        swiglu::backward(&a, &b, &c, x, y);
        vec![]
    });
    output(&mut |x, _| {
        let targets: Vec<i64> = (0..rows as i64).map(|r| if r % 5 == 0 { -100 } else { r % width as i64 }).collect();
        let alone = cross_entropy::forward(&a, &targets, width, -100, None);
        vec![alone, cross_entropy::forward(&a, &targets, width, -100, Some(x))]
    });
    output(&mut |x, _| {
        x.copy_from_slice(&a);
        mix::forward(&[0.3, -1.5], &[&b, &c], x);
        vec![]
    });
    output(&mut |x, y| {
        let parts = vec![
            StateGradient { state: Some(&b), gradient: Some(x), add: true },
            StateGradient { state: Some(&c), gradient: Some(y), add: false },
            StateGradient { state: None, gradient: None, add: false },
        ];
        mix::backward(&[0.3, -1.5, 2.0], &a, parts)
    });
    output(&mut |x, _| mix::gather(&[0.3, -1.5], &[&b, &c], Some(&a), x, true));
    output(&mut |x, _| mix::gather(&[0.3, -1.5], &[&b, &c], None, x, false));
    output(&mut |x, y| {
        let step = fused_ops::AdamWStep { lr: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, step: 2 };
        let mut parameter = c.clone();
        adamw::step(&mut parameter, &a, x, y, step.coefficients());
        parameter
    });
    // Several sequences, of several tasks' worth of elements together.
    let sizes = Sequences { batch: 271, length: 1, width };
    output(&mut |x, _| {
        modulated_layer_norm::forward(&a, &b, &c, sizes, 1e-6, x);
        vec![]
    });
    output(&mut |x, y| {
        let mut scale_gradient = vec![0.0; n];
        modulated_layer_norm::backward(&a, &b, &c, sizes, 1e-6, x, y, &mut scale_gradient);
        scale_gradient
    });
    // Operations that do little with an element have larger tasks.
    let (many, other) = (a.repeat(5), b.repeat(5));
    output(&mut |_, _| {
        let sizes = Sequences { batch: 5, length: rows, width };
        let scale = values(6, 5 * width);
        let (mut x_gradient, mut shift_gradient) = (vec![0.0; 5 * n], vec![0.0; 5 * width]);
        let mut scale_gradient = vec![0.0; 5 * width];
        modulated_layer_norm::backward(
            &many,
            &scale,
            &other,
            sizes,
            1e-6,
            &mut x_gradient,
            &mut shift_gradient,
            &mut scale_gradient,
        );
        [x_gradient, shift_gradient, scale_gradient].concat()
    });
    output(&mut |_, _| {
        let sizes = Sequences { batch: 5, length: rows, width };
        let gate = values(5, 5 * width);
        let (mut x, mut branch_gradient) = (many.clone(), vec![0.0; 5 * n]);
        gated_add::forward(&mut x, &gate, &other, sizes);
        let mut gate_gradient = vec![0.0; 5 * width];
        gated_add::backward(&gate, &many, &other, sizes, &mut gate_gradient, &mut branch_gradient);
        [x, gate_gradient, branch_gradient].concat()
    });
    output(&mut |x, y| {
        let inputs =
            gated_shortcut::Inputs { base: &a, state: &b, weight: &weight, query: &values(9, width), eps: 1e-6 };
        let mut output = vec![0.0; n];
        gated_shortcut::forward(inputs, &mut output);
        let parameters = gated_shortcut::backward(inputs, &c, x, y);
        [output, parameters.concat()].concat()
    });
    output(&mut |x, _| {
        x.copy_from_slice(&a);
        bias::add_gelu(x, &weight);
        let mut added = many.clone();
        bias::add(&mut added, &weight);
        let sums = bias::column_sums(&added, width);
        [added, sums].concat()
    });
    output(&mut |x, y| {
        x.copy_from_slice(&a);
        bias::add_gelu_with_derivative(x, &weight, y);
        bias::add_gelu_backward(x, &b, width)
    });
    output(&mut |x, y| {
        // Matrices of order 3, a remainder at the end.
        let entries = n / 9 * 9;
        sinkhorn::forward(&a[..entries], 3, 5, &mut x[..entries]);
        sinkhorn::backward(&a[..entries], &b[..entries], 3, 5, &mut y[..entries]);
        vec![]
    });
    output(&mut |x, y| {
        let (weights, streams) = (values(7, 5 * rows * 12), values(8, 5 * rows * 3 * width));
        let part = streams::Streams {
            weights: &weights,
            streams: &streams,
            added: Some(&many),
            n: 3,
            width,
            targets: 3,
            shared: false,
        };
        let mut output = vec![0.0; streams.len()];
        streams::forward(part, &mut output);
        let (mut dw, mut ds, mut da) = (vec![0.0; weights.len()], vec![0.0; streams.len()], vec![0.0; many.len()]);
        let gradients = streams::Gradients { weights: &mut dw, streams: &mut ds, added: Some(&mut da) };
        streams::backward(part, &output, gradients);
        x.copy_from_slice(&output[..n]);
        y.copy_from_slice(&da[..n]);
        [output, dw, ds, da].concat()
    });
    all
}

fn self_attention_outputs(shape: attention::Shape) -> Vec<f32> {
    let rows = shape.batch * shape.length;
    let n = rows * shape.heads * shape.head_size;
    let (packed, g) = (values(1, 3 * n), values(2, n));
    let (mut out, mut sums, mut gradient) = (vec![0.0; n], vec![0.0; rows * shape.heads], vec![0.0; 3 * n]);
    self_attention::forward(&packed, shape, &mut out, &mut sums);
    self_attention::backward(&packed, &sums, &g, shape, &mut gradient);
    [out, sums, gradient].concat()
}

fn attention_outputs() -> Vec<f32> {
    let shape = attention::Shape { batch: 3, length: 70, heads: 2, head_size: 6 };
    let n = 3 * 70 * 12;
    let (q, k, v, g) = (values(1, n), values(2, n), values(3, n), values(4, n));
    let angles = values(5, 70 * 3);
    let (cos, sin): (Vec<f32>, Vec<f32>) =
        (angles.iter().map(|a| a.cos()).collect(), angles.iter().map(|a| a.sin()).collect());
    let (mut out, mut sums) = (vec![0.0; n], vec![0.0; 3 * 2 * 70]);
    attention::forward(&q, &k, &v, &cos, &sin, shape, &mut out, &mut sums);
    let (mut dq, mut dk, mut dv) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    attention::backward((&q, &k, &v), (&cos, &sin), &sums, &g, shape, &mut dq, &mut dk, &mut dv);
    let long = self_attention_outputs(attention::Shape { head_size: 7, ..shape });
    let short = self_attention_outputs(attention::Shape { batch: 7, length: 19, heads: 3, head_size: 21 });
    [out, sums, dq, dk, dv, long, short].concat()
}

/// Rows of several tasks.
fn residual_block_outputs() -> Vec<f32> {
    let shape = BlockShape { layers: 3, width: 67 };
    let rows = 1271;
    let (input, upstream) = (values(1, rows * shape.width), values(2, rows * shape.width));
    let parameters: Vec<f32> = values(3, shape.parameters()).iter().map(|p| p / 8.0).collect();
    let mut saved = vec![0.0; rows * shape.saved_len()];
    let (mut output, mut again) = (vec![0.0; input.len()], vec![0.0; input.len()]);
    residual_block::forward(shape, &input, &parameters, 1e-6, Some(&mut saved), &mut output);
    residual_block::forward(shape, &input, &parameters, 1e-6, None, &mut again);
    assert_eq!(output, again, "the output does not depend on what is kept");
    let (mut dx, mut dp) = (vec![0.0; input.len()], vec![0.0; parameters.len()]);
    let seen = Seen { input: &input, parameters: &parameters, saved: &saved };
    residual_block::backward(shape, seen, &upstream, Some(&mut dx), Some(&mut dp));
    [output, dx, dp].concat()
}

/// Those with matrix products, whose rounding depends on the level.
fn outputs_with_products() -> Vec<f32> {
    [attention_outputs(), residual_block_outputs()].concat()
}

#[test]
fn results_are_the_same_at_every_simd_level_and_number_of_threads() {
    let best = simd_level();
    let (expected, expected_products) = (outputs(), outputs_with_products());
    for limit in [SimdLevel::Baseline, SimdLevel::Avx2, SimdLevel::Avx512] {
        limit_simd(limit);
        assert!(simd_level() <= limit && simd_level() <= best);
        assert_eq!(outputs(), expected, "{limit:?}");
        for (a, e) in outputs_with_products().iter().zip(&expected_products) {
            assert!((a - e).abs() < 1e-5 * e.abs().max(1.0), "{limit:?}: {a} against {e}");
        }
    }
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            assert_eq!(outputs(), expected, "{threads} threads");
            assert_eq!(outputs_with_products(), expected_products, "{threads} threads");
        });
    }
}
