//! What rivals promise beyond their reference vectors: where they begin, how many parameters they have, and what they refuse.

use ancre::rivals::{Rival, RivalConfig, RivalError, RivalKind};
use burn::{
    backend::Flex,
    module::Module,
    tensor::{Tensor, TensorData, activation::tanh},
};

const ALL: [&str; 19] = [
    "residual",
    "rezero",
    "layer-scale",
    "x0-scalars",
    "layer-norm-scaling",
    "dense-former",
    "dense-former:2:1",
    "dense-former:2:3",
    "hyper-connections:1",
    "hyper-connections:4",
    "hyper-connections-rms:2",
    "hyper-connections-static:2",
    "manifold-hyper-connections:3",
    "attention-residuals",
    "attention-residuals:2",
    "attention-residuals-query",
    "attention-residuals-query:4",
    "open-attention-residuals",
    "open-attention-residuals:3",
];

const BRANCHES: usize = 6;
const WIDTH: usize = 8;

fn rival(name: &str) -> Rival<Flex> {
    config(name).init(&Default::default()).unwrap()
}

fn config(name: &str) -> RivalConfig {
    RivalConfig { kind: name.parse().unwrap(), branches: BRANCHES, width: WIDTH }
}

fn input(rows: usize) -> Tensor<Flex, 2> {
    let values: Vec<f32> = (0..rows * WIDTH).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_data(TensorData::new(values, [rows, WIDTH]), &Default::default())
}

/// A branch that is another function of every input, and another for every `l`.
fn branch(l: usize, x: Tensor<Flex, 2>) -> Tensor<Flex, 2> {
    tanh(x.mul_scalar(0.5 + 0.2 * l as f64).add_scalar(0.1))
}

fn run(rival: &Rival<Flex>, x: Tensor<Flex, 2>) -> Vec<f32> {
    let mut stream = rival.start(x);
    for l in 0..BRANCHES {
        let read = rival.enter(&mut stream);
        rival.leave(&mut stream, branch(l, read));
    }
    rival.finish(stream).into_data().iter::<f32>().collect()
}

fn assert_near(what: &str, actual: &[f32], expected: &[f32]) {
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= 1e-6 * e.abs().max(1.0), "{what}: {a} for {e}");
    }
}

#[test]
fn those_that_begin_as_the_ordinary_network_give_its_output() {
    let ordinary = run(&rival("residual"), input(3));
    for name in
        ["layer-scale:1", "x0-scalars", "layer-norm-scaling", "dense-former", "dense-former:2:1", "dense-former:2:3"]
    {
        assert_near(name, &run(&rival(name), input(3)), &ordinary);
    }
    for (name, streams) in [
        ("hyper-connections:1", 1.0),
        ("hyper-connections:4", 4.0),
        ("hyper-connections-rms:2", 2.0),
        ("hyper-connections-static:2", 2.0),
    ] {
        let of_one: Vec<f32> = run(&rival(name), input(3)).iter().map(|x| x / streams).collect();
        assert_near(name, &of_one, &ordinary);
    }
    let first: Vec<f32> = input(3).into_data().iter::<f32>().collect();
    assert_near("rezero", &run(&rival("rezero"), input(3)), &first);
}

#[test]
fn the_number_of_parameters_is_that_of_the_module() {
    for name in ALL {
        assert_eq!(rival(name).num_params(), config(name).parameters(), "{name}");
    }
}

/// Tokens do not see each other, whatever the rival.
#[test]
fn each_row_is_on_its_own() {
    for name in ALL {
        let rival = rival(name);
        let all = run(&rival, input(5));
        for row in 0..5 {
            let alone = run(&rival, input(5).slice([row..row + 1, 0..WIDTH]));
            assert_near(name, &alone, &all[row * WIDTH..][..WIDTH]);
        }
    }
}

#[test]
fn sizes_that_fit_nothing_are_refused() {
    let refused = |name: &str, branches, width| {
        let kind: RivalKind = name.parse().unwrap();
        RivalConfig { kind, branches, width }.init::<Flex>(&Default::default()).map(drop).unwrap_err()
    };
    assert_eq!(refused("rezero", 0, 4), RivalError::Empty { branches: 0, width: 4 });
    assert_eq!(refused("rezero", 4, 0), RivalError::Empty { branches: 4, width: 0 });
    assert_eq!(refused("attention-residuals:7", 6, 4), RivalError::Blocks { blocks: 7, branches: 6 });
    assert_eq!(refused("open-attention-residuals:2", 5, 4), RivalError::Odd { branches: 5 });
    assert_eq!(refused("open-attention-residuals:4", 6, 4), RivalError::Blocks { blocks: 4, branches: 3 });
}

#[test]
#[should_panic(expected = "all were left")]
fn there_is_no_branch_after_the_last() {
    let rival = rival("rezero");
    let mut stream = rival.start(input(1));
    for _ in 0..=BRANCHES {
        let read = rival.enter(&mut stream);
        rival.leave(&mut stream, read);
    }
}
