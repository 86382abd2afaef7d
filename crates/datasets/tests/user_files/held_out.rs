//! What is held out of the user's files.

use datasets::text::{Corpus, CorpusOptions, HeldOut, TextError};

use crate::Folder;

#[test]
fn validation_files_are_held_out_and_not_trained_on() {
    let folder = Folder::new();
    folder.write("data/a.txt", "train");
    let held_out = folder.write("data/valid.txt", "valid");
    let options = CorpusOptions { held_out: HeldOut::Paths(vec![held_out.clone()]), ..CorpusOptions::default() };
    let corpus = Corpus::open(&[folder.path("data")], &options).unwrap();
    assert_eq!(corpus.train.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["train"]);
    assert_eq!(corpus.held_out.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["valid"]);
    assert_eq!(
        corpus.to_string(),
        "text: 2 file(s)\ntraining: 1 documents, 5 bytes\n\
         held out: 1 documents, 5 bytes (1 validation file(s), 1 of them left out of the training data)"
    );
    let error = Corpus::open(&[held_out], &options).unwrap_err();
    assert!(matches!(error, TextError::NothingToTrainOn), "{error}");
    let options = CorpusOptions { held_out: HeldOut::Paths(Vec::new()), ..CorpusOptions::default() };
    assert!(matches!(Corpus::open(&[folder.path("data")], &options), Err(TextError::NoPaths)));
}

#[test]
fn a_tenth_is_held_out_by_default() {
    let folder = Folder::new();
    let lines: String = (0..500).map(|i| format!("{{\"text\": \"document number {i:03}\"}}\n")).collect();
    let path = folder.write("a.jsonl", lines);
    let corpus = Corpus::open(&[&path], &CorpusOptions::default()).unwrap();
    assert_eq!((corpus.train.len(), corpus.held_out.len()), (450, 50));
    assert_eq!(Corpus::open(&[&path], &CorpusOptions::default()).unwrap(), corpus);
    let single = folder.write("b.txt", "0123456789".repeat(10));
    let corpus = Corpus::open(&[single], &CorpusOptions::default()).unwrap();
    assert_eq!((corpus.train[0].text.len(), corpus.held_out[0].text.len()), (90, 10));
}

#[test]
fn an_impossible_share_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    let bad = folder.write("a.txt", b"\xFF");
    let options = CorpusOptions { held_out: HeldOut::Fraction(1.0), ..CorpusOptions::default() };
    let error = Corpus::open(&[bad], &options).unwrap_err();
    assert!(matches!(error, TextError::HeldOutFraction { .. }), "{error}");
}
