//! The gated first state, against its formula written out in `f64` and against the layout that it begins as.

use ancre::{Arm, Branches, Connections, ConnectionsConfig, ConnectionsError, Cost};
use burn::{
    backend::{Autodiff, Flex},
    module::Param,
    optim::GradientsParams,
    tensor::{DType, Tensor, TensorData, activation::tanh, backend::Backend},
};
use proptest::prelude::*;

const EPSILON: f64 = 1e-6;

fn config(depth: usize, width: usize, arm: &str) -> ConnectionsConfig {
    ConnectionsConfig::new(depth).with_arm(arm.parse().unwrap()).with_branches(Branches { per_block: 2, width })
}

fn matrix<B: Backend>(values: &[f64], dims: [usize; 2], dtype: DType) -> Tensor<B, 2> {
    Tensor::from_data(TensorData::new(values.to_vec(), dims), (&Default::default(), dtype))
}

fn read<const D: usize>(tensor: Tensor<impl Backend, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// The module with these parameters, in `f64`.
fn module(config: &ConnectionsConfig, width: usize, weight: &[f64], query: &[f64]) -> Connections<Flex> {
    struct Load<'a>([&'a [f64]; 2], [usize; 2]);
    impl burn::module::ModuleMapper<Flex> for Load<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<Flex, D>>) -> Param<Tensor<Flex, D>> {
            // The weight comes first: it begins at one, the query at zero.
            let values = if read(param.val())[0] == 0.0 { self.0[1] } else { self.0[0] };
            let tensor: Tensor<Flex, 2> = matrix(values, self.1, DType::F64);
            Param::from_tensor(tensor.reshape(param.dims()))
        }
    }
    let module: Connections<Flex> = config.init(&Default::default()).unwrap();
    burn::module::Module::map(module, &mut Load([weight, query], [config.depth, width]))
}

/// The parameters in `f32`.
struct Rounded;

impl burn::module::ModuleMapper<Flex> for Rounded {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<Flex, D>>) -> Param<Tensor<Flex, D>> {
        Param::from_tensor(param.val().cast(DType::F32))
    }
}

/// `B(h) = 2 tanh(h) + 0.3`, on a row.
fn block(h: &[f64]) -> Vec<f64> {
    h.iter().map(|h| 2.0 * h.tanh() + 0.3).collect()
}

/// The formula, row by row and number by number.
fn straight_line(first: &[f64], weight: &[&[f64]], query: &[&[f64]]) -> Vec<f64> {
    let mut state = first.to_vec();
    for (w, q) in weight.iter().zip(query) {
        let y = block(&state);
        let mean_square = y.iter().map(|y| y * y).sum::<f64>() / y.len() as f64;
        let rms = (mean_square + EPSILON).sqrt();
        let score: f64 = y.iter().zip(*q).map(|(y, q)| q * y / rms).sum();
        let gate = 1.0 + score.tanh();
        state = y.iter().zip(w.iter().zip(first)).map(|(y, (w, h0))| y + gate * w * h0).collect();
    }
    state
}

