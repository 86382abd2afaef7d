//! Folders and paths.

use std::{fs, path::Path};

use datasets::text::{Corpus, TextError};

use crate::{Folder, error, everything, message, texts};

#[test]
fn folders_are_searched_in_the_order_of_names() {
    let folder = Folder::new();
    for name in ["b.txt", "a/z.txt", "a/b/c.TXT", "c.jsonl", "a.txt"] {
        let contents = if name.ends_with("jsonl") { format!("{{\"text\": \"{name}\"}}") } else { name.to_owned() };
        folder.write(name, contents);
    }
    folder.write("README.md", "read me");
    folder.write("a/notes.doc", "notes");
    folder.write(".hidden.txt", "hidden");
    folder.write(".cache/d.txt", "hidden too");
    let corpus = Corpus::open(&[folder.0.path()], &everything()).unwrap();
    let texts: Vec<&str> = corpus.train.iter().map(|d| d.text.as_str()).collect();
    assert_eq!(texts, ["a/b/c.TXT", "a/z.txt", "a.txt", "b.txt", "c.jsonl"]);
    assert_eq!(corpus.ignored_files, [folder.path("README.md"), folder.path("a/notes.doc")]);
    assert!(corpus.to_string().contains("passed over: 2 file(s) of other formats"), "{corpus}");
}

#[test]
fn paths_keep_their_order_and_a_file_is_read_once() {
    let folder = Folder::new();
    let b = folder.write("b.txt", "b");
    folder.write("a.txt", "a");
    let again = folder.path("./b.txt");
    let corpus = Corpus::open(&[&b, &folder.0.path().to_owned(), &again], &everything()).unwrap();
    assert_eq!(corpus.train.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn a_folder_without_usable_files_is_refused() {
    let folder = Folder::new();
    assert!(message(folder.0.path()).contains("it is empty"), "{}", message(folder.0.path()));
    folder.write("a.md", "text");
    folder.write("b/c.parquet.gz", "text");
    let message = message(folder.0.path());
    assert!(message.contains("holds no usable file (passed over: a.md, c.parquet.gz)"), "{message}");
}

#[test]
fn a_bad_file_in_a_folder_is_not_skipped() {
    let folder = Folder::new();
    folder.write("a.txt", "fine");
    let bad = folder.write("b/c.txt", b"\xFF");
    let message = error(folder.0.path()).to_string();
    assert!(message.contains(&bad.display().to_string()), "{message}");
}

#[test]
fn paths_that_are_missing_or_of_no_format_are_refused() {
    let folder = Folder::new();
    let missing = folder.path("missing.txt");
    assert!(matches!(error(&missing), TextError::NotFound { .. }));
    assert!(message(&missing).contains("does not exist"));
    let other = folder.write("a.md", "text");
    assert!(message(&other).contains("is in no known format: use .txt"), "{}", message(&other));
    assert!(matches!(Corpus::open::<&Path>(&[], &everything()), Err(TextError::NoPaths)));
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_circles_refused() {
    let folder = Folder::new();
    folder.write("blobs/123", "linked");
    fs::create_dir(folder.path("data")).unwrap();
    std::os::unix::fs::symlink(folder.path("blobs/123"), folder.path("data/a.txt")).unwrap();
    assert_eq!(texts(&folder.path("data")), ["linked"]);
    std::os::unix::fs::symlink(folder.path("data"), folder.path("data/circle")).unwrap();
    let message = error(&folder.path("data")).to_string();
    assert!(message.contains("circle") && message.contains("leads back"), "{message}");
}
