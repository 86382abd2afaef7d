//! Threads that take the micro-batches of a step.
//!
//! A small model leaves most of a threaded kernel's time to handing out its pieces. Cutting the batch instead, and running
//! each micro-batch on one thread from its forward pass to its gradient, has a single meeting point a step.

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

/// Some threads, each a pool of its own: whatever runs on one finds a single thread there and stays on it.
#[derive(Debug)]
pub(super) struct Workers {
    pools: Vec<ThreadPool>,
}

impl Workers {
    /// No threads: everything stays with the caller, and kernels use all threads of the process.
    pub fn none() -> Self {
        Self { pools: Vec::new() }
    }

    /// `count` threads; none for a count below 2.
    pub fn new(count: usize) -> Result<Self, String> {
        let count = if count < 2 { 0 } else { count };
        let pool = |index: usize| {
            let builder = ThreadPoolBuilder::new().num_threads(1).thread_name(move |_| format!("worker-{index}"));
            builder.build().map_err(|error| error.to_string())
        };
        Ok(Self { pools: (0..count).map(pool).collect::<Result<_, _>>()? })
    }

    pub fn count(&self) -> usize {
        self.pools.len()
    }

    /// Does the work of each job, one a thread at the same time; where there are more jobs than threads, in rounds. The
    /// results are in the order of the jobs.
    pub fn run<J: Send, R: Send>(&self, jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
        if self.pools.is_empty() {
            return jobs.into_iter().map(work).collect();
        }
        let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
        let mut tasks = jobs.into_iter().zip(&mut results);
        loop {
            let round: Vec<(J, &mut Option<R>)> = tasks.by_ref().take(self.pools.len()).collect();
            if round.is_empty() {
                break;
            }
            spread(&self.pools, round, &work);
        }
        results.into_iter().flatten().collect()
    }
}

/// Starts the first task on the first pool, then the others on the others, and waits for all. There are no
/// more tasks than pools.
fn spread<J: Send, R: Send>(
    pools: &[ThreadPool],
    mut tasks: Vec<(J, &mut Option<R>)>,
    work: &(impl Fn(J) -> R + Sync),
) {
    let (Some((pool, others)), false) = (pools.split_first(), tasks.is_empty()) else { return };
    let rest = tasks.split_off(1);
    pool.in_place_scope(|scope: &Scope<'_>| {
        for (job, result) in tasks {
            scope.spawn(move |_| *result = Some(work(job)));
        }
        spread(others, rest, work);
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn jobs_run_at_the_same_time_each_on_a_thread_of_its_own_and_keep_their_order() {
        let workers = Workers::new(3).unwrap();
        let meeting = Barrier::new(3);
        let results = workers.run(vec![3, 1, 2], |job| {
            // Passes only if all three are there.
            meeting.wait();
            (job * 10, rayon::current_num_threads())
        });
        assert_eq!(results, [(30, 1), (10, 1), (20, 1)]);
        assert_eq!(workers.run(vec![7], |job| job), [7]);
        assert!(workers.run(Vec::<u8>::new(), |job| job).is_empty());
        // Regression: of more jobs than threads, those at the end were dropped.
        assert_eq!(workers.run((0..10).collect(), |job| job + 1), (1..11).collect::<Vec<_>>());
        assert_eq!(Workers::none().run(vec![1, 2], |job| job + 1), [2, 3]);
    }

    #[test]
    fn one_worker_is_none() {
        assert_eq!(Workers::new(1).unwrap().count(), 0);
    }
}
