use proptest::prelude::*;

use super::*;
use crate::text::{Document, IGNORE, RowMode, Tokenizer};

/// `count` packed rows of `context` bytes; the last one has a single target.
fn rows(count: usize, context: usize) -> Rows {
    // The end of text opens the stream and ends it: (count - 1) * context bytes give one target more than full rows.
    let text: String = ('a'..='z').cycle().take((count - 1) * context).collect();
    let document = Document { name: String::new(), text };
    let rows = Rows::build(&[document], &Tokenizer::bytes(), RowMode::Packed, context).unwrap();
    assert_eq!(rows.len() as usize, count);
    rows
}

#[test]
fn a_batch_is_its_rows_one_after_the_other() {
    let plan = BatchPlan::new(rows(7, 5), 3, 11).unwrap();
    for step in 0..9 {
        let batch = plan.batch(step);
        assert_eq!((batch.rows, batch.context), (3, 5));
        let (mut tokens, mut bytes) = (0, 0);
        for (place, &number) in batch.row_numbers.iter().enumerate() {
            let row = plan.rows().row(number).unwrap();
            assert_eq!(batch.inputs[place * 5..][..5], row.inputs);
            assert_eq!(batch.targets[place * 5..][..5], row.targets);
            tokens += row.target_tokens;
            bytes += row.target_bytes;
        }
        assert_eq!((batch.target_tokens, batch.target_bytes), (tokens, bytes));
        assert_eq!(batch.targets.iter().filter(|&&t| t != IGNORE).count(), tokens);
    }
}

#[test]
fn evaluation_goes_through_all_rows_in_order() {
    let rows = rows(7, 5);
    let batches: Vec<Batch> = rows.evaluation_batches(3).unwrap().collect();
    assert_eq!(batches.iter().map(|b| b.rows).collect::<Vec<_>>(), [3, 3, 1]);
    let numbers: Vec<u32> = batches.iter().flat_map(|b| b.row_numbers.clone()).collect();
    assert_eq!(numbers, (0..7).collect::<Vec<_>>());
    assert_eq!(batches.iter().map(|b| b.target_tokens as u64).sum::<u64>(), rows.stats().target_tokens);
    assert_eq!(batches.iter().map(|b| b.target_bytes).sum::<u64>(), rows.stats().target_bytes);
    assert_eq!(rows.evaluation_batches(3).unwrap().len(), 3);
    assert_eq!(rows.evaluation_batches(100).unwrap().map(|b| b.rows).collect::<Vec<_>>(), [7]);
    assert!(matches!(rows.evaluation_batches(0), Err(TextError::EmptyBatch)));
}

#[test]
fn a_batch_of_no_rows_is_refused() {
    assert!(matches!(BatchPlan::new(rows(3, 2), 0, 0), Err(TextError::EmptyBatch)));
}

/// An evaluation in one batch is refused for what it would hold, not for the number that asks for it.
#[test]
fn a_batch_that_cannot_be_held_is_refused() {
    let rows = rows(17, 1);
    let document = Document { name: String::new(), text: "abc".to_owned() };
    let long = Rows::build(&vec![document; 17], &Tokenizer::bytes(), RowMode::Document, MAX_TOKENS / 16).unwrap();
    assert_eq!(rows.evaluation_batches(usize::MAX).unwrap().len(), 1);
    for size in [17, usize::MAX] {
        assert!(matches!(long.evaluation_batches(size), Err(TextError::BatchTooLarge { rows: 17, .. })));
        assert!(matches!(long.spread_batches(size, 1), Err(TextError::BatchTooLarge { rows: 17, .. })));
    }
    assert!(long.evaluation_batches(16).is_ok());
    let error = BatchPlan::new(long, 17, 0).unwrap_err();
    assert_eq!(error.to_string(), "a batch of 17 rows of 16777216 tokens is too large: give at most 16 rows");
}

#[test]
fn epochs_count_rows() {
    let plan = BatchPlan::new(rows(8, 2), 4, 0).unwrap();
    assert_eq!(plan.epochs(0), 0.0);
    assert_eq!(plan.epochs(3), 1.5);
}

/// The largest step there is must not overflow.
#[test]
fn any_step_is_possible() {
    let plan = BatchPlan::new(rows(3, 2), 1000, 0).unwrap();
    assert_eq!(plan.batch(u64::MAX).rows, 1000);
}

