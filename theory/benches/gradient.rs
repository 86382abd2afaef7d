//! Time of one gradient, and of one flow to a relative loss of 1e-6, for depths, widths and the sparsest and densest
//! fast layout.
//!
//! `cargo bench -p theory --bench gradient`, about a minute

use std::hint::black_box;
use std::time::Duration;

use connection_layout::{Layout, NamedLayout};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use theory::flow::{FlowSettings, GradientFlow};
use theory::network::{Gradient, Problem, Weights};
use theory::{Draw, TargetLaw};

const LAYOUTS: [NamedLayout; 2] = [NamedLayout::Dense, NamedLayout::InputToLastHidden];

/// A Gaussian target of width d, and small weights.
fn instance(layout: &Layout, width: usize) -> (Problem, Weights) {
    let mut draw = Draw::new(0, 0);
    let problem = Problem::whitened(layout, draw.target(TargetLaw::Gaussian, width)).unwrap();
    let weights = draw.weights(&problem, 0.01);
    (problem, weights)
}

fn gradient(c: &mut Criterion) {
    for named in LAYOUTS {
        let mut group = c.benchmark_group(format!("gradient {}", named.name()));
        for depth in [3, 4, 6] {
            for width in [4, 5, 8, 16, 32, 64] {
                let (problem, weights) = instance(&named.at_depth(depth).unwrap(), width);
                let mut slope = vec![0.0; problem.len()];
                let mut gradient = Gradient::new(&problem);
                group.bench_function(BenchmarkId::new(format!("K={depth}"), format!("d={width}")), |b| {
                    b.iter(|| gradient.evaluate(black_box(weights.values()), &mut slope));
                });
            }
        }
    }
}

fn flow(c: &mut Criterion) {
    for named in LAYOUTS {
        let mut group = c.benchmark_group(format!("flow {}", named.name()));
        for depth in [3, 4, 6] {
            for width in [4, 5, 8, 16] {
                let (problem, weights) = instance(&named.at_depth(depth).unwrap(), width);
                let settings = FlowSettings { until_loss: 1e-6 * problem.target().scale(), ..FlowSettings::default() };
                let mut flow = GradientFlow::new(&problem, settings);
                let outcome = flow.run(&weights, |_, _| ());
                assert!(outcome.reached().is_some(), "{} at K={depth}, d={width}: {outcome:?}", named.name());
                group.bench_function(BenchmarkId::new(format!("K={depth}"), format!("d={width}")), |b| {
                    b.iter(|| flow.run(black_box(&weights), |_, _| ()).time);
                });
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30);
    targets = gradient, flow
}
criterion_main!(benches);
