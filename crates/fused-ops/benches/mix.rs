//! The mixing operation alone, of 4 to 64 states: one mix forward, its backward pass (each state's gradient written), what one state of a chain
//! gathers, and the connections of a whole network without its blocks, forward and backward. On the CPU backend, single precision,
//! states of 256 rows of 512.
//!
//! `cargo bench -p fused-ops --bench mix`, about two minutes

use std::{hint::black_box, time::Duration};

use burn::{
    backend::{Autodiff, Flex},
    tensor::{Distribution, Tensor, backend::Backend},
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fused_ops::{
    MixChain,
    kernels::mix::{self, StateGradient},
};

/// The allocator of the programs: the C library's takes page faults for large buffers again and again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type B = Autodiff<Flex>;

const ROWS: usize = 256;
const WIDTH: usize = 512;
const ELEMENTS: usize = ROWS * WIDTH;

/// Bytes that are moved: so many rows of the size of a state.
fn moved(rows: usize) -> Throughput {
    Throughput::Bytes((rows * ELEMENTS * size_of::<f32>()) as u64)
}

/// `K` connections, each of all states before, around blocks that do nothing; and their backward pass.
fn connections(k: usize, coefficients: &Tensor<B, 1>, input: &Tensor<B, 2>) {
    let mut chain = MixChain::default();
    let mut states = vec![chain.connect(coefficients.clone(), 0, input.clone(), Vec::new(), true)];
    let (mut x, mut first) = (input.clone(), 0);
    for l in 1..=k {
        x = chain.connect(coefficients.clone(), first, x, states.clone(), l < k);
        states.push(x.clone());
        first += l;
    }
    black_box(x.sum().backward());
}

fn mixes(c: &mut Criterion) {
    let device = Default::default();
    B::seed(&device, 0);
    let mut group = c.benchmark_group("mix");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    for k in [4, 8, 16, 32, 64] {
        let coefficients = vec![1.0 / k as f32; k];
        let rows: Vec<Vec<f32>> =
            (0..=k).map(|i| (0..ELEMENTS).map(|n| ((n + i) % 17) as f32 - 8.0).collect()).collect();
        let (base, states) = (&rows[0], rows[1..].iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut output = vec![0.0; ELEMENTS];

        group.throughput(moved(k + 2));
        group.bench_function(BenchmarkId::new("forward", k), |b| {
            b.iter(|| mix::forward(&coefficients, black_box(&states), &mut output));
        });
        group.throughput(moved(3 * k + 1));
        let mut gradients = vec![vec![0.0; ELEMENTS]; k];
        group.bench_function(BenchmarkId::new("backward", k), |b| {
            b.iter(|| {
                let parts = states.iter().zip(&mut gradients).map(|(&state, gradient)| StateGradient {
                    state: Some(state),
                    gradient: Some(gradient.as_mut_slice()),
                    add: true,
                });
                mix::backward(&coefficients, base, parts.collect())
            });
        });
        group.throughput(moved(k + 3));
        group.bench_function(BenchmarkId::new("gather", k), |b| {
            b.iter(|| mix::gather(&coefficients, black_box(&states), Some(base), &mut output, true));
        });
    }
    for k in [4, 8, 16, 32, 64] {
        let count = k * (k + 1) / 2;
        let coefficients = Tensor::<B, 1>::full([count], 1.0 / count as f32, &device).require_grad();
        let input = Tensor::<B, 2>::random([ROWS, WIDTH], Distribution::Default, &device).require_grad();
        // Forward each mix's states, its base and its result; backward as many gradients, and of each state itself and its sum.
        group.throughput(moved(2 * count + 5 * k));
        group.bench_function(BenchmarkId::new("connections", k), |b| {
            b.iter(|| connections(k, &coefficients, &input));
        });
    }
    group.finish();
}

criterion_group!(benches, mixes);
criterion_main!(benches);