fn run<B: fused_ops::FusedOps>(connections: &Connections<B>, input: Tensor<B, 2>) -> Tensor<B, 2> {
    let mut history = connections.start(input.clone());
    let mut state = input;
    for _ in 0..connections.depth() {
        state = connections.connect(&mut history, tanh(state).mul_scalar(2.0).add_scalar(0.3));
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_gated_first_state_is_its_formula(
        depth in 1usize..5,
        width in 1usize..9,
        rows in 1usize..4,
        values in prop::collection::vec(-2.0f64..2.0, 4 * 8 * 2 + 3 * 8),
    ) {
        let (weight, rest) = values.split_at(depth * width);
        let (query, rest) = rest.split_at(depth * width);
        let input = &rest[..rows * width];
        let module = module(&config(depth, width, "gated-first-state"), width, weight, query);
        let found = read(run(&module, matrix(input, [rows, width], DType::F64)));
        let [weight, query] = [weight, query].map(|p| p.chunks(width).collect::<Vec<_>>());
        let expected: Vec<f64> = input.chunks(width).flat_map(|row| straight_line(row, &weight, &query)).collect();
        for (f, e) in found.iter().zip(&expected) {
            prop_assert!((f - e).abs() < 1e-12 * (1.0 + e.abs()), "{found:?} for {expected:?}");
        }
        // In single precision it is the kernel.
        let module = burn::module::Module::map(module, &mut Rounded);
        let kernel = read(run(&module, matrix(input, [rows, width], DType::F32)));
        for (k, e) in kernel.iter().zip(&expected) {
            prop_assert!((k - e).abs() < 1e-5 * (1.0 + e.abs()), "{kernel:?} for {expected:?}");
        }
    }
}

#[test]
fn it_begins_as_the_layout_of_its_weight() {
    let x: Tensor<Flex, 2> = matrix(&[0.3, -1.0, 2.0, 0.7, 0.1, -0.4], [2, 3], DType::F32);
    for (arm, layout) in [("gated-first-state", "0:l"), ("gated-first-state:2.5", "2.5*0:l")] {
        let [gated, fixed] = [arm, layout].map(|arm| config(4, 3, arm).init::<Flex>(&Default::default()).unwrap());
        for (g, f) in read(run(&gated, x.clone())).iter().zip(read(run(&fixed, x.clone()))) {
            assert!((g - f).abs() < 1e-5, "{arm}: {g} for {f}");
        }
        assert_eq!(gated.coefficients().unwrap(), fixed.coefficients().unwrap(), "{arm}");
        assert!(gated.entropies().is_none() && gated.to_vectors().is_empty());
    }
}

#[test]
fn weights_and_queries_learn_and_are_counted() {
    type D = Autodiff<Flex>;
    let config = config(3, 4, "gated-first-state:2");
    let module: Connections<D> = config.init(&Default::default()).unwrap();
    assert_eq!(burn::module::Module::num_params(&module), config.trained_parameters().unwrap());
    assert_eq!((config.trained_parameters().unwrap(), module.trained_parameters()), (2 * 3 * 4, 2 * 3 * 4));
    let input = matrix(&[0.3, -1.0, 2.0, 0.7, 0.1, -0.4, 0.2, 0.9], [2, 4], DType::F32);
    let gradients = GradientsParams::from_grads(run(&module, input).square().sum().backward(), &module);
    let gate = module.gate().unwrap();
    for parameter in [&gate.weight, &gate.query] {
        let gradient = read(gradients.get::<Flex, 2>(parameter.id).unwrap());
        assert!(gradient.iter().all(|g| g.is_finite() && *g != 0.0), "{gradient:?}");
    }
}

#[test]
fn half_precision_states_stay_in_it() {
    let module: Connections<Flex> = config(2, 2, "gated-first-state").init(&Default::default()).unwrap();
    let state = run(&module, matrix(&[1.0, 0.5], [1, 2], DType::BF16));
    assert_eq!(state.dtype(), DType::BF16);
    type D = Autodiff<Flex>;
    let module: Connections<D> = config(2, 2, "gated-first-state").init(&Default::default()).unwrap();
    let x = Tensor::<D, 2>::from_inner(matrix(&[1.0, 0.5], [1, 2], DType::BF16)).require_grad();
    let gradients = run(&module, x.clone()).sum().backward();
    assert_eq!(x.grad(&gradients).unwrap().dtype(), DType::BF16);
    assert!(module.gate().unwrap().query.val().grad(&gradients).is_some());
}

#[test]
fn no_rows_are_no_rows() {
    let module: Connections<Flex> = config(2, 3, "gated-first-state").init(&Default::default()).unwrap();
    assert_eq!(run(&module, matrix(&[], [0, 3], DType::F32)).dims(), [0, 3]);
}

/// Two blocks on rows of 10 numbers.
#[test]
fn its_cost_counted_by_hand() {
    let cost: Cost = config(2, 10, "gated-first-state").cost(10).unwrap();
    assert_eq!(cost.parameters, 2 * 2 * 10);
    // A square and its sum, a product with the query and its sum; w s, its product with the gate, the addition. Six operations on one number.
    assert_eq!(cost.forward.flops, 2 * (7 * 10 + 6));
    // The output for the gate; output, state and gate for the sum, which goes out.
    assert_eq!(cost.forward.bytes, 4 * 2 * (4 * 10 + 2));
    // Of the sum: g w, its product with the state and its sum, with the gate, and the weight's part (7); of the gate: the query's part (2) and
    // what the output gets (4), eight operations on numbers; one more reader of the state.
    assert_eq!(cost.backward.flops, 2 * (14 * 10 + 8));
    // Gradient, state and number in, gradient and number out, twice; the state's gradient again.
    assert_eq!(cost.backward.bytes, 4 * 2 * (7 * 10 + 4));
    assert_eq!((cost.kept, cost.open_gradients), (4 * 2 * 10, 4 * 10));
}

#[test]
fn it_needs_the_width_of_the_stream() {
    let arm: Arm = "gated-first-state".parse().unwrap();
    let error = ConnectionsConfig::new(2).with_arm(arm).validate().unwrap_err();
    assert!(matches!(error, ConnectionsError::Featureless(_)));
    let message = error.to_string();
    assert!(message.contains("cascade, ancre") && message.matches("gated-first-state").count() == 1, "{message}");
}

#[test]
fn sizes_that_no_machine_holds_are_refused() {
    for width in [0, usize::MAX] {
        let config = config(2, width, "gated-first-state");
        assert_eq!(config.init::<Flex>(&Default::default()).unwrap_err(), ConnectionsError::Width(width));
        assert!(config.validate().is_err() && config.cost(4).is_err() && config.trained_parameters().is_err());
    }
    let deep = config(usize::MAX, 4, "gated-first-state");
    assert!(deep.validate().is_err() && deep.init::<Flex>(&Default::default()).is_err());
}

/// Its parameters are slices, as those of Hyper-Connections, of which gradients were lost.
#[test]
fn no_gradient_is_lost_beside_backward_passes_of_other_threads() {
    type D = Autodiff<Flex>;
    let module: Connections<D> = config(4, 4, "gated-first-state").init(&Default::default()).unwrap();
    let gradients_of = |module: &Connections<D>| {
        let input = matrix(&[0.3, -1.0, 2.0, 0.7, 0.1, -0.4, 0.2, 0.9], [2, 4], DType::F32);
        let gradients = GradientsParams::from_grads(run(module, input).square().sum().backward(), module);
        let gate = module.gate().unwrap();
        [&gate.weight, &gate.query].map(|p| gradients.get::<Flex, 2>(p.id).map(read))
    };
    let expected = gradients_of(&module);
    assert!(expected.iter().all(Option::is_some));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let forked = burn::module::Module::fork(module.clone(), &Default::default());
            scope.spawn(|| {
                let forked = forked;
                for _ in 0..50 {
                    let again = burn::module::Module::fork(forked.clone(), &Default::default());
                    assert!(gradients_of(&again) == expected);
                }
            });
        }
    });
}
