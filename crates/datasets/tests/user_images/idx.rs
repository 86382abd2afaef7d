use datasets::images::{ImageError, ImageOptions, ImageSpec};

use crate::{Folder, error, everything, gzip, load, open, value};

/// The bytes of an IDX file.
pub fn idx(magic: u32, dimensions: &[u32], bytes: &[u8]) -> Vec<u8> {
    let words = [&[magic], dimensions].concat();
    words.iter().flat_map(|word| word.to_be_bytes()).chain(bytes.iter().copied()).collect()
}

/// `n` pictures of 4x4 points, picture i all i but for its first point, which is 200.
pub fn pictures(n: u8) -> Vec<u8> {
    (0..n).flat_map(|i| [&[200][..], &[i; 15]].concat()).collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("train-images-idx3-ubyte", idx(2051, &[6, 4, 4], &pictures(6)));
    folder.write("train-labels-idx1-ubyte", idx(2049, &[6], &[0, 1, 2, 0, 1, 2]));
    folder
}

#[test]
fn plain_and_compressed_files_are_read_and_test_files_held_out() {
    let folder = folder();
    folder.write("t10k-images-idx3-ubyte.gz", gzip(&idx(2051, &[2, 4, 4], &pictures(2))));
    folder.write("t10k-labels-idx1-ubyte.gz", gzip(&idx(2049, &[2], &[2, 0])));
    for spec in [format!("{}/", folder.root().display()), format!("idx:{}", folder.root().display())] {
        let data = ImageSpec::parse(&spec).unwrap().load(&ImageOptions::default()).unwrap();
        assert_eq!((data.train.len(), data.held_out.len(), data.train.shape()), (6, 2, [1, 4, 4]));
        assert_eq!(data.train.labels(), [0, 1, 2, 0, 1, 2]);
        assert_eq!(data.held_out.labels(), [2, 0]);
        assert_eq!(data.held_out.class_names(), ["0", "1", "2"]);
        assert_eq!(data.train.image(5)[..2], [value(200), value(5)]);
        assert_eq!(data.held_out_rule, "the test files t10k-images-idx3-ubyte.gz");
        assert!(!data.train.flips_make_sense());
    }
}

#[test]
fn one_file_is_known_by_its_first_number() {
    let folder = folder();
    let path = folder.path("train-images-idx3-ubyte");
    assert_eq!(open(&path).train.len(), 6);
    let options = ImageOptions { size: Some(2), channels: Some(3), ..everything() };
    assert_eq!(load(&path, &options).unwrap().train.shape(), [3, 2, 2]);
}

#[test]
fn without_test_files_a_share_is_held_out() {
    let options = ImageOptions { held_out: 0.5, ..ImageOptions::default() };
    let data = load(folder().root(), &options).unwrap();
    assert_eq!(data.held_out.class_counts(), [1, 1, 1]);
    assert_eq!(data.train.class_counts(), [1, 1, 1]);
}

#[test]
fn cut_files_are_refused_with_both_sizes() {
    let folder = folder();
    let bytes = idx(2051, &[6, 4, 4], &pictures(6)[..95]);
    let path = folder.write("train-images-idx3-ubyte", &bytes);
    let (found, message) = error(folder.root(), &path);
    assert!(matches!(found, ImageError::Truncated { expected: 112, found: 111, .. }), "{message}");
    folder.write("train-images-idx3-ubyte", gzip(&bytes));
    let (found, message) = error(folder.root(), &path);
    assert!(matches!(found, ImageError::Truncated { expected: 112, found: 111, .. }), "{message}");
    let whole = gzip(&idx(2051, &[6, 4, 4], &pictures(6)));
    folder.write("train-images-idx3-ubyte", &whole[..whole.len() - 12]);
    assert!(matches!(error(folder.root(), &path).0, ImageError::Gzip { .. }));
    for length in [0, 3, 4, 9] {
        folder.write("train-images-idx3-ubyte", &bytes[..length]);
        let (found, message) = error(folder.root(), &path);
        assert!(matches!(found, ImageError::Truncated { expected: 16, .. }), "{length}: {message}");
    }
    folder.write("train-images-idx3-ubyte", idx(2051, &[6, 4, 4], &pictures(7)));
    assert!(matches!(error(folder.root(), &path).0, ImageError::TrailingBytes { expected: 112, .. }));
}

