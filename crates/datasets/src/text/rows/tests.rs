use proptest::prelude::*;

use super::*;
use crate::text::{Corpus, SpecialTokens, TokenizerSpec};

const END: i32 = 256;

fn documents(texts: &[&str]) -> Vec<Document> {
    texts.iter().map(|text| Document { name: String::new(), text: (*text).to_owned() }).collect()
}

fn build(texts: &[&str], mode: RowMode, context: usize) -> Rows {
    Rows::build(&documents(texts), &Tokenizer::bytes(), mode, context).unwrap()
}

fn ids(text: &str) -> Vec<i32> {
    text.bytes().map(i32::from).collect()
}

#[test]
fn packed_rows_run_over_the_documents() {
    let rows = build(&["abc", "de"], RowMode::Packed, 4);
    // Stream: E a b c E d e E, seven targets.
    assert_eq!(rows.len(), 2);
    let first = rows.row(0).unwrap();
    assert_eq!(first.inputs, [&[END][..], &ids("abc")].concat());
    assert_eq!(first.targets, [&ids("abc")[..], &[END]].concat());
    assert_eq!((first.target_tokens, first.target_bytes), (4, 3));
    let second = rows.row(1).unwrap();
    assert_eq!(second.inputs, [&[END][..], &ids("de"), &[END]].concat());
    assert_eq!(second.targets, [&ids("de")[..], &[END, IGNORE]].concat());
    assert_eq!((second.target_tokens, second.target_bytes), (3, 2));
    assert_eq!(rows.row(2), None);
    assert_eq!(
        rows.stats(),
        RowStats { documents: 2, target_tokens: 7, target_bytes: 5, ignored_targets: 1, ..RowStats::default() }
    );
}

/// The last target of a full window must not open a window of its own that has no target.
#[test]
fn packed_rows_that_divide_evenly_have_no_empty_last_row() {
    let rows = build(&["abc"], RowMode::Packed, 4);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows.stats().ignored_targets, 0);
}

#[test]
fn document_rows_hold_one_document_each() {
    let rows = build(&["ab", "abcd", "abcdefg"], RowMode::Document, 4);
    let short = rows.row(0).unwrap();
    assert_eq!(short.inputs, [&ids("ab")[..], &[END, END]].concat());
    assert_eq!(short.targets, [i32::from(b'b'), END, IGNORE, IGNORE]);
    assert_eq!((short.target_tokens, short.target_bytes), (2, 1));
    // Exactly T tokens: whole, but no room for the end of text.
    let exact = rows.row(1).unwrap();
    assert_eq!(exact.inputs, ids("abcd"));
    assert_eq!(exact.targets, [&ids("bcd")[..], &[IGNORE]].concat());
    let cut = rows.row(2).unwrap();
    assert_eq!((&cut.inputs, &cut.targets), (&exact.inputs, &exact.targets));
    let stats = rows.stats();
    assert_eq!((stats.truncated_documents, stats.truncated_tokens), (1, 3));
    assert_eq!((stats.target_tokens, stats.target_bytes, stats.ignored_targets), (8, 7, 4));
}

#[test]
fn rows_without_a_target_are_refused() {
    let tokenizer = Tokenizer::bytes();
    for (mode, least) in [(RowMode::Packed, 1), (RowMode::Document, 2)] {
        let error = Rows::build(&documents(&["abc"]), &tokenizer, mode, least - 1).unwrap_err();
        assert!(matches!(error, TextError::ContextTooShort { .. }), "{error}");
        assert!(Rows::build(&documents(&["abc"]), &tokenizer, mode, least).is_ok());
        let error = Rows::build(&[], &tokenizer, mode, 8).unwrap_err();
        assert!(matches!(error, TextError::NoRows { documents: 0 }), "{error}");
    }
}

#[test]
fn the_fingerprint_shows_every_change() {
    let texts = ["abc", "de"];
    let first = build(&texts, RowMode::Packed, 4).fingerprint();
    assert_eq!(build(&texts, RowMode::Packed, 4).fingerprint(), first);
    for other in [
        build(&["abd", "de"], RowMode::Packed, 4),
        build(&["abc", "df"], RowMode::Packed, 4),
        build(&["ab", "cde"], RowMode::Packed, 4),
        build(&["de", "abc"], RowMode::Packed, 4),
        build(&texts, RowMode::Packed, 5),
        build(&texts, RowMode::Document, 4),
    ] {
        assert_ne!(other.fingerprint(), first, "{other:?}");
    }
}

