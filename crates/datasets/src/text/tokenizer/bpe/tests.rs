use std::fs;

use proptest::prelude::*;
use tempfile::tempdir;

use super::*;
use crate::text::{CacheOutcome, SpecialTokens, tokenizer::pieces::pieces};

fn documents(texts: &[&str]) -> Vec<Document> {
    texts.iter().map(|text| Document { name: String::new(), text: (*text).to_owned() }).collect()
}

/// Some text with words, contractions, digits, white space and letters of more than one byte.
fn sample() -> Vec<Document> {
    documents(&[
        "The quick brown fox jumps over the lazy dog.\nIt's the fox's day, isn't it? 1234 56 7890\n\n"
            .repeat(20)
            .as_str(),
        "d\u{e9}j\u{e0} vu \u{2014} \u{65E5}\u{672C}\u{8A9E} \u{1F600} d\u{e9}j\u{e0} vu\r\n\ttabs  and   spaces "
            .repeat(20)
            .as_str(),
    ])
}

fn tokenizer() -> Tokenizer {
    load(400, &sample(), None).unwrap()
}

fn outcome(tokenizer: &Tokenizer) -> &CacheOutcome {
    match tokenizer.provenance() {
        Provenance::Bpe { cache, .. } => cache,
        other => panic!("{other:?}"),
    }
}

#[test]
fn has_the_size_that_was_asked_for_and_compresses() {
    let tokenizer = load(330, &sample(), None).unwrap();
    assert_eq!(tokenizer.vocabulary_size(), 330);
    assert_eq!((tokenizer.end_of_text(), tokenizer.pad(), tokenizer.filler()), (Some(0), None, 0));
    let text = "The lazy fox's day";
    let encoded = tokenizer.encode_counted(text).unwrap();
    assert!(encoded.ids.len() < text.len() / 2, "{:?}", encoded.ids);
    assert_eq!(tokenizer.encode_with_special_tokens(text).unwrap(), encoded.ids);
}

#[test]
fn text_with_few_pairs_gives_a_smaller_vocabulary() {
    let tokenizer = load(1000, &documents(&["abcabc"]), None).unwrap();
    // a+b, ab+c, abc+abc does not occur twice.
    assert_eq!(tokenizer.vocabulary_size(), 259);
    assert_eq!(tokenizer.provenance().to_string(), "byte-level BPE of 1000 entries, trained on the training documents");
}

/// The trainer reserved memory for the entries asked for, here some hundred gigabytes.
#[test]
fn the_largest_vocabulary_takes_no_more_memory_than_its_text() {
    let tokenizer = load(i32::MAX as usize, &documents(&["abcabc"]), None).unwrap();
    assert_eq!(tokenizer.vocabulary_size(), 259);
    let tokenizer = load(i32::MAX as usize, &[], None).unwrap();
    assert_eq!(tokenizer.vocabulary_size(), 257);
}

#[test]
fn the_name_of_the_end_of_text_in_a_text_is_the_end_of_text() {
    let tokenizer = tokenizer();
    let encoded = tokenizer.encode_counted("a<|endoftext|>b").unwrap();
    assert_eq!((encoded.ids[1], encoded.bytes), (0, vec![1, 13, 1]));
    assert_eq!(tokenizer.decode(&encoded.ids, SpecialTokens::Skip).unwrap(), "ab");
}

/// The same text must give the same tokenizer on every machine: a cache file is no excuse.
#[test]
fn training_repeats_exactly_whatever_the_number_of_threads() {
    let first = train(400, &sample()).unwrap();
    for threads in [1, 2, 5] {
        let pool = tokenizers_pool(threads);
        for _ in 0..3 {
            assert_eq!(pool.install(|| train(400, &sample()).unwrap()), first, "{threads} threads");
        }
    }
}

#[test]
fn a_second_run_reads_what_the_first_one_stored() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("deep/er");
    let first = load(300, &sample(), Some(&dir)).unwrap();
    let CacheOutcome::Written(path) = outcome(&first) else { panic!("{:?}", outcome(&first)) };
    let stored = fs::read(path).unwrap();
    let second = load(300, &sample(), Some(&dir)).unwrap();
    assert_eq!(outcome(&second), &CacheOutcome::Read(path.clone()));
    assert_eq!(first.encode("the fox").unwrap(), second.encode("the fox").unwrap());
    // Another size or another text is another file.
    assert!(matches!(outcome(&load(301, &sample(), Some(&dir)).unwrap()), CacheOutcome::Written(_)));
    assert!(matches!(outcome(&load(300, &sample()[..1], Some(&dir)).unwrap()), CacheOutcome::Written(_)));
    assert_eq!(fs::read(path).unwrap(), stored);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "no temporary file is left");
}

