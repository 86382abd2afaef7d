//! What connections cost, against counts written out by hand for small networks.

use ancre::{Arm, Branches, ConnectionsConfig, ConnectionsError, Cost};

/// Bytes of a number.
const F32: u64 = 4;

fn of(arm: &str, depth: usize, width: usize) -> Cost {
    let branches = Branches { per_block: 2, width };
    let arm: Arm = arm.parse().unwrap();
    ConnectionsConfig::new(depth).with_arm(arm).with_branches(branches).cost(width).unwrap()
}

/// Operations and numbers, forward then backward.
fn counts(cost: Cost) -> [u64; 4] {
    [cost.forward.flops, cost.forward.bytes / F32, cost.backward.flops, cost.backward.bytes / F32]
}

#[test]
fn the_cascade_costs_nothing() {
    assert_eq!(of("cascade", 12, 64), Cost::default());
    assert_eq!(of("residual", 12, 64), Cost::default());
}

/// Three blocks: `h_1 = B + c h_0`, `h_2 = B + 2 terms`, `h_3 = B + 3 terms`, on rows of 10 numbers.
#[test]
fn ancre_of_three_blocks_counted_by_hand() {
    let cost = of("ancre", 3, 10);
    assert_eq!(cost.parameters, 5);
    // 1 + 2 + 3 products and additions; bases, states, results.
    let forward = [2 * 6 * 10, (3 + 6 + 3) * 10];
    // h_2 takes one later gradient, h_1 two, h_0 three: as many products and additions, and inner products.
    // Each reads those, its own gradient and itself, and writes its gradient.
    let backward = [6 * 2 * 10 + 6 * 2 * 10, ((1 + 3) + (2 + 3) + (3 + 3)) * 10];
    assert_eq!(counts(cost), [forward[0], forward[1], backward[0], backward[1]]);
    // In the first block's turn the gradients of the second and third mix wait for h_0.
    assert_eq!((cost.kept, cost.open_gradients), (0, 2 * 10 * F32));
    // Frozen coefficients have no inner products, for which states would be read.
    assert_eq!(counts(of("constant", 3, 10)), [forward[0], forward[1], 120, backward[1] - 30]);
}

#[test]
fn a_layout_costs_what_it_takes() {
    // h_0 enters states 2 and 4.
    let cost = of("0:2+0:4", 4, 10);
    assert_eq!(counts(cost), [2 * 2 * 10, 2 * 3 * 10, 2 * 2 * 10, (2 + 2) * 10]);
    assert_eq!(cost.open_gradients, 2 * 10 * F32);
    assert_eq!(counts(of("naive", 3, 10)), [40, 2 * 3 * 10, 80, 2 * 4 * 10]);
}

/// Two blocks of two branches on rows of 10 numbers.
#[test]
fn rivals_of_four_branches_counted_by_hand() {
    // a f: one more product; backward a g, g f and its sum, where g, f and the result move.
    assert_eq!(counts(of("rezero", 2, 10)), [40, 0, 4 * 30, 4 * 30]);
    assert_eq!(counts(of("layer-scale", 2, 10)), [40, 0, 4 * 30, 4 * 30]);
    assert_eq!((of("rezero", 2, 10).parameters, of("layer-scale", 2, 10).parameters), (4, 40));
    // Two branches of the second block: a product forward, a product backward.
    assert_eq!(counts(of("layer-norm-scaling", 2, 10)), [20, 40, 20, 40]);
    // r h + s h_0 twice: three operations, two rows in and one out; backward r g, s g and two inner products, with g and two
    // rows in and two out, and one more addition to the gradient of h_0.
    assert_eq!(counts(of("x0-scalars", 2, 10)), [2 * 30, 2 * 30, 2 * 70, 2 * 60]);
    // Sums of 2 and 3 outputs; backward a product and an inner product for each, where the gradient and the outputs come in and their gradients go out.
    // h_0 has the first branch and two sums as readers, e_1 two sums: three more additions.
    let dense = of("dense-former", 2, 10);
    assert_eq!(counts(dense), [30 + 50, 30 + 40, 60 + 90 + 30, 50 + 70 + 30]);
    assert_eq!(dense.parameters, 5);
}

