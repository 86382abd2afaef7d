use std::{collections::HashMap, path::Path};

use datasets::images::{ImageError, ImageKind, ImageOptions};
use half::{bf16, f16};
use npyz::WriterBuilder;
use safetensors::{Dtype, tensor::TensorView};

use crate::{Folder, error, everything, load, open};

/// Latents of `[n, 4, 2, 2]`.
pub fn latents(n: usize) -> Vec<f32> {
    (0..16 * n).map(|i| i as f32 / 8.0 - 1.0).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

type Tensor<'a> = (&'a str, Dtype, &'a [usize], &'a [u8]);

fn safetensors(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .map(|&(name, dtype, shape, data)| (name, TensorView::new(dtype, shape.to_vec(), data).unwrap()))
        .collect();
    safetensors::serialize(views, None).unwrap()
}

pub fn npy<T: npyz::AutoSerialize + Copy>(shape: &[u64], values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A file of `n` latents without labels.
pub fn one_tensor(n: usize) -> Vec<u8> {
    safetensors(&[("latents", Dtype::F32, &[n, 4, 2, 2], &bytes(&latents(n)))])
}

fn unscaled() -> ImageOptions {
    ImageOptions { latent_scale: 1.0, ..everything() }
}

fn latents_error(path: &Path) -> String {
    let (error, message) = error(path, path);
    assert!(matches!(error, ImageError::Latents { .. }), "{message}");
    message
}

#[test]
fn safetensors_are_read_and_scaled() {
    let folder = Folder::new();
    let labels: Vec<u8> = [2_i64, 0, 1].iter().flat_map(|label| label.to_le_bytes()).collect();
    let data = bytes(&latents(3));
    let path = folder.write(
        "a.safetensors",
        safetensors(&[("latents", Dtype::F32, &[3, 4, 2, 2], &data), ("labels", Dtype::I64, &[3], &labels)]),
    );
    let set = load(&path, &unscaled()).unwrap().train;
    assert_eq!((set.kind(), set.shape(), set.labels()), (ImageKind::Latents, [4, 2, 2], &[2, 0, 1][..]));
    assert_eq!(set.values(), latents(3));
    assert!(!set.flips_make_sense() && !set.clone().with_flips(true).flips_make_sense());
    let scaled = open(&path).train;
    assert_eq!(scaled.values()[5], latents(3)[5] * 0.18215);
    assert!(scaled.source().contains("times 0.18215: standard deviation 0.3"), "{}", scaled.source());
}

#[test]
fn every_element_type_is_read() {
    let folder = Folder::new();
    let values = latents(1);
    let half: Vec<u8> = values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
    let brain: Vec<u8> = values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect();
    // Eighths below 2 are exact in both.
    for (dtype, data) in [(Dtype::F16, half), (Dtype::BF16, brain)] {
        for (label_type, label) in [(Dtype::I32, &[3, 0, 0, 0][..]), (Dtype::U8, &[3])] {
            let tensors = [("latents", dtype, &[1, 4, 2, 2][..], &data[..]), ("labels", label_type, &[1], label)];
            let path = folder.write("a.safetensors", safetensors(&tensors));
            let set = load(&path, &unscaled()).unwrap().train;
            assert_eq!((set.values(), set.labels(), set.classes()), (&values[..], &[3][..], 4));
        }
    }
}

#[test]
fn numpy_files_are_read_with_the_labels_beside_them() {
    let folder = Folder::new();
    let path = folder.write("a.npy", npy(&[2, 4, 2, 2], &latents(2)));
    let set = load(&path, &unscaled()).unwrap().train;
    assert_eq!((set.values(), set.class_names()), (&latents(2)[..], &["unlabelled".to_owned()][..]));
    folder.write("a-labels.npy", npy(&[2], &[1_i64, 0]));
    assert_eq!(load(&path, &unscaled()).unwrap().train.labels(), [1, 0]);
    folder.write("a-labels.npy", npy(&[2], &[1_u8, 0]));
    assert_eq!(load(&path, &unscaled()).unwrap().train.labels(), [1, 0]);
    // The writer has no 16-bit floats: their file is that of 16-bit integers with another name.
    let halves: Vec<u16> = latents(2).iter().map(|&v| f16::from_f32(v).to_bits()).collect();
    let mut file = npy(&[2, 4, 2, 2], &halves);
    let at = file.windows(3).position(|bytes| bytes == b"<u2").unwrap();
    file[at + 1] = b'f';
    let path = folder.write("h.npy", file);
    assert_eq!(load(&path, &unscaled()).unwrap().train.values(), latents(2));
}

#[test]
fn cut_and_overlong_files_are_refused_with_both_sizes() {
    let folder = Folder::new();
    let data = bytes(&latents(2));
    let files = [
        ("a.safetensors", safetensors(&[("latents", Dtype::F32, &[2, 4, 2, 2], &data)])),
        ("a.npy", npy(&[2, 4, 2, 2], &latents(2))),
    ];
    for (name, file) in files {
        let whole = file.len() as u64;
        let path = folder.write(name, &file[..file.len() - 1]);
        let (found, message) = error(&path, &path);
        assert!(
            matches!(found, ImageError::Truncated { expected, found, .. } if expected == whole && found == whole - 1),
            "{message}"
        );
        folder.write(name, [&file[..], b"x"].concat());
        assert!(matches!(error(&path, &path).0, ImageError::TrailingBytes { expected, .. } if expected == whole));
        // At no length is there a panic or a success.
        for length in 0..file.len() {
            folder.write(name, &file[..length]);
            error(&path, &path);
        }
    }
}

#[test]
fn headers_that_claim_too_much_are_refused() {
    let folder = Folder::new();
    let path = folder.write("a.safetensors", [&u64::MAX.to_le_bytes()[..], b"{}"].concat());
    latents_error(&path);
    let header =
        br#"{"latents":{"dtype":"F32","shape":[4294967296,4,1024,1024],"data_offsets":[0,72057594037927936]}}"#;
    folder.write("a.safetensors", [&(header.len() as u64).to_le_bytes()[..], header].concat());
    assert!(matches!(error(&path, &path).0, ImageError::Truncated { .. }));
    let path = folder.write("a.npy", b"\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{}");
    latents_error(&path);
    for shape in ["(4294967296, 4294967296, 4294967296, 4)", "(1000000000, 4, 32, 32)"] {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let start = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..]].concat();
        folder.write("a.npy", [&start[..], header.as_bytes()].concat());
        let (found, message) = error(&path, &path);
        assert!(matches!(found, ImageError::Truncated { .. }), "{message}");
    }
}