/// Four numbers of 2^32 - 1 were once enough to ask for all memory.
#[test]
fn a_header_that_claims_too_much_is_refused_before_anything_is_allocated() {
    let folder = folder();
    for dimensions in [[u32::MAX; 3], [u32::MAX, 1, 1], [1 << 20, 100, 100]] {
        for compressed in [false, true] {
            let bytes = idx(2051, &dimensions, &[0; 100]);
            let bytes = if compressed { gzip(&bytes) } else { bytes };
            let path = folder.write("train-images-idx3-ubyte", bytes);
            let (found, message) = error(folder.root(), &path);
            assert!(matches!(found, ImageError::Truncated { .. } | ImageError::TooLarge { .. }), "{message}");
        }
    }
}

#[test]
fn images_beyond_the_limit_are_refused_with_their_size() {
    let options = ImageOptions { max_bytes: 383, ..everything() };
    let message = load(folder().root(), &options).unwrap_err().to_string();
    assert!(message.contains("takes 384 bytes") && message.contains("383"), "{message}");
    assert!(load(folder().root(), &ImageOptions { max_bytes: 384, ..everything() }).is_ok());
}

#[test]
fn a_wrong_first_number_is_refused() {
    let folder = folder();
    let path = folder.write("train-labels-idx1-ubyte", idx(2051, &[6], &[0; 6]));
    let (found, message) = error(folder.root(), &path);
    assert!(matches!(found, ImageError::Magic { expected: 2049, found: 2051, .. }), "{message}");
    assert!(message.contains("0x00000803 where 0x00000801"), "{message}");
}

#[test]
fn labels_must_fit_the_images() {
    let folder = folder();
    let path = folder.write("train-labels-idx1-ubyte", idx(2049, &[5], &[0; 5]));
    assert!(matches!(error(folder.root(), &path).0, ImageError::LabelCount { labels: 5, images: 6, .. }));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error(folder.root(), &path).0, ImageError::NotFound { .. }));
}

#[test]
fn a_test_label_that_was_never_trained_on_is_refused() {
    let folder = folder();
    folder.write("t10k-images-idx3-ubyte", idx(2051, &[2, 4, 4], &pictures(2)));
    let path = folder.write("t10k-labels-idx1-ubyte", idx(2049, &[2], &[0, 3]));
    let (found, message) = error(folder.root(), &path);
    assert!(matches!(found, ImageError::LabelOutOfRange { index: 1, label: 3, classes: 3, .. }), "{message}");
}

#[test]
fn shapes_without_points_or_not_square_are_refused() {
    let folder = folder();
    for dimensions in [[6, 0, 4], [6, 4, 0], [6, 2, 8]] {
        let bytes = if dimensions.contains(&0) { Vec::new() } else { pictures(6) };
        let path = folder.write("train-images-idx3-ubyte", idx(2051, &dimensions, &bytes));
        assert!(matches!(error(folder.root(), &path).0, ImageError::Shape { .. }));
    }
    // A size makes squares of the last ones.
    let options = ImageOptions { size: Some(2), ..everything() };
    assert_eq!(load(folder.root(), &options).unwrap().train.shape(), [1, 2, 2]);
    folder.write("train-labels-idx1-ubyte", idx(2049, &[0], &[]));
    let path = folder.write("train-images-idx3-ubyte", idx(2051, &[0, 4, 4], &[]));
    assert!(matches!(error(folder.root(), &path).0, ImageError::Empty { .. }));
}

#[test]
fn an_expected_number_of_classes_must_be_met() {
    let folder = folder();
    let options = |classes| ImageOptions { expected_classes: Some(classes), ..everything() };
    assert!(load(folder.root(), &options(3)).is_ok());
    let message = load(folder.root(), &options(10)).unwrap_err().to_string();
    assert!(message.contains("10 classes") && message.contains("have 3 (0, 1, 2)"), "{message}");
}