#[test]
fn streams_counted_by_hand() {
    // Two streams, four branches. A branch reads a sum of two rows (3 operations, 3 rows moved); each stream becomes a sum of
    // three rows (5 operations), with three rows in and two out; the shortcut's addition and its three rows are saved. At the end one sum.
    let forward = [4 * (3 + 2 * 5 - 1) * 10 + 10, 4 * (3 + 5 - 3) * 10 + 30];
    // Reading: two products and two inner products (6), g and two rows in and two out. Going on: the gradients of two streams are sums of
    // two rows (3 each), that of the branch, too; six inner products (12); two gradients and three rows in, three out. Each stream's
    // gradient gets the reading's part; the shortcut's second reader is saved. At the beginning one sum.
    let backward = [4 * (6 + 3 * 3 + 12 + 2 - 1) * 10 + 10, 4 * (5 + 8 + 2 - 1) * 10 + 30];
    let cost = of("hyper-connections-static:2", 2, 10);
    assert_eq!(counts(cost), [forward[0], forward[1], backward[0], backward[1]]);
    assert_eq!((cost.parameters, cost.open_gradients), (4 * 8, 10 * F32));
    // Functions of the token cost more, and Sinkhorn's rounds on top.
    let flops = |arm: &str| of(arm, 2, 10).training().flops;
    assert!(flops("hyper-connections-static:2") < flops("hyper-connections-rms:2"));
    assert!(flops("hyper-connections-rms:2") < flops("hyper-connections:2"));
    assert!(flops("hyper-connections:2") + 4 * 4 * 160 < flops("manifold-hyper-connections:2"));
}

#[test]
fn attention_over_sources_counted_by_hand() {
    // Branches read 1, 2, 3 and 4 sources, and the network goes on with the sum of five. Of each source read: a mean square and a product
    // with the query (4 operations a number, and 3), five of the softmax, and its part of the sum (2 a number, less 1 a branch).
    let reads = 1 + 2 + 3 + 4;
    let forward = reads * (4 * 10 + 3 + 5 + 2 * 10) - 4 * 10 + 4 * 10;
    // Four shortcuts are saved.
    let cost = of("attention-residuals-sum", 2, 10);
    assert_eq!(cost.forward.flops, forward - 4 * 10);
    // A source is read for its score and for the sum; score and softmax write a number, softmax and sum read one.
    assert_eq!(cost.forward.bytes / F32, reads * (20 + 4) + 4 * 10 + 60 - 4 * 30);
    assert_eq!((cost.parameters, cost.open_gradients), (40, 4 * 10 * F32));
    // One source in each of two blocks is less.
    assert!(of("attention-residuals-sum:2", 2, 10).training().flops < cost.training().flops);
    assert!(of("attention-residuals", 2, 10).forward.flops > cost.forward.flops);
}

#[test]
fn ancre_over_branches_counted_by_hand() {
    // The first branch reads the embeddings as they are; the others and the network mixes of 2, 3, 4 and 5 sources. Four shortcuts are saved.
    let cost = of("ancre-branches", 2, 10);
    let forward = [(3 + 5 + 7 + 9) * 10 - 4 * 10, (3 + 4 + 5 + 6) * 10 - 4 * 30];
    // A product and an inner product a source. Fifteen readers of five sources: ten additions. Four second readers are saved.
    let backward = [3 * 14 * 10 + 10 * 10 - 4 * 10, (5 + 7 + 9 + 11) * 10 + 10 * 10 - 4 * 10];
    assert_eq!(counts(cost), [forward[0], forward[1], backward[0], backward[1]]);
    assert_eq!((cost.parameters, cost.open_gradients), (14, 4 * 10 * F32));
}

/// Outputs that no sum follows were counted as if sums were their first readers.
#[test]
fn dense_former_with_a_period_counted_by_hand() {
    // Sums of 3 and 5 outputs after the second and the fourth block. The embeddings, e_1 and e_3 have blocks as readers, too; the second sum
    // reads e_0, e_1 and e_2 again: six more additions.
    let dense = of("dense-former:1:2", 4, 10);
    assert_eq!(counts(dense), [50 + 90, 40 + 60, 90 + 150 + 60, 70 + 110 + 60]);
}

#[test]
fn rivals_need_open_blocks() {
    let rezero = ConnectionsConfig::new(2).with_arm("rezero".parse().unwrap());
    assert!(matches!(rezero.cost(8), Err(ConnectionsError::Closed(_))));
    assert!(ConnectionsConfig::new(0).cost(8).is_err());
}
