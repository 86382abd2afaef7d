//! What must hold for any features.

use generative_metrics::{
    FeatureSet, Features, Manifold, MetricsError, Moments, Probabilities, Reference, Scores, frechet_distance,
    inception_score, score,
};
use proptest::prelude::*;

/// Rows of `dimension` features with entries in about -8..8.
fn features(dimension: usize, rows: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Features> {
    rows.prop_flat_map(move |rows| {
        prop::collection::vec(-8.0_f32..8.0, rows * dimension)
            .prop_map(move |values| Features::new(dimension, values).unwrap())
    })
}

/// Two sets in one space, with fewer and with more rows than dimensions.
fn pair() -> impl Strategy<Value = (Features, Features)> {
    (1_usize..=9).prop_flat_map(|dimension| (features(dimension, 4..=70), features(dimension, 4..=70)))
}

/// Entries of few bits, so that a small integer shift is exact in f32.
fn coarse(features: &Features, map: impl Fn(usize, f32) -> f32) -> Features {
    let dimension = features.dimension();
    let values = features.values().iter().enumerate();
    let values = values.map(|(i, value)| map(i % dimension, (value * 64.0).round() / 64.0)).collect();
    Features::new(dimension, values).unwrap()
}

fn distance(a: &Features, b: &Features) -> f64 {
    frechet_distance(&Moments::of(a), &Moments::of(b)).unwrap()
}

/// Rounding moves an eigenvalue by about 1e-15 of the largest, and the root of one near 0 by the root of this.
fn rounding(a: &Features, b: &Features) -> f64 {
    let trace = |features: &Features| -> f64 {
        let moments = Moments::of(features);
        (0..moments.dimension()).map(|i| moments.covariance()[i * (moments.dimension() + 1)]).sum()
    };
    2e-7 * (1.0 + trace(a) + trace(b))
}

fn permuted(features: &Features, order: &[usize]) -> Features {
    Features::new(features.dimension(), order.iter().flat_map(|&row| features.row(row).to_vec()).collect()).unwrap()
}

/// The reflection at the plane orthogonal to `normal`, in f64 and rounded at the end.
fn reflected(features: &Features, normal: &[f64]) -> Features {
    let square: f64 = normal.iter().map(|x| x * x).sum();
    let reflect = |row: &[f32]| -> Vec<f32> {
        let along: f64 = row.iter().zip(normal).map(|(&x, n)| f64::from(x) * n).sum();
        row.iter().zip(normal).map(|(&x, n)| (f64::from(x) - 2.0 * along / square * n) as f32).collect()
    };
    let values = features.values().chunks_exact(features.dimension()).flat_map(reflect).collect();
    Features::new(features.dimension(), values).unwrap()
}

fn all_scores(reference: &Features, samples: &Features) -> Scores {
    let reference = Reference::measure(&FeatureSet::new(reference.clone()), 3, "test", "none").unwrap();
    score(&reference, &FeatureSet::new(samples.clone()), 10).unwrap()
}

fn shares(scores: &Scores) -> [f64; 4] {
    [scores.precision, scores.recall, scores.density, scores.coverage]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_set_is_at_no_distance_of_itself((a, _) in pair()) {
        let found = distance(&a, &a);
        prop_assert!((0.0..=rounding(&a, &a)).contains(&found), "{found}");
    }

    #[test]
    fn the_distance_is_symmetric((a, b) in pair()) {
        let (there, back) = (distance(&a, &b), distance(&b, &a));
        prop_assert!((there - back).abs() <= rounding(&a, &b), "{there} and {back}");
    }

    #[test]
    fn a_common_shift_changes_no_distance((a, b) in pair(), shift in -20_i8..20) {
        let moved = |features: &Features| coarse(features, |column, x| x + f32::from(shift) * (column as f32 - 2.0));
        let kept = |features: &Features| coarse(features, |_, x| x);
        let (before, after) = (distance(&kept(&a), &kept(&b)), distance(&moved(&a), &moved(&b)));
        prop_assert!((before - after).abs() <= rounding(&a, &b), "{before} and {after}");
        // Exact differences are the same, and so are all shares.
        prop_assert_eq!(shares(&all_scores(&kept(&a), &kept(&b))), shares(&all_scores(&moved(&a), &moved(&b))));
    }

    #[test]
    fn a_common_reflection_changes_no_distance(
        (a, b) in pair(),
        normal in prop::collection::vec(0.1_f64..1.0, 9),
    ) {
        let normal = &normal[..a.dimension()];
        let (before, after) = (distance(&a, &b), distance(&reflected(&a, normal), &reflected(&b, normal)));
        // The reflected features are rounded to f32.
        prop_assert!((before - after).abs() <= 1e-5 * (1.0 + before) + 10.0 * rounding(&a, &b), "{before} and {after}");
    }

    #[test]
    fn the_order_of_rows_does_not_matter((a, b) in pair(), seed in any::<u64>()) {
        let order = |rows: usize| -> Vec<usize> {
            let mut order: Vec<usize> = (0..rows).collect();
            order.sort_by_key(|&row| (row as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            order
        };
        let (a2, b2) = (permuted(&a, &order(a.rows())), permuted(&b, &order(b.rows())));
        let (before, after) = (all_scores(&a, &b), all_scores(&a2, &b2));
        prop_assert_eq!(shares(&before), shares(&after));
        prop_assert!((before.frechet_distance - after.frechet_distance).abs() <= rounding(&a, &b), "{} and {}", before.frechet_distance, after.frechet_distance);
    }

    /// `||m1 - m2||^2 + sum (s1 - s2)^2` for diagonal covariances, some of the variances 0.
    #[test]
    fn axis_aligned_gaussians_have_a_closed_form(
        axes in prop::collection::vec((-5.0_f64..5.0, -5.0_f64..5.0, 0_u8..4, 0_u8..4, 0.0_f64..1.0), 1..12),
    ) {
        let dimension = axes.len();
        let gaussian = |mean: &dyn Fn(usize) -> f64, deviation: &dyn Fn(usize) -> f64| {
            let mut covariance = vec![0.0; dimension * dimension];
            (0..dimension).for_each(|i| covariance[i * (dimension + 1)] = deviation(i).powi(2));
            Moments::from_parts((0..dimension).map(mean).collect(), covariance, 1000).unwrap()
        };
        let deviations = |i: usize| (f64::from(axes[i].2) * axes[i].4, f64::from(axes[i].3));
        let first = gaussian(&|i| axes[i].0, &|i| deviations(i).0);
        let second = gaussian(&|i| axes[i].1, &|i| deviations(i).1);
        let expected: f64 = (0..dimension)
            .map(|i| (axes[i].0 - axes[i].1).powi(2) + (deviations(i).0 - deviations(i).1).powi(2))
            .sum();
        let found = frechet_distance(&first, &second).unwrap();
        prop_assert!((found - expected).abs() <= 1e-10 * (1.0 + expected), "{found}, expected {expected}");
    }

    #[test]
    fn shares_are_shares((a, b) in pair()) {
        let scores = all_scores(&a, &b);
        for share in [scores.precision, scores.recall, scores.coverage] {
            prop_assert!((0.0..=1.0).contains(&share));
        }
        prop_assert!((0.0..=a.rows() as f64 / 3.0).contains(&scores.density));
        prop_assert!(scores.frechet_distance >= 0.0);
        // A sample inside a ball is what precision, density and coverage all ask for.
        prop_assert_eq!(scores.precision > 0.0, scores.density > 0.0);
        prop_assert_eq!(scores.precision > 0.0, scores.coverage > 0.0);
        // Exchanging the sets exchanges precision and recall.
        let exchanged = all_scores(&b, &a);
        prop_assert_eq!((scores.precision, scores.recall), (exchanged.recall, exchanged.precision));
    }

    #[test]
    fn a_set_covers_itself((a, _) in pair()) {
        let scores = all_scores(&a, &a);
        prop_assert_eq!((scores.precision, scores.recall, scores.coverage), (1.0, 1.0, 1.0));
    }

    /// The radii and shares of plain loops, in whole numbers, for any number of columns and rows.
    #[test]
    fn balls_are_those_of_plain_loops(
        (dimension, values, split, k) in (1_usize..20, 1_usize..5).prop_flat_map(|(dimension, k)| {
            (k + 1..80, k + 1..80).prop_flat_map(move |(first, second)| {
                let values = prop::collection::vec(-9_i32..10, (first + second).max(2) * dimension);
                (Just(dimension), values, Just(first), Just(k))
            })
        })
    ) {
        let (first, second) = values.split_at(split * dimension);
        let rows = |of: &[i32]| -> Vec<Vec<i32>> { of.chunks_exact(dimension).map(<[i32]>::to_vec).collect() };
        let squared = |a: &[i32], b: &[i32]| -> i32 { a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum() };
        let radii = |of: &[Vec<i32>]| -> Vec<i32> {
            let radius = |i: usize| {
                let others = (0..of.len()).filter(|&j| j != i);
                let mut distances: Vec<i32> = others.map(|j| squared(&of[i], &of[j])).collect();
                distances.sort_unstable();
                distances[k - 1]
            };
            (0..of.len()).map(radius).collect()
        };
        let manifold = |of: &[i32]| {
            Manifold::new(Features::new(dimension, of.iter().map(|&x| x as f32).collect()).unwrap(), k).unwrap()
        };
        let (reference, samples) = (manifold(first), manifold(second));
        let (first, second) = (rows(first), rows(second));
        let (radii1, radii2) = (radii(&first), radii(&second));
        let as_f64 = |of: &[i32]| -> Vec<f64> { of.iter().copied().map(f64::from).collect() };
        prop_assert_eq!(reference.squared_radii(), as_f64(&radii1));
        prop_assert_eq!(samples.squared_radii(), as_f64(&radii2));

        let within = |i: usize, j: usize, radius: i32| squared(&first[i], &second[j]) <= radius;
        let inside: Vec<usize> =
            (0..second.len()).map(|j| (0..first.len()).filter(|&i| within(i, j, radii1[i])).count()).collect();
        let covered = (0..first.len()).filter(|&i| (0..second.len()).any(|j| within(i, j, radii1[i]))).count();
        let recalled = (0..first.len()).filter(|&i| (0..second.len()).any(|j| within(i, j, radii2[j]))).count();
        let (n1, n2) = (first.len() as f64, second.len() as f64);
        let scores = reference.compare(&samples).unwrap();
        prop_assert_eq!(scores.precision, inside.iter().filter(|&&balls| balls > 0).count() as f64 / n2);
        prop_assert_eq!(scores.density, inside.iter().sum::<usize>() as f64 / (k as f64 * n2));
        prop_assert_eq!(scores.coverage, covered as f64 / n1);
        prop_assert_eq!(scores.recall, recalled as f64 / n1);
    }

    #[test]
    fn inception_scores_lie_between_1_and_the_number_of_classes(
        logits in prop::collection::vec(-30.0_f64..30.0, 5 * 40),
        split_size in 1_usize..50,
    ) {
        let probabilities = Probabilities::from_logits(5, &logits).unwrap();
        let scores = inception_score(&probabilities, split_size).unwrap();
        prop_assert_eq!(scores.splits.len(), 40_usize.div_ceil(split_size));
        for score in &scores.splits {
            prop_assert!((1.0 - 1e-12..=5.0 + 1e-12).contains(score), "{score}");
        }
        prop_assert!(scores.deviation() >= 0.0);
    }
}

#[test]
fn an_inception_score_counts_the_classes_that_are_certain() {
    let certain: Vec<f64> = (0..4).flat_map(|i| (0..4).map(move |j| if i == j { 1.0 } else { 0.0 })).collect();
    let probabilities = Probabilities::new(4, certain).unwrap();
    let whole = inception_score(&probabilities, 4).unwrap();
    assert!((whole.mean() - 4.0).abs() < 1e-12 && whole.deviation() == 0.0);
    assert_eq!(inception_score(&probabilities, 1).unwrap().splits, [1.0; 4]);
    let uneven = inception_score(&probabilities, 3).unwrap();
    assert!((uneven.splits[0] - 3.0).abs() < 1e-12 && uneven.splits[1] == 1.0);
    assert!((uneven.mean() - 2.0).abs() < 1e-12 && (uneven.deviation() - 1.0).abs() < 1e-12);
}

/// The bits must not depend on how work is shared out.
#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let drawn = |seed: u32| {
        let value = |i: u32| ((i + seed).wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6;
        Features::new(150, (0..150 * 333).map(value).collect()).unwrap()
    };
    let (a, b) = (drawn(1), drawn(77_777));
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| all_scores(&a, &b))
    };
    let one = with(1);
    assert!(one.frechet_distance > 0.0);
    for threads in [2, 3, 7] {
        assert_eq!(with(threads), one, "{threads} threads");
    }
}

