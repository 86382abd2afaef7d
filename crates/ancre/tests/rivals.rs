//! What rivals promise beyond their reference vectors: where they begin, how many parameters they have, and what they refuse.

use ancre::rivals::{ManifoldForm, Rival, RivalConfig, RivalError, RivalKind};
use burn::{
    backend::{Autodiff, Flex},
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{DType, Tensor, TensorData, activation::tanh, backend::AutodiffBackend},
};

const ALL: [&str; 22] = [
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
    "manifold-hyper-connections:1",
    "manifold-hyper-connections:3",
    "manifold-hyper-connections-package:3",
    "attention-residuals",
    "attention-residuals:3",
    "attention-residuals-sum",
    "attention-residuals-sum:2",
    "ancre-branches",
    "open-attention-residuals",
    "open-attention-residuals:3",
];

const BRANCHES: usize = 6;
const WIDTH: usize = 8;
const TAU: f64 = 0.5;

fn rival(name: &str) -> Rival<Flex> {
    config(name).init(&Default::default()).unwrap()
}

fn config(name: &str) -> RivalConfig {
    RivalConfig { kind: name.parse().unwrap(), branches: BRANCHES, per_block: 2, width: WIDTH, tau: TAU }
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
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= 1e-6 * e.abs().max(1.0), "{what}: {a} for {e}");
    }
}

/// With parameters that are all different and not where they begin.
fn stirred(name: &str) -> Rival<Flex> {
    struct Stir;
    impl ModuleMapper<Flex> for Stir {
        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<Flex, D>>) -> Param<Tensor<Flex, D>> {
            parameter.map(|tensor| {
                let dims = tensor.dims();
                let data = tensor.into_data();
                let stirred = |(i, x): (usize, f32)| x + 0.3 * (i as f32 * 1.3).cos();
                let values: Vec<f32> = data.iter::<f32>().enumerate().map(stirred).collect();
                Tensor::from_data(TensorData::new(values, dims), &Default::default())
            })
        }
    }
    rival(name).map(&mut Stir)
}

#[test]
fn those_that_begin_as_the_ordinary_network_give_its_output() {
    let ordinary = run(&rival("residual"), input(3));
    for name in ["layer-scale:1", "x0-scalars", "dense-former", "dense-former:2:1", "dense-former:2:3"] {
        assert_near(name, &run(&rival(name), input(3)), &ordinary);
    }
    for (name, streams) in [
        ("hyper-connections:1", 1.0),
        ("hyper-connections:4", 4.0),
        ("hyper-connections-rms:2", 2.0),
        ("hyper-connections-static:2", 2.0),
        ("manifold-hyper-connections:4", 4.0),
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
        let rival = stirred(name);
        let all = run(&rival, input(5));
        for row in 0..5 {
            let alone = run(&rival, input(5).slice([row..row + 1, 0..WIDTH]));
            assert_near(name, &alone, &all[row * WIDTH..][..WIDTH]);
        }
    }
}

/// Both norms of a block have its scale.
#[test]
fn norms_are_scaled_by_the_depth_of_their_block() {
    let scales: Vec<f64> = (0..BRANCHES).map(|branch| rival("layer-norm-scaling").norm_scale(branch)).collect();
    assert_eq!(scales, [1.0, 2.0, 3.0].map(|l: f64| [1.0 / l.sqrt(); 2]).as_flattened());
    assert_eq!(rival("rezero").norm_scale(5), 1.0);
}

