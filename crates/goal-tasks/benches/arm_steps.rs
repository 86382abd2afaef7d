//! Physics steps a second of the tasks of the arm, on all cores.
//!
//! `elements` of the report are steps of the simulation of one environment. `RAYON_NUM_THREADS=1` measures one thread.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use goal_tasks::{EnvironmentOptions, Environments, Random, Variant, task};

const ENVIRONMENTS: usize = 64;
const SUBSTEPS: usize = 25;

fn measure(c: &mut Criterion, name: &str) {
    let task = task(name, Variant::ScalingCrl).unwrap_or_else(|error| panic!("{error}"));
    let actions_len = ENVIRONMENTS * task.spec().action_len;
    // Episodes as long as in training, with actions at random, so that there are contacts of all kinds.
    let options = EnvironmentOptions::training(task.spec(), ENVIRONMENTS, 0);
    let mut environments = Environments::new(task, options).expect("environments");
    let mut random = Random::new(0, u64::MAX);
    let mut actions = vec![0.0; actions_len];
    let mut group = c.benchmark_group("arm steps");
    group.throughput(Throughput::Elements((ENVIRONMENTS * SUBSTEPS) as u64));
    group.bench_function(name, |b| {
        b.iter(|| {
            actions.iter_mut().for_each(|action| *action = random.uniform(-1.0, 1.0) as f32);
            environments.step(&actions).expect("a step");
        });
    });
    group.finish();
}

fn benchmarks(c: &mut Criterion) {
    measure(c, "arm_push_hard");
    measure(c, "arm_binpick_hard");
}

criterion_group!(steps, benchmarks);
criterion_main!(steps);