/// Sets whose covariances are 0, of rank 1, of extreme scale, or of fewer rows than dimensions.
#[test]
fn degenerate_sets_have_distances() {
    let constant = |value: f32| Features::new(3, vec![value; 30]).unwrap();
    assert_eq!(distance(&constant(1.0), &constant(3.0)), 12.0);
    let line = Features::new(3, (0..30).map(|i| (i / 3) as f32).collect()).unwrap();
    assert!(distance(&line, &line) < 1e-6);
    let trace = 3.0 * (0..10).map(|i| (f64::from(i) - 4.5).powi(2)).sum::<f64>() / 9.0;
    assert!((distance(&line, &constant(4.5)) - trace).abs() < 1e-9);

    let scales = [1e-44_f32, 1e-30, 1.0, 1e15, 1e38];
    let spread = |seed: usize| {
        let value = |i: usize| scales[i % 5] * (((i * i + seed) % 7) as f32 / 7.0);
        Features::new(5, (0..100).map(value).collect()).unwrap()
    };
    assert!(distance(&spread(1), &spread(2)).is_finite());
    let huge = Features::new(2, vec![f32::MAX, f32::MIN, f32::MIN, f32::MAX]).unwrap();
    assert!(distance(&huge, &huge).is_finite());
    let wide = Features::new(200, (0..600).map(|i| ((i * i) % 31) as f32).collect()).unwrap();
    assert!(distance(&wide, &wide) < 1e-6);
}

