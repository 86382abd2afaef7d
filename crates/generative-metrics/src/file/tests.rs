use std::path::PathBuf;

use safetensors::tensor::TensorView;
use tempfile::TempDir;

use super::*;

/// A tensor as name, type, shape and bytes.
type Stored = (&'static str, Dtype, Vec<usize>, Vec<u8>);

fn f32s(name: &'static str, shape: [usize; 2], values: &[f32]) -> Stored {
    (name, Dtype::F32, shape.to_vec(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn stored(tensors: &[Stored]) -> (TempDir, PathBuf) {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (*name, TensorView::new(*dtype, shape.clone(), bytes).expect("the test's tensor is whole"))
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.safetensors");
    fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    (folder, path)
}

fn refused(tensors: &[Stored]) -> String {
    let (_folder, path) = stored(tensors);
    let message = FeatureSet::read(&path).unwrap_err().to_string();
    assert!(message.contains("set.safetensors"), "the file is not named: {message}");
    message
}

#[test]
fn every_float_type_is_read() {
    let values = [1.5_f32, -2.0, 0.25, 8.0];
    let types: [(Dtype, Vec<u8>); 4] = [
        (Dtype::F32, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        (Dtype::F64, values.iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect()),
        (Dtype::F16, values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect()),
        (Dtype::BF16, values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect()),
    ];
    for (dtype, bytes) in types {
        let (_folder, path) = stored(&[("features", dtype, vec![2, 2], bytes)]);
        let set = FeatureSet::read(&path).unwrap();
        assert_eq!(set, FeatureSet::new(Features::new(2, values.to_vec()).unwrap()), "{dtype:?}");
    }
}

#[test]
fn all_parts_are_read() {
    let features = f32s("features", [2, 1], &[0.0, 1.0]);
    let spatial = f32s("spatial", [2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let logits = f32s("logits", [2, 2], &[0.0, 0.0, 1000.0, -1000.0]);
    let other = f32s("other", [1, 1], &[f32::NAN]);
    let (_folder, path) = stored(&[features.clone(), spatial.clone(), logits, other]);
    let set = FeatureSet::read(&path).unwrap();
    assert_eq!(set.spatial.unwrap().row(1), [3.0, 4.0, 5.0]);
    assert_eq!(set.probabilities.unwrap().values(), [0.5, 0.5, 1.0, 0.0]);

    let probabilities = f32s("probabilities", [2, 2], &[0.25, 0.75, 1.0, 0.0]);
    let (_folder, path) = stored(&[features, spatial, probabilities]);
    assert_eq!(FeatureSet::read(&path).unwrap().probabilities.unwrap().values(), [0.25, 0.75, 1.0, 0.0]);
}

#[test]
fn what_is_wrong_is_named() {
    let features = || f32s("features", [2, 1], &[0.0, 1.0]);
    let message = refused(&[f32s("feature", [2, 1], &[0.0, 1.0]), f32s("a", [1, 1], &[0.0])]);
    assert!(message.ends_with("has no tensor `features`: it holds a, feature"), "{message}");
    let message = refused(&[]);
    assert!(message.ends_with("it holds no tensors"), "{message}");
    let message = refused(&[("features", Dtype::I32, vec![2, 1], vec![0; 8])]);
    assert!(message.contains("`features` has elements I32"), "{message}");
    let message = refused(&[("features", Dtype::F32, vec![2, 1, 1], vec![0; 8])]);
    assert!(message.contains("`features` has shape [2, 1, 1]"), "{message}");
    let message = refused(&[f32s("features", [2, 0], &[])]);
    assert!(message.contains("0 columns"), "{message}");
    let message = refused(&[f32s("features", [1, 2], &[0.0, 1.0])]);
    assert!(message.contains("1 rows are too few"), "{message}");
    let message = refused(&[f32s("features", [2, 2], &[0.0, 1.0, 2.0, f32::NAN])]);
    assert!(message.contains("`features`: row 1, column 1 is NaN"), "{message}");
    let huge = [1.0, 1e39].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
    let message = refused(&[("features", Dtype::F64, vec![2, 1], huge)]);
    assert!(message.contains("row 1, column 0 is inf"), "{message}");
    let message = refused(&[features(), f32s("probabilities", [2, 2], &[0.5, 0.5, 0.5, 0.6])]);
    assert!(message.contains("`probabilities`: row 1 is no row of probabilities: it sums to 1.1"), "{message}");
    let message = refused(&[features(), f32s("logits", [2, 2], &[0.5, f32::INFINITY, 0.5, 0.6])]);
    assert!(message.contains("`logits`: row 0, column 1 is inf"), "{message}");
    let message = refused(&[features(), f32s("logits", [1, 1], &[0.0]), f32s("probabilities", [1, 1], &[1.0])]);
    assert!(message.contains("both `probabilities` and `logits`"), "{message}");
    let message = refused(&[features(), f32s("spatial", [3, 1], &[0.0; 3])]);
    assert!(message.contains("`spatial` has 3 rows and `features` has 2"), "{message}");
}

#[test]
fn a_file_that_is_cut_is_refused_wherever_it_ends() {
    let (_folder, path) = stored(&[f32s("features", [2, 3], &[0.0; 6])]);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let message = FeatureSet::read(&path).unwrap_err().to_string();
        assert!(message.contains(&format!("({length} bytes) is not a whole safetensors file")), "{message}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let message = FeatureSet::read(Path::new("nowhere/set.safetensors")).unwrap_err().to_string();
    assert!(message.starts_with("cannot read nowhere/set.safetensors: "), "{message}");
}
