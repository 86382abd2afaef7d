//! Holding out a share of the user's documents.

use super::{Document, TextError, corpus::total_bytes};

pub(super) struct Parts {
    pub train: Vec<Document>,
    pub held_out: Vec<Document>,
    pub rule: String,
}

pub(super) fn check(fraction: f64) -> Result<(), TextError> {
    if (0.0..1.0).contains(&fraction) { Ok(()) } else { Err(TextError::HeldOutFraction { fraction }) }
}

/// Goes through the documents in the order of a hash of their text and holds each out as long as the held-out bytes stay
/// within `fraction` of all bytes. Equal texts are one unit, so that no held-out text is also trained on. If nothing
/// fits, the end of the largest document is held out.
///
/// Counted in bytes, not in documents, because documents differ in size: of three books one is a third of the text,
/// whatever share was asked for.
pub(super) fn by_fraction(documents: Vec<Document>, fraction: f64) -> Result<Parts, TextError> {
    check(fraction)?;
    if fraction == 0.0 {
        return Ok(Parts { train: documents, held_out: Vec::new(), rule: "nothing is held out".to_owned() });
    }
    let bytes = total_bytes(&documents);
    // Rounded down, and never everything: the share is less than 1.
    let budget = ((bytes as f64 * fraction) as u64).min(bytes.saturating_sub(1));
    let mut keys: Vec<(u64, usize)> = documents.iter().map(|d| key(&d.text)).zip(0..).collect();
    keys.sort_unstable();

    let mut is_held_out = vec![false; documents.len()];
    let mut held = 0;
    for equal in keys.chunk_by(|a, b| a.0 == b.0) {
        let size: u64 = equal.iter().map(|&(_, i)| documents[i].text.len() as u64).sum();
        if held + size <= budget {
            held += size;
            for &(_, i) in equal {
                is_held_out[i] = true;
            }
        }
    }
    if held == 0 {
        return cut_the_largest(documents, budget, fraction);
    }
    let (mut train, mut held_out) = (Vec::new(), Vec::new());
    for (document, is_held_out) in documents.into_iter().zip(is_held_out) {
        if is_held_out {
            held_out.push(document);
        } else {
            train.push(document);
        }
    }
    Ok(Parts {
        train,
        held_out,
        rule: format!(
            "{:.1}% of the bytes were asked for; whole documents, chosen by a hash of their text",
            100.0 * fraction
        ),
    })
}

fn cut_the_largest(mut documents: Vec<Document>, budget: u64, fraction: f64) -> Result<Parts, TextError> {
    let too_little = TextError::TooLittleText { bytes: total_bytes(&documents), fraction };
    // The first of the largest ones: `max_by_key` would take the last.
    let Some(largest) = documents.iter_mut().rev().max_by_key(|d| d.text.len()) else {
        return Err(too_little);
    };
    // Nothing fitted, so a document is larger than the budget, unless it is there several times: then this is 0.
    let cut = largest.text.len().saturating_sub(budget as usize);
    let cut = largest.text.floor_char_boundary(cut);
    if cut == 0 || cut == largest.text.len() {
        return Err(too_little);
    }
    let held_out = Document { name: format!("{} from byte {cut}", largest.name), text: largest.text.split_off(cut) };
    let rule = format!(
        "{:.1}% of the bytes were asked for and no document is that small; the end of {} from byte {cut}",
        100.0 * fraction,
        largest.name
    );
    Ok(Parts { train: documents, held_out: vec![held_out], rule })
}

