//! The program; see the library for what it does.

use std::process::ExitCode;

use training::memory::CountingAllocator;

/// The allocator of all programs here; it also counts, which is how memory is measured.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    experiments_overhead::cli::main()
}
