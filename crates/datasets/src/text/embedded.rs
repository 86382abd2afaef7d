//! The default text: the King James Bible from the crate `bible-lib`.

use std::collections::HashMap;

use bible_lib::{Bible, BibleLookup, Translation};

use super::{Corpus, Document, TextError};

/// The books that are held out from the embedded text, a tenth of its bytes: history, a tale, wisdom, a lament, visions,
/// a prophet, a gospel, a letter.
///
/// Whole books, because chapters of one book share names and phrases. Books that retell another one (Chronicles and
/// Kings, the first three gospels) are not among them: at most 1.5% of the eight-word sequences of each of these stand
/// anywhere else in the text.
pub const HELD_OUT_BOOKS: [&str; 8] =
    ["judges", "esther", "proverbs", "lamentations", "daniel", "amos", "john", "james"];

pub(super) fn corpus() -> Result<Corpus, TextError> {
    let bible =
        Bible::new(Translation::KingJames).map_err(|error| TextError::Embedded { reason: error.to_string() })?;
    let (mut train, mut held_out) = (Vec::new(), Vec::new());
    // `bible-lib` keeps everything in hash maps: books come in the canonical order, chapters and verses by number.
    for book in bible.get_sorted_books() {
        let Some(chapters) = bible.verses.get(&book) else {
            continue;
        };
        let part = if HELD_OUT_BOOKS.contains(&book.as_str()) { &mut held_out } else { &mut train };
        let title = BibleLookup::capitalize_book(&book);
        for (chapter, verses) in by_number(chapters) {
            let name = format!("{title} {chapter}");
            let mut text = name.clone();
            for (_, verse) in by_number(verses) {
                text.push('\n');
                text.push_str(verse);
            }
            part.push(Document { name, text });
        }
    }
    Ok(Corpus {
        train,
        held_out,
        source: "King James Bible, embedded (crate bible-lib; a verse ends at its first colon)".to_owned(),
        held_out_rule: format!("the books of {}", HELD_OUT_BOOKS.join(", ")),
        ignored_files: Vec::new(),
        empty_documents: 0,
        left_out_documents: 0,
    })
}

fn by_number<T>(entries: &HashMap<u32, T>) -> Vec<(u32, &T)> {
    let mut sorted: Vec<_> = entries.iter().map(|(&number, entry)| (number, entry)).collect();
    sorted.sort_unstable_by_key(|&(number, _)| number);
    sorted
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::text::corpus::total_bytes;

    /// Figures that docs/data.md states, and a checksum so that a new version of `bible-lib` cannot change the text,
    /// and with it every measured loss, unseen.
    #[test]
    fn is_the_text_that_the_documentation_describes() {
        let corpus = corpus().unwrap();
        assert_eq!((corpus.train.len(), total_bytes(&corpus.train)), (1075, 3_128_348));
        assert_eq!((corpus.held_out.len(), total_bytes(&corpus.held_out)), (114, 348_376));
        assert_eq!(checksum(&corpus.train), 0xDFAF_2B09);
        assert_eq!(checksum(&corpus.held_out), 0x7F3F_F0D8);
    }

    fn checksum(documents: &[Document]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for document in documents {
            hasher.update(document.text.as_bytes());
            hasher.update(b"\0");
        }
        hasher.finalize()
    }

    #[test]
    fn chapters_are_documents_in_canonical_order() {
        let corpus = corpus().unwrap();
        assert_eq!(corpus.train[0].name, "Genesis 1");
        assert_eq!(corpus.train.last().unwrap().name, "Revelation 22");
        assert_eq!(corpus.held_out[0].name, "Judges 1");
        assert_eq!(corpus.held_out.last().unwrap().name, "James 5");
        let genesis = &corpus.train[0].text;
        assert!(
            genesis.starts_with("Genesis 1\nIn the beginning God created the heaven and the earth.\nAnd the earth was"),
            "{genesis}"
        );
        assert_eq!(genesis.lines().count(), 32);
    }

    #[test]
    fn every_held_out_book_exists_and_none_is_trained_on() {
        let corpus = corpus().unwrap();
        let book = |document: &Document| document.name.rsplit_once(' ').unwrap().0.to_lowercase();
        for name in HELD_OUT_BOOKS {
            assert!(corpus.held_out.iter().any(|d| book(d) == name), "{name}");
            assert!(corpus.train.iter().all(|d| book(d) != name), "{name}");
        }
        let share =
            total_bytes(&corpus.held_out) as f64 / (total_bytes(&corpus.held_out) + total_bytes(&corpus.train)) as f64;
        assert!((0.095..0.105).contains(&share), "{share}");
    }

    /// The figure of docs/data.md: how much of a held-out book another book repeats.
    #[test]
    fn held_out_books_share_few_eight_word_sequences_with_others() {
        let corpus = corpus().unwrap();
        let book = |document: &Document| document.name.rsplit_once(' ').unwrap().0.to_lowercase();
        // The books that each sequence stands in.
        let mut books_of: HashMap<Vec<&str>, HashSet<String>> = HashMap::new();
        for document in corpus.train.iter().chain(&corpus.held_out) {
            // The first line is the title.
            let words: Vec<&str> = document.text.lines().skip(1).flat_map(str::split_whitespace).collect();
            for sequence in words.windows(8) {
                books_of.entry(sequence.to_vec()).or_default().insert(book(document));
            }
        }
        let share = |name: &str| {
            let of_book: Vec<_> = books_of.values().filter(|books| books.contains(name)).collect();
            assert!(of_book.len() > 1000, "{name}: {} sequences", of_book.len());
            of_book.iter().filter(|books| books.len() > 1).count() as f64 / of_book.len() as f64
        };
        for name in HELD_OUT_BOOKS {
            assert!(share(name) <= 0.015, "{name}: {}", share(name));
        }
        // Books that others retell are far above, so the figure does tell them apart.
        for name in ["matthew", "mark", "luke"] {
            assert!(share(name) > 0.03, "{name}: {}", share(name));
        }
    }
}