/// The same tokens in the same rows, but laid out in another mode or standing for other bytes.
#[test]
fn the_fingerprint_covers_what_is_beside_the_tokens() {
    let rows = build(&["abc", "de"], RowMode::Packed, 4);
    let change = |change: fn(&mut Rows)| {
        let mut other = rows.clone();
        change(&mut other);
        assert_ne!(other.fingerprint(), rows.fingerprint(), "{other:?}");
    };
    change(|rows| rows.mode = RowMode::Document);
    change(|rows| rows.context += 1);
    change(|rows| rows.filler += 1);
    change(|rows| rows.spans[1].target_bytes += 1);
    change(|rows| rows.spans[1].length -= 1);
    change(|rows| rows.spans[1].start -= 1);
    change(|rows| rows.tokens.push(7));
}

#[test]
fn figures_say_in_one_line_what_is_not_zero() {
    assert_eq!(build(&["abc"], RowMode::Packed, 4).stats().to_string(), "1 document, 4 targets, 0.750 bytes per token");
    let tokenizer = small_bpe(&["aaaa".to_owned()]);
    let rows = Rows::build(&documents(&["ab", "abcdefg", "c"]), &tokenizer, RowMode::Document, 4).unwrap();
    assert_eq!(
        rows.stats().to_string(),
        "3 documents, 6 targets, 0.667 bytes per token, 6 places without a target, 1 document cut to the row (3 tokens \
         lost)"
    );
    let skipped = RowStats { documents: 2, skipped_documents: 2, ..RowStats::default() };
    assert_eq!(skipped.to_string(), "2 documents, 0 targets, 2 documents too short for a target skipped");
}

/// An evaluation must not need the training text.
#[test]
fn held_out_rows_need_no_training_documents() {
    let texts = ["low lower lowest".to_owned(), "newer newest lower".to_owned()];
    let trained = small_bpe(&texts);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, trained.to_json().unwrap().unwrap()).unwrap();
    let read = TokenizerSpec::File(path).load(&Corpus::default(), None).unwrap();
    let held_out = documents(&["lowest newest", "a new lower"]);
    for mode in [RowMode::Packed, RowMode::Document] {
        let expected = Rows::build(&held_out, &trained, mode, 8).unwrap();
        let rows = Rows::build(&held_out, &read, mode, 8).unwrap();
        assert_eq!((rows.fingerprint(), &rows), (expected.fingerprint(), &expected));
    }
}

#[test]
fn modes_are_named() {
    for mode in [RowMode::Packed, RowMode::Document] {
        assert_eq!(mode.to_string().parse::<RowMode>().unwrap(), mode);
        assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
    }
    assert!(matches!("pack".parse::<RowMode>(), Err(TextError::RowMode { .. })));
}

