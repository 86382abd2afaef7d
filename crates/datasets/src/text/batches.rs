//! Which rows make up a batch.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Rows, TextError};
use crate::EpochOrder;

/// The most tokens of a batch, some hundred times those of the largest batches in use: its lists take 2 GiB.
const MAX_TOKENS: usize = 1 << 28;

/// Whether batches of `batch_size` rows of `context` tokens can be held.
fn check(batch_size: usize, context: usize) -> Result<(), TextError> {
    match batch_size.checked_mul(context) {
        Some(0) => Err(TextError::EmptyBatch), // Rows have at least one token.
        Some(tokens) if tokens <= MAX_TOKENS => Ok(()),
        _ => Err(TextError::BatchTooLarge { rows: batch_size, context, maximum: MAX_TOKENS }),
    }
}

/// Some rows, flat and row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// `rows * context` token ids.
    pub inputs: Vec<i32>,
    /// `rows * context` targets: for each input the token that follows, or [`IGNORE`](super::IGNORE).
    pub targets: Vec<i32>,
    /// The numbers of the rows in [`Rows`], to name them when a batch goes wrong.
    pub row_numbers: Vec<u32>,
    /// Number of rows.
    pub rows: usize,
    /// Tokens in a row, T.
    pub context: usize,
    /// Targets that count: the divisor of a mean loss, and the weight of this batch in a larger one.
    pub target_tokens: usize,
    /// UTF-8 bytes of text that those targets stand for, for [`bits_per_byte`](super::bits_per_byte).
    pub target_bytes: u64,
}

impl Batch {
    fn new(rows: &Rows, row_numbers: Vec<u32>) -> Self {
        let size = row_numbers.len() * rows.context();
        let (mut inputs, mut targets) = (Vec::with_capacity(size), Vec::with_capacity(size));
        let (mut target_tokens, mut target_bytes) = (0, 0);
        for &number in &row_numbers {
            let (tokens, bytes) = rows.append_row(number, &mut inputs, &mut targets);
            target_tokens += tokens;
            target_bytes += bytes;
        }
        Self {
            inputs,
            targets,
            rows: row_numbers.len(),
            row_numbers,
            context: rows.context(),
            target_tokens,
            target_bytes,
        }
    }
}

/// The batches of a training run: a function of the rows, the batch size, the seed and the step.
///
/// Every epoch visits each row once, in the order of [`EpochOrder`]. Batches run on over the epochs without a gap: the
/// one in which an epoch ends takes the rest of it and the start of the next, so all batches are full. Nothing about
/// the position is stored, so a resumed run asks for its next step and several threads may ask for different ones.
///
/// With gradient accumulation over `n` micro-batches, micro-batch `i` of update `u` is `batch(u * n + i)`.
#[derive(Debug)]
pub struct BatchPlan {
    rows: Arc<Rows>,
    batch_size: usize,
    order: EpochOrder,
    /// The orders of the two epochs used last (a batch may need two): a shuffle costs as much as many batches.
    recent: Mutex<Vec<(u64, Arc<Vec<u32>>)>>,
}

impl BatchPlan {
    /// A plan over `rows` with `batch_size` rows a batch.
    ///
    /// # Errors
    /// [`TextError::EmptyBatch`] if `batch_size` is 0, [`TextError::BatchTooLarge`] if a batch has more than 2^28 tokens.
    pub fn new(rows: impl Into<Arc<Rows>>, batch_size: usize, seed: u64) -> Result<Self, TextError> {
        let rows = rows.into();
        check(batch_size, rows.context())?;
        Ok(Self { order: EpochOrder::new(rows.len(), seed), rows, batch_size, recent: Mutex::new(Vec::new()) })
    }

    /// The rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Rows in a batch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// How many epochs the first `steps` batches are: 1.5 is all rows once and half of them twice.
    pub fn epochs(&self, steps: u64) -> f64 {
        steps as f64 * self.batch_size as f64 / f64::from(self.rows.len())
    }

    /// Batch number `step`, from 0. Steps may be asked for in any order.
    pub fn batch(&self, step: u64) -> Batch {
        Batch::new(&self.rows, self.row_numbers(step))
    }

