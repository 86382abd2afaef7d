//! Time of each operation of a DiT block, forward and backward: the fused kernel against the same formula written with
//! burn's own operations, on the CPU backend, single precision.
//!
//! `cargo bench -p fused-ops --bench dit_block`, about two minutes

use std::{hint::black_box, time::Duration};

use burn::{
    backend::{Autodiff, Flex},
    tensor::{
        Distribution, Tensor,
        activation::{gelu_approximate, softmax},
        backend::Backend,
    },
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fused_ops::AttentionShape;

/// The allocator of the programs: the C library's takes page faults for large buffers again and again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type B = Autodiff<Flex>;

const EPS: f64 = 1e-6;

/// Batch, length, heads, head size.
const SIZES: [[usize; 4]; 3] = [[32, 16, 4, 16], [64, 16, 4, 16], [8, 256, 6, 64]];

fn self_attention(packed: Tensor<B, 2>, shape: AttentionShape) -> Tensor<B, 2> {
    let AttentionShape { batch, length, heads, head_size } = shape;
    let width = heads * head_size;
    let part = |i: usize| {
        packed.clone().narrow(1, i * width, width).reshape([batch, length, heads, head_size]).swap_dims(1, 2)
    };
    let scores = part(0).matmul(part(1).swap_dims(2, 3)).mul_scalar(1.0 / (head_size as f64).sqrt());
    softmax(scores, 3).matmul(part(2)).swap_dims(1, 2).reshape([batch * length, width])
}

/// `[batch * length, width]` as `[batch, length, width]`, and `[batch, width]` as `[batch, 1, width]`.
fn sequences(x: Tensor<B, 2>, batch: usize) -> Tensor<B, 3> {
    let [rows, width] = x.dims();
    x.reshape([batch, rows / batch, width])
}

fn modulated_layer_norm(x: Tensor<B, 2>, shift: Tensor<B, 2>, scale: Tensor<B, 2>) -> Tensor<B, 2> {
    let (dims, batch) = (x.dims(), shift.dims()[0]);
    let x = sequences(x, batch);
    let centred = x.clone() - x.mean_dim(2);
    let deviation = centred.clone().square().mean_dim(2).add_scalar(EPS).sqrt();
    (centred / deviation * sequences(scale, batch).add_scalar(1.0) + sequences(shift, batch)).reshape(dims)
}

fn gated_add(x: Tensor<B, 2>, gate: Tensor<B, 2>, branch: Tensor<B, 2>) -> Tensor<B, 2> {
    let (dims, batch) = (x.dims(), gate.dims()[0]);
    x + (sequences(branch, batch) * sequences(gate, batch)).reshape(dims)
}

type Operation = Box<dyn Fn(&[Tensor<B, 2>]) -> Tensor<B, 2>>;

/// Name, shapes of the inputs, fused operation and composition.
type Case = (&'static str, Vec<[usize; 2]>, [Operation; 2]);

fn operations(shape: AttentionShape) -> Vec<Case> {
    let AttentionShape { batch, length, heads, head_size } = shape;
    let width = heads * head_size;
    let (rows, modulation) = ([batch * length, width], [batch, width]);
    let (hidden, bias) = ([batch * length, 4 * width], [1, 4 * width]);
    let flat = |t: &Tensor<B, 2>| t.clone().flatten::<1>(0, 1);
    vec![
        (
            "self_attention",
            vec![[rows[0], 3 * width]],
            [
                Box::new(move |t| fused_ops::self_attention(t[0].clone(), shape)),
                Box::new(move |t| self_attention(t[0].clone(), shape)),
            ],
        ),
        (
            "modulated_layer_norm",
            vec![rows, modulation, modulation],
            [
                Box::new(|t| fused_ops::modulated_layer_norm(t[0].clone(), t[1].clone(), t[2].clone(), EPS)),
                Box::new(|t| modulated_layer_norm(t[0].clone(), t[1].clone(), t[2].clone())),
            ],
        ),
        (
            "gated_add",
            vec![rows, modulation, rows],
            [
                Box::new(|t| fused_ops::gated_add(t[0].clone(), t[1].clone(), t[2].clone())),
                Box::new(|t| gated_add(t[0].clone(), t[1].clone(), t[2].clone())),
            ],
        ),
        (
            "add_bias",
            vec![rows, [1, width]],
            [
                Box::new(move |t| fused_ops::add_bias(t[0].clone(), flat(&t[1]))),
                Box::new(|t| t[0].clone() + t[1].clone()),
            ],
        ),
        (
            "bias_gelu",
            vec![hidden, bias],
            [
                Box::new(move |t| fused_ops::bias_gelu(t[0].clone(), flat(&t[1]))),
                Box::new(|t| gelu_approximate(t[0].clone() + t[1].clone())),
            ],
        ),
    ]
}

fn dit_block(c: &mut Criterion) {
    let device = Default::default();
    B::seed(&device, 0);
    for [batch, length, heads, head_size] in SIZES {
        let shape = AttentionShape { batch, length, heads, head_size };
        for (name, inputs, [fused, composed]) in operations(shape) {
            let mut group = c.benchmark_group(name);
            group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
            let random = |dims: &[usize; 2]| Tensor::<B, 2>::random(*dims, Distribution::Default, &device);
            let inputs: Vec<_> = inputs.iter().map(|dims| random(dims).require_grad()).collect();
            for (way, operation) in [("fused", fused), ("composed", composed)] {
                let sizes = format!("{batch}x{length}x{}", heads * head_size);
                group.bench_function(BenchmarkId::new(way, sizes), |b| {
                    b.iter(|| operation(black_box(&inputs)).backward());
                });
            }
        }
    }
}

criterion_group!(benches, dit_block);
criterion_main!(benches);
