use datasets::images::{ImageKind, ImageOptions, ImagePlan, ImageSpec};

#[test]
fn digits_are_held_out_by_class() {
    let data = ImageSpec::parse("digits").unwrap().load(&ImageOptions::default()).unwrap();
    assert_eq!((data.train.len(), data.held_out.len()), (1618, 179));
    assert_eq!(data.train.shape(), [1, 8, 8]);
    assert_eq!(data.held_out.class_counts(), [18, 18, 18, 18, 18, 18, 18, 18, 17, 18]);
    assert!(data.train.attribution().is_none() && !data.train.flips_make_sense());
    for held_out in data.held_out.values().chunks(64) {
        assert!(data.train.values().chunks(64).all(|image| image != held_out));
    }
    let options = ImageOptions { expected_classes: Some(12), ..ImageOptions::default() };
    let message = ImageSpec::Digits.load(&options).unwrap_err().to_string();
    assert!(message.contains("12 classes") && message.contains("have 10 (0, 1, 2,"), "{message}");
}

/// Figures that docs/data.md states, and a checksum so that new versions of the crates cannot change the images, and
/// with them every measured loss, unseen.
#[test]
fn embedded_images_are_those_that_the_documentation_describes() {
    let everything = ImageOptions { held_out: 0.0, ..ImageOptions::default() };
    let digits = ImageSpec::Digits.load(&everything).unwrap().train;
    let emoji = ImageSpec::Twemoji.load(&everything).unwrap().train;
    assert_eq!((emoji.kind(), emoji.shape(), emoji.classes()), (ImageKind::Pictures, [3, 32, 32], 9));
    assert_eq!(emoji.class_counts(), [171, 388, 160, 131, 219, 85, 266, 224, 270]);
    assert_eq!([digits.fingerprint(), emoji.fingerprint()], [0x0B3C_8617, 0x1274_230D]);
    assert_eq!(emoji.attribution(), Some("Twemoji graphics, Twitter and contributors, CC-BY 4.0"));
    assert!(emoji.values().iter().all(|v| (-1.0..=1.0).contains(v)));
}

/// The grinning face comes first: yellow in the middle, white (the background) in the corners.
#[test]
fn emoji_are_in_colour_over_white() {
    let everything = ImageOptions { held_out: 0.0, ..ImageOptions::default() };
    let emoji = ImageSpec::Twemoji.load(&everything).unwrap().train;
    let point = |x: usize, y: usize| [0, 1, 2].map(|channel| emoji.image(0)[channel * 1024 + y * 32 + x]);
    assert_eq!(point(0, 0), [1.0; 3]);
    // 0xFFCC4D, the yellow of the faces, between the eyes.
    let yellow = [255_u8, 204, 77].map(crate::value);
    assert!(point(16, 8).iter().zip(yellow).all(|(a, b)| (a - b).abs() < 0.02), "{:?}", point(16, 8));
    let grey = ImageOptions { channels: Some(1), size: Some(16), ..everything };
    assert_eq!(ImageSpec::Twemoji.load(&grey).unwrap().train.shape(), [1, 16, 16]);
}

#[test]
fn the_same_seeds_give_the_same_batches() {
    let plan = |split, seed| {
        let options = ImageOptions { seed: split, ..ImageOptions::default() };
        ImagePlan::new(ImageSpec::Digits.load(&options).unwrap().train, 32, seed, true).unwrap()
    };
    assert_eq!(plan(0, 1).batch(60), plan(0, 1).batch(60));
    assert_ne!(plan(0, 1).batch(60), plan(0, 2).batch(60));
    assert_ne!(plan(0, 1).batch(60), plan(1, 1).batch(60));
}

#[test]
fn the_account_for_a_log_says_everything() {
    let data = ImageSpec::Twemoji.load(&ImageOptions::default()).unwrap();
    let text = data.to_string();
    for part in ["over white", "triangle filter", "3 x 32 x 32, 9 classes", "10.0% of each class", "CC-BY 4.0"] {
        assert!(text.contains(part), "{text}");
    }
}