    /// The numbers of the rows of batch number `step`.
    pub fn row_numbers(&self, step: u64) -> Vec<u32> {
        // In 128 bits nothing overflows; no run reaches an epoch number beyond 64.
        let first = u128::from(step) * self.batch_size as u128;
        let rows = u128::from(self.rows.len());
        let mut numbers = Vec::with_capacity(self.batch_size);
        let mut epoch = (first / rows) as u64;
        let mut place = (first % rows) as usize;
        while numbers.len() < self.batch_size {
            let order = self.order_of(epoch);
            let wanted = self.batch_size - numbers.len();
            numbers.extend(order[place..].iter().take(wanted));
            (epoch, place) = (epoch.wrapping_add(1), 0);
        }
        numbers
    }

    fn order_of(&self, epoch: u64) -> Arc<Vec<u32>> {
        // A thread that panicked here left at worst fewer orders: they are only ever pushed whole.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, order)) = recent.iter().find(|(known, _)| *known == epoch) {
            return Arc::clone(order);
        }
        let order = Arc::new(self.order.permutation(epoch));
        if recent.len() == 2 {
            recent.remove(0);
        }
        recent.push((epoch, Arc::clone(&order)));
        order
    }
}

/// The batches of an evaluation: all rows once in their own order, the last batch shorter if they do not divide.
///
/// Because of that last one a mean over all targets has to weight each batch by [`Batch::target_tokens`].
#[derive(Clone, Debug)]
pub struct EvaluationBatches<'a> {
    rows: &'a Rows,
    batch_size: usize,
    next: u32,
}

impl Rows {
    /// All rows once in their own order, `batch_size` at a time. More than there are rows means all at once.
    ///
    /// # Errors
    /// [`TextError::EmptyBatch`] if `batch_size` is 0, [`TextError::BatchTooLarge`] if a batch has more than 2^28 tokens.
    pub fn evaluation_batches(&self, batch_size: usize) -> Result<EvaluationBatches<'_>, TextError> {
        check(batch_size.min(self.len() as usize), self.context())?;
        Ok(EvaluationBatches { rows: self, batch_size, next: 0 })
    }

    /// A sample of an evaluation: `count` of the [`Rows::evaluation_batches`], spread evenly over all rows, in their
    /// order. If there are `n` batches in all, the sample holds those in the middle of `count` equal parts of the list,
    /// numbers `floor((k + 1/2) * n / count)` for `k` from 0; if `count` is `n` or more, all of them. The others are not
    /// built.
    ///
    /// As in the whole evaluation, the last batch may be shorter.
    ///
    /// # Errors
    /// [`TextError::NoBatches`] if `count` is 0, and those of [`Rows::evaluation_batches`].
    pub fn spread_batches(&self, batch_size: usize, count: usize) -> Result<Vec<Batch>, TextError> {
        let batches = self.evaluation_batches(batch_size)?;
        if count == 0 {
            return Err(TextError::NoBatches);
        }
        let all = batches.len();
        if count >= all {
            return Ok(batches.collect());
        }
        // At most 2^32 batches: the product fits into 128 bits, and the quotient is less than `all`.
        let number = |k: usize| ((2 * k as u128 + 1) * all as u128 / (2 * count as u128)) as usize;
        Ok((0..count).filter_map(|k| batches.batch(number(k))).collect())
    }
}

impl EvaluationBatches<'_> {
    /// Batch number `number` of the whole evaluation, from 0, or `None` past the end.
    fn batch(&self, number: usize) -> Option<Batch> {
        let rows = self.rows.len() as usize;
        let start = number.checked_mul(self.batch_size).filter(|&start| start < rows)?;
        self.starting_at(start as u32)
    }

    fn starting_at(&self, start: u32) -> Option<Batch> {
        let left = self.rows.len() - start;
        let size = left.min(u32::try_from(self.batch_size).unwrap_or(u32::MAX));
        (size > 0).then(|| Batch::new(self.rows, (start..start + size).collect()))
    }
}

impl Iterator for EvaluationBatches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let batch = self.starting_at(self.next)?;
        self.next += batch.rows as u32; // `starting_at` stops at the last row, whose number is a u32.
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = ((self.rows.len() - self.next) as usize).div_ceil(self.batch_size);
        (left, Some(left))
    }
}

impl ExactSizeIterator for EvaluationBatches<'_> {}

#[cfg(test)]
mod tests;
