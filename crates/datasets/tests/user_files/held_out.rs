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

/// A file copied under another name is another file, but its text must not be trained on all the same.
#[test]
fn training_documents_equal_to_held_out_ones_are_left_out() {
    let folder = Folder::new();
    folder.write("data/a.txt", "train");
    folder.write("data/b.jsonl", "{\"text\": \"valid\"}\n{\"text\": \"more\"}\n{\"text\": \"valid\"}\n");
    let held_out = folder.write("valid.txt", "valid");
    let options = CorpusOptions { held_out: HeldOut::Paths(vec![held_out.clone()]), ..CorpusOptions::default() };
    let corpus = Corpus::open(&[folder.path("data")], &options).unwrap();
    assert_eq!(corpus.train.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["train", "more"]);
    assert_eq!(corpus.left_out_documents, 2);
    assert!(
        corpus.to_string().ends_with("\nleft out of the training data: 2 documents that are also held out"),
        "{corpus}"
    );
    let copy = folder.write("copy.txt", "valid");
    let error = Corpus::open(&[copy], &options).unwrap_err();
    assert!(matches!(error, TextError::NothingToTrainOn), "{error}");
}

#[test]
fn two_copies_of_a_single_text_both_lose_their_end() {
    let folder = Folder::new();
    let text = "0123456789".repeat(9) + "the end!";
    let paths = [folder.write("a.txt", &text), folder.write("b.txt", &text)];
    let corpus = Corpus::open(&paths, &CorpusOptions::default()).unwrap();
    // 196 bytes, a tenth is 19, half of that for each copy.
    assert_eq!(corpus.train.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), [&text[..89]; 2]);
    assert_eq!(corpus.held_out.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), [&text[89..]; 2]);
    assert_eq!(corpus.left_out_documents, 0);
}