/// Against sums written out: a block of two ordinary branches, and what stands before or after it.
#[test]
fn rivals_of_blocks_leave_the_branches_inside_alone() {
    let ordinary = |l: usize, x: Tensor<Flex, 2>| {
        let x = x.clone() + branch(2 * l, x);
        x.clone() + branch(2 * l + 1, x)
    };
    let numbers = |tensor: Tensor<Flex, 2>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
    let stir =
        |start: &[f64]| start.iter().enumerate().map(|(i, x)| x + 0.3 * (i as f64 * 1.3).cos()).collect::<Vec<_>>();

    let scalars = stir(&[1.0, 0.0].repeat(3));
    let mut h = input(3);
    for l in 0..3 {
        h = ordinary(l, h.mul_scalar(scalars[2 * l]) + input(3).mul_scalar(scalars[2 * l + 1]));
    }
    assert_near("x0-scalars", &run(&stirred("x0-scalars"), input(3)), &numbers(h));

    // Sums over 2, 3 and 4 outputs.
    let alpha = stir(&[0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let (mut h, mut seen, mut first) = (input(3), vec![input(3)], 0);
    for l in 0..3 {
        seen.push(ordinary(l, h));
        let parts = seen.iter().zip(&alpha[first..]).map(|(output, &weight)| output.clone().mul_scalar(weight));
        h = parts.reduce(|sum, part| sum + part).unwrap();
        first += seen.len();
    }
    assert_near("dense-former", &run(&stirred("dense-former"), input(3)), &numbers(h));
}

/// The layer norm of the paper's form, in plain numbers: one stream, one branch.
#[test]
fn hyper_connections_of_the_paper_norm_by_mean_and_deviation() {
    let config =
        RivalConfig { kind: "hyper-connections:1".parse().unwrap(), branches: 1, per_block: 1, width: 2, tau: 0.01 };
    let mut rival: Rival<Flex> = config.init(&Default::default()).unwrap();
    struct Ones;
    impl ModuleMapper<Flex> for Ones {
        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<Flex, D>>) -> Param<Tensor<Flex, D>> {
            let values = (0..parameter.dims().iter().product()).map(|i| 0.5 + 0.25 * i as f32).collect();
            parameter.map(|tensor: Tensor<Flex, D>| {
                Tensor::from_data(TensorData::new::<f32, _>(values, tensor.dims()), &Default::default())
            })
        }
    }
    rival = rival.map(&mut Ones);
    let x = [3.0f64, -1.0];
    let mut stream = rival.start(Tensor::<Flex, 2>::from_floats([[3.0, -1.0]], &Default::default()));
    let read: Vec<f64> = rival.enter(&mut stream).into_data().iter::<f64>().collect();
    // Mean 1, deviations 2 and -2; gains 1.5 and 1.75; columns of alpha_fn (.5, 1) and (.75, 1.25); scales .5.
    let deviation = (4.0f64 + 1e-5).sqrt();
    let z = [2.0 / deviation * 1.5, -2.0 / deviation * 1.75];
    let alpha = 0.5 + 0.5 * (z[0] * 0.5 + z[1] * 1.0).tanh();
    for (read, x) in read.iter().zip(x) {
        assert!((read - alpha * x).abs() < 1e-6, "{read} for {}", alpha * x);
    }
    rival.leave(&mut stream, Tensor::from_floats([[1.0, 10.0]], &Default::default()));
    let kept = 0.75 + 0.5 * (z[0] * 0.75 + z[1] * 1.25).tanh();
    let beta = 0.5 + 0.5 * (z[0] * 0.5 + z[1] * 0.75).tanh();
    let last: Vec<f64> = rival.finish(stream).into_data().iter::<f64>().collect();
    for (last, (x, output)) in last.iter().zip(x.into_iter().zip([1.0, 10.0])) {
        assert!((last - (kept * x + beta * output)).abs() < 1e-5, "{last} for {}", kept * x + beta * output);
    }
}

/// What `stirred` makes of the numbers that a parameter begins with.
fn stir(start: &[f64]) -> Vec<f64> {
    start.iter().enumerate().map(|(i, x)| x + 0.3 * (i as f64 * 1.3).cos()).collect()
}

fn branch_in_numbers(l: usize, x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| (x * (0.5 + 0.2 * l as f64) + 0.1).tanh()).collect()
}

fn rows_of(tensor: Tensor<Flex, 2>) -> Vec<Vec<f64>> {
    tensor.into_data().iter::<f64>().collect::<Vec<_>>().chunks(WIDTH).map(<[f64]>::to_vec).collect()
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let all: f64 = logits.iter().map(|x| x.exp()).sum();
    logits.iter().map(|x| x.exp() / all).collect()
}

fn weighted(weights: &[f64], rows: &[Vec<f64>]) -> Vec<f64> {
    (0..WIDTH).map(|c| weights.iter().zip(rows).map(|(w, row)| w * row[c]).sum()).collect()
}

