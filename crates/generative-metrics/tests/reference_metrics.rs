//! Every score against stored values of numpy and scipy.

use std::path::PathBuf;

use generative_metrics::{
    FeatureSet, Features, Manifold, ManifoldScores, Moments, Probabilities, Reference, frechet_distance,
    inception_score, score,
};
use reference_vectors::{Tensors, assert_close};

fn folder() -> PathBuf {
    reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "metrics")
}

fn tensors() -> Tensors {
    Tensors::read(&folder().join("metrics.safetensors"))
}

fn features(tensors: &Tensors, name: &str) -> Features {
    let tensor = tensors.get(name);
    Features::new(tensor.shape[1], tensor.f32s()).unwrap()
}

fn scalar(tensors: &Tensors, name: &str) -> f64 {
    let tensor = tensors.get(name);
    assert_eq!(tensor.values.len(), 1, "{name} is one number");
    tensor.values[0]
}

/// The manifest's tolerances, `1e-8 relative in f64, 1e-4 in f32` for example, as their first number.
fn tolerance(of: &str) -> f64 {
    let manifest = reference_vectors::manifest(&folder());
    let text = manifest["tolerance"][of].as_str().unwrap_or_else(|| panic!("no tolerance of {of}")).to_owned();
    text.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{of}: {text}"))
}

/// No value may be added to the file without a test that looks at it.
#[test]
fn reference_metrics_are_all_known() {
    const KNOWN: [&str; 23] = [
        "cov1",
        "cov2",
        "coverage",
        "coverage_b",
        "density",
        "density_b",
        "fid",
        "fid_singular",
        "is_mean50",
        "is_single",
        "is_splits50",
        "mu1",
        "mu2",
        "precision",
        "precision_b",
        "probs",
        "recall",
        "recall_b",
        "ref_features",
        "ref_radii_sq",
        "sample_features",
        "sample_features_b",
        "sample_radii_sq",
    ];
    let tensors = tensors();
    let unknown: Vec<&str> = tensors.names().filter(|name| !KNOWN.contains(name)).collect();
    assert!(unknown.is_empty(), "no test looks at {unknown:?}");
}

#[test]
fn reference_metrics_moments() {
    let tensors = tensors();
    for (set, mean, covariance) in [("ref_features", "mu1", "cov1"), ("sample_features", "mu2", "cov2")] {
        let moments = Moments::of(&features(&tensors, set));
        assert_eq!(moments.count(), tensors.get(set).shape[0]);
        // The manifest gives no tolerance: summing in another order changes a few units in the last place.
        assert_close(mean, moments.mean(), &tensors.get(mean).values, 1e-13, 0.0, 0.0);
        assert_close(covariance, moments.covariance(), &tensors.get(covariance).values, 1e-13, 0.0, 0.0);
    }
}

#[test]
fn reference_metrics_frechet_distance() {
    let tensors = tensors();
    let expected = scalar(&tensors, "fid");
    let [reference, samples] = ["ref_features", "sample_features"].map(|name| Moments::of(&features(&tensors, name)));
    let found = frechet_distance(&reference, &samples).unwrap();
    assert_close("fid", &[found], &[expected], tolerance("fid"), 0.0, 0.0);

    let parts = |mean, covariance, count| {
        Moments::from_parts(tensors.get(mean).values.clone(), tensors.get(covariance).values.clone(), count).unwrap()
    };
    let (reference, samples) = (parts("mu1", "cov1", reference.count()), parts("mu2", "cov2", samples.count()));
    let found = frechet_distance(&reference, &samples).unwrap();
    assert_close("fid of stored moments", &[found], &[expected], tolerance("fid"), 0.0, 0.0);
}

