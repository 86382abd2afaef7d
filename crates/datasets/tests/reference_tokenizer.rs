//! Tokenizers against recorded answers of the Python library: every `*_expected.json` with its `*.json` beside it.
//!
//! The folder `tests/reference` holds three small tokenizers. Set `ANCRE_REFERENCE_DIR` to a folder with another
//! `tokenizer/` in it to check those instead.

use std::{env, fs, path::PathBuf};

use datasets::text::{Corpus, Document, IGNORE, RowMode, Rows, SpecialTokens, Tokenizer, TokenizerSpec};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    ids_with_special: Vec<u32>,
    tokens: Vec<String>,
    decoded_keep_special: String,
    decoded_skip_special: String,
}

/// Calls `check` with every recorded case and its tokenizer; prints how many there were.
fn for_each_case(mut check: impl FnMut(&Tokenizer, &Case, &str)) {
    let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "tokenizer");
    let mut expected_files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with("_expected.json"))
        .collect();
    expected_files.sort();
    let mut cases = 0;
    for path in &expected_files {
        let name = path.file_name().unwrap().to_string_lossy().replace("_expected.json", "");
        let tokenizer =
            TokenizerSpec::File(folder.join(format!("{name}.json"))).load(&Corpus::default(), None).unwrap();
        let expected: Expected = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        for (number, case) in expected.cases.iter().enumerate() {
            check(&tokenizer, case, &format!("{name}, case {number}, {:?}", case.text));
        }
        cases += expected.cases.len();
    }
    println!("{cases} cases of {} tokenizers in {}", expected_files.len(), folder.display());
    assert!(cases > 0, "no case in {}", folder.display());
}

#[test]
fn reference_ids_without_special_tokens() {
    for_each_case(|tokenizer, case, place| {
        assert_eq!(tokenizer.encode(&case.text).unwrap(), case.ids, "{place}");
    });
}

#[test]
fn reference_ids_with_special_tokens() {
    for_each_case(|tokenizer, case, place| {
        assert_eq!(tokenizer.encode_with_special_tokens(&case.text).unwrap(), case.ids_with_special, "{place}");
    });
}

#[test]
fn reference_tokens() {
    for_each_case(|tokenizer, case, place| {
        let tokens: Vec<String> = case.ids.iter().map(|&id| tokenizer.token(id).unwrap()).collect();
        assert_eq!(tokens, case.tokens, "{place}");
    });
}

#[test]
fn reference_decoded_texts() {
    for_each_case(|tokenizer, case, place| {
        let keep = tokenizer.decode(&case.ids, SpecialTokens::Keep).unwrap();
        assert_eq!(keep, case.decoded_keep_special, "{place}");
        let skip = tokenizer.decode(&case.ids, SpecialTokens::Skip).unwrap();
        assert_eq!(skip, case.decoded_skip_special, "{place}");
    });
}

#[test]
fn reference_bytes_add_up() {
    for_each_case(|tokenizer, case, place| {
        let encoded = tokenizer.encode_counted(&case.text).unwrap();
        // Tokenizers may drop a text altogether, for example white space.
        let expected = if case.ids.is_empty() { 0 } else { case.text.len() };
        assert_eq!(encoded.bytes.iter().map(|&b| b as usize).sum::<usize>(), expected, "{place}");
    });
}

/// Many texts at once, as rows are built from them: each target of a packed row is the next token of some text.
#[test]
fn reference_ids_in_packed_rows() {
    let mut by_tokenizer: Vec<(String, Vec<Document>, Vec<u32>)> = Vec::new();
    for_each_case(|tokenizer, case, place| {
        let file = tokenizer.provenance().to_string();
        if by_tokenizer.last().is_none_or(|(last, ..)| *last != file) {
            by_tokenizer.push((file, Vec::new(), Vec::new()));
        }
        let Some((_, documents, ids)) = by_tokenizer.last_mut() else { unreachable!() };
        documents.push(Document { name: place.to_owned(), text: case.text.clone() });
        ids.extend(&case.ids);
        ids.extend(tokenizer.end_of_text());
    });
    for (file, documents, ids) in by_tokenizer {
        let tokenizer = TokenizerSpec::File(file.clone().into()).load(&Corpus::default(), None).unwrap();
        let rows = Rows::build(&documents, &tokenizer, RowMode::Packed, 7).unwrap();
        let targets: Vec<u32> = rows
            .evaluation_batches(3)
            .unwrap()
            .flat_map(|batch| batch.targets)
            .filter(|&target| target != IGNORE)
            .map(|target| target as u32)
            .collect();
        // Without an end of text there is nothing before the first token that could predict it.
        let first = usize::from(tokenizer.end_of_text().is_none());
        assert_eq!(targets, ids[first..], "{file}");
    }
}