/// The paper's form in plain numbers: equations 3 and 7 to 9 of arXiv 2512.24880, with `H~` by rows for new streams.
#[test]
fn manifold_hyper_connections_follow_the_paper() {
    const N: usize = 3;
    const LOGITS: usize = N * (N + 2);
    let logit = |share: f64| (share / (1.0 - share)).ln();
    let bias = (0..BRANCHES).flat_map(|l| {
        let pre = (0..N).map(move |s| if s == l % N { logit(0.9) } else { logit(0.05) });
        let residual = (0..N * N).map(|i| if i / N == i % N { 0.0 } else { -5.0 });
        pre.chain([0.0; N]).chain(residual).collect::<Vec<_>>()
    });
    let bias = stir(&bias.collect::<Vec<_>>());
    let (gates, phi) = (stir(&[0.01; 3 * BRANCHES]), stir(&vec![0.0; BRANCHES * N * WIDTH * LOGITS]));
    let mut expected = Vec::new();
    for row in rows_of(input(3)) {
        let mut streams = vec![row; N];
        for l in 0..BRANCHES {
            let x = streams.concat();
            let size = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + 1e-6).sqrt();
            let logits: Vec<f64> = (0..LOGITS)
                .map(|k| {
                    let seen: f64 = (0..x.len()).map(|c| x[c] / size * phi[(l * x.len() + c) * LOGITS + k]).sum();
                    let gate = [0, N, 2 * N].iter().rposition(|&from| k >= from).unwrap();
                    gates[3 * l + gate] * seen + bias[l * LOGITS + k]
                })
                .collect();
            let sigmoid = |x: &f64| 1.0 / (1.0 + (-x).exp());
            let read: Vec<f64> = logits[..N].iter().map(sigmoid).collect();
            let write: Vec<f64> = logits[N..2 * N].iter().map(|x| 2.0 * sigmoid(x)).collect();
            let mut mix: Vec<f64> = logits[2 * N..].iter().map(|x| x.exp()).collect();
            for _ in 0..20 {
                for old in 0..N {
                    let sum: f64 = (0..N).map(|new| mix[new * N + old]).sum();
                    (0..N).for_each(|new| mix[new * N + old] /= sum);
                }
                for row in mix.chunks_mut(N) {
                    let sum: f64 = row.iter().sum();
                    row.iter_mut().for_each(|entry| *entry /= sum);
                }
            }
            let output = branch_in_numbers(l, &weighted(&read, &streams));
            let moved = (0..N).map(|new| {
                let kept = weighted(&mix[new * N..][..N], &streams);
                kept.iter().zip(&output).map(|(kept, output)| kept + write[new] * output).collect()
            });
            streams = moved.collect();
        }
        expected.extend(weighted(&[1.0; N], &streams).iter().map(|&x| x as f32));
    }
    let name = "manifold-hyper-connections:3";
    for (actual, expected) in run(&stirred(name), input(3)).iter().zip(&expected) {
        assert!((actual - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{name}: {actual} for {expected}");
    }
}

/// `h_l = sum_i softmax_i(theta_l / tau) v_i` in plain numbers.
#[test]
fn ancre_over_branches_mixes_what_they_make() {
    let theta = stir(&[0.0; BRANCHES * (BRANCHES + 3) / 2]);
    let mut expected = Vec::new();
    for row in rows_of(input(3)) {
        let (mut made, mut first, mut h) = (vec![row.clone()], 0, row);
        for l in 0..BRANCHES {
            made.push(branch_in_numbers(l, &h));
            let logits: Vec<f64> = theta[first..][..made.len()].iter().map(|theta| theta / TAU).collect();
            h = weighted(&softmax(&logits), &made);
            first += made.len();
        }
        expected.extend(h.iter().map(|&x| x as f32));
    }
    assert_near("ancre-branches", &run(&stirred("ancre-branches"), input(3)), &expected);

    // From the start a mean, whatever the temperature.
    let mut made = rows_of(input(1));
    for l in 0..BRANCHES {
        let mean = weighted(&vec![1.0 / made.len() as f64; made.len()], &made);
        made.push(branch_in_numbers(l, &mean));
    }
    let mean = weighted(&vec![1.0 / made.len() as f64; made.len()], &made);
    let mean: Vec<f32> = mean.iter().map(|&x| x as f32).collect();
    assert_near("ancre-branches", &run(&rival("ancre-branches"), input(1)), &mean);
}

#[test]
fn a_temperature_is_positive_where_it_is_used() {
    let ancre = RivalConfig { tau: 0.0, ..config("ancre-branches") };
    assert_eq!(ancre.validate(), Err(RivalError::Tau("0".to_owned())));
    assert_eq!(RivalConfig { tau: 0.0, ..config("rezero") }.validate(), Ok(()));
}

/// The gradients of what has no reference vectors, against central differences in double precision: of the input and of every
/// parameter, along one direction each.
#[test]
fn gradients_are_those_of_differences() {
    type D = Autodiff<Flex>;
    const STEP: f64 = 1e-5;
    /// Moves every parameter, now in `f64`, by `along` times its direction; keeps the ids.
    struct Move(f64);
    impl ModuleMapper<D> for Move {
        fn map_float<const R: usize>(&mut self, parameter: Param<Tensor<D, R>>) -> Param<Tensor<D, R>> {
            let (id, tensor, _) = parameter.consume();
            let moved = tensor.clone().cast(DType::F64) + direction(&tensor).mul_scalar(self.0);
            Param::initialized(id, Tensor::from_inner(moved.inner()).require_grad())
        }
    }
    fn direction<const R: usize>(like: &Tensor<D, R>) -> Tensor<D, R> {
        let values = (0..like.shape().num_elements()).map(|i| (i as f64 * 0.9 + 0.4).sin()).collect();
        Tensor::from_data(TensorData::new::<f64, _>(values, like.dims()), (&Default::default(), DType::F64))
    }
    struct Along<'a>(&'a <D as AutodiffBackend>::Gradients, f64);
    impl ModuleVisitor<D> for Along<'_> {
        fn visit_float<const R: usize>(&mut self, parameter: &Param<Tensor<D, R>>) {
            let value = parameter.val();
            let gradient = value.grad(self.0).expect("a gradient");
            self.1 +=
                (Tensor::<D, R>::from_inner(gradient) * direction(&value)).sum().into_data().iter::<f64>().sum::<f64>();
        }
    }
    for name in ["manifold-hyper-connections:3", "ancre-branches", "x0-scalars", "hyper-connections:3"] {
        let start: Rival<D> = config(name).init(&Default::default()).unwrap();
        // Away from the start, where many gradients are 0.
        let start = start.map(&mut Move(0.2));
        let x = direction(&Tensor::<D, 2>::zeros([3, WIDTH], &Default::default())).mul_scalar(1.5);
        let loss = |rival: &Rival<D>, x: Tensor<D, 2>| {
            let mut stream = rival.start(x);
            for l in 0..BRANCHES {
                let read = rival.enter(&mut stream);
                rival.leave(&mut stream, tanh(read.mul_scalar(0.5 + 0.2 * l as f64).add_scalar(0.1)));
            }
            rival.finish(stream).square().sum()
        };
        let number = |loss: Tensor<D, 1>| loss.into_data().iter::<f64>().sum::<f64>();
        let [ahead, behind] = [STEP, -STEP].map(|step| {
            let moved = x.clone() + direction(&x).mul_scalar(step);
            number(loss(&start.clone().map(&mut Move(step)), moved))
        });
        let x = Tensor::<D, 2>::from_inner(x.inner()).require_grad();
        let gradients = loss(&start, x.clone()).backward();
        let mut along = Along(&gradients, 0.0);
        start.visit(&mut along);
        let of_x = Tensor::<D, 2>::from_inner(x.grad(&gradients).expect("a gradient"));
        let expected = (ahead - behind) / (2.0 * STEP);
        let actual = along.1 + number((of_x * direction(&x)).sum());
        assert!((actual - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{name}: {actual} for {expected}");
    }
}

/// burn-autodiff 0.21 forgets what is only held by the inputs of a `Tensor::cat` where a backward pass ends on another thread at
/// that moment: gradients of Hyper-Connections were 0 for a branch in one of some hundred steps.
#[test]
fn no_gradient_is_lost_beside_backward_passes_of_other_threads() {
    type D = Autodiff<Flex>;
    struct Gradients<'a>(&'a <D as AutodiffBackend>::Gradients, Vec<Vec<f32>>);
    impl ModuleVisitor<D> for Gradients<'_> {
        fn visit_float<const R: usize>(&mut self, parameter: &Param<Tensor<D, R>>) {
            let gradient = parameter.val().grad(self.0).map(|gradient| gradient.into_data().iter::<f32>().collect());
            self.1.extend(gradient);
        }
    }
    let gradients_of = |rival: &Rival<D>| {
        let mut stream = rival.start(Tensor::from_inner(input(24)));
        for l in 0..BRANCHES {
            let read = rival.enter(&mut stream);
            rival.leave(&mut stream, tanh(read.mul_scalar(0.5 + 0.2 * l as f64).add_scalar(0.1)));
        }
        let gradients = rival.finish(stream).square().sum().backward();
        let mut seen = Gradients(&gradients, Vec::new());
        rival.visit(&mut seen);
        seen.1
    };
    for name in ["hyper-connections:2", "manifold-hyper-connections:2", "manifold-hyper-connections-package:2"] {
        let rival: Rival<D> = config(name).init(&Default::default()).unwrap();
        let expected = gradients_of(&rival);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let forked = rival.clone().fork(&Default::default());
                scope.spawn(|| {
                    let forked = forked;
                    for _ in 0..50 {
                        assert!(gradients_of(&forked.clone().fork(&Default::default())) == expected, "{name}");
                    }
                });
            }
        });
    }
}

