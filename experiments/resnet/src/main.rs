//! The program; see the library for what it does.

use std::process::ExitCode;

use training::memory::CountingAllocator;

/// Keeps large buffers between steps, and counts what is in use.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    experiments_resnet::cli::main()
}
