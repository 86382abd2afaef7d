//! Matrix products on parts of larger matrices, as attention and residual blocks need them.

use gemm::{Parallelism, gemm};

/// A matrix in memory shared between tasks: rows of `stride` elements, of which each task touches its own columns.
#[derive(Clone, Copy)]
pub(super) struct Strided {
    start: *mut f32,
    stride: usize,
}
// SAFETY: tasks of one kernel call write disjoint (sequence, head) column blocks, and nobody else holds the matrix.
unsafe impl Send for Strided {}
// SAFETY: as above.
unsafe impl Sync for Strided {}

impl Strided {
    pub(super) fn new(matrix: &mut [f32], stride: usize) -> Self {
        Self { start: matrix.as_mut_ptr(), stride }
    }
    /// Element `(row, column)`.
    ///
    /// # Safety
    /// It must lie inside the matrix.
    pub(super) unsafe fn at(&self, row: usize, column: usize) -> *mut f32 {
        // SAFETY: forwarded to the caller.
        unsafe { self.start.add(row * self.stride + column) }
    }
}

/// `destination[m, n] (+)= left[m, k] right[k, n]`, each operand a pointer with row and column stride.
///
/// # Safety
/// The pointers must be valid for the index ranges that the sizes and strides span, and `destination` for writes.
pub(super) unsafe fn multiply(
    (m, n, k): (usize, usize, usize),
    destination: (*mut f32, usize),
    add: bool,
    left: (*const f32, usize, usize),
    right: (*const f32, usize, usize),
) {
    // SAFETY: forwarded to the caller.
    unsafe {
        gemm(
            m,
            n,
            k,
            destination.0,
            1,
            destination.1 as isize,
            add,
            left.0,
            left.2 as isize,
            left.1 as isize,
            right.0,
            right.2 as isize,
            right.1 as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
