//! The counting allocator, installed as a program would. One test, so that no other thread of the harness allocates.

use std::hint::black_box;

use training::memory::{CountingAllocator, current_bytes, peak_bytes, reset_peak};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MIB: usize = 1 << 20;
/// What the test harness may allocate meanwhile.
const NOISE: usize = MIB / 4;

#[track_caller]
fn assert_near(found: usize, expected: usize) {
    assert!(found.abs_diff(expected) < NOISE, "found {found} bytes, expected about {expected}");
}

#[test]
fn bytes_are_counted_through_allocation_growth_and_release() {
    let start = current_bytes();
    reset_peak();
    let mut block: Vec<u8> = black_box(vec![0; 4 * MIB]);
    assert_near(current_bytes(), start + 4 * MIB);
    block.reserve_exact(4 * MIB);
    block.resize(8 * MIB, 1);
    assert_near(current_bytes(), start + 8 * MIB);
    block.truncate(MIB);
    block.shrink_to_fit();
    assert_near(current_bytes(), start + MIB);
    // While a block grows, the old and the new one may both be there.
    assert!(peak_bytes() >= start + 8 * MIB && peak_bytes() <= start + 12 * MIB + NOISE);
    drop(black_box(block));
    assert_near(current_bytes(), start);

    // Regression: a block that is resized where it lies counted as two for a moment.
    let mut block: Vec<u8> = black_box(Vec::with_capacity(8 * MIB));
    let address = block.as_ptr();
    reset_peak();
    block.shrink_to(6 * MIB);
    assert_eq!(block.as_ptr(), address, "mimalloc shrinks in place down to half");
    assert_near(current_bytes(), start + 6 * MIB);
    assert_near(peak_bytes(), start + 8 * MIB);
    block.reserve_exact(6 * MIB + MIB / 2);
    assert_near(current_bytes(), start + 6 * MIB + MIB / 2);
    assert_eq!(block.as_ptr(), address, "and grows in place within what the block had");
    assert_near(peak_bytes(), start + 8 * MIB);
    drop(black_box(block));
    assert_near(current_bytes(), start);
    reset_peak();
    assert_near(peak_bytes(), start);
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| drop(black_box(vec![1u8; MIB])))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_near(current_bytes(), start);
    assert!(peak_bytes() >= start + MIB - NOISE);
}
