//! Plain text and its encodings, gzip, empty files.

use datasets::text::{Corpus, TextError};
use parquet::basic::Compression;

use crate::{Folder, error, everything, gzip, message, parquet_files::write_parquet, texts};

#[test]
fn a_text_file_is_one_document() {
    let folder = Folder::new();
    let path = folder.write("a.txt", "one\n\ntwo\n");
    let corpus = Corpus::open(&[&path], &everything()).unwrap();
    assert_eq!(corpus.train.len(), 1);
    assert_eq!(corpus.train[0].text, "one\n\ntwo\n");
    assert_eq!(corpus.train[0].name, path.display().to_string());
    assert_eq!(texts(&folder.write_gzip("b.txt.gz", "one\n\ntwo\n")), ["one\n\ntwo\n"]);
}

#[test]
fn a_byte_order_mark_is_stripped_and_windows_line_ends_are_folded() {
    let folder = Folder::new();
    let path = folder.write("a.txt", "\u{FEFF}one\r\ntwo\rthree\n\r\n\u{FEFF}");
    // A lone carriage return and a mark inside the text are text.
    assert_eq!(texts(&path), ["one\ntwo\rthree\n\n\u{FEFF}"]);
    let path = folder.write("b.jsonl", "\u{FEFF}{\"text\": \"one\\r\\ntwo\"}\r\n{\"text\": \"\u{FEFF}three\"}\r\n");
    assert_eq!(texts(&path), ["one\ntwo", "three"]);
}

#[test]
fn an_invalid_byte_is_named_with_its_offset() {
    let folder = Folder::new();
    let path = folder.write("a.txt", b"\xEF\xBB\xBFna\xC3\xAFve caf\xE9!");
    let TextError::InvalidUtf8 { offset, byte, compressed, .. } = error(&path) else { panic!() };
    // The mark counts: the offset is the one that an editor or `xxd` shows.
    assert_eq!((offset, byte, compressed), (13, 0xE9, false));
    assert!(message(&path).contains("byte 0xE9 at offset 13: convert the file to UTF-8"), "{}", message(&path));

    let path = folder.write_gzip("b.txt.gz", b"abc\xFF");
    assert!(message(&path).contains("offset 3 of the decompressed text"), "{}", message(&path));

    let path = folder.write("c.jsonl", b"{\"text\": \"one\"}\n{\"text\": \"tw\xF6\"}\n");
    let TextError::InvalidUtf8 { offset, byte, .. } = error(&path) else { panic!() };
    assert_eq!((offset, byte), (28, 0xF6));
}

#[test]
fn likely_causes_of_invalid_bytes_are_named() {
    let folder = Folder::new();
    let utf16 = folder.write("a.txt", b"\xFF\xFEo\0n\0e\0");
    assert!(message(&utf16).contains("looks like UTF-16"), "{}", message(&utf16));
    let gzipped = folder.write("b.txt", gzip(b"text"));
    // The first byte of a gzip file is valid UTF-8, the second is not.
    assert!(message(&gzipped).contains("looks like gzip"), "{}", message(&gzipped));
}

#[test]
fn files_without_text_are_refused() {
    let folder = Folder::new();
    for path in [
        folder.write("a.txt", ""),
        folder.write("b.txt", "\u{FEFF}"),
        folder.write_gzip("c.txt.gz", ""),
        folder.write("d.txt.gz", ""),
        folder.write("e.jsonl", ""),
        folder.write("f.jsonl", "\n\n"),
        folder.write("g.jsonl", "{\"text\": \"\"}\n{\"text\": null}\n"),
        folder.write("h.parquet", ""),
        write_parquet(&folder.path("i.parquet"), &[], Compression::UNCOMPRESSED),
        write_parquet(&folder.path("j.parquet"), &[&[None, Some(b"")]], Compression::UNCOMPRESSED),
    ] {
        assert!(matches!(error(&path), TextError::EmptyFile { .. }), "{}: {}", path.display(), error(&path));
        assert!(message(&path).contains("holds no text"));
    }
}

#[test]
fn a_cut_or_damaged_gzip_file_is_refused() {
    let folder = Folder::new();
    let text: String = (0..2000).map(|i| format!("line {i}\n")).collect();
    let whole = gzip(text.as_bytes());
    let lines: String = (0..2000).map(|i| format!("{{\"text\": \"line {i}\"}}\n")).collect();
    let whole_lines = gzip(lines.as_bytes());
    for cut in [5, 10, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let path = folder.write("a.txt.gz", &whole[..cut]);
        assert!(matches!(error(&path), TextError::Gzip { .. }), "{cut}: {}", error(&path));
        assert!(message(&path).contains("not a whole gzip file"));
        let path = folder.write("b.jsonl.gz", &whole_lines[..cut.min(whole_lines.len() - 1)]);
        assert!(matches!(error(&path), TextError::Gzip { .. }), "{cut}: {}", error(&path));
    }
    let mut damaged = whole.clone();
    let checksum = whole.len() - 6;
    damaged[checksum] ^= 1;
    assert!(matches!(error(&folder.write("c.txt.gz", damaged)), TextError::Gzip { .. }));
    assert!(matches!(error(&folder.write("d.txt.gz", "not gzip at all")), TextError::Gzip { .. }));
}

/// Large collections are often many gzip streams one after the other: all of them count.
#[test]
fn all_streams_of_a_gzip_file_are_read() {
    let folder = Folder::new();
    let path = folder.write("a.txt.gz", [gzip(b"one "), gzip(b"two")].concat());
    assert_eq!(texts(&path), ["one two"]);
}
