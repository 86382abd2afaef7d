use super::*;
use crate::text::{Document, IGNORE, RowMode, Rows, Tokenizer, tokenizer::Provenance};

/// A small T5-like tokenizer: lower case, words with a space mark, `</s>` after each text, padding 0, gaps in the ids.
fn t5_like(settings: &str) -> String {
    format!(
        r#"{{"version":"1.0",{settings},
        "added_tokens":[
            {{"id":0,"content":"<pad>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}},
            {{"id":1,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}}],
        "normalizer":{{"type":"Sequence","normalizers":[{{"type":"Lowercase"}},{{"type":"Strip","strip_left":true,"strip_right":true}}]}},
        "pre_tokenizer":{{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}},
        "post_processor":{{"type":"TemplateProcessing",
            "single":[{{"Sequence":{{"id":"A","type_id":0}}}},{{"SpecialToken":{{"id":"</s>","type_id":0}}}}],
            "pair":[{{"Sequence":{{"id":"A","type_id":0}}}},{{"Sequence":{{"id":"B","type_id":0}}}}],
            "special_tokens":{{"</s>":{{"id":"</s>","ids":[1],"tokens":["</s>"]}}}}}},
        "decoder":{{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}},
        "model":{{"type":"WordLevel","unk_token":"<unk>",
            "vocab":{{"<pad>":0,"</s>":1,"<unk>":2,"▁the":5,"▁fox":7,"▁runs":9}}}}}}"#
    )
}

const NO_SETTINGS: &str = r#""truncation":null,"padding":null"#;

fn tokenizer(json: &str) -> Tokenizer {
    Tokenizer::from_hugging_face(HuggingFace::from_json(json).unwrap(), Provenance::File("t".into()))
}

#[test]
fn names_and_size_are_found() {
    let tokenizer = tokenizer(&t5_like(NO_SETTINGS));
    // Six tokens, but the largest id is 9.
    assert_eq!(tokenizer.vocabulary_size(), 10);
    assert_eq!((tokenizer.end_of_text(), tokenizer.pad(), tokenizer.filler()), (Some(1), Some(0), 0));
    assert_eq!(tokenizer.template(), (&[][..], &[1][..]));
    assert_eq!(tokenizer.encode("The fox").unwrap(), [5, 7]);
    assert_eq!(tokenizer.encode_with_special_tokens("The fox").unwrap(), [5, 7, 1]);
    assert_eq!(tokenizer.token(5).as_deref(), Some("▁the"));
}

/// Such an id would reach the embedding of a model that has no entry for it.
#[test]
fn a_template_with_an_id_outside_the_vocabulary_is_refused() {
    let json = t5_like(NO_SETTINGS).replace(r#""ids":[1]"#, r#""ids":[4000000000]"#);
    assert_eq!(
        HuggingFace::from_json(&json).unwrap_err(),
        "its template uses the id 4000000000, but the largest of its vocabulary is 9"
    );
}

#[test]
fn an_id_in_a_gap_is_refused() {
    let tokenizer = tokenizer(&t5_like(NO_SETTINGS));
    assert_eq!(tokenizer.decode(&[5, 7, 1], SpecialTokens::Skip).unwrap(), "the fox");
    for id in [3, 8, 10, u32::MAX] {
        assert!(tokenizer.decode(&[5, id], SpecialTokens::Keep).is_err(), "{id}");
    }
}

/// A file saved by a training script would otherwise cut every text to four tokens and pad it.
#[test]
fn stored_truncation_and_padding_are_switched_off() {
    let plain = tokenizer(&t5_like(NO_SETTINGS));
    let settings = r#""truncation":{"direction":"Right","max_length":4,"strategy":"LongestFirst","stride":0},
        "padding":{"strategy":{"Fixed":20},"direction":"Right","pad_to_multiple_of":null,"pad_id":2,"pad_type_id":0,"pad_token":"<unk>"}"#;
    let stored = tokenizer(&t5_like(settings));
    let text = "the fox runs the fox runs the fox runs";
    assert_eq!(stored.encode_with_special_tokens(text).unwrap(), plain.encode_with_special_tokens(text).unwrap());
    assert_eq!(plain.encode(text).unwrap().len(), 9);
    // The padding token that the file names is still known.
    assert_eq!(stored.pad(), Some(2));
}

#[test]
fn dropout_is_switched_off() {
    let json = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":null,"post_processor":null,"decoder":null,
        "model":{"type":"BPE","dropout":0.9,"unk_token":null,"vocab":{"a":0,"b":1,"ab":2,"abab":3},
        "merges":[["a","b"],["ab","ab"]]}}"#;
    let tokenizer = tokenizer(json);
    for _ in 0..50 {
        assert_eq!(tokenizer.encode("abab").unwrap(), [3]);
    }
    assert_eq!((tokenizer.end_of_text(), tokenizer.pad(), tokenizer.filler()), (None, None, 0));
}