#[test]
fn other_shapes_and_types_are_refused() {
    let folder = Folder::new();
    let path = folder.path("a.safetensors");
    let data = bytes(&latents(2));
    for shape in [&[2, 16][..], &[2, 4, 1, 4], &[2, 0, 2, 2], &[2, 4, 0, 0], &[2, 4, 2, 2, 1]] {
        let data = if shape.contains(&0) { &[][..] } else { &data };
        folder.write("a.safetensors", safetensors(&[("latents", Dtype::F32, shape, data)]));
        assert!(latents_error(&path).contains("[images, channels, side, side]"));
    }
    folder.write("a.safetensors", safetensors(&[("latents", Dtype::I32, &[2, 4, 2, 2], &data)]));
    assert!(latents_error(&path).contains("store F32"));
    folder.write("a.safetensors", safetensors(&[("latents", Dtype::F64, &[1, 4, 2, 2], &data)]));
    assert!(latents_error(&path).contains("F64"));
    folder.write("a.safetensors", safetensors(&[("moments", Dtype::F32, &[2, 4, 2, 2], &data)]));
    assert!(latents_error(&path).contains("found: moments"));
    folder.write("a.safetensors", safetensors(&[("latents", Dtype::F32, &[0, 4, 2, 2], &[])]));
    assert!(matches!(error(&path, &path).0, ImageError::Empty { .. }));
    folder.write("a.safetensors", safetensors(&[("latents", Dtype::F32, &[2, 4, 2, 2], &data)]));
    for options in [ImageOptions { size: Some(4), ..everything() }, ImageOptions { channels: Some(3), ..everything() }]
    {
        assert!(matches!(load(&path, &options), Err(ImageError::Latents { .. })));
    }
    let path = folder.write("a.npy", npy(&[1, 4, 2, 2], &[0.0_f64; 16]));
    assert!(latents_error(&path).contains("<f8"));
    let fortran = npyz::WriteOptions::<f32>::new().default_dtype().shape(&[1, 1, 1, 1]).order(npyz::Order::Fortran);
    let mut file = Vec::new();
    let mut writer = fortran.writer(&mut file).begin_nd().unwrap();
    writer.push(&0.0).unwrap();
    writer.finish().unwrap();
    let path = folder.write("a.npy", file);
    assert!(latents_error(&path).contains("Fortran"));
}

#[test]
fn values_that_are_no_numbers_are_refused_with_their_image() {
    let folder = Folder::new();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = latents(3);
        values[16 + 7] = bad;
        let path = folder.write("a.npy", npy(&[3, 4, 2, 2], &values));
        let (found, message) = error(&path, &path);
        assert!(matches!(found, ImageError::NotFinite { index: 1, .. }), "{message}");
    }
}

#[test]
fn labels_must_be_classes_and_as_many_as_latents() {
    let folder = Folder::new();
    let path = folder.write("a.npy", npy(&[2, 4, 2, 2], &latents(2)));
    let labels = folder.write("a-labels.npy", npy(&[2], &[0_i64, -1]));
    let (found, message) = error(&path, &labels);
    assert!(matches!(found, ImageError::LabelOutOfRange { index: 1, label: -1, .. }), "{message}");
    folder.write("a-labels.npy", npy(&[2], &[0, i64::MAX]));
    assert!(matches!(error(&path, &labels).0, ImageError::LabelOutOfRange { .. }));
    folder.write("a-labels.npy", npy(&[3], &[0_i64; 3]));
    assert!(matches!(error(&path, &labels).0, ImageError::LabelCount { labels: 3, images: 2, .. }));
    folder.write("a-labels.npy", npy(&[2, 1], &[0_i64; 2]));
    assert!(matches!(error(&path, &labels).0, ImageError::Latents { .. }));
    folder.write("a-labels.npy", npy(&[2], &[0.0_f32; 2]));
    assert!(matches!(error(&path, &labels).0, ImageError::Latents { .. }));
}
