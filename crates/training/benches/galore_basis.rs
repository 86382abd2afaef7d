//! Time of one basis of GaLore, on one thread, for matrices of the paper's 60M and 130M models.
//!
//! `cargo bench -p training --bench galore_basis`, about a minute

use std::{hint::black_box, time::Duration};

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::Rng;
use training::{optimizer::leading_vectors, seed};

/// Shorter side, longer side, rank.
const SIZES: [[usize; 3]; 3] = [[512, 512, 128], [512, 1376, 128], [768, 2048, 256]];

fn basis(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("galore basis");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    for [rows, columns, rank] in SIZES {
        let mut random = seed::stream(0, "gradient", 0);
        let uniform = || f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5;
        let gradient: Vec<f64> = std::iter::repeat_with(uniform).take(rows * columns).collect();
        group.bench_function(BenchmarkId::from_parameter(format!("{rows}x{columns}, rank {rank}")), |bencher| {
            let vectors = |gradient| black_box(leading_vectors(rows, gradient, rank));
            bencher.iter_batched(|| gradient.clone(), vectors, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, basis);
criterion_main!(benches);