#[test]
fn a_broken_cache_file_is_replaced_and_named() {
    let folder = tempdir().unwrap();
    let dir = folder.path();
    let first = load(300, &sample(), Some(dir)).unwrap();
    let CacheOutcome::Written(path) = outcome(&first) else { panic!() };
    let whole = fs::read_to_string(path).unwrap();
    // Cut short; another kind of file; too many entries; not text.
    let larger = train(310, &sample()).unwrap();
    let word_level = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":null,"post_processor":null,"decoder":null,
        "model":{"type":"WordLevel","vocab":{"<|endoftext|>":0,"a":299},"unk_token":"a"}}"#;
    let broken: [&[u8]; 5] =
        [&whole.as_bytes()[..whole.len() / 2], b"", word_level.as_bytes(), larger.as_bytes(), b"\xFF\xFE"];
    for contents in broken {
        fs::write(path, contents).unwrap();
        let again = load(300, &sample(), Some(dir)).unwrap();
        let CacheOutcome::Replaced(named, reason) = outcome(&again) else { panic!("{:?}", outcome(&again)) };
        assert_eq!(named, path);
        assert!(!reason.is_empty());
        assert!(again.provenance().to_string().contains("where the old file was unusable"));
        assert_eq!(fs::read_to_string(path).unwrap(), whole);
    }
}

#[test]
fn a_cache_that_cannot_be_written_does_not_stop_the_run() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let tokenizer = load(300, &sample(), Some(&file)).unwrap();
    assert!(matches!(outcome(&tokenizer), CacheOutcome::NotWritten(..)));
    assert_eq!(tokenizer.vocabulary_size(), 300);
}

fn tokenizers_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,8}",
        " {1,3}",
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("'s".to_owned()),
        Just("\u{A0}".to_owned()),
        Just("<|endoftext|>".to_owned()),
        "[0-9]{1,5}",
        ".{1,4}",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

#[test]
fn every_text_comes_back_and_its_bytes_are_counted() {
    let tokenizer = tokenizer();
    proptest!(|(text in any_text())| {
        let encoded = tokenizer.encode_counted(&text).unwrap();
        prop_assert_eq!(encoded.ids.len(), encoded.bytes.len());
        prop_assert_eq!(encoded.bytes.iter().sum::<u32>() as usize, text.len());
        prop_assert_eq!(tokenizer.decode(&encoded.ids, SpecialTokens::Keep).unwrap(), text);
    });
    proptest!(|(text in "[a-z .']{0,40}")| {
        // In ASCII every prefix of the ids decodes to as many bytes as are counted.
        let encoded = tokenizer.encode_counted(&text).unwrap();
        for end in 0..=encoded.ids.len() {
            let decoded = tokenizer.decode(&encoded.ids[..end], SpecialTokens::Keep).unwrap();
            prop_assert_eq!(decoded.len(), encoded.bytes[..end].iter().sum::<u32>() as usize);
        }
    });
}

#[test]
fn pieces_of_a_text_have_the_ids_of_the_whole() {
    let tokenizer = tokenizer();
    proptest!(|(text in any_text(), size in 1_usize..20)| {
        let whole = tokenizer.encode(&text).unwrap();
        let parts: Vec<u32> = pieces(&text, size)
            .into_iter()
            .flat_map(|piece| tokenizer.encode(piece).unwrap())
            .collect();
        prop_assert_eq!(parts, whole);
    });
}

/// Longer than a piece and than a group: the real constants, and the fast path against the library as it is.
#[test]
fn a_long_text_has_the_ids_that_the_library_gives() {
    let json = train(400, &sample()).unwrap();
    let library: tokenizers::Tokenizer = json.parse().unwrap();
    let text = "It's the lazy dog, d\u{e9}j\u{e0} vu  \n".repeat(80_000);
    let encoded = tokenizer().encode_counted(&text).unwrap();
    assert_eq!(encoded.ids, library.encode_fast(text.as_str(), false).unwrap().get_ids());
    assert_eq!(encoded.bytes.iter().map(|&b| b as usize).sum::<usize>(), text.len());
}
