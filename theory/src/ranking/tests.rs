use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use connection_layout::Layout;
use expect_test::expect;

use super::*;
use crate::{TargetLaw, Verdict};

fn small() -> RankingSettings {
    RankingSettings { pool: Pool::HiddenOnly, instances: 3, rates: vec![0.5, 0.25], ..RankingSettings::new(3, 2, 11) }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Ranking::measure(&small(), |_| ()).unwrap())
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn progress_counts_every_run_once() {
    let (calls, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let settings = small();
    Ranking::measure(&settings, |done| {
        calls.fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(done, Ordering::Relaxed);
    })
    .unwrap();
    let runs = settings.runs().unwrap();
    assert_eq!((runs, calls.into_inner(), sum.into_inner()), (24, 24, 24 * 25 / 2));
}

#[test]
fn classes_partition_the_pool_and_are_in_order() {
    let settings = RankingSettings { pool: Pool::All, ..small() };
    let ranking = Ranking::measure(&settings, |_| ()).unwrap();
    // 53 nets; two of them are empty (y = 0 and y = x), and their eight layouts are classes of their own.
    assert_eq!(ranking.classes().len(), 51 + 8);
    let members: Vec<usize> = ranking.classes().iter().flat_map(|class| class.members.clone()).collect();
    assert_eq!((members.len(), members.iter().collect::<HashSet<_>>().len()), (64, 64));
    for (number, class) in ranking.classes().iter().enumerate() {
        for &member in &class.members {
            let entry = &ranking.entries()[member];
            assert_eq!(entry.class, number);
            assert_eq!(entry.layout.reduced_net().unwrap().without_gaps(), class.net);
            assert_eq!(ranking.entry(&entry.layout), Some(entry));
        }
        let faster = |other: &&Class| other.summary.flow.median < class.summary.flow.median;
        let before: usize = ranking.classes().iter().filter(faster).map(|other| other.members.len()).sum();
        assert_eq!(class.flow_rank, before + 1);
        let fewer = |other: &&Class| other.summary.fewest_steps() < class.summary.fewest_steps();
        let before: usize = ranking.classes().iter().filter(fewer).map(|other| other.members.len()).sum();
        assert_eq!(class.descent_rank, before + 1);
    }
    assert!(ranking.by_descent().is_sorted_by_key(|class| class.descent_rank));
    let other_depth = Layout::parse("0:2", 4).unwrap();
    assert_eq!((ranking.entry(&other_depth), ranking.class_of(&other_depth)), (None, None));
}

#[test]
fn a_layout_is_measured_as_it_is_alone() {
    let settings = small();
    let ranking = Ranking::measure(&settings, |_| ()).unwrap();
    let layout = Layout::parse("0:1+1:2", 3).unwrap();
    let (target, weights) = settings.instance(2);
    let alone = Speed::measure(&settings, &layout, &target, &weights).unwrap();
    assert_eq!(ranking.entry(&layout).unwrap().speeds[2], alone);
}

#[test]
fn the_table_has_a_row_for_each_layout() {
    let settings = RankingSettings {
        pool: Pool::HiddenOnly,
        law: TargetLaw::NearIdentity,
        rates: vec![0.25],
        flow_time: 20.0,
        most_steps: 100,
        ..RankingSettings::new(2, 1, 3)
    };
    let mut table = Vec::new();
    Ranking::measure(&settings, |_| ()).unwrap().write_csv(&mut table).unwrap();
    // The two layouts of depth 2: W_2 W_1 from .01, and W_2 (W_1 + 1).
    expect![[r#"
        layout,class,alpha,kappa0,saddle_order,alive_layers,flow_median,flow_min,flow_max,steps_at_0.25,best_rate,fewest_steps,flow_rank,descent_rank
        0:1,1,1,1,1,1 2,3.15202,3.15202,3.15202,10,0.25,10,1,1
        none,2,0,0,2,,6.90031,6.90031,6.90031,27,0.25,27,2,2
    "#]].assert_eq(&String::from_utf8(table).unwrap());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let settings = RankingSettings { width: 0, ..small() };
    assert!(matches!(Ranking::measure(&settings, |_| ()), Err(RankingError::Number { .. })));
}

#[test]
fn statements_come_out() {
    let findings = verify::verify_on(1, 5);
    assert_eq!(findings.len(), verify::FINDINGS);
    for finding in findings {
        assert_ne!(finding.verdict, Verdict::Fails, "{finding:?}");
    }
}
