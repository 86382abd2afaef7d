//! A chain of mixes against the same network made of `mix_at`: values and gradients, whatever is taken from where and whatever is off
//! the graph.

use burn::{
    backend::{Autodiff, Flex},
    tensor::{DType, Tensor, TensorData},
};
use fused_ops::MixChain;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type B = Autodiff<Flex>;

/// A network of blocks, each followed by a mix of some states.
#[derive(Debug)]
struct Network {
    elements: usize,
    /// Sources of each block's mix.
    sources: Vec<Vec<usize>>,
    /// Whether a block's output depends on its input.
    reads: Vec<bool>,
    /// Whether the input, the blocks' weights and the coefficients want gradients.
    learned: [bool; 3],
}

impl Network {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let depth = rng.random_range(1..12);
        let share = rng.random_range(0.0..=1.0);
        let sources = (0..depth).map(|l| (0..=l).filter(|_| rng.random_bool(share)).collect()).collect();
        let reads = (0..depth).map(|_| rng.random_bool(0.9)).collect();
        let elements = [1, 37, 1025, 9001][rng.random_range(0..4)];
        Self { elements, sources, reads, learned: [0; 3].map(|_| rng.random_bool(0.8)) }
    }

    /// Output, then gradients of the input, each block's weights and the coefficients.
    fn run(&self, chained: bool, dtype: DType) -> Vec<Option<Vec<f64>>> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut tensor = |n: usize, learned: bool| {
            let values: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(-1.0f32..1.0))).collect();
            let data = TensorData::new(values, [1, n]);
            let tensor = Tensor::<B, 2>::from_data(data, (&Default::default(), dtype));
            if learned { tensor.require_grad() } else { tensor }
        };
        let Self { elements, ref sources, ref reads, learned: [input, weights, coefficients] } = *self;
        let input = tensor(elements, input);
        let weights: Vec<_> = sources.iter().map(|_| tensor(elements, weights)).collect();
        let count: usize = sources.iter().map(Vec::len).sum();
        let theta = tensor(count.max(1), coefficients);
        let coefficients = theta.clone().reshape([count.max(1)]);
        let taken = |state: usize| sources.iter().any(|row| row.contains(&state));

        let mut chain = MixChain::default();
        let mut states = vec![match chained {
            true => chain.connect(coefficients.clone(), 0, input.clone(), Vec::new(), taken(0)),
            false => input.clone(),
        }];
        let (mut x, mut first) = (input.clone(), 0);
        for (l, row) in sources.iter().enumerate() {
            let output = if reads[l] { (x * weights[l].clone()).tanh() } else { weights[l].clone() };
            let mixed = row.iter().map(|&i| states[i].clone()).collect();
            x = match chained {
                true => chain.connect(coefficients.clone(), first, output, mixed, taken(l + 1)),
                false => fused_ops::mix_at(coefficients.clone(), first, output, mixed),
            };
            first += row.len();
            states.push(x.clone());
        }
        let read = |t: Tensor<Flex, 2>| t.into_data().iter::<f64>().collect::<Vec<_>>();
        let output = read(x.clone().inner());
        let gradients = x.square().sum().backward();
        let of = |t: &Tensor<B, 2>| t.grad(&gradients).map(read);
        let leaves = [&input].into_iter().chain(&weights).chain([&theta]);
        [Some(output)].into_iter().chain(leaves.map(of)).collect()
    }
}

#[track_caller]
fn assert_close(network: &Network, actual: &[Option<Vec<f64>>], expected: &[Option<Vec<f64>>], tolerance: f64) {
    for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let zeros = |like: &Option<Vec<f64>>| like.as_ref().map(|values| vec![0.0; values.len()]);
        // A gradient that is not there is one of zeros: a chain walks through all its states.
        let (actual, expected) =
            (actual.clone().or_else(|| zeros(expected)), expected.clone().or_else(|| zeros(actual)));
        let (Some(actual), Some(expected)) = (actual, expected) else { continue };
        let scale = expected.iter().fold(1e-6f64, |m, x| m.max(x.abs()));
        for (a, e) in actual.iter().zip(&expected) {
            assert!((a - e).abs() <= tolerance * scale, "tensor {i}: {a}, expected {e}, in {network:?}");
        }
    }
}

#[test]
fn a_chain_has_the_gradients_of_its_mixes() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for _ in 0..150 {
        let network = Network::random(&mut rng);
        let expected = network.run(false, DType::F64);
        assert_close(&network, &network.run(true, DType::F64), &expected, 1e-12);
        assert_close(&network, &network.run(true, DType::F32), &expected, 1e-4);
    }
}

#[test]
fn a_deep_chain_takes_all_states() {
    let depth = 70;
    let sources = (0..depth).map(|l| (0..=l).step_by(3).collect()).collect();
    let network = Network { elements: 3, sources, reads: vec![true; depth], learned: [true; 3] };
    assert_close(&network, &network.run(true, DType::F64), &network.run(false, DType::F64), 1e-12);
}

/// Two ends that share their first states.
#[test]
fn a_chain_may_branch() {
    let run = |chained: bool| {
        let leaf = |values: [f64; 3]| {
            Tensor::<B, 1>::from_data(TensorData::from(values), (&Default::default(), DType::F64)).require_grad()
        };
        let (c, x) = (leaf([0.5, -0.25, 2.0]), leaf([1.0, 2.0, -1.0]));
        let mut chain = MixChain::<B, 1>::default();
        let connect = |chain: &mut MixChain<B, 1>, first: usize, base: Tensor<B, 1>, states: &[&Tensor<B, 1>]| {
            let states: Vec<_> = states.iter().map(|&s| s.clone()).collect();
            match chained {
                true => chain.connect(c.clone(), first, base, states, true),
                false => fused_ops::mix_at(c.clone(), first, base, states),
            }
        };
        let h0 = connect(&mut chain, 0, x.clone(), &[]);
        let h1 = connect(&mut chain, 0, x.clone().tanh(), &[&h0]);
        let mut other = chain.clone();
        let left = connect(&mut chain, 1, h1.clone().square(), &[&h0, &h1]);
        let right = connect(&mut other, 0, h1.clone().tanh(), &[&h1, &h0]);
        let gradients = (left * right).sum().backward();
        [c, x].map(|t| t.grad(&gradients).unwrap().into_data().to_vec::<f64>().unwrap())
    };
    for (actual, expected) in run(true).concat().iter().zip(run(false).concat()) {
        assert!((actual - expected).abs() < 1e-12, "{actual} {expected}");
    }
}
