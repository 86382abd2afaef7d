//! Time of one gradient, and of one flow to a relative loss of 1e-6, for depths and widths.
//!
//! `cargo bench -p theory --bench gradient`

use std::hint::black_box;

use connection_layout::NamedLayout;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use nalgebra::DMatrix;
use theory::network::{Gradient, Problem};

fn problem(depth: usize, width: usize) -> Problem {
    let layout = NamedLayout::Dense.at_depth(depth).unwrap();
    Problem::whitened(&layout, DMatrix::identity(width, width)).unwrap()
}

fn gradient(c: &mut Criterion) {
    let mut group = c.benchmark_group("gradient");
    for depth in [3, 4, 6] {
        for width in [4, 5, 8, 16, 32, 64] {
            let problem = problem(depth, width);
            let mut weights = problem.zeros();
            weights.values_mut().fill(0.01);
            let mut slope = vec![0.0; problem.len()];
            let mut gradient = Gradient::new(&problem);
            group.bench_function(BenchmarkId::new(format!("K={depth}"), format!("d={width}")), |b| {
                b.iter(|| gradient.evaluate(black_box(weights.values()), &mut slope));
            });
        }
    }
}

criterion_group!(benches, gradient);
criterion_main!(benches);