/// A hash of the text that no version of Rust or of a crate changes: CRC-32 and the length, mixed by the finalizer of
/// SplitMix64.
fn key(text: &str) -> u64 {
    let mut z = u64::from(crc32fast::hash(text.as_bytes())) | (text.len() as u64) << 32;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn documents(texts: &[&str]) -> Vec<Document> {
        texts.iter().enumerate().map(|(i, text)| Document { name: format!("d{i}"), text: (*text).to_owned() }).collect()
    }

    #[test]
    fn a_single_document_loses_its_end_at_a_character_boundary() {
        // 20 bytes, a tenth is 2: the cut at 18 would fall into the last letter (bytes 17 to 19).
        let parts = by_fraction(documents(&["abcdefghijklmnopq\u{20AC}"]), 0.1).unwrap();
        assert_eq!(parts.train[0].text, "abcdefghijklmnopq");
        assert_eq!(parts.held_out[0].text, "\u{20AC}");
        assert_eq!(parts.held_out[0].name, "d0 from byte 17");
    }

    #[test]
    fn few_large_documents_lose_the_end_of_the_largest() {
        let long = "long ".repeat(30);
        let parts = by_fraction(documents(&[&"a".repeat(100), &long, &"c".repeat(50)]), 0.1).unwrap();
        assert_eq!(parts.train.len(), 3);
        assert_eq!(parts.train[1].text.len() + 30, long.len());
        assert_eq!(parts.held_out[0].text, long[120..]);
    }

    #[test]
    fn too_little_text_is_refused() {
        for texts in [&["a"][..], &[], &["\u{20AC}"]] {
            assert!(matches!(by_fraction(documents(texts), 0.1), Err(TextError::TooLittleText { .. })));
        }
    }

    /// Rounding the share up once held out both copies and left nothing to train on.
    #[test]
    fn the_only_text_is_not_held_out_whole() {
        assert!(matches!(by_fraction(documents(&["a", "a"]), 0.98), Err(TextError::TooLittleText { .. })));
    }

    #[test]
    fn a_share_outside_zero_to_one_is_refused() {
        for fraction in [-0.1, 1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                by_fraction(documents(&["some text", "more text"]), fraction),
                Err(TextError::HeldOutFraction { .. })
            ));
        }
    }

    #[test]
    fn no_share_keeps_everything() {
        let parts = by_fraction(documents(&["a", "b"]), 0.0).unwrap();
        assert_eq!((parts.train.len(), parts.held_out.len()), (2, 0));
    }

    #[test]
    fn many_documents_give_the_share_that_was_asked_for() {
        let texts: Vec<String> = (0..2000).map(|i| format!("document {i}").repeat(1 + i % 7)).collect();
        let all = documents(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let bytes = total_bytes(&all) as f64;
        let parts = by_fraction(all, 0.05).unwrap();
        let share = total_bytes(&parts.held_out) as f64 / bytes;
        assert!((0.0495..=0.05).contains(&share), "{share}");
        // Chosen over the whole list, not from one end: 57 are expected in each half, with a deviation of 5.
        let first_half = parts.held_out.iter().filter(|d| d.name[1..].parse::<usize>().unwrap() < 1000);
        assert!((30..=80).contains(&first_half.count()));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_equal_texts_stay_together(
            texts in prop::collection::vec("[ab]{1,4}", 2..40),
            fraction in 0.01..0.99_f64,
            turn in 0_usize..40,
        ) {
            let all = documents(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let Ok(parts) = by_fraction(all.clone(), fraction) else { return Ok(()) };
            let total: u64 = total_bytes(&all);
            prop_assert_eq!(total_bytes(&parts.train) + total_bytes(&parts.held_out), total);
            prop_assert!(!parts.train.is_empty() && !parts.held_out.is_empty());
            if parts.held_out[0].name.contains("from byte") { return Ok(()) }
            for document in &parts.held_out {
                prop_assert!(parts.train.iter().all(|d| d.text != document.text));
            }
            // Another order of the files holds out the same texts.
            let mut turned = all;
            turned.rotate_left(turn % texts.len());
            let mut again: Vec<_> = by_fraction(turned, fraction).unwrap().held_out.into_iter().map(|d| d.text).collect();
            let mut first: Vec<_> = parts.held_out.into_iter().map(|d| d.text).collect();
            again.sort();
            first.sort();
            prop_assert_eq!(again, first);
        }
    }
}
