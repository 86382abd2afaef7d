//! Rows that belong to sequences, each of which has one row of modulation (adaLN of DiT, Peebles and Xie 2023).

/// Sizes of modulated rows: `batch * length` rows of `width` elements, and `batch` rows of modulation. The rows of a
/// sequence follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences {
    /// Sequences in the batch.
    pub batch: usize,
    /// Rows of each sequence.
    pub length: usize,
    /// Elements of a row.
    pub width: usize,
}

impl Sequences {
    /// Elements of one sequence.
    pub(super) fn elements(&self) -> usize {
        self.length * self.width
    }

    /// Sequences that one task of about `elements` handles: whole ones, so that sums over a sequence do not depend on
    /// tasks.
    pub(super) fn per_task(&self, elements: usize) -> usize {
        (elements / self.elements().max(1)).max(1)
    }

    /// Checks the slices of a call by their lengths: those of rows, and those of modulation.
    pub(super) fn check(&self, operation: &str, rows: &[usize], modulation: &[usize]) {
        let fits = |lengths: &[usize], expected: usize| lengths.iter().all(|&length| length == expected);
        assert!(fits(rows, self.batch * self.elements()), "{operation}: rows fit {self:?}");
        assert!(fits(modulation, self.batch * self.width), "{operation}: one row of modulation a sequence of {self:?}");
    }

    /// Whether there is nothing to compute.
    pub(super) fn is_empty(&self) -> bool {
        self.batch * self.elements() == 0
    }
}
