use datasets::images::{ImageError, ImageOptions};

use crate::{Folder, error, everything, load, open, value};

/// A record with all red points 10, all green ones 20, all blue ones 30, the first red one 99.
fn record(labels: &[u8]) -> Vec<u8> {
    let planes = [[10; 1024], [20; 1024], [30; 1024]].concat();
    let mut record = [labels, &planes].concat();
    record[labels.len()] = 99;
    record
}

#[test]
fn the_ten_classes_are_read_from_batches() {
    let folder = Folder::new();
    folder.write("data_batch_1.bin", [record(&[3]), record(&[9])].concat());
    folder.write("data_batch_2.bin", record(&[0]));
    folder.write("test_batch.bin", record(&[8]));
    let data = open(folder.root());
    assert_eq!((data.train.len(), data.held_out.len(), data.train.shape()), (3, 1, [3, 32, 32]));
    assert_eq!(data.train.labels(), [3, 9, 0]);
    assert_eq!((data.train.class_names()[3].as_str(), data.held_out.labels()), ("cat", &[8][..]));
    let image = data.train.image(2);
    assert_eq!([image[0], image[1], image[1024], image[2048]], [99, 10, 20, 30].map(value));
    assert!(data.train.flips_make_sense());
    let grey = ImageOptions { channels: Some(1), size: Some(8), ..everything() };
    assert_eq!(load(folder.root(), &grey).unwrap().train.shape(), [1, 8, 8]);
}

#[test]
fn the_hundred_classes_take_the_fine_label() {
    let folder = Folder::new();
    folder.write("train.bin", [record(&[19, 99]), record(&[1, 0])].concat());
    let data = open(folder.root());
    assert_eq!((data.train.labels(), data.train.classes()), (&[99, 0][..], 100));
    assert_eq!(data.train.class_names()[99], "99");
    let names: String = (0..100).map(|i| format!("name {i}\n")).collect();
    folder.write("fine_label_names.txt", names + "\n");
    assert_eq!(open(folder.root()).train.class_names()[99], "name 99");
    folder.write("fine_label_names.txt", "one\ntwo\n");
    assert!(matches!(load(folder.root(), &everything()), Err(ImageError::ClassCount { expected: 100, found: 2, .. })));
}

#[test]
fn bad_files_are_refused() {
    let folder = Folder::new();
    let path = folder.write("data_batch_1.bin", &record(&[3])[..3000]);
    assert!(matches!(error(folder.root(), &path).0, ImageError::Truncated { expected: 3073, found: 3000, .. }));
    folder.write("data_batch_1.bin", [record(&[3]), record(&[10])].concat());
    let (found, message) = error(folder.root(), &path);
    assert!(matches!(found, ImageError::LabelOutOfRange { index: 1, label: 10, classes: 10, .. }), "{message}");
    folder.write("data_batch_1.bin", "");
    assert!(matches!(error(folder.root(), folder.root()).0, ImageError::Empty { .. }));
    // Only test images: there is nothing to train on.
    std::fs::remove_file(&path).unwrap();
    folder.write("test_batch.bin", record(&[8]));
    assert!(matches!(error(folder.root(), folder.root()).0, ImageError::Empty { .. }));
}