/// More text than one group: documents must stay in order over the group's border.
#[test]
fn many_documents_stay_in_order() {
    let texts: Vec<String> = (0..5).map(|i| i.to_string().repeat(GROUP / 2 + i)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let rows = build(&texts, RowMode::Document, 2);
    let firsts: Vec<i32> = (0..rows.len()).map(|i| rows.row(i).unwrap().inputs[0]).collect();
    assert_eq!(firsts, ids("01234"));
}

fn small_bpe(texts: &[String]) -> Tokenizer {
    let train = texts.iter().map(|text| Document { name: String::new(), text: text.clone() }).collect();
    let corpus = Corpus { train, ..Corpus::default() };
    TokenizerSpec::Bpe { entries: 280 }.load(&corpus, None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_rows_use_each_token_once_and_hold_the_whole_text(
        texts in prop::collection::vec("[ab \u{20AC}\n]{1,40}", 1..12),
        context in 1_usize..30,
        bpe: bool,
    ) {
        let tokenizer = if bpe { small_bpe(&texts) } else { Tokenizer::bytes() };
        let end = tokenizer.end_of_text().unwrap();
        let documents: Vec<Document> = texts.iter().map(|text| Document { name: String::new(), text: text.clone() }).collect();
        let rows = Rows::build(&documents, &tokenizer, RowMode::Packed, context).unwrap();

        let (mut inputs, mut targets, mut bytes) = (Vec::<i32>::new(), Vec::<i32>::new(), 0);
        for index in 0..rows.len() {
            let row = rows.row(index).unwrap();
            prop_assert_eq!((row.inputs.len(), row.targets.len()), (context, context));
            prop_assert_eq!(row.targets.iter().filter(|&&t| t != IGNORE).count(), row.target_tokens);
            // Only the last row may be short, and its targets come first.
            prop_assert!(row.target_tokens == context || index == rows.len() - 1);
            prop_assert!(row.target_tokens > 0);
            inputs.extend(&row.inputs[..row.target_tokens]);
            targets.extend(&row.targets[..row.target_tokens]);
            bytes += row.target_bytes;
        }
        // Each target is the next input, and the targets are all tokens of all documents once.
        prop_assert_eq!(&inputs[1..], &targets[..targets.len() - 1]);
        prop_assert_eq!(inputs[0], end as i32);
        let mut expected = Vec::new();
        for text in &texts {
            expected.extend(tokenizer.encode(text).unwrap());
            expected.push(end);
        }
        let targets: Vec<u32> = targets.into_iter().map(|t| t as u32).collect();
        prop_assert_eq!(&targets, &expected);
        prop_assert_eq!(bytes, texts.iter().map(|text| text.len() as u64).sum::<u64>());
        prop_assert_eq!(rows.stats().target_tokens, targets.len() as u64);
        prop_assert_eq!(rows.stats().target_bytes, bytes);
        let decoded: Vec<String> = targets
            .split(|&id| id == end)
            .map(|ids| tokenizer.decode(ids, SpecialTokens::Keep).unwrap())
            .collect();
        prop_assert_eq!(&decoded[..texts.len()], &texts[..]);
    }

    #[test]
    fn any_changed_token_changes_the_fingerprint(
        texts in prop::collection::vec("[a-e]{1,12}", 1..8),
        place: prop::sample::Index,
        id: u32,
    ) {
        let rows = build(&texts.iter().map(String::as_str).collect::<Vec<_>>(), RowMode::Packed, 5);
        let mut other = rows.clone();
        let token = place.get(&rows.tokens);
        prop_assume!(*token != id);
        other.tokens[place.index(rows.tokens.len())] = id;
        prop_assert_ne!(other.fingerprint(), rows.fingerprint());
    }

    /// Row lengths beyond all bounds overflowed sums and lists.
    #[test]
    fn any_row_length_gives_rows_or_an_error(
        texts in prop::collection::vec("[a-e]{0,12}", 0..4),
        context in prop_oneof![
            0_usize..20,
            (MAX_CONTEXT - 1)..=(MAX_CONTEXT + 1),
            (u32::MAX as usize - 1)..=(u32::MAX as usize + 1),
            (usize::MAX - 20)..=usize::MAX,
            any::<usize>(),
        ],
        packed: bool,
    ) {
        let mode = if packed { RowMode::Packed } else { RowMode::Document };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match Rows::build(&documents(&texts), &Tokenizer::bytes(), mode, context) {
            Ok(rows) => {
                prop_assert!(context <= MAX_CONTEXT);
                prop_assert_eq!(
                    rows.stats().target_tokens + rows.stats().ignored_targets,
                    u64::from(rows.len()) * context as u64
                );
                let row = rows.row(0).unwrap();
                prop_assert_eq!((row.inputs.len(), row.targets.len()), (context, context));
            }
            Err(TextError::ContextTooLong { .. }) => prop_assert!(context > MAX_CONTEXT),
            Err(TextError::ContextTooShort { .. }) => prop_assert!(context < mode.least_context()),
            Err(error) => prop_assert!(matches!(error, TextError::NoRows { .. }), "{}", error),
        }
    }

    #[test]
    fn document_rows_are_the_start_of_each_document(
        texts in prop::collection::vec("[a-e]{1,12}", 1..8),
        context in 2_usize..16,
    ) {
        let rows = build(&texts.iter().map(String::as_str).collect::<Vec<_>>(), RowMode::Document, context);
        prop_assert_eq!(rows.len() as usize, texts.len());
        for (index, text) in (0..).zip(&texts) {
            let mut tokens = ids(text);
            tokens.push(END);
            tokens.truncate(context);
            let row = rows.row(index).unwrap();
            for place in 0..context {
                prop_assert_eq!(row.inputs[place], *tokens.get(place).unwrap_or(&END));
                prop_assert_eq!(row.targets[place], *tokens.get(place + 1).unwrap_or(&IGNORE));
            }
            let counted: Vec<i32> = row.targets.iter().copied().filter(|&t| t != IGNORE).collect();
            prop_assert_eq!(row.target_tokens, counted.len());
            prop_assert_eq!(row.target_bytes as usize, counted.iter().filter(|&&t| t != END).count());
        }
    }
}
