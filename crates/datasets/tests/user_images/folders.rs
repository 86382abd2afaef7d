use std::{io::Cursor, path::PathBuf};

use datasets::images::{ImageError, ImageOptions};
use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};

use crate::{Folder, error, everything, load, open, value};

fn encode(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

pub fn png(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    encode(RgbImage::from_pixel(width, height, Rgb(colour)), ImageFormat::Png)
}

fn two_classes() -> Folder {
    let folder = Folder::new();
    folder.write("dog/a.png", png(4, 4, [1, 2, 3]));
    folder.write("cat/deep/b.png", png(4, 4, [4, 5, 6]));
    folder.write("cat/a.png", png(4, 4, [7, 8, 9]));
    folder
}

#[test]
fn each_folder_is_a_class() {
    let folder = two_classes();
    folder.write("cat/notes.txt", "not a picture");
    folder.write("cat/.hidden.png", "not read");
    folder.write(".hidden/a.png", "not read");
    folder.write("readme.md", "not a class");
    let data = open(folder.root());
    assert_eq!(data.train.class_names(), ["cat", "dog"]);
    assert_eq!((data.train.labels(), data.train.shape()), (&[0, 0, 1][..], [3, 4, 4]));
    let colours: Vec<f32> = (0..3).map(|i| data.train.image(i)[16]).collect();
    assert_eq!(colours, [8, 5, 2].map(value));
    assert!(data.train.source().contains("(1 other files passed over)"), "{}", data.train.source());
    assert!(data.train.flips_make_sense());
}

/// A pipe that nobody writes to was opened, and waited for without end.
#[cfg(unix)]
#[test]
fn a_pipe_among_the_pictures_is_passed_over() {
    let folder = two_classes();
    let made = std::process::Command::new("mkfifo").arg(folder.root().join("cat/pipe.png")).status().unwrap();
    assert!(made.success());
    assert_eq!(open(folder.root()).train.len(), 3);
}

#[test]
fn a_folder_with_two_sets_is_refused() {
    let folder = two_classes();
    folder.write("train-images-idx3-ubyte", "");
    folder.write("data_batch_1.bin", "");
    let message = load(folder.root(), &everything()).unwrap_err().to_string();
    assert!(message.contains("train-images-idx3-ubyte") && message.contains("data_batch_1.bin"), "{message}");
}

#[test]
fn formats_and_colours_may_be_mixed() {
    let folder = Folder::new();
    folder.write("a/1.PNG", encode(GrayImage::from_pixel(4, 4, Luma([50])), ImageFormat::Png));
    folder.write("a/2.bmp", encode(RgbImage::from_pixel(4, 4, Rgb([50, 60, 70])), ImageFormat::Bmp));
    folder.write("a/3.webp", encode(RgbaImage::from_pixel(4, 4, Rgba([50, 60, 70, 0])), ImageFormat::WebP));
    folder.write("a/4.jpeg", encode(RgbImage::from_pixel(4, 4, Rgb([128; 3])), ImageFormat::Jpeg));
    // The content decides, not the name.
    folder.write("a/5.jpg", png(4, 4, [50, 60, 70]));
    let images = open(folder.root()).train;
    let colour = |i: u32| [0, 16, 32].map(|at| images.image(i)[at]);
    assert_eq!(colour(0), [50, 50, 50].map(value));
    assert_eq!(colour(1), [50, 60, 70].map(value));
    assert_eq!(colour(2), [1.0; 3]);
    assert!(colour(3).iter().all(|v| (v - value(128)).abs() < 0.02));
    assert_eq!(colour(4), [50, 60, 70].map(value));
}

#[test]
fn a_size_cuts_the_middle_out_and_mixed_sizes_need_one() {
    let folder = two_classes();
    let other = folder.write("dog/b.png", png(6, 4, [1, 2, 3]));
    let (found, message) = error(folder.root(), &other);
    assert!(matches!(found, ImageError::MixedSizes { .. }), "{message}");
    assert!(message.contains("a.png is 4x4") && message.contains("b.png is 6x4"), "{message}");
    let options = ImageOptions { size: Some(2), channels: Some(1), ..everything() };
    let data = load(folder.root(), &options).unwrap();
    assert_eq!((data.train.len(), data.train.shape()), (4, [1, 2, 2]));
    assert!(data.train.source().contains("resized to 2x2 with a triangle filter"), "{}", data.train.source());
}

/// A camera that is held upright stores a picture that lies on its side, with a note (EXIF orientation 6).
#[test]
fn turned_photographs_are_set_upright() {
    let lying = RgbImage::from_fn(16, 16, |x, _| Rgb([if x < 8 { 250 } else { 5 }; 3]));
    let jpeg = encode(lying, ImageFormat::Jpeg);
    let tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let note = [&[0xFF, 0xE1, 0, 2 + 6 + tiff.len() as u8][..], b"Exif\0\0", tiff].concat();
    let folder = Folder::new();
    folder.write("a/plain.jpg", &jpeg);
    folder.write("a/turned.jpg", [&jpeg[..2], &note, &jpeg[2..]].concat());
    let images = open(folder.root()).train;
    let corners = |i: u32| [0, 15, 15 * 16].map(|at| images.image(i)[at] > 0.0);
    assert_eq!(corners(0), [true, false, true]); // bright on the left
    assert_eq!(corners(1), [true, true, false]); // bright above
}

#[test]
fn pictures_of_one_size_must_be_square() {
    let folder = Folder::new();
    let path = folder.write("a/a.png", png(6, 4, [0; 3]));
    assert!(matches!(error(folder.root(), &path).0, ImageError::Shape { .. }));
}

#[test]
fn train_and_val_are_two_sides() {
    let folder = Folder::new();
    folder.write("train/cat/a.png", png(4, 4, [1; 3]));
    folder.write("train/dog/a.png", png(4, 4, [2; 3]));
    folder.write("val/dog/a.png", png(4, 4, [3; 3]));
    let data = open(folder.root());
    assert_eq!((data.train.labels(), data.held_out.labels()), (&[0, 1][..], &[1][..]));
    assert_eq!(data.held_out.class_names(), ["cat", "dog"]);
    folder.write("val/fox/a.png", png(4, 4, [3; 3]));
    let missing: PathBuf = folder.path("train/fox");
    assert!(matches!(error(folder.root(), &missing).0, ImageError::NotFound { .. }));
}

#[test]
fn unreadable_pictures_are_named() {
    let folder = two_classes();
    let whole = png(4, 4, [1; 3]);
    for bytes in [&b"not a picture"[..], &whole[..whole.len() / 2], b""] {
        let path = folder.write("dog/bad.png", bytes);
        assert!(matches!(error(folder.root(), &path).0, ImageError::Picture { .. }));
    }
    // A BMP header that claims 2^30 x 2^30 points.
    let mut bmp = encode(RgbImage::new(2, 2), ImageFormat::Bmp);
    bmp[18..22].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    bmp[22..26].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    let path = folder.write("dog/bad.png", bmp);
    assert!(matches!(error(folder.root(), &path).0, ImageError::Picture { .. }));
}

#[test]
fn folders_without_pictures_are_refused() {
    let folder = two_classes();
    folder.write("empty/notes.txt", "none");
    let (found, message) = error(folder.root(), &folder.path("empty"));
    assert!(matches!(found, ImageError::Empty { .. }), "{message}");
    let folder = Folder::new();
    let (found, message) = error(folder.root(), folder.root());
    assert!(matches!(found, ImageError::Unrecognised { .. }), "{message}");
    assert!(message.contains("found: nothing"), "{message}");
    let file = folder.write("a.bin", "something");
    assert!(matches!(error(&file, &file).0, ImageError::Unrecognised { .. }));
    assert!(error(folder.root(), folder.root()).1.contains("found: a.bin"));
    let nowhere = folder.path("nowhere");
    assert!(matches!(error(&nowhere, &nowhere).0, ImageError::NotFound { .. }));
}