#[test]
fn misuse_is_an_error_that_names_the_numbers() {
    let features = |dimension, rows: usize| {
        Features::new(dimension, (0..rows * dimension).map(|i| (i % 5) as f32).collect()).unwrap()
    };
    let message = |error: MetricsError| error.to_string();
    assert!(message(Manifold::new(features(2, 3), 3).unwrap_err()).contains("3 rows are too few for k = 3"));
    assert!(message(Manifold::new(features(2, 3), 0).unwrap_err()).contains("k is 0"));
    assert!(message(Features::new(3, vec![0.0; 7]).unwrap_err()).contains("7 values"));
    assert!(message(Features::new(0, vec![]).unwrap_err()).contains("0 columns"));
    assert!(message(Features::new(1, vec![0.0, f32::INFINITY]).unwrap_err()).contains("row 1, column 0 is inf"));

    let (two, three) = (Manifold::new(features(2, 9), 2).unwrap(), Manifold::new(features(2, 9), 3).unwrap());
    assert!(message(two.compare(&three).unwrap_err()).contains("k = 2"));
    let reference = Reference::measure(&FeatureSet::new(features(2, 9)), 3, "x", "y").unwrap();
    let error = score(&reference, &FeatureSet::new(features(4, 9)), 10).unwrap_err();
    assert!(message(error).contains("dimension 2 and the samples of 4"));
    let error = score(&reference, &FeatureSet::new(features(2, 2)), 10).unwrap_err();
    assert!(message(error).contains("2 rows are too few for k = 3"));
    let error = Reference::measure(&FeatureSet::new(features(2, 9)), 3, " ", "y").unwrap_err();
    assert!(message(error).contains("extractor is not named"));

    assert!(message(Probabilities::new(2, vec![1.5, -0.5]).unwrap_err()).contains("class 1 has -0.5"));
    assert!(message(Probabilities::new(2, vec![0.5, 0.5, 3.0, 1.0]).unwrap_err()).contains("row 1"));
    assert!(message(Probabilities::new(2, vec![f64::NAN, 1.0]).unwrap_err()).contains("NaN"));
    assert!(Probabilities::new(2, vec![]).is_err());
    let probabilities = Probabilities::new(1, vec![1.0]).unwrap();
    assert!(message(inception_score(&probabilities, 0).unwrap_err()).contains("split size is 0"));

    let moments = |mean: &[f64], covariance: &[f64], count| {
        message(Moments::from_parts(mean.to_vec(), covariance.to_vec(), count).unwrap_err())
    };
    assert!(moments(&[0.0, 0.0], &[1.0], 9).contains("2 x 2 covariances, not 1"));
    assert!(moments(&[0.0, 0.0], &[1.0, 0.5, 0.0, 1.0], 9).contains("not symmetric"));
    assert!(moments(&[0.0], &[-1.0], 9).contains("variance 0 is -1"));
    assert!(moments(&[0.0], &[f64::NAN], 9).contains("NaN"));
    assert!(moments(&[0.0], &[1.0], 1).contains("at least 2"));
    assert!(moments(&[], &[], 9).contains("0 columns"));
}

#[test]
fn scores_survive_json() {
    let values = |seed: usize| -> Vec<f32> { (0..60).map(|i| ((i * seed) % 17) as f32).collect() };
    let mut set = FeatureSet::new(Features::new(3, values(5)).unwrap());
    set.spatial = Some(Features::new(2, values(7)[..40].to_vec()).unwrap());
    set.probabilities = Some(Probabilities::from_logits(2, &[0.5; 40]).unwrap());
    let reference = Reference::measure(&set, 3, "extractor", "bicubic").unwrap();
    let scores = score(&reference, &set, 7).unwrap();
    assert!(scores.spatial_frechet_distance.is_some_and(|distance| distance < 1e-6));
    let text = serde_json::to_string(&scores).unwrap();
    let read: Scores = serde_json::from_str(&text).unwrap();
    // serde_json may read a number one unit in the last place off.
    assert!((read.density / scores.density - 1.0).abs() < 1e-15, "{text}");
    assert_eq!(Scores { density: scores.density, ..read }, scores);
    let protocol = scores.protocol.to_string();
    assert_eq!(protocol, "20 samples against 20 references; features: extractor; resize: bicubic");
}