/// A stream of few digits: coefficients and sums have more, so that all that is lost is what rounding the states loses.
#[test]
fn a_stream_in_bf16_is_summed_in_f32() {
    for name in ALL {
        let rival = stirred(name);
        let halved = input(3).cast(DType::BF16);
        let mut stream = rival.start(halved.clone());
        let mut wide = rival.start(halved.cast(DType::F32));
        for l in 0..BRANCHES {
            let read = rival.enter(&mut stream);
            assert_eq!(read.dtype(), DType::BF16, "{name}");
            let reference = rival.enter(&mut wide);
            let output = branch(l, reference).cast(DType::BF16);
            rival.leave(&mut wide, output.clone().cast(DType::F32));
            rival.leave(&mut stream, output);
        }
        let last = rival.finish(stream);
        assert_eq!(last.dtype(), DType::BF16, "{name}");
        let last: Vec<f32> = last.into_data().iter::<f32>().collect();
        let wide: Vec<f32> = rival.finish(wide).into_data().iter::<f32>().collect();
        // Half a unit in the last place of eight bits for every rounding of a state, relative to the largest.
        let largest = wide.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
        for (last, wide) in last.iter().zip(&wide) {
            let tolerance = (BRANCHES + 2) as f32 * largest / 256.0;
            assert!((last - wide).abs() <= tolerance, "{name}: {last} for {wide}");
        }
    }
}