#[test]
fn reference_metrics_frechet_distance_of_singular_covariances() {
    let tensors = tensors();
    let first = |name, rows| {
        let whole = features(&tensors, name);
        Moments::of(&Features::new(whole.dimension(), whole.values()[..rows * whole.dimension()].to_vec()).unwrap())
    };
    let half = tensors.get("ref_features").shape[1] / 2;
    let found = frechet_distance(&first("ref_features", half), &first("sample_features", half + 1)).unwrap();
    let expected = scalar(&tensors, "fid_singular");
    println!("fid_singular is off by {:e}", (found - expected).abs());
    assert_close("fid_singular", &[found], &[expected], 0.0, 0.0, tolerance("fid_singular"));
}

#[test]
fn reference_metrics_inception_score() {
    let tensors = tensors();
    let given = tensors.get("probs");
    let probabilities = Probabilities::new(given.shape[1], given.values.clone()).unwrap();
    let logits: Vec<f64> = given.values.iter().map(|p| p.ln()).collect();
    let computed = Probabilities::from_logits(given.shape[1], &logits).unwrap();
    let allowed = tolerance("is_");
    for (what, probabilities) in [("probabilities", &probabilities), ("logits", &computed)] {
        for (name, split_size) in [("is_single", 5000), ("is_splits50", 50)] {
            let found = inception_score(probabilities, split_size).unwrap();
            let expected = &tensors.get(name).values;
            assert_close(&format!("{name} of {what}"), &found.splits, expected, allowed, 0.0, 0.0);
        }
        let found = inception_score(probabilities, 50).unwrap().mean();
        assert_close("is_mean50", &[found], &[scalar(&tensors, "is_mean50")], allowed, 0.0, 0.0);
    }
}

#[test]
fn reference_metrics_precision_recall_density_coverage() {
    let tensors = tensors();
    let manifold = |name| Manifold::new(features(&tensors, name), 3).unwrap();
    let reference = manifold("ref_features");
    for (set, suffix) in [("sample_features", ""), ("sample_features_b", "_b")] {
        let samples = manifold(set);
        let ManifoldScores { precision, recall, density, coverage } = reference.compare(&samples).unwrap();
        let found = [("precision", precision), ("recall", recall), ("density", density), ("coverage", coverage)];
        for (name, found) in found {
            let name = format!("{name}{suffix}");
            assert_eq!(found, scalar(&tensors, &name), "{name}");
        }
    }
    for (set, radii) in [("ref_features", "ref_radii_sq"), ("sample_features", "sample_radii_sq")] {
        assert_close(radii, manifold(set).squared_radii(), &tensors.get(radii).values, 1e-13, 0.0, 0.0);
    }
}

/// The same numbers through the function that does all at once.
#[test]
fn reference_metrics_scores() {
    let tensors = tensors();
    let set = |name| FeatureSet::new(features(&tensors, name));
    let reference = Reference::measure(&set("ref_features"), 3, "reference vectors", "none").unwrap();
    let mut samples = set("sample_features");
    let given = tensors.get("probs");
    let rows = samples.features.rows();
    let values = given.values.iter().copied().cycle().take(rows * given.shape[1]).collect();
    let probabilities = Probabilities::new(given.shape[1], values).unwrap();
    samples.probabilities = Some(probabilities.clone());
    samples.spatial = Some(samples.features.clone());

    let scores = score(&reference, &samples, 50).unwrap();
    assert_close("fid", &[scores.frechet_distance], &[scalar(&tensors, "fid")], tolerance("fid"), 0.0, 0.0);
    assert_eq!(scores.spatial_frechet_distance, None, "the reference set has no spatial features");
    let split_scores = inception_score(&probabilities, 50).unwrap();
    assert_eq!(scores.inception_score, Some((split_scores.mean(), split_scores.deviation())));
    let found = [scores.precision, scores.recall, scores.density, scores.coverage];
    let expected = ["precision", "recall", "density", "coverage"].map(|name| scalar(&tensors, name));
    assert_eq!(found, expected);
    assert_eq!(scores.protocol.samples, rows);
    assert_eq!(scores.protocol.references, tensors.get("ref_features").shape[0]);
}
