//! Physics steps a second of the paper's models, in single precision.
//!
//! `elements` of the report are steps of one environment. `RAYON_NUM_THREADS=1` measures one thread.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spring_physics::{Block, Model, Simulation, models};

const ENVIRONMENTS: usize = 512;
const SUBSTEPS: usize = 10;

/// The walls of a maze of `rows`, each cell 4 m wide.
fn walls(rows: &[&str]) -> Vec<Block> {
    let mut walls = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        for (j, _) in row.chars().enumerate().filter(|(_, cell)| *cell == '1') {
            walls.push(Block::new([4.0 * i as f64, 4.0 * j as f64, 1.0], [2.0, 2.0, 1.0]));
        }
    }
    walls
}

const BIG_MAZE: [&str; 8] =
    ["11111111", "1RG11GG1", "1GG1GGG1", "11GGG111", "1GG1GGG1", "1G1GG1G1", "1GGG1GG1", "11111111"];

fn measure(c: &mut Criterion, name: &str, model: Model, start: impl Fn(usize) -> Vec<f64>) {
    let mut simulation = Simulation::<f32>::new(model, ENVIRONMENTS).expect("a simulation");
    let controls = simulation.model().control_len();
    let reset = |simulation: &mut Simulation<f32>| {
        let still = vec![0.0; simulation.model().qd_len()];
        for environment in 0..ENVIRONMENTS {
            let q: Vec<f32> = start(environment).into_iter().map(|x| x as f32).collect();
            simulation.reset(environment, &q, &still).expect("a start");
        }
    };
    reset(&mut simulation);
    let mut group = c.benchmark_group("steps");
    group.throughput(Throughput::Elements((ENVIRONMENTS * SUBSTEPS) as u64));
    let mut round = 0;
    group.bench_function(name, |b| {
        b.iter(|| {
            // Uneven motions, so that environments differ; they start again before they are all fallen.
            let control = |k: usize| ((k * 7919 + round * 31) % 1000) as f32 / 500.0 - 1.0;
            let values: Vec<f32> = (0..ENVIRONMENTS * controls).map(control).collect();
            simulation.step(&values, SUBSTEPS);
            round += 1;
            if round % 100 == 0 {
                reset(&mut simulation);
            }
        });
    });
    group.finish();
    assert!(simulation.snapshot().iter().all(|x| x.is_finite()), "{name}: went wrong");
}

fn benchmarks(c: &mut Criterion) {
    let rows = BIG_MAZE;
    let cells: Vec<[f64; 2]> = (0..8)
        .flat_map(|i| (0..8).map(move |j| (i, j)))
        .filter(|&(i, j)| rows[i].as_bytes()[j] != b'1')
        .map(|(i, j)| [4.0 * i as f64, 4.0 * j as f64])
        .collect();
    let open = models::ant(&models::Ant::default()).expect("an ant");
    measure(c, "ant", open, |_| models::Ant::standing(0.0, 0.0).to_vec());
    let maze = models::ant(&models::Ant { walls: walls(&rows), ..Default::default() }).expect("an ant");
    measure(c, "ant in the big maze", maze, |environment| {
        let [x, y] = cells[environment % cells.len()];
        models::Ant::standing(x, y).to_vec()
    });
    let humanoid = models::humanoid(&models::Humanoid::default()).expect("a humanoid");
    let rest = humanoid.rest();
    measure(c, "humanoid", humanoid, |_| rest.clone());
}

criterion_group!(steps, benchmarks);
criterion_main!(steps);