#[test]
fn bytes_of_a_changed_text_add_up() {
    let tokenizer = tokenizer(&t5_like(NO_SETTINGS));
    // Outer spaces are stripped, letters lowered: the first token takes what stands before it, the last what follows.
    let encoded = tokenizer.encode_counted("  The FOX  runs \n").unwrap();
    assert_eq!(encoded.bytes.iter().sum::<u32>(), 17);
    assert_eq!(encoded.ids.first(), Some(&5));
    assert_eq!(encoded.bytes.first(), Some(&5));
    // A text that gives no token stands for nothing.
    assert_eq!(tokenizer.encode_counted("   ").unwrap(), EncodedText::default());
}

#[test]
fn bytes_from_ends_add_up_whatever_the_ends_are() {
    assert_eq!(bytes_from_ends([3, 7].into_iter(), 7), [3, 4]);
    // Two tokens of one letter; a gap; a token that ends before the one before; a dropped end; an end past the text.
    assert_eq!(bytes_from_ends([4, 4, 9, 6, 10].into_iter(), 12), [4, 0, 5, 0, 3]);
    assert_eq!(bytes_from_ends([20, 3].into_iter(), 12), [12, 0]);
    assert!(bytes_from_ends([].into_iter(), 12).is_empty());
}

/// The paper's rows: what `tokenizer(text, max_length=T, truncation=True, padding="max_length")` gives in Python.
#[test]
fn document_rows_are_those_of_the_library() {
    let json = t5_like(NO_SETTINGS);
    let tokenizer = tokenizer(&json);
    let texts = ["the", "the fox runs", "the fox runs the", "runs the fox runs the fox"];
    let documents = texts.map(|text| Document { name: String::new(), text: text.to_owned() });
    for context in 2..8 {
        let mut library: Inner = json.parse().unwrap();
        library
            .with_truncation(Some(tokenizers::TruncationParams { max_length: context, ..Default::default() }))
            .unwrap();
        let rows = Rows::build(&documents, &tokenizer, RowMode::Document, context).unwrap();
        for (index, text) in (0..).zip(texts) {
            let expected: Vec<i32> =
                library.encode(text, true).unwrap().get_ids().iter().map(|&id| id as i32).collect();
            let row = rows.row(index).unwrap();
            for place in 0..context {
                assert_eq!(row.inputs[place], *expected.get(place).unwrap_or(&0), "{text}, {context}");
                assert_eq!(row.targets[place], *expected.get(place + 1).unwrap_or(&IGNORE), "{text}, {context}");
            }
        }
    }
    // "the fox runs" cut to the, fox, </s>: the targets " fox" and </s> stand for four bytes.
    let rows = Rows::build(&documents[1..2], &tokenizer, RowMode::Document, 3).unwrap();
    assert_eq!((rows.stats().target_tokens, rows.stats().target_bytes), (2, 4));
    assert_eq!((rows.stats().truncated_documents, rows.stats().truncated_tokens), (1, 1));
}

#[test]
fn packed_rows_without_an_end_of_text_join_the_documents() {
    let json = t5_like(NO_SETTINGS).replace("</s>", "<stop>");
    let tokenizer = tokenizer(&json);
    assert_eq!(tokenizer.end_of_text(), None);
    let documents = ["the fox", "runs"].map(|text| Document { name: String::new(), text: text.to_owned() });
    let rows = Rows::build(&documents, &tokenizer, RowMode::Packed, 4).unwrap();
    let row = rows.row(0).unwrap();
    assert_eq!((row.inputs, row.targets), (vec![5, 7, 9, 0], vec![7, 9, IGNORE, IGNORE]));
}

/// A document that gives one token has no target in a row of its own.
#[test]
fn document_rows_without_a_target_are_skipped() {
    let json =
        t5_like(NO_SETTINGS).replace("</s>", "<stop>").replace(r#"{"SpecialToken":{"id":"<stop>","type_id":0}}"#, "");
    let json = json.replace(r#""type_id":0}},]"#, r#""type_id":0}}]"#);
    let tokenizer = tokenizer(&json);
    assert_eq!(tokenizer.template(), (&[][..], &[][..]));
    let documents = ["the", "the fox"].map(|text| Document { name: String::new(), text: text.to_owned() });
    let rows = Rows::build(&documents, &tokenizer, RowMode::Document, 4).unwrap();
    assert_eq!((rows.len(), rows.stats().skipped_documents), (1, 1));
    assert_eq!(rows.row(0).unwrap().inputs, [5, 7, 0, 0]);
}

#[test]
fn files_that_are_no_tokenizers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    for (contents, expected) in [
        (&b"{\"a\": 1}"[..], "is not a usable tokenizer"),
        (b"", "is not a usable tokenizer"),
        (b"\xFF\x00", "it is not UTF-8 text"),
        (t5_like(NO_SETTINGS).replace(":9}", ":4294967295}").as_bytes(), "more than 2^31"),
    ] {
        std::fs::write(&path, contents).unwrap();
        let error = HuggingFace::open(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("tokenizer.json"), "{error}");
    }
    let error = HuggingFace::open(&folder.path().join("none.json")).unwrap_err();
    assert!(matches!(error, TextError::NotFound { .. }), "{error}");
}
