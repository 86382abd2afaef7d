//! JSON lines.

use datasets::text::{Corpus, CorpusOptions};

use crate::{Folder, everything, message};

#[test]
fn every_json_line_is_a_document() {
    let folder = Folder::new();
    let lines = "{\"text\": \"one\\n\\u00e9\", \"url\": \"x\"}\n\n  \n{\"id\": 1, \"text\": \"two\"}\n{\"text\": \"\"}\n{\"text\": null}\n{\"text\": \"three\"}";
    for path in [
        folder.write("a.jsonl", lines),
        folder.write("b.ndjson", lines),
        folder.write("c.json", lines),
        folder.write_gzip("d.jsonl.gz", lines),
        folder.write_gzip("e.json.gz", lines),
    ] {
        let corpus = Corpus::open(&[&path], &everything()).unwrap();
        let texts: Vec<&str> = corpus.train.iter().map(|d| d.text.as_str()).collect();
        assert_eq!(texts, ["one\n\u{e9}", "two", "three"]);
        assert_eq!(corpus.train[1].name, format!("{}:4", path.display()));
        assert_eq!(corpus.empty_documents, 2);
        assert!(corpus.to_string().contains("skipped: 2 empty or null texts"), "{corpus}");
    }
}

#[test]
fn another_field_can_hold_the_text() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", "{\"content\": \"one\", \"text\": 1}\n");
    let options = CorpusOptions { text_field: "content".to_owned(), ..everything() };
    assert_eq!(Corpus::open(&[path], &options).unwrap().train[0].text, "one");
}

#[test]
fn a_line_that_is_not_json_is_named() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"\n");
    let message_a = message(&path);
    assert!(message_a.contains("line 2"), "{message_a}");
    assert!(!message_a.contains("at line 1"), "the parser's own line number misleads: {message_a}");
    for (contents, expected) in [
        ("[\n{\"text\": \"one\"}\n]\n", "line 1"),
        ("[{\"text\": \"one\"}]\n", "it is an array"),
        ("\"one\"\n", "it is a string"),
        ("{\n  \"text\": \"one\"\n}\n", "line 1"),
        ("{\"text\": \"\\ud83d\"}\n", "end of hex escape"),
        ("{\"text\": \"one\"} {\"text\": \"two\"}\n", "trailing characters"),
    ] {
        let path = folder.write("b.jsonl", contents);
        assert!(message(&path).contains(expected), "{contents}: {}", message(&path));
        assert!(message(&path).contains("jq -c"), "{}", message(&path));
    }
}

#[test]
fn a_missing_field_is_named_with_the_fields_there_are() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", "{\"text\": \"one\"}\n{\"url\": \"x\", \"content\": \"two\"}\n");
    assert!(
        message(&path)
            .ends_with("line 2, has no field `text` (found: content, url): name the field that holds the text"),
        "{}",
        message(&path)
    );
    let path = folder.write("b.jsonl", "{}\n");
    assert!(message(&path).contains("(found: nothing)"), "{}", message(&path));
    let path = folder.write("c.jsonl", "{\"text\": [\"one\"]}\n");
    assert!(message(&path).contains("line 1: field `text` holds an array, not a string"), "{}", message(&path));
}