#[test]
fn sizes_that_fit_nothing_are_refused() {
    let refused = |name: &str, branches, width| {
        let kind: RivalKind = name.parse().unwrap();
        RivalConfig { kind, branches, per_block: 1, width, tau: 0.01 }
            .init::<Flex>(&Default::default())
            .map(drop)
            .unwrap_err()
    };
    assert_eq!(refused("rezero", 0, 4), RivalError::Size { branches: 0, width: 4 });
    assert_eq!(refused("rezero", 4, 0), RivalError::Size { branches: 4, width: 0 });
    assert_eq!(refused("attention-residuals:7", 6, 4), RivalError::Blocks { blocks: 7, branches: 6 });
    assert_eq!(refused("attention-residuals:4", 6, 4), RivalError::Blocks { blocks: 4, branches: 6 });
    assert!(matches!(refused("hyper-connections:64", usize::MAX, usize::MAX), RivalError::Size { .. }));
    for kind in [
        RivalKind::DenseFormer { dilation: 0, period: 1 },
        RivalKind::ManifoldHyperConnections { streams: 0, form: ManifoldForm::Paper },
        RivalKind::AttentionResiduals { blocks: Some(0), final_query: true },
    ] {
        let config = RivalConfig { kind: kind.clone(), branches: 4, per_block: 2, width: 4, tau: 0.01 };
        assert_eq!(config.validate(), Err(RivalError::Number(kind)));
        let config = RivalConfig { kind: RivalKind::ReZero, per_block: 3, ..config };
        assert_eq!(config.validate(), Err(RivalError::PerBlock { branches: 4, per_block: 3 }));
    }
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
