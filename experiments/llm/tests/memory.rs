//! The connections' promise about memory, counted in bytes: the graph of a forward pass holds the states, which the blocks
//! hold anyway, and nothing else. Alone in its file, since the allocator counts for the whole process.

use ancre::ConnectionsConfig;
use burn::{
    backend::{Autodiff, Flex},
    tensor::Tensor,
};
use training::memory::{CountingAllocator, current_bytes, peak_bytes, reset_peak};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn the_mix_keeps_nothing_beyond_the_states() {
    type B = Autodiff<Flex>;
    const DEPTH: usize = 12;
    const STATE: usize = 1 << 20; // bytes of a state

    let device = Default::default();
    let connections = ConnectionsConfig::new(DEPTH).init::<B>(&device).unwrap();
    let outputs: Vec<Tensor<B, 2>> =
        (0..=DEPTH).map(|_| Tensor::ones([256, STATE / 4 / 256], &device).require_grad()).collect();
    let run = || {
        let before = current_bytes();
        let mut history = connections.start(outputs[0].clone());
        let mut last = outputs[0].clone();
        for output in &outputs[1..] {
            last = connections.connect(&mut history, output.clone());
        }
        drop(history);
        (current_bytes() - before, last)
    };
    drop(run()); // what is made once, such as thread pools
    let (held, last) = run();
    // Each block's connection makes one new state.
    let states = DEPTH * STATE;
    assert!((states..states + STATE / 4).contains(&held), "{held} bytes for {DEPTH} states of {STATE}");

    // The backward pass sums in place: one gradient for each output and each state, and no temporary for each pair.
    let before = current_bytes();
    reset_peak();
    let gradients = last.sum().backward();
    let extra = peak_bytes() - before;
    assert!(extra < (2 * DEPTH + 4) * STATE, "{} states at the peak of the backward pass", extra as f64 / STATE as f64);
    drop(gradients);
}