#[test]
fn threads_see_the_same_batches() {
    let plan = BatchPlan::new(rows(50, 3), 7, 5).unwrap();
    let expected: Vec<Batch> = (0..40).map(|step| plan.batch(step)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (plan, expected) = (&plan, &expected);
            scope.spawn(move || {
                for i in 0..40 {
                    let step = (i * 13 + thread * 7) % 40;
                    assert_eq!(plan.batch(step), expected[step as usize]);
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_row_comes_once_an_epoch(count in 1_usize..40, batch in 1_usize..50, seed: u64) {
        let plan = BatchPlan::new(rows(count, 2), batch, seed).unwrap();
        let steps = (3 * count).div_ceil(batch) as u64;
        let numbers: Vec<u32> = (0..steps).flat_map(|step| plan.row_numbers(step)).collect();
        for epoch in 0..3 {
            let visited = &numbers[epoch * count..][..count];
            prop_assert_eq!(visited, &EpochOrder::new(count as u32, seed).permutation(epoch as u64)[..]);
        }
    }

    #[test]
    fn a_spread_is_the_middles_of_equal_parts(count in 1_usize..60, batch in 1_usize..12, wanted in 1_usize..70) {
        let rows = rows(count, 2);
        let all: Vec<Batch> = rows.evaluation_batches(batch).unwrap().collect();
        let spread = rows.spread_batches(batch, wanted).unwrap();
        if wanted >= all.len() {
            prop_assert_eq!(spread, all);
        } else {
            prop_assert_eq!(spread.len(), wanted);
            for (k, batch) in spread.into_iter().enumerate() {
                let middle = (k as f64 + 0.5) * all.len() as f64 / wanted as f64;
                // A half lies on a border only where it is exact; elsewhere rounding is far smaller than the distance.
                prop_assert_eq!(&batch, &all[(middle + 1e-9) as usize]);
            }
        }
    }

    /// Sizes beyond all bounds overflowed lists.
    #[test]
    fn any_batch_size_and_step_gives_a_batch_or_an_error(
        count in 1_usize..10,
        context in 1_usize..5,
        batch in prop_oneof![
            0_usize..50,
            (MAX_TOKENS + 1)..(MAX_TOKENS + 3),
            (usize::MAX - 3)..=usize::MAX,
            (usize::MAX / 2)..(usize::MAX / 2 + 4),
        ],
        step in prop_oneof![0_u64..9, (u64::MAX - 3)..=u64::MAX, any::<u64>()],
        wanted in prop_oneof![0_usize..9, (usize::MAX - 3)..=usize::MAX],
    ) {
        let rows = Arc::new(rows(count, context));
        match BatchPlan::new(Arc::clone(&rows), batch, 0) {
            Ok(plan) => {
                prop_assert!(batch > 0 && batch < 50);
                prop_assert_eq!(plan.batch(step).rows, batch);
                prop_assert!(plan.epochs(step).is_finite());
            }
            Err(TextError::EmptyBatch) => prop_assert_eq!(batch, 0),
            Err(error) => prop_assert!(matches!(error, TextError::BatchTooLarge { .. }) && batch > 50, "{}", error),
        }
        if batch > 0 {
            let total: usize = rows.evaluation_batches(batch).unwrap().map(|b| b.rows).sum();
            prop_assert_eq!(total, count);
        }
        match rows.spread_batches(batch, wanted) {
            Ok(batches) => prop_assert_eq!(batches.len(), wanted.min(count.div_ceil(batch))),
            Err(TextError::EmptyBatch) => prop_assert_eq!(batch, 0),
            Err(error) => prop_assert!(matches!(error, TextError::NoBatches) && wanted == 0, "{}", error),
        }
    }

    #[test]
    fn a_batch_does_not_depend_on_the_batches_before(
        count in 1_usize..40,
        batch in 1_usize..50,
        seed: u64,
        steps in prop::collection::vec(0_u64..100, 1..20),
    ) {
        let rows = Arc::new(rows(count, 2));
        let visited = BatchPlan::new(Arc::clone(&rows), batch, seed).unwrap();
        for step in steps {
            let fresh = BatchPlan::new(Arc::clone(&rows), batch, seed).unwrap();
            prop_assert_eq!(visited.batch(step), fresh.batch(step));
        }
    }
}
