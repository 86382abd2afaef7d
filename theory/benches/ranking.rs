//! Time of a full ranking of depth 4, width 5: 1024 layouts by gradient flow and nine learning rates, one instance.
//!
//! `cargo bench -p theory --bench ranking`

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use theory::ranking::{Ranking, RankingSettings};

fn ranking(c: &mut Criterion) {
    let mut group = c.benchmark_group("ranking");
    group.sample_size(10).measurement_time(Duration::from_secs(15));
    let settings = RankingSettings::new(4, 5, 0);
    group.bench_function("K=4/d=5", |b| b.iter(|| Ranking::measure(black_box(&settings), |_| ()).unwrap()));
    let flow = RankingSettings { rates: Vec::new(), ..settings };
    group.bench_function("K=4/d=5/flow", |b| b.iter(|| Ranking::measure(black_box(&flow), |_| ()).unwrap()));
    group.finish();
}

criterion_group!(benches, ranking);
criterion_main!(benches);
